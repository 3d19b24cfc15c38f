//! The spec's thirteen documents sent to a real hub, unchanged (R25, R31, R47, R51 and section 6).

use rialto_protocols::kit::ijson;
use rialto_protocols::openclaw::Kind;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, identity, with};
use super::spoil::{example, examples, identity_example, put};
use crate::kit::Reply;

const REQUESTS: &str = "/openclaw/collaborations";

/// The two agents of the examples; the mode says whether the responder confirms requests itself.
async fn two(hub: &Hub, mode: &str) -> (Node, Node) {
    let id = example(Kind::Request, "Example")["requester_agent_id"].clone();
    let asker = hub.publish(&with(&identity("asker", hub.now()), json!({"agent_id": id}))).await;
    let mode = (mode == "ask").then(|| json!(mode));
    let worker = hub.publish(&put(&identity_example(), "/response_mode", mode)).await;
    (asker, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_thirteen_documents_of_six_kinds() {
    let count = |kind: &Kind| examples(*kind).len();
    assert_eq!(Kind::ALL.iter().map(count).collect::<Vec<_>>(), [1, 4, 2, 1, 3, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_request_status_and_reputation_are_taken_as_they_stand() {
    for path in ["", "/openclaw/messages"] {
        let hub = Hub::serve(&[]).await;
        let (asker, worker) = two(&hub, "auto").await;
        let at = |own: &'static str| if path.is_empty() { own } else { "/openclaw/messages" };
        // It is valid, but its deadline is long past.
        let request = example(Kind::Request, "Example");
        let reply = hub.post(at(REQUESTS), Some(&asker.key), &request).await;
        assert_rejected(&reply, "deadline_too_soon");
        assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
        for (kind, own) in
            [(Kind::Status, "/openclaw/status"), (Kind::Reputation, "/openclaw/reputation")]
        {
            for (name, body) in examples(kind) {
                let reply = hub.post(at(own), Some(&worker.key), &body).await;
                assert_eq!(reply.status, 200, "{name}: {}", reply.text);
            }
        }
        hub.0.stop().await;
    }
}

/// The request without its past deadline, sent to this responder.
fn request(worker: &Node) -> Value {
    let request = put(&example(Kind::Request, "Example"), "/deadline", None);
    with(&request, json!({"responder_agent_id": worker.id}))
}

/// Lets the responder answer with one of the spec's responses, and returns the requester's answer.
async fn answered(hub: &Hub, asker: &Node, worker: &Node, end: &str) -> Reply {
    let said = example(Kind::Response, end);
    let request = request(worker);
    let path = format!("{REQUESTS}/{}/response", request["request_id"].as_str().expect("an id"));
    hub.meanwhile(asker, &request, async || {
        let reply = hub.post(&path, Some(&worker.key), &said).await.expect(200);
        assert_eq!(reply.str("/status"), "delivered");
        assert_eq!(reply.at("/correlation_id"), said["correlation_id"]);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_and_either_result_are_taken_as_they_stand() {
    for (end, state) in [("Completed", "completed"), ("Failed", "failed")] {
        let hub = Hub::serve(&[]).await;
        let (asker, worker) = two(&hub, "ask").await;
        let said = example(Kind::Response, "Accepted");
        let reply = answered(&hub, &asker, &worker, "Accepted").await.expect(200);
        for name in [
            "request_id",
            "responder_agent_id",
            "response_status",
            "correlation_id",
            "collaboration_id",
        ] {
            assert_eq!(reply.at(&format!("/{name}")), said[name], "{name}");
        }
        let result = example(Kind::Result, end);
        let id = result["collaboration_id"].as_str().expect("an id");
        let path = format!("{REQUESTS}/{id}/result");
        let published = hub.post(&path, Some(&worker.key), &result).await.expect(200);
        assert_eq!(
            (published.at("/collaboration_id"), published.at("/output_valid")),
            (json!(id), json!(true))
        );
        let view = hub.view(&asker, id).await;
        assert_eq!(view["state"], state);
        for name in [
            "collaboration_id",
            "request_id",
            "responder_agent_id",
            "result_status",
            "correlation_id",
            "output_data",
            "execution_duration_ms",
            "completed_at",
        ] {
            assert_eq!(view["result"].get(name), result.get(name), "{name}");
        }
        let shown = |name: &str| view["result"]["error"].get(name);
        for name in ["code", "message", "error_type", "details"] {
            assert_eq!(
                shown(name),
                result.get("error").and_then(|error| error.get(name)),
                "{name}"
            );
        }
        hub.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn integers_written_as_doubles_are_integers() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = two(&hub, "auto").await;
    let file = include_bytes!("../../../crates/protocols/src/openclaw/fixtures/doubles.json");
    let all = ijson::read(file).expect("JSON");
    let literal = |name: &str| all.get(name).expect(name).raw();
    let post = async |path: &str, by: &Node, body: &str| {
        hub.0.post_text(path, Some(&by.key), body).await.expect(200)
    };
    let accepted = post(REQUESTS, &asker, literal("request")).await;
    assert_eq!(accepted.str("/response_status"), "accepted", "{}", accepted.text);
    post("/openclaw/status", &worker, literal("status")).await;
    let id = accepted.str("/collaboration_id");
    let result = literal("result").replace("COLLABORATION_ID", &id);
    post(&format!("{REQUESTS}/{id}/result"), &worker, &result).await;
    let view = hub.view(&asker, &id).await;
    assert_eq!(view["state"], "completed");
    assert_eq!(view["result"]["execution_duration_ms"].as_f64(), Some(3_200.0));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_passed_on_in_its_own_words() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = two(&hub, "ask").await;
    let said = example(Kind::Response, "Rejected");
    let reply = answered(&hub, &asker, &worker, "Rejected").await.expect(200);
    assert_eq!(reply.str("/response_status"), "rejected");
    for name in ["code", "message", "details"] {
        assert_eq!(reply.at(&format!("/rejection_reason/{name}")), said["rejection_reason"][name]);
    }
    assert_eq!(reply.at("/rejection_reason/retryable"), true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferral_is_taken_but_for_its_moment_which_is_past() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = two(&hub, "ask").await;
    let request = request(&worker);
    let path = format!("{REQUESTS}/{}/response", request["request_id"].as_str().expect("an id"));
    let until = hub.time(300_000);
    let reply = hub.meanwhile(&asker, &request, async || {
        let said = example(Kind::Response, "Deferred");
        // The document is valid, but its `deferred_until` is in the past.
        let reply = hub.post(&path, Some(&worker.key), &said).await;
        assert_error(&reply, 400, "VALIDATION_ERROR");
        let said = with(&said, json!({"deferred_until": until}));
        hub.post(&path, Some(&worker.key), &said).await.expect(200);
    });
    let reply = reply.await.expect(200);
    assert_eq!(
        (reply.str("/response_status"), reply.str("/deferred_until")),
        ("deferred".to_owned(), until)
    );
    hub.0.stop().await;
}
