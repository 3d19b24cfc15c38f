//! Who may read a trace, and which parts of it.

use serde_json::{Value, json};

use super::kit::{Hub, assert_fate, opened};
use crate::agora::kit::Key;

const CALLBACK: &str = "http://127.0.0.1:9/my-secret-place";

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_the_answer_of_an_unknown_id() {
    let hub = Hub::serve().await;
    let (boss, _claw) = (hub.boss().await, hub.claw("worker").await);
    let alias = hub.offering("sum").await;
    let job_id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let reply = hub.job(&boss, &alias, json!({"job_id": job_id})).await;
    let uuid = opened(&reply);
    let (stranger, other) = (hub.orchestrator("stranger").await, Key::of(7));
    let token = hub.hello(&other, json!({})).await;
    let unknown = "11111111-1111-4111-8111-111111111111";
    for key in [&stranger.key, &token.0] {
        let answer = async |id: &str| {
            let reply = hub.get(&format!("/v1/jobs/{id}/trace"), Some(key)).await;
            let mut body = reply.json();
            body["request_id"] = Value::Null;
            (reply.status, reply.header("content-type").map(str::to_owned), body)
        };
        let wanted = answer(unknown).await;
        assert_eq!(wanted.0, 404);
        assert_eq!(wanted.1.as_deref(), Some("application/problem+json"));
        for id in [uuid.as_str(), job_id, "no-uuid", "%00", "x%2Fy"] {
            assert_eq!(answer(id).await, wanted, "{id}");
        }
    }
    for key in [None, Some("rk_wrong"), Some("at_wrong")] {
        hub.get(&format!("/v1/jobs/{uuid}/trace"), key).await.expect(401);
    }
    // An inbox token opens nothing else here.
    for path in ["/v1/me", "/v1/inbox", "/v1/jobs", &format!("/v1/jobs/{uuid}")] {
        hub.get(path, Some(&token.0)).await.expect(401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_party_sees_what_was_its_own_to_see() {
    let hub = Hub::serve().await;
    let (boss, claw) = (hub.boss().await, hub.claw("worker").await);
    let alias = hub.offering("sum").await;
    let reply = hub.job(&boss, &alias, json!({"callback_url": CALLBACK, "budget": 5.43})).await;
    let uuid = opened(&reply);
    let own = hub.trace(&uuid, &boss.key).await;
    assert!(own.to_string().contains(CALLBACK) && own.to_string().contains("5.43"), "{own}");
    let theirs = hub.trace(&uuid, &claw.key).await;
    let text = theirs.to_string();
    assert!(!text.contains("my-secret-place"), "{text}");
    assert!(!text.contains("5.43"), "the worker must not see the budget: {text}");
    assert!(theirs["money"].get("budget").is_none());
    assert_fate(&theirs["hops"][0], "/callback_url", "dropped");
    assert_fate(&theirs["hops"][0], "/budget", "renamed");
    for key in [&boss.key, &claw.key] {
        assert!(!text.contains(key.as_str()) && !own.to_string().contains(key.as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_a_worker_answers_to_is_not_its_requesters() {
    let hub = Hub::serve().await;
    let (asker, worker) = (hub.claw("asker").await, hub.agent("acme", "sum", "0", None).await);
    let to = hub.alias("/openclaw/agents", &worker.id).await;
    let (_, reply) = hub.collaborate(&asker, json!({"responder_agent_id": to})).await;
    let uuid = opened(&reply);
    let address = hub.work(&worker).await["callback_url"].as_str().expect("a URL").to_owned();
    let theirs = hub.trace(&uuid, &worker.key).await;
    assert!(theirs.to_string().contains(&address), "{theirs}");
    let own = hub.trace(&uuid, &asker.key).await;
    assert!(!own.to_string().contains("/registry/callbacks/"), "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_what_happened_and_nothing_of_what_was_said() {
    let hub = Hub::serve().await;
    let (boss, _claw) = (hub.boss().await, hub.claw("worker").await);
    let alias = hub.offering("sum").await;
    let more = json!({"callback_url": CALLBACK, "input_data": {"a": 0.125}, "whisper": "psst"});
    let reply = hub.job(&boss, &alias, more).await;
    let trace = hub.trace(&opened(&reply), &hub.operator).await;
    let text = trace.to_string();
    for said in ["0.125", "psst", "my-secret-place"] {
        assert!(!text.contains(said), "{said} in {text}");
    }
    let hop = &trace["hops"][0];
    assert!(hop.get("asked").is_none() && hop.get("given").is_none(), "{hop}");
    assert_fate(hop, "/input_data", "kept");
    assert_fate(hop, "/whisper", "renamed");
    assert_eq!(trace["evidence"], json!([]));
    assert_eq!(trace["state"], "assigned");
}
