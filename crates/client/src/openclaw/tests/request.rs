use std::time::Duration;

use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::hub::{Ask, Hub, ME, YOU, good, hub, refuse, with_common};
use crate::call::CallError;
use crate::clock;
use crate::openclaw::{
    PendingRequest, Rejected, RequestEnd, RequestSpec, ResponseAnswer, ResultOutcome, Uuid,
};
use crate::testing::answer;

const WORK: Uuid = Uuid::from_u128(77);

/// A response to a request.
fn said(ask: &Ask, status: &str, more: &Value) -> Value {
    let mut body = json!({"request_id": ask.body["request_id"], "responder_agent_id": YOU,
        "response_status": status, "correlation_id": ask.body["correlation_id"]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
    body
}

fn full() -> Value {
    json!({"rejection_reason": {"code": "resource_exhausted", "message": "full",
        "retryable": true}})
}

fn output(request_id: &Value) -> Value {
    with_common(&json!({"collaboration_id": WORK, "request_id": request_id,
        "responder_agent_id": YOU, "result_status": "completed", "output_data": {"a": 1}}))
}

#[tokio::test]
async fn what_can_pass_is_asked_again_under_the_same_key() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| match ask.number {
        0 => Some(refuse(503, "UNAVAILABLE", true)),
        1 => Some(good(&said(ask, "rejected", &full()))),
        2 => Some(Vec::new()),
        _ => Some(good(&said(ask, "accepted", &json!({"collaboration_id": WORK})))),
    })
    .await;
    let asked = agent.request(&RequestSpec::new("echo", "{}").to(YOU)).await.expect("an answer");
    assert_eq!((asked.tries, asked.collaboration_id()), (4, Some(WORK)));
    let bodies = hub.posted("/collaborations");
    assert!(bodies[0]["idempotency_key"].is_string());
    assert!(bodies.iter().all(|body| *body == bodies[0]), "all the same");
    assert_eq!(bodies[0]["requester_agent_id"], json!(ME));
}

#[tokio::test]
async fn the_last_answer_counts_and_what_is_final_is_asked_once() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        Some(match ask.body["capability_id"].as_str() {
            Some("full") => good(&said(ask, "rejected", &full())),
            Some("later") => {
                good(&said(ask, "deferred", &json!({"deferred_until": "2030-01-01T00:00:00Z"})))
            }
            _ => refuse(403, "FORBIDDEN", false),
        })
    })
    .await;
    let asked = agent.request(&RequestSpec::new("full", "{}")).await.expect("an answer");
    assert_eq!(asked.tries, 4);
    assert!(matches!(asked.response.answer, ResponseAnswer::Rejected(why)
        if why.code == Rejected::ResourceExhausted));
    let asked = agent.request(&RequestSpec::new("later", "{}")).await.expect("an answer");
    assert_eq!((asked.tries, asked.collaboration_id()), (1, None));
    let refused = agent.request(&RequestSpec::new("other", "{}")).await;
    assert!(matches!(refused, Err(CallError::Refused { status: 403, .. })));
    assert_eq!(hub.asks().len(), 6);
}

#[tokio::test]
async fn an_answer_to_something_else_is_not_believed() {
    let (_hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        let mut body = said(ask, "accepted", &json!({"collaboration_id": WORK}));
        body["request_id"] = json!(WORK);
        Some(good(&body))
    })
    .await;
    let asked = agent.request(&RequestSpec::new("echo", "{}")).await;
    assert!(matches!(asked, Err(CallError::Unreadable(_))));
}

#[tokio::test]
async fn a_key_that_was_used_before_brings_the_first_result() {
    let (_hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        let result = output(&json!(ME));
        let body = said(ask, "accepted", &json!({"collaboration_id": WORK, "result": result}));
        let body = with_common(&body).to_string();
        Some(answer(200, "Idempotency-Mismatch: true\r\n", &body))
    })
    .await;
    let asked = agent
        .request(&RequestSpec::new("echo", "{}").idempotency_key("k"))
        .await
        .expect("an answer");
    assert!(asked.mismatch);
    let result = asked.result.expect("a result").body;
    assert_eq!(result.request_id, ME);
    assert!(
        matches!(result.outcome, ResultOutcome::Completed { output_data: text } if &*text == r#"{"a":1}"#)
    );
}

/// A view of the request in a given state.
fn view(state: &str, more: &Value) -> Vec<u8> {
    let mut body = json!({"collaboration_id": null, "state": state, "response": null,
        "request": super::hub::request(5, "echo"), "result": null});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
    good(&body)
}

const REQUEST_TEXT: PendingRequest =
    PendingRequest { request_id: Uuid::from_u128(5), collaboration_id: None };
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_result_is_heard_on_the_stream() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        ask.path.starts_with("/collaborations/").then(|| view("running", &json!({})))
    })
    .await;
    hub.put("collaboration_result", &output(&json!(Uuid::from_u128(6))));
    hub.put("collaboration_result", &output(&json!(Uuid::from_u128(5))));
    let end = agent.result(REQUEST_TEXT, SOON).await.expect("an end");
    assert!(
        matches!(end, RequestEnd::Result(output) if output.body.request_id == REQUEST_TEXT.request_id)
    );
}

#[tokio::test]
async fn a_result_is_found_without_a_stream_and_under_a_new_name() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        if ask.path.starts_with("/stream") {
            return Some(refuse(503, "UNAVAILABLE", true));
        }
        if ask.path.contains("role=requester") {
            let listed = json!({"collaboration_id": WORK, "state": "running",
                "request": super::hub::request(5, "echo"), "response": null, "result": null});
            return Some(good(&json!({"collaborations": [listed], "next_cursor": null})));
        }
        let result = json!({"result": output(&json!(Uuid::from_u128(5)))});
        ask.path.ends_with(&WORK.to_string()).then(|| view("completed", &result))
    })
    .await;
    let end = agent.result(REQUEST_TEXT, SOON).await.expect("an end");
    assert!(matches!(end, RequestEnd::Result(_)));
    assert!(hub.asks().iter().any(|ask| ask.path.ends_with(&REQUEST_TEXT.request_id.to_string())));
}

#[tokio::test]
async fn waiting_ends_with_a_rejection_in_time_or_with_what_is_final() {
    let rejected = json!({"response": with_common(&json!({"request_id": Uuid::from_u128(5),
        "responder_agent_id": YOU, "response_status": "rejected",
        "rejection_reason": {"code": "policy_violation", "message": "no"}}))});
    let (_hub, _stage, agent) = hub(move |_: &Hub, ask: &Ask| {
        let name = ask.path.strip_prefix("/collaborations/")?;
        match name.parse::<Uuid>().expect("an id").as_u128() {
            1 => Some(view("rejected", &rejected)),
            2 => Some(view("deferred", &json!({}))),
            3 => Some(view("cancelled", &json!({}))),
            _ => None,
        }
    })
    .await;
    let end = async |n, within| {
        let collaboration_id = Some(Uuid::from_u128(n));
        agent.result(PendingRequest { collaboration_id, ..REQUEST_TEXT }, within).await
    };
    assert!(matches!(end(1, SOON).await, Ok(RequestEnd::Rejected(why))
        if why.code == Rejected::PolicyViolation));
    assert!(matches!(end(2, Duration::from_millis(50)).await, Ok(RequestEnd::Pending(_))));
    assert!(matches!(end(3, SOON).await, Ok(RequestEnd::Withdrawn)));
    assert!(matches!(end(4, SOON).await, Err(CallError::Refused { status: 404, .. })));
}

#[tokio::test]
async fn nothing_is_asked_again_after_its_deadline() {
    let (hub, _stage, agent) =
        hub(|_: &Hub, ask: &Ask| Some(good(&said(ask, "rejected", &full())))).await;
    let mut request =
        agent.build_request(&RequestSpec::new("echo", "{}").to(YOU)).expect("a request");
    request.deadline = Some(Timestamp(clock::now().0 - 3_600_000));
    assert_eq!(agent.send_request(request).await.expect("an answer").tries, 1);
    assert_eq!(hub.posted("/collaborations").len(), 1);
}
