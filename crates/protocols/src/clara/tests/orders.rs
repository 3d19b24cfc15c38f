//! Tests of orders with more or fewer tags than the examples have.

use super::*;
use crate::clara::wire::order::{DeclineTask, LoadNext, SubmitOffer, TaskTrace};
use crate::clara::{BROADCAST, Strategy};

/// The tags of an action.
fn asks<'a>(action: &'a str, more: &[(&'a str, &'a str)]) -> Tags<'a> {
    [&[("Action", action), ("Protocol", "C.L.A.R.A.")], more].concat()
}

#[test]
fn what_the_market_does_not_know_is_no_fault() {
    for tags in [&[][..], &[("Action", "Nop")], &[("Action", "")], &[("action", "List-Agents")]] {
        assert_eq!(order(tags, "?"), Ok(Order::Unknown));
    }
}

#[test]
fn short_orders_are_read() {
    for (action, meant) in [
        ("Tasks-Queue", Order::TasksQueue),
        ("Dispatch-Tasks", Order::DispatchTasks),
        ("Balance", Order::Balance),
        ("Dashboard-Data", Order::Dashboard),
        ("Withdraw", Order::Withdraw),
        ("Withdraw-All", Order::Withdraw),
        ("Claim-Reward", Order::Withdraw),
        ("Claim-Reward-All", Order::Withdraw),
        ("Load-Next-Task-Result", Order::LoadNext(LoadNext::Result { agent_id: None })),
    ] {
        assert_eq!(order(&asks(action, &[]), " "), Ok(meant), "{action}");
    }
}

#[test]
fn agents_load_what_is_theirs() {
    let agent = [("RedStone-Agent-Id", "A1")];
    for (action, meant) in [
        ("Load-Next-Assigned-Task", LoadNext::Task { agent_id: "A1" }),
        ("Load-Next-Task-Result", LoadNext::Result { agent_id: Some("A1") }),
        ("Load-Next-Query", LoadNext::Query { agent_id: "A1" }),
    ] {
        assert_eq!(order(&asks(action, &agent), "1234"), Ok(Order::LoadNext(meant)));
    }
}

#[test]
fn an_offer_names_its_agent_task_and_fee() {
    let more =
        [("RedStone-Agent-Id", "A1"), ("RedStone-Task-Id", TASK), ("RedStone-Agent-Fee", "30")];
    let offer = SubmitOffer { agent_id: "A1", task_id: TASK, fee: credits(30) };
    assert_eq!(order(&asks("Submit-Offer", &more), " "), Ok(Order::SubmitOffer(offer)));
    let dear = asks("Submit-Offer", &[more[0], more[1], ("RedStone-Agent-Fee", "0")]);
    assert_eq!(fault(&dear, " "), "Value Agent-Fee must be positive integer");
}

#[test]
fn a_task_is_also_called_by_its_id_and_its_agent() {
    let declined = |task: &str, agent: &str| {
        let more = [("RedStone-Agent-Id", agent), ("RedStone-Task-Id", task)];
        match order(&asks("Decline-Task", &more), "") {
            Ok(Order::Decline(DeclineTask { task_id, .. })) => task_id.to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(declined(&format!("{TASK}_AO_Agent_1"), "AO_Agent_1"), TASK);
    assert_eq!(declined(TASK, "AO_Agent_1"), TASK);
    // Another agent's copy is not this agent's task, and no part of an id is taken for an agent's
    // name.
    let others = format!("{TASK}_AO_Agent_2");
    assert_eq!(declined(&others, "AO_Agent_1"), others);
    let ending = "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-K_A1";
    assert_eq!((ending.len(), declined(ending, "A1")), (43, ending.to_owned()));
    assert_eq!(declined("é_A1", "A1"), "é");
}

#[test]
fn a_task_says_how_its_agent_is_picked() {
    let task = |tags: &[(&str, &str)]| match order(tags, "{}") {
        Ok(Order::RegisterTask(task)) => (task.strategy, task.is_broadcast()),
        other => panic!("{other:?}"),
    };
    for strategy in Strategy::ALL {
        let tags = with(good::REGISTER_TASK, "RedStone-Agent-Matching", strategy.as_str());
        assert_eq!(task(&tags), (strategy, false));
    }
    let silent = without(good::REGISTER_TASK, "RedStone-Agent-Matching");
    assert_eq!(task(&silent).0, Strategy::RoundRobin);
    let all = with(good::REGISTER_TASK, "RedStone-Agent-Topic", BROADCAST);
    assert_eq!(task(&all), (Strategy::Cheapest, true));
}

#[test]
fn a_task_may_name_agents_and_a_context() {
    let mut tags = good::REGISTER_TASK.tags.to_vec();
    tags.extend([
        ("RedStone-Agent-Id", "MINE"),
        ("Context-Id", "chat 7"),
        ("Target-Agent-Id", "registry/text-analyst-3000-20917bb1"),
        ("Capability", "analyze"),
    ]);
    let Ok(Order::RegisterTask(task)) = order(&tags, " 1.50 ") else { panic!("a task") };
    assert_eq!((task.agent_id, task.context_id), (Some("MINE"), Some("chat 7")));
    assert_eq!(task.target_agent_id, Some("registry/text-analyst-3000-20917bb1"));
    assert_eq!((task.capability, task.payload), (Some("analyze"), "1.50"));
    let empty = with(good::REGISTER_TASK, "Context-Id", "");
    let Ok(Order::RegisterTask(task)) = order(&empty, "{}") else { panic!("a task") };
    assert_eq!(task.context_id, None);
}

#[test]
fn topics_depend_on_the_market_and_its_dialect() {
    let more = Topics::with(["weather", "broadcast"]);
    let known = |topics: &Topics, dialect, topic: &str| {
        (topics.allows_agent(topic, dialect), topics.allows_task(topic, dialect))
    };
    for dialect in [Dialect::Spec, Dialect::Deployed] {
        for topic in ["tweet", "discord", "telegram", "nft"] {
            assert_eq!(known(&Topics::default(), dialect, topic), (true, true));
        }
        assert_eq!(known(&more, dialect, "weather"), (true, true));
        assert_eq!(known(&Topics::default(), dialect, "weather"), (false, false));
        assert_eq!(known(&more, dialect, "broadcast"), (false, true));
        assert_eq!(known(&more, dialect, "Tweet"), (false, false));
        for topic in ["chat", "none"] {
            let deployed = dialect == Dialect::Deployed;
            assert_eq!(known(&Topics::default(), dialect, topic), (deployed, deployed));
        }
    }
}

#[test]
fn a_trace_is_for_who_signs() {
    let tags = asks("Task-Trace", &[("RedStone-Task-Id", TASK)]);
    let trace = TaskTrace { task_id: TASK, agent_id: None };
    assert_eq!(order(&tags, ""), Ok(Order::Trace(trace)));
    let unsigned = IncomingMessage { signed: false, ..message(&tags, "") };
    let read = Order::read(&unsigned, &Topics::default(), Dialect::Spec);
    assert_eq!(read, Err(OrderError::SignToRead));
}

#[test]
fn an_agent_without_a_topic_only_posts_and_may_leave_out_its_fee() {
    let id = ("RedStone-Agent-Id", "P");
    let register = |more: &[(&'static str, &'static str)]| {
        order(
            &[&[("Action", "Register-Agent-Profile"), ("Protocol", "C.L.A.R.A."), id], more]
                .concat(),
            "{}",
        )
    };
    for more in [&[][..], &[("RedStone-Agent-Topic", "")], &[("RedStone-Agent-Fee", "5")]] {
        let Ok(Order::RegisterAgent(agent)) = register(more) else { panic!("{more:?}") };
        assert_eq!((agent.id, agent.service), ("P", None), "{more:?}");
    }
    assert_eq!(register(&[("RedStone-Agent-Fee", "x")]), Err(OrderError::BadFee));
}

#[test]
fn a_name_in_the_metadata_names_the_agent_and_anything_else_leaves_its_id() {
    let named = |data: &'static str| {
        let Ok(Order::RegisterAgent(agent)) = order(good::REGISTER_AGENT.tags, data) else {
            panic!("{data}")
        };
        agent.name()
    };
    assert_eq!(named(r#"{"name":"Nice Writer"}"#), "Nice Writer");
    assert_eq!(named(r#"{"name":" Nice Writer "}"#), "Nice Writer");
    for data in [r#"{"name":""}"#, r#"{"name":7}"#, r#"{"name":"a\u0000"}"#, "[]", "7", "{}"] {
        assert_eq!(named(data), "AO_Agent_1", "{data}");
    }
}
