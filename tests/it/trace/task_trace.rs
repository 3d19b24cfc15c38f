//! `Task-Trace`: the same for parties that have a signature instead of a key.

use serde_json::{Value, json};

use super::kit::{Hub, assert_hop, opened};
use crate::clara::kit::Wallet;

const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

async fn traced(hub: &Hub, by: &Wallet, task: &str) -> Value {
    let tags = [("Action", "Task-Trace"), PROTOCOL, ("RedStone-Task-Id", task)];
    let (id, _) = hub.market(by, &tags, "").await;
    hub.came_of(&id).await
}

fn trace(result: &Value) -> Value {
    let data = result["Messages"][0]["Data"].as_str();
    let data = data.unwrap_or_else(|| panic!("no trace in {result}"));
    serde_json::from_str(data).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_parties_of_a_task_read_it() {
    let hub = Hub::serve().await;
    let (requester, stranger) = (Wallet::of(9), Wallet::of(8));
    hub.grant(&format!("clara:{}", requester.address()), "100").await;
    let worker = hub.agent("acme", "tweet", "2.00", None).await;
    let tags = [
        ("Action", "Register-Task"),
        PROTOCOL,
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
    ];
    let (task, reply) = hub.market(&requester, &tags, r#"{"say":"hello"}"#).await;
    let uuid = opened(&reply);
    let by_key = hub.trace(&uuid, &worker.key).await;
    for name in [&task, &uuid] {
        let read = trace(&traced(&hub, &requester, name).await);
        assert_hop(&read, "request", "clara", "registry");
        assert_eq!((&read["job"], &read["evidence"]), (&json!(uuid), &by_key["evidence"]));
        assert_eq!(read["money"]["budget"], json!(50.0));
    }
    let (theirs, unknown) =
        (traced(&hub, &stranger, &task).await, traced(&hub, &stranger, "x").await);
    assert_eq!(theirs["Error"], unknown["Error"]);
    assert!(theirs["Error"].is_string(), "{theirs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_market_reads_of_work_from_elsewhere() {
    let hub = Hub::serve().await;
    let (boss, wallet) = (hub.boss().await, Wallet::of(1));
    let tags = [
        ("Action", "Register-Agent-Profile"),
        PROTOCOL,
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "2"),
        ("RedStone-Agent-Id", "A"),
    ];
    hub.market(&wallet, &tags, "{}").await;
    let alias = hub.offering("clara.tweet").await;
    let more = json!({"skill_name": "clara.tweet", "callback_url": "http://127.0.0.1:9/secret"});
    let uuid = opened(&hub.job(&boss, &alias, more).await);
    let result = traced(&hub, &wallet, &uuid).await;
    let read = trace(&result);
    assert_hop(&read, "request", "registry", "clara");
    assert!(!result.to_string().contains("9/secret"), "{result}");
    assert!(read["money"].get("budget").is_none());
    // A dry run may claim any sender.
    let process = rialto_protocols::clara::PROCESS;
    let body = json!({"Owner": wallet.address(), "Tags": [
        {"name": "Action", "value": "Task-Trace"}, {"name": "Protocol", "value": "C.L.A.R.A."},
        {"name": "RedStone-Task-Id", "value": uuid}]});
    let path = format!("/clara/cu/dry-run?process-id={process}");
    let claimed = hub.post(&path, None, &body).await.expect(200);
    assert_eq!(claimed.str("/Error"), "Sign this message to read it");
}
