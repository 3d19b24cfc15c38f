//! Subscriptions of an old client, which the hub knows as one stream.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fake_hub::{Answer, FakeHub, Heard, discovered};
use super::process::Bridge;
use crate::kit::{Behaviour, TestHub, Worker, eventually};

const UPDATED: &str = "notifications/resources/updated";
const INBOX: &str = "rialto://inbox";

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}})
}

/// Sends a message to an agent, so that its inbox changes.
async fn write_to(hub: &TestHub, from: &crate::kit::Agent, to: &crate::kit::Agent, text: &str) {
    let body = json!({"to": format!("registry:{}", to.id), "body": {"text": text}});
    hub.post("/v1/messages", Some(&from.key), &body).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_subscribes_to_resources_one_by_one() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let (ann, bob) = (hub.orchestrator("ann").await, hub.orchestrator("bob").await);
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &ann.key);
    bridge.open("2025-11-25", json!({}));
    assert_eq!(bridge.result("resources/subscribe", json!({"uri": INBOX})), json!({}));
    write_to(&hub, &bob, &ann, "hello").await;
    // Without the tag of the stream, which an old client does not know.
    assert_eq!(bridge.next(), updated(INBOX));
    assert_eq!(bridge.result("resources/subscribe", json!({"uri": "rialto://jobs"})), json!({}));
    write_to(&hub, &bob, &ann, "hello again").await;
    assert_eq!(bridge.next(), updated(INBOX));
    assert_eq!(bridge.result("resources/unsubscribe", json!({"uri": INBOX})), json!({}));
    write_to(&hub, &bob, &ann, "and again").await;
    assert!(bridge.next_within(Duration::from_secs(2)).is_none());
    // What has no updates cannot be subscribed to.
    let (code, error) = bridge.error("resources/subscribe", json!({"uri": "rialto://nowhere"}));
    assert_eq!((code, &error["data"]["uri"]), (-32002, &json!("rialto://nowhere")));
    assert_eq!(bridge.error("resources/subscribe", json!({})).0, -32602);
    assert_eq!(bridge.result("resources/unsubscribe", json!({"uri": "rialto://x"})), json!({}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_lost_stream_the_client_is_told_that_everything_may_have_changed() {
    let home = TempDir::new().expect("a directory");
    let data = home.path().join("data");
    let hub = crate::kit::Process::start("dev", &data, &[]);
    let (url, address) = (hub.url.clone(), hub.url.trim_start_matches("http://").to_owned());
    let mut bridge = Bridge::start(&url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    assert_eq!(bridge.result("resources/subscribe", json!({"uri": INBOX})), json!({}));
    hub.kill();
    let hub = crate::kit::Process::at(&address, "dev", &data, &[], &[]);
    assert_eq!(bridge.next(), updated(INBOX));
    hub.kill();
}

/// What a hub answers to a request for a stream: the acknowledgement of all that is wanted.
fn acknowledged(heard: &Heard) -> Answer {
    let wanted = &heard.json["params"]["notifications"];
    Answer::Open(vec![json!({"jsonrpc": "2.0", "params": {"notifications": wanted},
        "method": "notifications/subscriptions/acknowledged"})])
}

fn subscribed(heard: &Heard) -> usize {
    let uris = &heard.json["params"]["notifications"]["resourceSubscriptions"];
    uris.as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_too_many_is_refused_and_the_others_go_on() {
    let hub = FakeHub::start(|heard| match heard.json["method"].as_str() {
        Some("subscriptions/listen") => acknowledged(heard),
        _ => discovered(heard),
    })
    .await;
    let home = TempDir::new().expect("a directory");
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    let uri = |number: usize| json!({"uri": format!("rialto://jobs/{number}")});
    let ids: Vec<u64> =
        (0..100).map(|number| bridge.request("resources/subscribe", uri(number))).collect();
    for _ in ids {
        assert_eq!(bridge.next()["result"], json!({}));
    }
    let (code, error) = bridge.error("resources/subscribe", uri(100));
    assert_eq!(code, -32602);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("100")), "{error}");
    // What is subscribed to already is no more, and what was left gives room.
    assert_eq!(bridge.result("resources/subscribe", uri(7)), json!({}));
    assert_eq!(bridge.result("resources/unsubscribe", uri(0)), json!({}));
    assert_eq!(bridge.result("resources/subscribe", uri(100)), json!({}));
    let heard = hub.heard();
    assert_eq!(heard.iter().map(subscribed).max(), Some(100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_hub_refuses_leaves_the_one_before_open() {
    let hub = FakeHub::start(|heard| match (heard.json["method"].as_str(), subscribed(heard)) {
        (Some("subscriptions/listen"), 2..) => Answer::Text(
            json!({"jsonrpc": "2.0", "id": heard.json["id"],
                "error": {"code": -32600, "message": "too many streams"}})
            .to_string(),
        ),
        (Some("subscriptions/listen"), _) => acknowledged(heard),
        _ => discovered(heard),
    })
    .await;
    let home = TempDir::new().expect("a directory");
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    assert_eq!(bridge.result("resources/subscribe", json!({"uri": INBOX})), json!({}));
    assert_eq!(bridge.result("resources/subscribe", json!({"uri": "rialto://jobs"})), json!({}));
    // It is asked again and again, while the first stream stays.
    let refused = || hub.heard().iter().filter(|heard| subscribed(heard) == 2).count();
    eventually(async || refused() >= 3).await;
    assert_eq!(hub.hung_up(), 0);
    // Without the second resource, there is a stream again, and all may have changed.
    assert_eq!(bridge.result("resources/unsubscribe", json!({"uri": "rialto://jobs"})), json!({}));
    assert_eq!(bridge.next(), updated(INBOX));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_skills_reach_an_old_client_of_agents() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let ann = hub.orchestrator("ann").await;
    let worker = Worker::start(Behaviour::Pending).await;
    let skills = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({"skill_name": name, "cost_per_call": 0.05})).collect()
    };
    let mut body = json!({"agent_name": "worker", "owner_id": "w", "version": "0.1",
        "skills": skills(&["one"]), "api_endpoint": worker.url});
    let agent = hub.enrol(&body, None).await;
    let key = [("RIALTO_KEY", ann.key.as_str())];
    let mut bridge = Bridge::start(&hub.url, home.path(), &["--agent", "worker"], &key);
    let opened = bridge.open("2025-11-25", json!({}));
    assert_eq!(opened["capabilities"]["tools"]["listChanged"], true, "{opened}");
    let names = |bridge: &mut Bridge| -> Vec<String> {
        let listed = bridge.result("tools/list", json!({}));
        let tools = listed["tools"].as_array().expect("a list").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&mut bridge), ["one", "get_job"]);
    // The stream is open a moment after the opening.
    tokio::time::sleep(Duration::from_millis(500)).await;
    body["skills"] = json!(skills(&["one", "two"]));
    body["agent_id"] = json!(agent.id);
    hub.post("/registry/register", Some(&agent.key), &body).await.expect(200);
    let told = bridge.next();
    let expected =
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
    assert_eq!(told, expected);
    assert_eq!(names(&mut bridge), ["one", "two", "get_job"]);
    hub.stop().await;
}
