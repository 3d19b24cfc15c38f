//! Decline-Task, the queue and agents that do not answer (R53–R62).

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{Hub, Wallet, account};
use crate::kit::eventually;

async fn queue(hub: &Hub) -> Vec<String> {
    let said = hub.dry_run(&[("Action", "Tasks-Queue")], "").await;
    assert_eq!(said.messages[0].tag("Action"), Some("Tasks-Queue"));
    let all: Value =
        serde_json::from_str(said.messages[0].data.as_deref().expect("data")).expect("JSON");
    let all = all.as_array().expect("a list");
    all.iter().map(|task| task["id"].as_str().expect("an id").to_owned()).collect()
}

/// The notices to the requester about a task, newest last.
async fn told(hub: &Hub, to: &Wallet, task: &str) -> Vec<String> {
    let page = hub.results("?limit=1000").await;
    let sent = page.edges.iter().flat_map(|edge| &edge.node.messages);
    let own = sent.filter(|one| one.target == to.address() && one.tag("TaskId") == Some(task));
    own.map(|one| {
        assert_eq!(one.tag("Task-Id"), Some(task));
        assert!(one.data.is_some());
        one.tag("Action").expect("an action").to_owned()
    })
    .collect()
}

async fn market() -> (Hub, [Wallet; 3], Wallet) {
    let hub = Hub::serve(&[]).await;
    let all = [1, 2, 3].map(Wallet::of);
    for (by, id) in all.iter().zip(["A", "B", "C"]) {
        hub.agent(by, id, "tweet", "20").await;
    }
    let requester = Wallet::of(9);
    hub.fund(&requester, "1000").await;
    (hub, all, requester)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_task_goes_to_the_next_by_the_same_strategy_at_once() {
    let (hub, [a, b, _], requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "roundRobin").await;
    let second = hub.task(&requester, "tweet", "50", "roundRobin").await;
    assert_eq!((task.chosen(), second.chosen()), ("A", "B"));
    let declined = hub.decline(&a, "A", &task.id).await;
    assert_eq!(declined.actions(), ["Task-Declined", "Agent-Task-Assignment"]);
    let reply = declined.first();
    assert_eq!(reply.target, a.address());
    assert_eq!((reply.tag("TaskId"), reply.tag("Task-Id")), (Some(&*task.id), Some(&*task.id)));
    assert_eq!((reply.tag("Agent-Id"), &reply.data), (Some("A"), &None));
    assert_eq!(declined.result.messages[1].tag("Agent-Id"), Some("C"), "the next in rotation");
    let shown = hub.listed("A").await["tasks"].clone();
    assert_eq!((&shown["declined"], &shown["inbox"]), (&json!([task.id]), &json!([])));
    assert!(hub.listed("C").await["tasks"]["inbox"][&task.id].is_object());
    let again = hub.decline(&a, "A", &task.id).await;
    assert_eq!(again.error(), "Agent was not assigned to task");
    let cheap = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(cheap.chosen(), "A");
    let next = hub.decline(&a, "A", &cheap.id).await;
    assert_eq!(next.result.messages[1].tag("Agent-Id"), Some("B"));
    let next = hub.decline(&b, "B", &cheap.id).await;
    assert_eq!(next.result.messages[1].tag("Agent-Id"), Some("C"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_all_decline_waits_over_a_restart_for_a_new_agent_and_never_for_a_decliner() {
    let (hub, [a, b, c], requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.decline(&a, "A", &task.id).await;
    hub.decline(&b, "B", &task.id).await;
    let last = hub.decline(&c, "C", &task.id).await;
    assert_eq!(last.actions(), ["Task-Declined", "Task-Queued"]);
    assert_eq!(last.result.messages[1].target, requester.address());
    assert_eq!(last.result.messages[1].tag("TaskId"), Some(task.id.as_str()));
    assert_eq!(hub.account(&requester).await, account("950", "50"));
    assert_eq!(queue(&hub).await, [task.id.as_str()]);
    let hub = Hub(hub.0.restart(Profile::Serve, &[]).await);
    assert_eq!(queue(&hub).await, [task.id.as_str()]);
    let other = hub.task(&requester, "tweet", "50", "cheapest").await;
    for said in [
        hub.agent(&a, "A", "tweet", "5").await,
        hub.decline(&a, "A", &other.id).await,
        hub.say(&b, &[("Action", "Dispatch-Tasks")], "").await,
    ] {
        let sent = said.result.messages.iter();
        let about = |id: &str| sent.clone().any(|one| one.tag("TaskId") == Some(id));
        assert!(!about(&task.id), "{said:?}");
    }
    let dispatched = hub.say(&b, &[("Action", "v1.Dispatch-Tasks")], "").await;
    assert_eq!(dispatched.actions(), ["Tasks-Dispatched"]);
    assert_eq!(dispatched.data()[0]["id"], task.id.as_str());
    assert_eq!(queue(&hub).await, [task.id.as_str()]);
    let d = Wallet::of(4);
    let came = hub.agent(&d, "D", "tweet", "45").await;
    assert_eq!(came.actions(), ["Registered", "Agent-Task-Assignment"]);
    assert_eq!(came.result.messages[1].target, d.address());
    assert!(queue(&hub).await.is_empty());
    hub.deliver(&d, "D", &task.id).await;
    assert_eq!(hub.account(&d).await, account("45", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_tasks_are_tried_oldest_first_whenever_something_changes() {
    let hub = Hub::serve(&[("clara.queue_unmatched", "true")]).await;
    let (a, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    let mut waiting = Vec::new();
    for reward in ["50", "30", "40"] {
        waiting.push(hub.task(&requester, "tweet", reward, "cheapest").await.id);
    }
    assert_eq!(queue(&hub).await, waiting);
    let came = hub.agent(&a, "A", "tweet", "45").await;
    assert_eq!(came.actions(), ["Registered", "Agent-Task-Assignment"]);
    assert_eq!(queue(&hub).await, waiting[1..]);
    // An update assigns queued tasks as a registration does.
    let updated = hub.agent(&a, "A", "tweet", "10").await;
    let given: Vec<_> =
        updated.result.messages[1..].iter().map(|one| one.tag("TaskId").expect("an id")).collect();
    assert_eq!(given, [&*waiting[1], &*waiting[2]], "oldest first");
    assert!(queue(&hub).await.is_empty());
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_silence_is_a_decline_and_the_task_goes_on() {
    let (hub, [a, b, _], requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(task.chosen(), "A");
    hub.pass(Millis(24 * 3_600_000 - 60_000));
    assert!(hub.listed("A").await["tasks"]["inbox"][&task.id].is_object(), "a day has not passed");
    hub.pass(Millis(60_000));
    let inbox = async |id: &str| hub.listed(id).await["tasks"]["inbox"].clone();
    eventually(async || inbox("B").await[&task.id].is_object()).await;
    assert_eq!(inbox("A").await, json!([]));
    let late = hub.deliver(&a, "A", &task.id).await;
    assert_eq!(late.error(), "Agent was not assigned to task");
    let page = hub.results("?sort=DESC&limit=1").await;
    assert_eq!(page.edges[0].node.messages[0].tag("Agent-Id"), Some("B"), "it is in the results");
    hub.deliver(&b, "B", &task.id).await;
    assert_eq!(hub.account(&b).await, account("20", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_of_a_named_agent_ends_the_task_as_its_no_would() {
    let (hub, _, requester) = market().await;
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("Target-Agent-Id", "B"),
    ];
    let task = hub.act(&requester, "Register-Task", &tags, "{}").await;
    hub.pass(Millis::hours(24));
    eventually(async || told(&hub, &requester, &task.id).await == ["Task-Unassigned"]).await;
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_of_one_who_got_a_copy_drops_the_copy() {
    let (hub, [_, b, _], requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "broadcast").await;
    assert_eq!(hub.account(&requester).await, account("940", "60"));
    hub.deliver(&b, "B", &task.id).await;
    hub.pass(Millis::hours(24));
    eventually(async || hub.account(&requester).await == account("980", "0")).await;
    assert_eq!(told(&hub, &requester, &task.id).await, ["Task-Result"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_seven_days_a_task_ends_with_everything_released() {
    let (hub, [a, b, c], requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    for (by, id) in [(&a, "A"), (&b, "B"), (&c, "C")] {
        hub.decline(by, id, &task.id).await;
    }
    hub.pass(Millis(7 * 24 * 3_600_000 - 60_000));
    assert_eq!(queue(&hub).await, [task.id.as_str()]);
    hub.pass(Millis(60_000));
    eventually(async || queue(&hub).await.is_empty()).await;
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    assert_eq!(told(&hub, &requester, &task.id).await, ["Task-Queued", "Task-Expired"]);
    let came = hub.agent(&Wallet::of(4), "D", "tweet", "1").await;
    assert_eq!(came.actions(), ["Registered"], "it has ended");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_decline_the_task_goes_on() {
    let hub = Hub::serve(&[("jobs.max_attempts", "2")]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    for n in 0..4 {
        hub.agent(&Wallet::of(20 + n), &format!("A{n}"), "tweet", "20").await;
    }
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    for n in 0..3 {
        let declined = hub.decline(&Wallet::of(20 + n), &format!("A{n}"), &task.id).await;
        assert_eq!(declined.actions(), ["Task-Declined", "Agent-Task-Assignment"], "{n}");
    }
    let last = hub.decline(&Wallet::of(23), "A3", &task.id).await;
    assert_eq!(last.actions(), ["Task-Declined", "Task-Queued"]);
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    hub.0.stop().await;
}
