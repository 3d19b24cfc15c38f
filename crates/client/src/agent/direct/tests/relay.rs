use std::sync::Arc;

use http::Request;
use serde_json::{Value, json};

use super::{Reply, Stand, Works};
use crate::agent::direct::ProtocolEndpoint;
use crate::agent::{Handlers, Skill};
use crate::relay;
use crate::relay::direct::Peer;
use crate::relay::{EnvelopeSpec, ValidEnvelope};
use crate::worker::journal::Journal;
use crate::worker::pool::WorkerPool;

const SPEC: &str = include_str!("../../../../../protocols/src/relay/fixtures/receive.json");

fn envelope(text: &str, more: Value) -> Value {
    let mut envelope = json!({"chorus_version": "0.4", "sender_id": "alice@chorus",
        "original_text": text, "sender_culture": "en"});
    for (name, value) in more.as_object().expect("an object") {
        envelope[name] = value.clone();
    }
    json!({"envelope": envelope})
}

fn assert_cannot(reply: &Reply, status: u16, code: &str, says: &str) {
    let body = reply.json();
    assert_eq!((reply.status, &body["status"]), (status, &json!("error")), "{body}");
    assert_eq!(body["error_code"], code, "{body}");
    assert!(body["detail"].as_str().expect("a detail").contains(says), "{body}");
}

#[tokio::test]
async fn an_envelope_is_a_job_for_the_only_skill_and_the_reply_has_the_result() {
    let stand = Stand::with(|works| {
        let skill = Skill::new("echo", "0").expect("a skill");
        Handlers::builder().skill(skill, works.hand())
    })
    .await;
    let reply = stand.post("/receive", SPEC).await;
    let wanted = json!({"status": "ok", "reply": "下午一起喝杯咖啡?"});
    assert_eq!((reply.status, reply.json()), (200, wanted));
    let sum = envelope("x", json!({"input": {"a": 1.5, "b": [2]}}));
    let reply = stand.post("/receive", sum).await.json();
    assert_eq!(reply["output"], json!({"a": 1.5, "b": [2]}));
    let text = reply["reply"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), reply["output"]);
}

#[tokio::test]
async fn a_price_is_paid_with_a_budget_or_the_reply_says_what_it_costs() {
    let stand = Stand::shouter().await;
    let costs = "costs 0.05 credits; add \"budget\": 0.05 to the envelope";
    for more in [json!({}), json!({"budget": 0.049})] {
        let reply = stand.post("/receive", envelope("hi", more)).await;
        assert_cannot(&reply, 200, "ADAPTATION_FAILED", costs);
    }
    assert_eq!(stand.works.begun(), 0);
    let reply = stand.post("/receive", envelope("hi", json!({"budget": 0.05}))).await;
    assert_eq!(reply.json(), json!({"status": "ok", "reply": "HI"}));
}

#[tokio::test]
async fn what_cannot_be_done_is_said_in_the_protocols_words() {
    let stand = Stand::new().await;
    let skill = |name: &str| envelope("hi", json!({"skill": name, "budget": 1}));
    for (body, status, code, says) in [
        (skill("sing"), 200, "ADAPTATION_FAILED", "shout, echo"),
        (envelope("hi", json!({})), 200, "ADAPTATION_FAILED", "add \"skill\""),
        (skill("fail"), 200, "ADAPTATION_FAILED", "it broke"),
        (skill("decline"), 200, "ADAPTATION_FAILED", "not today"),
        (
            envelope("hi", json!({"skill": "shout", "budget": 1, "input": {"text": 7}})),
            200,
            "ADAPTATION_FAILED",
            "text must be a string",
        ),
        (envelope("", json!({"skill": "echo"})), 400, "INVALID_ENVELOPE", "original_text"),
        (envelope("hi", json!({"skill": 7})), 400, "INVALID_ENVELOPE", "skill"),
        (json!({}), 400, "INVALID_ENVELOPE", "envelope"),
        (
            envelope("hi", json!({"chorus_version": "0.3"})),
            400,
            "UNSUPPORTED_VERSION",
            "chorus_version",
        ),
    ] {
        assert_cannot(&stand.post("/receive", body).await, status, code, says);
    }
    let long = envelope(&"x".repeat(1 << 16), json!({"skill": "echo"}));
    assert_cannot(&stand.post("/receive", long).await, 413, "INVALID_ENVELOPE", "65536");
    assert_cannot(&stand.get("/receive").await, 405, "INVALID_ENVELOPE", "POST");
    assert_cannot(&stand.post("/receive/x", "{}").await, 404, "INVALID_ENVELOPE", "/receive");
}

#[tokio::test]
async fn a_turn_is_done_once_however_often_it_is_said() {
    let stand = Stand::new().await;
    let turn =
        |n: u64| envelope("hi", json!({"skill": "held", "conversation_id": "c", "turn_number": n}));
    let (one, two, ()) =
        tokio::join!(stand.post("/receive", turn(1)), stand.post("/receive", turn(1)), async {
            stand.begun(1).await;
            stand.works.gate.add_permits(1);
        });
    assert_eq!((one.status, &one.text), (200, &two.text));
    assert_eq!(stand.post("/receive", turn(1)).await.text, one.text);
    assert_eq!(stand.works.begun(), 1);
    stand.works.gate.add_permits(1);
    assert_eq!(stand.post("/receive", turn(2)).await.status, 200);
    assert_eq!(stand.works.begun(), 2);
}

#[tokio::test]
async fn a_typed_peer_reads_the_reply() {
    let stand = Stand::shouter().await;
    let peer = Peer::new(&format!("{}/receive", stand.url)).expect("a peer");
    let plain = EnvelopeSpec::new("alice@chorus", "en", "hi").build().expect("a letter");
    let paying = plain.as_str().replacen('{', r#"{"budget":0.05,"#, 1);
    let reply = peer.send(&ValidEnvelope::read(&paying).expect("a letter")).await.expect("a reply");
    assert_eq!(reply.raw, r#"{"status":"ok","reply":"HI"}"#);
}

async fn deliver(stand: &Stand, id: &str, text: &str) -> Reply {
    let body = envelope(text, json!({"skill": "held", "input": {"text": text}})).to_string();
    stand.send(reqwest::Method::POST, "/receive", body, &[("webhook-id", id)]).await
}

#[tokio::test]
async fn what_a_server_delivers_again_is_done_once() {
    let stand = Stand::new().await;
    let (one, two, ()) =
        tokio::join!(deliver(&stand, "m-1", "hi"), deliver(&stand, "m-1", "hi"), async {
            stand.begun(1).await;
            stand.works.gate.add_permits(1);
        });
    assert_eq!((one.status, &one.text), (200, &two.text));
    assert_eq!(deliver(&stand, "m-1", "hi").await.text, one.text);
    assert_eq!(stand.works.begun(), 1);
    let other = deliver(&stand, "m-1", "ho").await;
    assert_cannot(&other, 400, "INVALID_ENVELOPE", "another envelope");
    stand.works.gate.add_permits(1);
    assert_eq!(deliver(&stand, "m-2", "ho").await.status, 200);
    assert_eq!(stand.works.begun(), 2);
}

#[tokio::test]
async fn a_turn_that_was_declined_may_be_tried_again_and_one_that_failed_may_not() {
    let stand = Stand::new().await;
    for (skill, times) in [("decline", 2), ("fail", 1)] {
        let before = stand.works.begun();
        let turn = json!({"skill": skill, "conversation_id": skill, "turn_number": 1});
        for _ in 0..2 {
            let reply = stand.post("/receive", envelope("hi", turn.clone())).await;
            assert_cannot(&reply, 200, "ADAPTATION_FAILED", "");
        }
        assert_eq!(stand.works.begun() - before, times, "{skill}");
    }
}

#[tokio::test]
async fn a_request_without_capacity_gets_a_retry_delay() {
    let skill = Skill::new("echo", "0").expect("a skill");
    let shop = Handlers::builder().skill(skill, Works::new().hand()).build();
    let bench = Arc::new(WorkerPool::new(shop, None));
    let endpoint = relay::direct::endpoint(&bench, (Journal::disabled(), Vec::new()));
    let waiting: Vec<_> = std::iter::from_fn(|| bench.try_enqueue()).collect();
    let (head, ()) = Request::post("/receive").body(()).expect("a request").into_parts();
    let ask = || endpoint.handle(&head, Ok(envelope("hi", json!({})).to_string().into()));
    let full = ask().await;
    assert_eq!((full.status, full.retry_after_seconds), (503, Some(5)));
    drop(waiting);
    assert_eq!(ask().await.status, 200);
}
