//! Tests of the market's messages, byte for byte where the book prints them.

use super::records::{done, query, task};
use super::*;
use crate::clara::wire::outgoing::{OutgoingMessage, TaskNotice};
use crate::clara::wire::record::{AgentRecord, TaskTotals};
use crate::clara::wire::task::TaskRecord;

/// The tags after the four that every message has.
fn tags(outgoing: &OutgoingMessage) -> Tags<'_> {
    outgoing.tags.iter().map(|(name, value)| (&**name, value.as_str())).collect()
}

/// The tags every message starts with.
fn starts<'a>(action: &'a str, more: &[(&'a str, &'a str)]) -> Tags<'a> {
    [&[("Action", action), ("Protocol", "C.L.A.R.A.")], more].concat()
}

#[test]
fn a_message_is_written_as_printed() {
    let sent = OutgoingMessage::registered(ALICE, "AO_Agent_1").write(7);
    let printed = format!(
        r#"{{"Target":"{ALICE}","Anchor":"00000000000000000000000000000007","Data":"Agent AO_Agent_1 registered in Market","Tags":[{{"name":"Data-Protocol","value":"ao"}},{{"name":"Variant","value":"ao.TN.1"}},{{"name":"Type","value":"Message"}},{{"name":"Reference","value":"7"}},{{"name":"Action","value":"Registered"}},{{"name":"Protocol","value":"C.L.A.R.A."}}]}}"#
    );
    assert_eq!(sent, printed);
    let last = OutgoingMessage::task_declined(ALICE, TASK, "A1").write(u64::MAX);
    assert!(last.contains(r#""Anchor":"00000000000018446744073709551615","Tags""#), "no data");
}

#[test]
fn an_assignment_carries_the_names_of_both_worlds() {
    let task = task();
    let about = [
        ("TaskId", TASK),
        ("Task-Id", TASK),
        ("Agent-Id", "A1"),
        ("Assigned-Agent-Id", "A1"),
        ("Requesting-Agent-Id", "MINE"),
        ("Context-Id", "chat 7"),
        ("Number-Of-Agents", "3"),
    ];
    for (dialect, action) in
        [(Dialect::Spec, "Agent-Task-Assignment"), (Dialect::Deployed, "Task-Assignment")]
    {
        let sent = OutgoingMessage::assignment(dialect, BOB, &task, 3);
        assert_eq!((sent.target.as_str(), tags(&sent)), (BOB, starts(action, &about)));
        assert_eq!(sent.data, Some(task.write()));
    }
    let plain = records::plain_task();
    let sent = OutgoingMessage::assignment(Dialect::Spec, BOB, &plain, 1);
    assert!(sent.tags.iter().all(|(name, _)| name != "Requesting-Agent-Id"));
    assert!(sent.tags.contains(&("Context-Id".into(), TASK.to_owned())));
}

#[test]
fn a_result_goes_to_who_wanted_it() {
    let (done, task) = (done(), task());
    let about = [
        ("TaskId", TASK),
        ("Task-Id", TASK),
        ("Assigned-Agent-Id", "A1"),
        ("Assigned-Agent-Address", BOB),
        ("Fee", "20"),
    ];
    let sent = OutgoingMessage::task_result(Dialect::Spec, &done, &task, credits(20));
    assert_eq!((sent.target.as_str(), tags(&sent)), (ALICE, starts("Task-Result", &about)));
    assert_eq!(sent.data, Some(done.write()));
    let deployed = OutgoingMessage::task_result(Dialect::Deployed, &done, &task, credits(20));
    assert_eq!(tags(&deployed), tags(&sent));
    let data = deployed.data.expect("data");
    let end = format!(r#","agentAddress":"{BOB}","originalTask":{}}}"#, task.write());
    assert!(data.ends_with(&end), "{data}");
}

#[test]
fn queries_declines_and_notices_say_which_task_and_whose() {
    let about = [("TaskId", TASK), ("Task-Id", TASK)];
    let whose = [about[0], about[1], ("Agent-Id", "A1")];
    let declined = OutgoingMessage::task_declined(BOB, TASK, "A1");
    assert_eq!((tags(&declined), &declined.data), (starts("Task-Declined", &whose), &None));
    let sent = OutgoingMessage::query(BOB, &query());
    let more = [("RedStone-Agent-Reward", "50"), ("Closes-At", "1737047833122")];
    assert_eq!(tags(&sent), starts("Agent-Task-Query", &[&whose[..], &more].concat()));
    assert_eq!(sent.data, Some(query().write()));
    for (notice, action, tagged) in [
        (TaskNotice::OfferReceived { agent_id: "A1" }, "Offer-Received", &whose[..]),
        (TaskNotice::OfferRejected { agent_id: "A1" }, "Offer-Rejected", &whose),
        (TaskNotice::QueryFailed, "Query-Failed", &about),
        (TaskNotice::TaskQueued, "Task-Queued", &about),
        (TaskNotice::TaskUnassigned, "Task-Unassigned", &about),
        (TaskNotice::TaskExpired, "Task-Expired", &about),
    ] {
        let sent = OutgoingMessage::notice(ALICE, TASK, notice);
        assert_eq!(tags(&sent), starts(action, tagged));
        assert!(sent.data.is_some_and(|text| !text.is_empty()), "{action}");
    }
}

#[test]
fn what_was_waiting_is_the_data() {
    let next_result = |dialect| OutgoingMessage::next_result(dialect, BOB, &done(), &task());
    for (sent, action, data) in [
        (
            OutgoingMessage::next_task(BOB, &task()),
            "Load-Next-Assigned-Task-Result",
            task().write(),
        ),
        (next_result(Dialect::Spec), "Load-Next-Task-Result-Response", done().write()),
        (
            next_result(Dialect::Deployed),
            "Load-Next-Task-Result-Response",
            done().write_with_task(&task()),
        ),
        (OutgoingMessage::next_query(BOB, &query()), "Load-Next-Query-Result", query().write()),
    ] {
        assert_eq!((tags(&sent), sent.data.clone()), (starts(action, &[]), Some(data)));
    }
    let trace = OutgoingMessage::trace(BOB, TASK, "[]".to_owned());
    let about = [("TaskId", TASK), ("Task-Id", TASK)];
    assert_eq!(tags(&trace), starts("Task-Trace", &about));
}

#[test]
fn the_board_is_shown_as_lists() {
    let agents: [AgentRecord<'_>; 2] = [records::agent(), records::new_agent()];
    let listed = format!("[{},{}]", agents[0].write(), agents[1].write());
    let sent = OutgoingMessage::agents("1234", agents.iter().map(AgentRecord::write));
    assert_eq!(
        (tags(&sent), sent.data.clone()),
        (starts("List-Agents", &[]), Some(listed.clone()))
    );
    assert_eq!(OutgoingMessage::agents("1234", []).data.as_deref(), Some("[]"));
    let queue = [records::queued_task()];
    let queued = format!("[{}]", queue[0].write());
    for (sent, action) in [
        (OutgoingMessage::queue(ALICE, queue.iter().map(TaskRecord::write)), "Tasks-Queue"),
        (
            OutgoingMessage::dispatched(ALICE, queue.iter().map(TaskRecord::write)),
            "Tasks-Dispatched",
        ),
    ] {
        assert_eq!((tags(&sent), sent.data.as_deref()), (starts(action, &[]), Some(&*queued)));
    }
    let totals = TaskTotals { requested: 3, assigned: 2, done: 1, rewards: credits(20) };
    let sent = OutgoingMessage::dashboard(
        ALICE,
        queue.iter().map(TaskRecord::write),
        agents.iter().map(AgentRecord::write),
        &totals,
    );
    let counts = r#"{"requested":3,"assigned":2,"done":1,"rewards":"20"}"#;
    let data = format!(r#"{{"queue":{queued},"agents":{listed},"totals":{counts}}}"#);
    assert_eq!((tags(&sent), &sent.data), (starts("Dashboard-Data", &[]), &Some(data)));
}

#[test]
fn accounts_are_shown_in_whole_credits_and_stay() {
    let balance = Credits::from_micros(12_999_999);
    let sent = OutgoingMessage::balance(ALICE, balance);
    let account = [("Balance", "12"), ("Account", ALICE)];
    assert_eq!((tags(&sent), &sent.data), (starts("Balance", &account), &None));
    let sent = OutgoingMessage::claim_failed(ALICE, balance);
    assert_eq!(tags(&sent), starts("Claim-Reward-Failed", &account[..1]));
    assert_eq!(
        sent.data.as_deref(),
        Some(r#"{"error":"credits cannot be withdrawn from the hub"}"#)
    );
}
