mod rules;

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::openclaw::wire::{
    self, CollaborationResult, Identity, ReputationUpdate, StatusUpdate,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Reply, Stand};
use crate::agent::{Handlers, Skill};
use crate::clock;
use crate::openclaw::direct::Peer;
use crate::openclaw::{
    RequestEnd, RequestRetryPolicy, RequestSpec, ResponseAnswer, ResultOutcome, Status,
};

const EXAMPLES: &str =
    include_str!("../../../../../../protocols/src/openclaw/fixtures/examples.json");

/// The request from the spec.
fn example() -> Value {
    let all: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    let all = all["examples"].as_array().expect("a list").clone();
    let found = all.into_iter().find(|one| one["kind"] == "collaboration_request");
    found.expect("a request")["document"].clone()
}

fn ask(capability: &str, input: Value) -> Value {
    json!({"request_id": "dd0e8400-e29b-41d4-a716-446655440008",
        "requester_agent_id": "ee0e8400-e29b-41d4-a716-446655440009",
        "capability_id": capability, "input_data": input, "budget": 1,
        "correlation_id": "110e8400-e29b-41d4-a716-446655440011",
        "timestamp": rfc3339::format_millis(clock::now())})
}

fn with(mut request: Value, name: &str, value: impl Into<Value>) -> Value {
    request[name] = value.into();
    request
}

/// The payload of a response, after checking its ids and its schema.
fn said(reply: &Reply, request: &Value) -> Value {
    let body = reply.json();
    assert_eq!(reply.status, 200, "{body}");
    wire::read::<wire::Response>(reply.text.as_bytes()).expect("a response");
    for name in ["request_id", "correlation_id"] {
        assert_eq!(body[name], request[name], "{body}");
    }
    assert_eq!(body["protocol_version"], "1.0.0");
    body
}

fn rejected(reply: &Reply, request: &Value) -> (String, Value) {
    let body = said(reply, request);
    assert_eq!(body["response_status"], "rejected", "{body}");
    let reason = body["rejection_reason"].clone();
    (reason["code"].as_str().expect("a code").to_owned(), reason)
}

fn accepted(reply: &Reply, request: &Value) -> String {
    let body = said(reply, request);
    assert_eq!(body["response_status"], "accepted", "{body}");
    body["collaboration_id"].as_str().expect("an id").to_owned()
}

impl Stand {
    /// Waits for the result of a collaboration.
    async fn result(&self, id: &str) -> Value {
        let reply = self.get(&format!("/openclaw/collaborations/{id}?wait=20")).await;
        let result = reply.json()["result"].clone();
        wire::read::<CollaborationResult>(result.to_string().as_bytes()).expect("a result");
        result
    }
}

#[tokio::test]
async fn a_node_shows_its_identity_and_status() {
    let stand = Stand::new().await;
    let reply = stand.get("/openclaw/identity").await;
    let identity = wire::read::<Identity>(reply.text.as_bytes()).expect("an identity").body;
    assert_eq!(identity.agent_id, stand.identity.id());
    assert_eq!(identity.agent_name, "chimera-the-shouter");
    assert_eq!(identity.limits.max_concurrent_tasks, Some(2));
    let shout = identity.capability("shout").expect("a capability");
    assert_eq!(shout.price, Credits::parse("0.05", 2).ok());
    assert!(shout.input.is_some() && identity.capability("echo").is_some());
    let status = async || {
        let text = stand.get("/openclaw/status").await.text;
        let status = wire::read::<StatusUpdate>(text.as_bytes()).expect("a status").body;
        (status.report.status, status.report.details.active_tasks)
    };
    assert_eq!(status().await, (Status::Idle, None));
    let request = ask("held", json!({}));
    let id = accepted(&stand.post("/openclaw", &request).await, &request);
    stand.begun(1).await;
    assert_eq!(status().await, (Status::Busy, Some(1)));
    stand.works.gate.add_permits(1);
    stand.result(&id).await;
    let health = stand.get("/openclaw/health").await.json();
    assert_eq!((&health["status"], &health["agents"]), (&json!("ok"), &json!(1)));
}

#[tokio::test]
async fn a_request_is_accepted_and_its_result_fetched() {
    let stand = Stand::new().await;
    for path in ["/openclaw", "/openclaw/messages", "/openclaw/collaborations"] {
        let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, path.as_bytes()).to_string();
        let request = with(ask("shout", json!({"text": "hi"})), "request_id", id);
        let id = accepted(&stand.post(path, &request).await, &request);
        let result = stand.result(&id).await;
        assert_eq!(result["output_data"], json!({"text": "HI"}));
        assert_eq!(result["result_status"], "completed");
        assert_eq!(result["correlation_id"], request["correlation_id"]);
        let view = stand.get(&format!("/openclaw/collaborations/{id}")).await.json();
        assert_eq!((&view["state"], &view["request"]), (&json!("completed"), &request));
    }
    let text = stand.get("/openclaw/reputation").await.text;
    let reputation = wire::read::<ReputationUpdate>(text.as_bytes()).expect("a reputation").body;
    assert_eq!(reputation.metrics.and_then(|all| all.successful_collaborations), Some(3));
}

#[tokio::test]
async fn rejections_have_the_five_codes_in_the_order_of_the_book() {
    let stand = Stand::new().await;
    let past = "2026-02-06T17:00:00Z";
    // At first everything is wrong; the first error is reported.
    let unknown = ask("sing", json!({}));
    let mut worst = with(with(ask("shout", json!({"text": 1})), "deadline", past), "budget", 0);
    for (request, code) in [
        (with(unknown.clone(), "deadline", past), "capability_not_available"),
        (worst.clone(), "invalid_input"),
        (
            {
                worst["input_data"] = json!({"text": "hi"});
                worst.clone()
            },
            "deadline_too_soon",
        ),
        (with(ask("shout", json!({"text": "hi"})), "budget", 0.04), "policy_violation"),
        (
            with(unknown, "responder_agent_id", Uuid::from_u128(1).to_string()),
            "capability_not_available",
        ),
    ] {
        let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, request.to_string().as_bytes()).to_string();
        let request = with(request, "request_id", id);
        let (found, reason) = rejected(&stand.post("/openclaw", &request).await, &request);
        assert_eq!((found.as_str(), &reason["retryable"]), (code, &json!(false)), "{reason}");
        if code == "invalid_input" {
            let errors = &reason["details"]["validation_errors"];
            assert_eq!(errors, &json!(["text must be a string"]));
        }
    }
    assert_eq!(stand.works.begun(), 0);
}

#[tokio::test]
async fn the_specs_request_is_understood_and_too_late() {
    let stand = Stand::with(|works| {
        let skill = Skill::new("consume_trends", "0").expect("a skill");
        Handlers::builder().skill(skill, works.hand())
    })
    .await;
    let request = example();
    let (code, _) = rejected(&stand.post("/openclaw", &request).await, &request);
    assert_eq!(code, "deadline_too_soon");
    let later = rfc3339::format_millis(Timestamp(clock::now().0 + 60_000));
    let request = with(with(request, "deadline", later), "idempotency_key", "another");
    let id = accepted(&stand.post("/openclaw", &request).await, &request);
    assert_eq!(stand.result(&id).await["output_data"], request["input_data"]);
}

#[tokio::test]
async fn what_is_no_request_is_refused_in_the_protocols_form() {
    let stand = Stand::new().await;
    let request = ask("echo", json!({}));
    for (path, body, status, code) in [
        ("/openclaw", "{".to_owned(), 400, "VALIDATION_ERROR"),
        ("/openclaw", with(request.clone(), "priority", 11).to_string(), 400, "VALIDATION_ERROR"),
        (
            "/openclaw",
            with(request.clone(), "protocol_version", "2.0.0").to_string(),
            400,
            "UNSUPPORTED_PROTOCOL_VERSION",
        ),
        ("/openclaw/messages", stand.get("/openclaw/identity").await.text, 400, "VALIDATION_ERROR"),
        ("/openclaw", " ".repeat(1 << 21), 413, "TOO_LARGE"),
        ("/openclaw/elsewhere", request.to_string(), 404, "NOT_FOUND"),
        ("/openclaw/identity", request.to_string(), 405, "METHOD_NOT_ALLOWED"),
        (
            "/openclaw/collaborations/dd0e8400-e29b-41d4-a716-446655440008/cancel",
            "{}".to_owned(),
            404,
            "NOT_FOUND",
        ),
    ] {
        let reply = stand.post(path, body).await;
        let body = reply.json();
        assert_eq!((reply.status, &body["error"]["code"]), (status, &json!(code)), "{path} {body}");
        assert!(body["correlation_id"].is_string() && body["timestamp"].is_string());
    }
    for path in ["/openclaw/collaborations/7", "/openclaw/stream"] {
        assert_eq!(stand.get(path).await.status, 404, "{path}");
    }
    assert_eq!(stand.get("/openclaw/collaborations/7?wait=31").await.status, 400);
}

#[tokio::test]
async fn a_typed_peer_asks_and_waits() {
    let stand = Stand::new().await;
    let peer = Peer::connect(&stand.url, Uuid::from_u128(1)).await.expect("a node");
    assert_eq!(peer.identity().agent_id, stand.identity.id());
    let order = RequestSpec::new("shout", r#"{"text":"hi"}"#);
    let asked =
        peer.request(&order.clone().budget(Credits::from_micros(50_000))).await.expect("asked");
    let end = peer.result(&asked, Duration::from_secs(20)).await.expect("an end");
    let RequestEnd::Result(result) = end else { panic!("{end:?}") };
    assert_eq!(
        result.body.outcome,
        ResultOutcome::Completed { output_data: r#"{"text":"HI"}"#.into() }
    );
    let peer =
        peer.with_retry(RequestRetryPolicy { max_retries: 0, ..RequestRetryPolicy::default() });
    let asked = peer.request(&order).await.expect("asked");
    assert!(matches!(asked.response.answer, ResponseAnswer::Rejected(_)));
    assert!(matches!(peer.result(&asked, Duration::ZERO).await, Ok(RequestEnd::Rejected(_))));
    let asked = peer.request(&RequestSpec::new("held", "{}")).await.expect("asked");
    let end = peer.result(&asked, Duration::ZERO).await.expect("not yet");
    assert!(matches!(end, RequestEnd::Pending(_)), "{end:?}");
    let id = asked.collaboration_id().expect("accepted");
    peer.cancel(id, None).await.expect("cancelled");
    let end = peer.result(&asked, Duration::ZERO).await.expect("an end");
    assert!(
        matches!(end, RequestEnd::Result(end) if matches!(end.body.outcome, ResultOutcome::Cancelled { .. }))
    );
}
