//! Operations: how they are found, and what is checked of their bodies.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use rialto_protocols::adapter::Access::AnyAgent;
use rialto_protocols::adapter::operation::{self, get};
use rialto_protocols::adapter::{Api, EdgeError, Operation};

use super::kit::{BODY_LIMIT, Hub, patient, with};
use crate::edge::OperationTable;

fn post(headers: &str, body: &str) -> String {
    let length = format!("Content-Length: {}\r\n{headers}", body.len());
    with("POST", "/keyed", &length) + body
}

#[tokio::test]
async fn a_request_is_answered_with_its_id_and_counted_under_its_route() {
    let hub = Hub::start(patient());
    let answer = hub.ask(&post("X-Request-Id: r-1\r\n", "1234")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("keyed 4"), "{answer}");
    assert!(answer.contains("x-request-id: r-1"), "{answer}");
    let counted = hub.metrics.encode();
    let line = "rialto_http_requests_total{method=\"POST\",route=\"/keyed\",status=\"200\"} 1";
    assert!(counted.contains(line), "{counted}");
}

#[tokio::test]
async fn requests_that_are_refused_anyway_do_not_count() {
    let hub = Hub::with(patient(), &[("limits.writes_per_minute", "1")]);
    let large = "x".repeat(BODY_LIMIT + 1);
    assert!(hub.ask(&post("", &large)).await.starts_with("HTTP/1.1 413"));
    let encoded = hub.ask(&post("Content-Encoding: gzip\r\n", "x")).await;
    assert!(encoded.starts_with("HTTP/1.1 415"), "{encoded}");
    let foreign = hub.ask(&post("Origin: https://elsewhere.example\r\n", "x")).await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    // None of those was counted; the first valid request uses up the limit of this minute.
    assert!(hub.ask(&post("", "x")).await.starts_with("HTTP/1.1 200"));
    let again = hub.ask(&post("", "x")).await;
    assert!(again.starts_with("HTTP/1.1 429") && again.contains("retry-after:"), "{again}");
}

#[tokio::test]
async fn a_handler_that_panics_fails_only_its_own_request() {
    let hub = Hub::start(patient());
    let broken = hub.ask(&post("X-Panic: 1\r\n", "x")).await;
    assert!(broken.starts_with("HTTP/1.1 500") && broken.contains("x-request-id"), "{broken}");
    assert!(hub.ask(&post("", "x")).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_body_that_arrives_in_pieces_is_put_together() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&with("POST", "/keyed", "Content-Length: 9\r\nConnection: close\r\n")).await;
    for piece in ["abc", "def", "ghi"] {
        client.send(piece).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(client.rest().await.ends_with("keyed 9"));
}

#[tokio::test]
async fn a_caller_is_refused_before_its_body_arrives() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&with("POST", "/keyed", "X-Refused: 1\r\nContent-Length: 9\r\n")).await;
    assert!(client.rest().await.starts_with("HTTP/1.1 401"));
}

/// A request with a body on its own connection.
fn post_to(path: &str, body: &str) -> String {
    with("POST", path, &format!("Content-Length: {}\r\n", body.len())) + body
}

#[tokio::test]
async fn a_path_without_the_method_names_those_it_has() {
    let hub = Hub::start(patient());
    let answer = hub.ask(&with("PUT", "/agents/7", "")).await;
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("agents says"), "{answer}");
    assert!(answer.contains("allow: GET,HEAD,DELETE\r\n"), "{answer}");
    // Also where the request is refused for another reason.
    let answer = hub.ask(&with("PUT", "/agents/7", "Host: evil.test\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    assert!(answer.contains("allow: GET,HEAD,DELETE\r\n"), "{answer}");
    let answer = hub.ask(&with("GET", "/agents/7", "")).await;
    assert!(answer.ends_with("agent 7") && !answer.contains("allow:"), "{answer}");
}

#[tokio::test]
async fn a_head_request_gets_the_length_and_no_body() {
    let hub = Hub::start(patient());
    let answer = hub.ask(&with("HEAD", "/agents/7", "")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-length: 7\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    let answer = hub.ask(&with("HEAD", "/write", "")).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

#[tokio::test]
async fn a_part_of_a_path_is_decoded_once() {
    let hub = Hub::start(patient());
    for (sent, read) in [("a%20b", "a b"), ("a%2Fb", "a/b"), ("%2541", "%41"), ("%FF", "\u{fffd}")]
    {
        let answer = hub.ask(&with("GET", &format!("/agents/{sent}"), "")).await;
        assert!(answer.ends_with(&format!("agent {read}")), "{answer}");
    }
}

#[tokio::test]
async fn operations_at_one_path_are_told_apart_by_the_body() {
    let hub = Hub::start(patient());
    let a = hub.ask(&post_to("/shared", r#"{"a":1}"#)).await;
    assert!(a.ends_with("a 7"), "{a}");
    let b = hub.ask(&post_to("/shared", r#"{"b":1}"#)).await;
    assert!(b.ends_with("b 7"), "{b}");
    for unclear in [r#"{"c":1}"#, r#"{"a":1,"b":1}"#] {
        let answer = hub.ask(&post_to("/shared", unclear)).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.ends_with("none of 2 "), "{answer}");
    }
    let broken = hub.ask(&post_to("/shared", "{")).await;
    assert!(broken.starts_with("HTTP/1.1 400") && !broken.ends_with("none of 2 "), "{broken}");
}

#[tokio::test]
async fn methods_of_a_json_rpc_endpoint_have_rate_classes_of_their_own() {
    let hub = Hub::with(patient(), &[("limits.writes_per_minute", "1")]);
    let call =
        |method: &str| post_to("/rpc", &format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    assert!(hub.ask(&call("things/write")).await.ends_with("written"));
    let again = hub.ask(&call("things/write")).await;
    assert!(again.starts_with("HTTP/1.1 429") && again.contains("rpc says"), "{again}");
    for _ in 0..3 {
        assert!(hub.ask(&call("things/read")).await.ends_with("read"));
    }
    // Whatever no method takes goes to the endpoint itself.
    for body in [r#"{"method":"things/other"}"#, r#"{"method":1}"#, "[]", "{"] {
        let answer = hub.ask(&post_to("/rpc", body)).await;
        assert!(answer.ends_with("no such method"), "{answer}");
    }
}

/// An API with the operations of a test.
struct Listed(fn() -> Vec<Operation<()>>);

impl Api for Listed {
    fn prefix(&self) -> &str {
        "listed"
    }

    fn operations(&self) -> Vec<Operation<()>> {
        (self.0)()
    }

    fn error_response(&self, error: EdgeError) -> Response {
        error.to_string().into_response()
    }
}

#[test]
fn operations_that_cannot_be_told_apart_are_found_at_the_start() {
    let clash = |operations| {
        let api: Arc<dyn Api> = Arc::new(Listed(operations));
        let unclear = |_: &[_], _| "unclear".into_response();
        let table = OperationTable::new(&[api], 1, Box::new(unclear));
        table.err().map(|clash| clash.to_string())
    };
    assert_eq!(
        clash(|| vec![
            operation::post("/a", AnyAgent, async || ""),
            get("/a", AnyAgent, async || "")
        ]),
        None
    );
    let twice = clash(|| {
        vec![
            operation::post("/a", AnyAgent, async || ""),
            operation::post("/a", AnyAgent, async || ""),
        ]
    });
    assert_eq!(twice.as_deref(), Some("two operations cannot be told apart: POST /a"));
    let renamed =
        clash(|| vec![get("/a/{x}", AnyAgent, async || ""), get("/a/{y}", AnyAgent, async || "")]);
    assert_eq!(renamed.as_deref(), Some("two operations cannot be told apart: GET /a/{y}"));
}
