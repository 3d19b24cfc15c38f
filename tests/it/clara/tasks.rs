//! Register-Task (R21–R27, R36–R42).

use serde_json::json;

use super::kit::{Hub, Wallet, account};

const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

fn tags<'t>(topic: &'t str, reward: &'t str, matching: &'t str) -> Vec<(&'t str, &'t str)> {
    vec![
        ("Action", "Register-Task"),
        PROTOCOL,
        ("RedStone-Agent-Topic", topic),
        ("RedStone-Agent-Reward", reward),
        ("RedStone-Agent-Matching", matching),
    ]
}

fn without<'t>(all: &[(&'t str, &'t str)], name: &str) -> Vec<(&'t str, &'t str)> {
    all.iter().copied().filter(|(tag, _)| *tag != name).collect()
}

/// A market with one agent, and a requester that can pay.
async fn market() -> (Hub, Wallet, Wallet) {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    (hub, agent, requester)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assignment_says_everything_and_stands_in_the_inbox() {
    let (hub, agent, requester) = market().await;
    let all = [&tags("tweet", "50", "cheapest")[..], &[("Context-Id", "talk 7")]].concat();
    let task = hub.say(&requester, &all, r#"{"topic":"x","n":1}"#).await;
    assert_eq!(task.actions(), ["Agent-Task-Assignment"]);
    let sent = task.first();
    assert_eq!(sent.target, agent.address());
    let id = task.id.as_str();
    for (name, value) in [
        ("Data-Protocol", "ao"),
        ("Variant", "ao.TN.1"),
        ("Type", "Message"),
        ("Protocol", "C.L.A.R.A."),
        ("TaskId", id),
        ("Task-Id", id),
        ("Agent-Id", "A"),
        ("Assigned-Agent-Id", "A"),
        ("Context-Id", "talk 7"),
        ("Number-Of-Agents", "1"),
    ] {
        assert_eq!(sent.tag(name), Some(value), "{name}");
    }
    assert_eq!(sent.tag("Requesting-Agent-Id"), None);
    assert_eq!(sent.anchor, format!("{:0>32}", sent.tag("Reference").expect("a number")));
    let data = task.data();
    let wanted = json!({"id": id, "agentId": "A", "requester": requester.address(),
        "reward": "20", "matchingStrategy": "cheapest", "strategy": "cheapest",
        "payload": {"topic": "x", "n": 1}, "timestamp": data["timestamp"], "block": data["block"],
        "topic": "tweet", "contextId": "talk 7"});
    assert_eq!(data, wanted);
    let (at, block) = (data["timestamp"].as_i64(), data["block"].as_u64());
    assert!(at.is_some_and(|at| at > 1_700_000_000_000) && block == Some(2), "{data}");
    assert_eq!(hub.listed("A").await["tasks"]["inbox"], json!({id: data}));
    let plain = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(plain.first().tag("Context-Id"), Some(plain.id.as_str()));
    assert_eq!(plain.data()["contextId"], plain.id.as_str());
    assert_eq!(plain.data()["block"], 3, "one more for every message");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_an_error_that_changes_nothing() {
    let (hub, _, requester) = market().await;
    let good = tags("tweet", "50", "cheapest");
    for topic in ["chat", "none", "Broadcast", ""] {
        let text = format!("Unknown Topic {topic}");
        hub.assert_error(&requester, &tags(topic, "50", "cheapest"), "{}", &text).await;
    }
    let none = without(&good, "RedStone-Agent-Topic");
    hub.assert_error(&requester, &none, "{}", "Unknown Topic nil").await;
    let text = "Value Agent-Reward must be positive integer";
    for reward in ["0", "-1", "1.5", "x", "0x10", "1e2", " 7 ", "007", "1000000001"] {
        hub.assert_error(&requester, &tags("tweet", reward, "cheapest"), "{}", text).await;
    }
    let none = without(&good, "RedStone-Agent-Reward");
    hub.assert_error(&requester, &none, "{}", text).await;
    for matching in ["random", "", "roundrobin", "Cheapest"] {
        let text = format!("Unknown strategy {matching}");
        hub.assert_error(&requester, &tags("tweet", "50", matching), "{}", &text).await;
        let broadcast = tags("broadcast", "50", matching);
        hub.assert_error(&requester, &broadcast, "{}", &text).await;
    }
    for data in ["", " ", "hello", "{\"a\":"] {
        hub.assert_error(&requester, &good, data, "Data must be valid JSON").await;
    }
    let none = without(&good, "Protocol");
    let text = "Unknown protocol nil, supported: C.L.A.R.A.";
    hub.assert_error(&requester, &none, "{}", text).await;
    let text = format!("Agent A not registered for sender {}", requester.address());
    let stranger = [&good[..], &[("RedStone-Agent-Id", "A")]].concat();
    hub.assert_error(&requester, &stranger, "{}", &text).await;
    let nobody = tags("nft", "50", "cheapest");
    hub.assert_error(&requester, &nobody, "{}", "No agents to choose from").await;
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_matching_owners_take_turns() {
    let (hub, _, requester) = market().await;
    hub.agent(&Wallet::of(2), "B", "tweet", "10").await;
    let all = without(&tags("tweet", "50", ""), "RedStone-Agent-Matching");
    let mut chosen = Vec::new();
    for _ in 0..3 {
        let task = hub.say(&requester, &all, "{}").await;
        assert_eq!(task.data()["strategy"], "roundRobin");
        chosen.push(task.chosen().to_owned());
    }
    assert_eq!(chosen, ["A", "B", "A"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_json_is_a_payload_and_arrives_as_it_was() {
    let (hub, agent, requester) = market().await;
    for payload in ["1234", r#""text""#, "null", "[1,2.50]", r#"{"ü":"\u00e9 🦀","n":1e2}"#] {
        let task = hub.say(&requester, &tags("tweet", "20", "cheapest"), payload).await;
        let data = task.first().data.as_deref().expect("data");
        assert!(data.contains(&format!("\"payload\":{payload},")), "{data}");
        hub.deliver(&agent, "A", &task.id).await;
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unmatched_tasks_are_queued_where_the_operator_wants_it() {
    let hub = Hub::serve(&[("clara.queue_unmatched", "true")]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "100").await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(task.actions(), ["Task-Queued"]);
    assert_eq!(task.first().target, requester.address());
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let queue = hub.dry_run(&[("Action", "Tasks-Queue")], "").await;
    let queue: serde_json::Value =
        serde_json::from_str(queue.messages[0].data.as_deref().expect("data")).expect("JSON");
    assert_eq!((&queue[0]["id"], &queue[0]["reward"]), (&json!(task.id), &json!("50")));
    let dear = hub.agent(&agent, "dear", "tweet", "51").await;
    assert_eq!(dear.actions(), ["Registered"]);
    let came = hub.agent(&agent, "A", "tweet", "20").await;
    assert_eq!(came.actions(), ["Registered", "Agent-Task-Assignment"]);
    assert_eq!(came.result.messages[1].tag("TaskId"), Some(task.id.as_str()));
    hub.deliver(&agent, "A", &task.id).await;
    assert_eq!(hub.account(&requester).await, account("80", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_agent_gets_the_task_whatever_its_topic_and_if_it_declines_that_is_all() {
    let (hub, agent, requester) = market().await;
    hub.agent(&agent, "N", "nft", "30").await;
    let named = |id, reward| {
        let all = tags("tweet", reward, "cheapest");
        [&all[..], &[("Target-Agent-Id", id)]].concat()
    };
    let task = hub.say(&requester, &named("N", "50"), "{}").await;
    assert_eq!((task.chosen(), &task.data()["reward"]), ("N", &json!("30")));
    assert_eq!(hub.account(&requester).await, account("950", "50"));
    let declined = hub.decline(&agent, "N", &task.id).await;
    assert_eq!(declined.actions(), ["Task-Declined", "Task-Unassigned"]);
    assert_eq!(declined.result.messages[1].target, requester.address());
    assert_eq!(declined.result.messages[1].tag("TaskId"), Some(task.id.as_str()));
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    for (id, reward) in [("nobody", "50"), ("N", "29"), ("wallet/x", "50")] {
        let all = named(id, reward);
        hub.assert_error(&requester, &all, "{}", "No agents to choose from").await;
    }
    hub.0.stop().await;
}
