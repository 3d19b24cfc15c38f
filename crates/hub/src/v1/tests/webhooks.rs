//! Tests of webhooks to the caller's own endpoints.

use rialto_core::command::{Command, DeliveryResult};
use rialto_engine::delivery::signature::verify;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::kit::{Agent, Hub};

/// A server that answers one request with this status and returns what it received.
async fn server(status: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a call");
        let mut heard = Vec::new();
        while !heard.ends_with(b"}") {
            let mut part = [0; 1024];
            let read = stream.read(&mut part).await.expect("bytes");
            assert!(read > 0, "the caller closed the connection after {}", heard.escape_ascii());
            heard.extend_from_slice(&part[..read]);
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("answered");
        String::from_utf8(heard).expect("text")
    });
    (url, heard)
}

#[tokio::test]
async fn a_test_is_one_signed_call() {
    let hub = Hub::start().await;
    let (url, heard) = server("204 No Content").await;
    let ada = hub.enrol_at("ada", "acme", None, Some(&url)).await;
    let got = hub.post("/v1/webhooks/test", &ada.key, "{}").await;
    assert_eq!(got.text, r#"{"delivered":true,"status":204}"#);
    let heard = heard.await.expect("heard");
    let (head, body) = heard.split_once("\r\n\r\n").expect("a request");
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let turn =
        hub.engine.with_world(|world| world.agent(ada.id).map(|agent| agent.secret_generation));
    let secret = hub.engine.hub_secret().webhook_secret(ada.id, turn.expect("it is known"));
    let now = hub.engine.now();
    assert_eq!(verify(&secret, headers, body.as_bytes(), now), Ok(()), "{head}");
    let expected =
        format!(r#"{{"type":"webhook.test","agent":{},"at":"2026-02-11T12:00:00.000Z"}}"#, ada.id);
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_test_that_fails_says_why_and_shows_no_network() {
    let hub = Hub::start().await;
    let (url, _heard) = server("500 Oh").await;
    let ada = hub.enrol_at("ada", "acme", None, Some(&url)).await;
    let got = hub.post("/v1/webhooks/test", &ada.key, "").await;
    assert_eq!(got.text, r#"{"delivered":false,"status":500,"why":"answered HTTP 500"}"#);
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let why = r#"{"delivered":false,"why":"could not connect"}"#;
    for (name, url) in
        [("bob", format!("http://{address}/")), ("eve", "http://10.0.0.1/".to_owned())]
    {
        let agent = hub.enrol_at(name, "acme", None, Some(&url)).await;
        assert_eq!(hub.post("/v1/webhooks/test", &agent.key, "").await.text, why);
    }
    for (name, endpoint) in [("none", None), ("local", Some("local://me"))] {
        let agent = hub.enrol_at(name, "acme", None, endpoint).await;
        hub.post("/v1/webhooks/test", &agent.key, "").await.is_problem(409, "wrong_state");
    }
}

/// Creates a delivery about the end of a job to its requester.
async fn pushed(hub: &Hub, client: &Agent) -> rialto_core::id::NoticeId {
    let job = hub.open(client, "sum", "0.50").await;
    hub.engine.run(Command::MarkPending { job: job.id }).await.expect("marked");
    hub.succeed(&job).await;
    let newest = hub.engine.with_world(|world| world.deliveries().map(|push| push.notice).max());
    newest.expect("a delivery")
}

#[tokio::test]
async fn agents_see_and_resend_only_their_own_deliveries() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let other = hub.enrol("other", "rich", None).await;
    hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    let (mine, theirs) = (pushed(&hub, &client).await, pushed(&hub, &other).await);
    let why = "answered HTTP 500".to_owned();
    let ended = DeliveryResult::Failed { why, next_try: None };
    hub.engine
        .run(Command::RecordDelivery { notice: mine, result: ended, report: None })
        .await
        .expect("recorded");
    let all = hub.all("/v1/webhooks", &client.key, 1).await;
    assert_eq!(all.len(), 1);
    for (name, value) in [
        ("state", "given_up"),
        ("kind", "ended"),
        ("url", "https://back.example/s3cret"),
        ("error", "answered HTTP 500"),
    ] {
        assert_eq!(all[0][name], value, "{name}");
    }
    assert_eq!((&all[0]["id"], &all[0]["tries"]), (&mine.0.into(), &1.into()));
    let again = async |id, key: &str| hub.post(&format!("/v1/webhooks/{id}/resend"), key, "").await;
    let got = again(mine, &client.key).await;
    assert_eq!((got.status, &got.body["state"]), (200, &"waiting".into()), "{}", got.text);
    again(theirs, &client.key).await.is_problem(404, "not_found");
    again(rialto_core::id::NoticeId(9_999), &client.key).await.is_problem(404, "not_found");
}
