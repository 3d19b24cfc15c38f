//! Send-Result (R44–R52, R81).

use serde_json::{Value, json};

use super::kit::{Hub, Wallet, about, account};

const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

struct Scene {
    hub: Hub,
    agent: Wallet,
    other: Wallet,
    requester: Wallet,
}

async fn scene() -> Scene {
    let hub = Hub::serve(&[]).await;
    let [agent, other, requester] = [1, 2, 9].map(Wallet::of);
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    hub.agent(&agent, "A2", "tweet", "25").await;
    hub.agent(&other, "B", "tweet", "30").await;
    Scene { hub, agent, other, requester }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_goes_to_the_requester_and_into_the_outbox() {
    let Scene { hub, agent, requester, .. } = scene().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let [first, second] = about("A", &task.id);
    // The recipient that the agent names is shown, and changes nothing (D6).
    let tags = [first, second, ("RedStone-Task-Recipient", "somebody else")];
    let done = hub.act(&agent, "Send-Result", &tags, r#"{"text":"é","n":1.50}"#).await;
    assert_eq!(done.actions(), ["Task-Result"]);
    assert_eq!(done.first().target, requester.address());
    for (name, value) in [
        ("Protocol", "C.L.A.R.A."),
        ("TaskId", task.id.as_str()),
        ("Task-Id", task.id.as_str()),
        ("Assigned-Agent-Id", "A"),
        ("Assigned-Agent-Address", agent.address().as_str()),
        ("Fee", "20"),
    ] {
        assert_eq!(done.first().tag(name), Some(value), "{name}");
    }
    let data = done.data();
    let wanted = json!({"id": task.id, "agentId": "A", "sender": agent.address(),
        "recipient": "somebody else", "result": {"text": "é", "n": 1.50},
        "timestamp": data["timestamp"], "block": data["block"]});
    assert_eq!(data, wanted);
    let number = |value: &Value| value.as_i64().expect("a number");
    assert!(number(&data["timestamp"]) >= number(&task.data()["timestamp"]));
    assert!(number(&data["block"]) > number(&task.data()["block"]));
    let shown = hub.listed("A").await;
    assert_eq!(shown["tasks"]["inbox"], json!([]), "it leaves the inbox");
    assert_eq!(shown["tasks"]["outbox"], json!({task.id.as_str(): data}));
    let totals = json!({"requested": 0, "assigned": 1, "done": 1, "rewards": "20"});
    assert_eq!(shown["totals"], totals);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_times_of_a_task_can_be_read_afterwards() {
    let Scene { hub, agent, requester, .. } = scene().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.pass(rialto_core::time::Millis::minutes(3));
    let done = hub.deliver(&agent, "A", &task.id).await;
    let tags = [("RedStone-Task-Id", task.id.as_str())];
    for party in [&requester, &agent] {
        let trace = hub.act(party, "Task-Trace", &tags, "").await.data();
        assert_eq!(trace["openedAt"], task.data()["timestamp"]);
        assert_eq!(trace["endedAt"], done.data()["timestamp"]);
        let took = trace["endedAt"].as_i64().zip(trace["openedAt"].as_i64());
        assert!(took.is_some_and(|(end, start)| end - start >= 180_000), "{trace}");
    }
    let stranger = hub.act(&Wallet::of(7), "Task-Trace", &tags, "").await;
    assert_eq!(stranger.error(), "Agent was not assigned to task");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_assigned_agent_from_its_own_address_delivers() {
    let Scene { hub, agent, other, requester } = scene().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let says = |action: &'static str, id: &'static str, task: &'static str| {
        vec![("Action", action), PROTOCOL, ("RedStone-Agent-Id", id), ("RedStone-Task-Id", task)]
    };
    let id: &'static str = task.id.clone().leak();
    for action in ["Send-Result", "Decline-Task"] {
        let text = format!("Agent A not registered for sender {}", other.address());
        hub.assert_error(&other, &says(action, "A", id), "{}", &text).await;
        let text = format!("Agent nobody not registered for sender {}", agent.address());
        hub.assert_error(&agent, &says(action, "nobody", id), "{}", &text).await;
        let text = "Agent was not assigned to task";
        hub.assert_error(&other, &says(action, "B", id), "{}", text).await;
        hub.assert_error(&agent, &says(action, "A2", id), "{}", text).await;
        hub.assert_error(&agent, &says(action, "A", "unknown"), "{}", text).await;
        let text = "Unknown protocol nil, supported: C.L.A.R.A.";
        let no_protocol: Vec<_> =
            says(action, "A", id).into_iter().filter(|tag| *tag != PROTOCOL).collect();
        hub.assert_error(&agent, &no_protocol, "{}", text).await;
        for missing in ["RedStone-Agent-Id", "RedStone-Task-Id"] {
            let text = format!("Tag {missing} is required");
            let some: Vec<_> =
                says(action, "A", id).into_iter().filter(|(name, _)| *name != missing).collect();
            hub.assert_error(&agent, &some, "{}", &text).await;
        }
    }
    let bad = says("Send-Result", "A", id);
    hub.assert_error(&agent, &bad, "not JSON", "Data must be valid JSON").await;
    assert_eq!(hub.account(&requester).await, account("950", "50"));
    assert_eq!(hub.deliver(&agent, "A", id).await.actions(), ["Task-Result"]);
    let text = format!("Already sent result for task {id}");
    hub.assert_error(&agent, &says("Send-Result", "A", id), "{}", &text).await;
    let text = "Agent was not assigned to task";
    hub.assert_error(&agent, &says("Decline-Task", "A", id), "{}", text).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployed_form_of_a_task_id_is_understood() {
    let Scene { hub, agent, requester, .. } = scene().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let done = hub.deliver(&agent, "A", &format!("{}_A", task.id)).await;
    assert_eq!(done.first().tag("TaskId"), Some(task.id.as_str()));
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let declined = hub.decline(&agent, "A", &format!("{}_A", task.id)).await;
    assert_eq!(declined.first().tag("TaskId"), Some(task.id.as_str()));
    assert_eq!(declined.actions(), ["Task-Declined", "Agent-Task-Assignment"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_copy_of_a_broadcast_has_its_own_result_and_fee() {
    let Scene { hub, agent, other, requester } = scene().await;
    let task = hub.task(&requester, "tweet", "50", "broadcast").await;
    assert_eq!(hub.account(&requester).await, account("925", "75"));
    for (by, id, fee) in [(&other, "B", "30"), (&agent, "A", "20"), (&agent, "A2", "25")] {
        let done = hub.deliver(by, id, &task.id).await;
        assert_eq!(done.first().tag("Fee"), Some(fee), "{done:?}");
        assert_eq!(done.first().tag("Assigned-Agent-Id"), Some(id));
        assert_eq!(done.first().tag("TaskId"), Some(task.id.as_str()));
        let again = hub.deliver(by, id, &task.id).await;
        assert_eq!(again.error(), format!("Already sent result for task {}", task.id));
    }
    assert_eq!(hub.account(&requester).await, account("925", "0"));
    assert_eq!(hub.account(&agent).await, account("45", "0"));
    assert_eq!(hub.account(&other).await, account("30", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_successes_silence_is_a_failure_and_declines_count_nothing() {
    let Scene { hub, agent, other, requester } = scene().await;
    let score = |id: &str| {
        let found = hub.engine.with_world(|world| {
            let agent = world.agent_by_alias(rialto_protocols::clara::ID, id).expect("an agent");
            world.agent_state(agent).expect("an agent state").standing
        });
        (found.score, found.outcomes)
    };
    let start = score("A");
    let declined = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.decline(&agent, "A", &declined.id).await;
    assert_eq!(score("A"), start, "a decline does not count");
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.deliver(&agent, "A", &task.id).await;
    assert!(score("A").0 > start.0 && score("A").1 == start.1 + 1);
    let (good, silent) = (score("A"), hub.task(&requester, "tweet", "20", "cheapest").await);
    hub.act(&agent, "Load-Next-Assigned-Task", &[("RedStone-Agent-Id", "A")], "").await;
    hub.decline(&agent, "A2", &declined.id).await;
    hub.deliver(&other, "B", &declined.id).await;
    hub.pass(rialto_core::time::Millis::hours(24));
    crate::kit::eventually(async || score("A") != good).await;
    assert!(score("A").0 < good.0, "{silent:?}");
    hub.0.stop().await;
}
