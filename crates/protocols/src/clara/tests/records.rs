//! Tests of records as the hub and as others write them.

use rialto_core::time::Timestamp;

use super::*;
use crate::clara::Strategy;
use crate::clara::wire::record::{self, AgentRecord, AgentTasks, TaskTotals};
use crate::clara::wire::task::{TaskQuery, TaskRecord, TaskResult};

/// A task with all members.
pub fn task() -> TaskRecord<'static> {
    TaskRecord {
        id: TASK.into(),
        agent_id: Some("A1".into()),
        requester: ALICE.into(),
        reward: credits(20),
        strategy: Strategy::Cheapest,
        payload: Some(r#"{"prompt": 1.50}"#),
        timestamp: Timestamp(1_737_047_831_122),
        block: 1_590_320,
        topic: "tweet".into(),
        context_id: "chat 7".into(),
        requester_id: Some("MINE".into()),
    }
}

/// A task of a requester without an agent.
pub fn plain_task() -> TaskRecord<'static> {
    TaskRecord { context_id: TASK.into(), requester_id: None, ..task() }
}

/// A task without an agent.
pub fn queued_task() -> TaskRecord<'static> {
    TaskRecord { agent_id: None, reward: credits(50), ..plain_task() }
}

/// A result.
pub fn done() -> TaskResult<'static> {
    TaskResult {
        id: TASK.into(),
        agent_id: "A1".into(),
        sender: BOB.into(),
        recipient: ALICE.into(),
        result: Some(r#"{"result":"whatever"}"#),
        timestamp: Timestamp(1_737_063_771_132),
        block: 1_590_451,
    }
}

/// A query.
pub fn query() -> TaskQuery<'static> {
    TaskQuery {
        id: TASK.into(),
        agent_id: "A1".into(),
        requester: ALICE.into(),
        max_reward: credits(50),
        payload: Some("[ ]"),
        topic: "nft".into(),
        timestamp: Timestamp(1_737_047_831_122),
        block: 7,
        closes_at: Timestamp(1_737_047_833_122),
    }
}

/// An agent that has just registered.
pub fn new_agent() -> AgentRecord<'static> {
    AgentRecord {
        id: "A1".into(),
        profile_address: BOB.into(),
        topic: "tweet".into(),
        fee: credits(50),
        metadata: r#"{"url": "x"}"#,
        tasks: AgentTasks::default(),
        protocol: None,
        native_id: None,
        totals: TaskTotals::default(),
    }
}

/// An agent with all members.
pub fn agent() -> AgentRecord<'static> {
    let tasks = AgentTasks {
        inbox: vec![task()],
        outbox: vec![done()],
        declined: vec!["x".into(), "y".into()],
        results: vec![done(), TaskResult { agent_id: "A2".into(), ..done() }],
    };
    let totals = TaskTotals { requested: 1, assigned: 3, done: 1, rewards: credits(20) };
    AgentRecord { tasks, totals, ..new_agent() }
}

#[test]
fn a_task_is_written_as_the_book_says() {
    let printed = format!(
        r#"{{"id":"{TASK}","agentId":"A1","requester":"{ALICE}","reward":"20","matchingStrategy":"cheapest","strategy":"cheapest","payload":{{"prompt": 1.50}},"timestamp":1737047831122,"block":1590320,"topic":"tweet","contextId":"chat 7","requesterId":"MINE"}}"#
    );
    assert_eq!(task().write(), printed);
    let hidden = TaskRecord { payload: None, ..task() }.write();
    assert_eq!(hidden, printed.replace(r#""payload":{"prompt": 1.50},"#, ""));
}

#[test]
fn a_result_and_a_query_are_written_as_the_book_says() {
    let printed = format!(
        r#"{{"id":"{TASK}","agentId":"A1","sender":"{BOB}","recipient":"{ALICE}","result":{{"result":"whatever"}},"timestamp":1737063771132,"block":1590451}}"#
    );
    assert_eq!(done().write(), printed);
    let printed = format!(
        r#"{{"id":"{TASK}","agentId":"A1","requester":"{ALICE}","maxReward":"50","matchingStrategy":"query","payload":[ ],"topic":"nft","timestamp":1737047831122,"block":7,"closesAt":1737047833122}}"#
    );
    assert_eq!(query().write(), printed);
}

#[test]
fn empty_maps_are_lists_and_others_are_keyed_by_task() {
    let printed = format!(
        r#"{{"id":"A1","profileAddress":"{BOB}","topic":"tweet","fee":"50","metadata":{{"url": "x"}},"tasks":{{"inbox":[],"outbox":[],"declined":[],"results":[]}},"totals":{{"requested":0,"assigned":0,"done":0,"rewards":"0"}}}}"#
    );
    assert_eq!(new_agent().write(), printed);
    let other = TaskResult { agent_id: "A2".into(), ..done() };
    let tasks = format!(
        r#""tasks":{{"inbox":{{"{TASK}":{}}},"outbox":{{"{TASK}":{}}},"declined":["x","y"],"results":{{"{TASK}":{},"{TASK}_A2":{}}}}}"#,
        task().write(),
        done().write(),
        done().write(),
        other.write(),
    );
    assert!(agent().write().contains(&tasks));
}

#[test]
fn what_is_written_is_read_back() {
    for expected in [agent(), new_agent()] {
        let text = expected.write();
        assert_eq!(record::read_record::<AgentRecord<'_>>(&text).expect("an agent"), expected);
    }
    for expected in [task(), plain_task(), queued_task(), TaskRecord { payload: None, ..task() }] {
        let text = expected.write();
        assert_eq!(record::read_record::<TaskRecord<'_>>(&text).expect("a task"), expected);
    }
    for expected in [
        done(),
        TaskResult { result: None, ..done() },
        TaskResult { result: Some("null"), ..done() },
    ] {
        let text = expected.write();
        assert_eq!(record::read_record::<TaskResult<'_>>(&text).expect("a result"), expected);
        let text = expected.write_with_task(&task());
        assert_eq!(record::read_record::<TaskResult<'_>>(&text).expect("a result"), expected);
    }
    let text = query().write();
    assert_eq!(record::read_record::<TaskQuery<'_>>(&text).expect("a query"), query());
}

#[test]
fn the_list_of_the_spec_is_read() {
    let text = include_str!("../fixtures/list_agents.json");
    let agents: Vec<AgentRecord<'_>> = record::read_record(text).expect("agents");
    let ids: Vec<&str> = agents.iter().map(|agent| &*agent.id).collect();
    assert_eq!(ids, ["PPE_AGENT_1", "PPE_AGENT_2", "PPE_AGENT_3", "PPE_AGENT_4"]);
    let first = &agents[0];
    assert_eq!((first.fee, &*first.topic), (credits(50), "tweet"));
    let waiting = &first.tasks.inbox[0];
    assert_eq!(waiting.strategy, Strategy::RoundRobin);
    assert_eq!((waiting.reward, waiting.block), (credits(50), 1_590_320));
    assert_eq!((&*waiting.topic, &waiting.context_id), ("", &waiting.id));
    let payload: serde_json::Value =
        serde_json::from_str(waiting.payload.expect("a payload")).expect("JSON");
    assert_eq!(payload["prompt"], "whatever");
    assert_eq!(first.tasks.outbox[0].timestamp, Timestamp(1_737_063_771_132));
    assert!(agents[2].tasks.inbox.is_empty() && agents[2].tasks.outbox.is_empty());
    assert_eq!(agents[3].tasks.inbox[0].strategy, Strategy::Cheapest);
}

#[test]
fn an_assignment_that_says_its_strategy_once_is_read() {
    let text = task().write().replace(r#""strategy":"cheapest","#, "");
    assert_eq!(record::read_record::<TaskRecord<'_>>(&text).expect("a task"), task());
}

#[test]
fn records_that_are_none_are_not_read() {
    for (right, wrong) in [
        (r#""reward":"20""#, r#""reward":20"#),
        (r#""reward":"20""#, r#""reward":"0""#),
        (r#""block":1590320"#, r#""block":-1"#),
        (r#""strategy":"cheapest","payload""#, r#""strategy":"dearest","payload""#),
        (r#""requester":"#, r#""x":"#),
    ] {
        let text = task().write().replace(right, wrong);
        assert_ne!(text, task().write());
        assert!(record::read_record::<TaskRecord<'_>>(&text).is_err(), "{wrong}");
    }
    let text = new_agent().write().replace(r#""inbox":[]"#, r#""inbox":[1]"#);
    assert!(record::read_record::<AgentRecord<'_>>(&text).is_err());
}
