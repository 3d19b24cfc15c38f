use std::time::Duration;

use crate::CallError;
use crate::relay::{
    DeliveryOutcome, EnvelopeSpec, ReplyEvent, ReplyStream, ReplyStreamItem, RetryPolicy,
    SendRequest, SendResponse, SentMessage, Server, ValidEnvelope,
};
use crate::testing::{TestServer, answer, failure, stream, success};

const FAILED: &str = r#"{"delivery":"failed","error_code":"ERR_AGENT_UNREACHABLE","detail":"refused","trace_id":"t"}"#;

fn outbound() -> ValidEnvelope {
    EnvelopeSpec::new("alice@chorus", "en", "Hello!").build().expect("a letter")
}

async fn server(stage: &TestServer) -> Server {
    let quick = Duration::from_millis(1);
    let server = Server::discover(&stage.url).await.expect("a server");
    server.with_retry(RetryPolicy {
        max_attempts: 3,
        initial_delay: quick,
        max_delay: Duration::from_secs(2),
    })
}

async fn send(stage: &TestServer, key: Option<&str>) -> Result<SentMessage, CallError> {
    let outbound = outbound();
    let order = SendRequest {
        receiver_id: "bob",
        envelope: &outbound,
        idempotency_key: key,
        question: false,
    };
    server(stage).await.send(&order).await
}

#[tokio::test]
async fn a_message_is_sent_as_the_book_has_it() {
    let stage =
        TestServer::plain(|_, _| success(r#"{"delivery":"delivered_sse","trace_id":"t"}"#)).await;
    let sent = send(&stage, None).await.expect("sent");
    assert!(matches!(sent.outcome, DeliveryOutcome::DeliveredToInbox));
    assert_eq!((sent.trace_id.as_deref(), sent.tries), (Some("t"), 1));
    let heard = &stage.heard()[0];
    assert_eq!((heard.method.as_str(), heard.target.as_str()), ("POST", "/messages"));
    let envelope = outbound();
    assert_eq!(heard.body, format!(r#"{{"receiver_id":"bob","envelope":{}}}"#, envelope.as_str()));
    assert_eq!(heard.header("idempotency-key").map(str::len), Some(32));
    send(&stage, Some("mine")).await.expect("sent");
    assert_eq!(stage.heard()[1].header("idempotency-key"), Some("mine"));
}

#[tokio::test]
async fn what_can_pass_is_sent_again_under_the_same_key() {
    let stage = TestServer::plain(|_, number| match number {
        0 => success(FAILED),
        1 => failure(504, "ERR_TIMEOUT", ""),
        _ => success(r#"{"delivery":"delivered","receiver_response":{"status":"ok"}}"#),
    });
    let stage = stage.await;
    let sent = send(&stage, None).await.expect("sent");
    assert_eq!((sent.delivery_status(), sent.tries), ("delivered", 3));
    let keys: Vec<_> = stage
        .heard()
        .iter()
        .map(|heard| heard.header("idempotency-key").map(str::to_owned))
        .collect();
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn what_cannot_pass_is_sent_once() {
    for (status, code) in [
        (400, "ERR_VALIDATION"),
        (404, "ERR_AGENT_NOT_FOUND"),
        (401, "ERR_UNAUTHORIZED"),
        (429, "ERR_RATE_LIMITED"),
    ] {
        let stage = TestServer::plain(move |_, _| failure(status, code, "")).await;
        let sent = send(&stage, None).await.expect("an outcome");
        let DeliveryOutcome::Rejected(why) = sent.outcome else { panic!("{code}") };
        assert_eq!((why.status, why.code.as_str(), sent.tries), (status, code, 1));
        assert_eq!(stage.heard().len(), 1, "{code}");
    }
    let stage = TestServer::plain(|_, _| failure(503, "ERR_UNAVAILABLE", "")).await;
    let error = send(&stage, None).await.expect_err("no outcome");
    assert!(matches!(error, CallError::Refused { status: 503, .. }));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let stage = TestServer::plain(|_, number| match number {
        0 => failure(429, "ERR_RATE_LIMITED", "retry-after: 0\r\n"),
        1 => failure(503, "ERR_UNAVAILABLE", "retry-after: 1\r\n"),
        _ => answer(202, "", r#"{"success":true,"data":{"delivery":"queued","trace_id":"t"}}"#),
    });
    let stage = stage.await;
    let began = std::time::Instant::now();
    assert_eq!(send(&stage, None).await.expect("sent").delivery_status(), "queued");
    assert!(began.elapsed() >= Duration::from_secs(1));
    let stage =
        TestServer::plain(|_, _| failure(429, "ERR_RATE_LIMITED", "retry-after: 3\r\n")).await;
    assert_eq!(send(&stage, None).await.expect("an outcome").delivery_status(), "rejected");
    assert_eq!(stage.heard().len(), 1, "longer than this sender waits");
}

#[tokio::test]
async fn a_sender_gives_up_at_last_and_at_once_when_the_failure_is_remembered() {
    let stage = TestServer::plain(|_, _| success(FAILED)).await;
    let sent = send(&stage, None).await.expect("an outcome");
    assert_eq!((sent.delivery_status(), sent.tries, stage.heard().len()), ("failed", 3, 3));
    let stage = TestServer::plain(|_, number| {
        let headers = if number == 0 { "" } else { "idempotency-replayed: true\r\n" };
        answer(200, headers, &format!(r#"{{"success":true,"data":{FAILED}}}"#))
    });
    let stage = stage.await;
    let sent = send(&stage, None).await.expect("an outcome");
    assert_eq!((sent.delivery_status(), sent.replayed, sent.tries), ("failed", true, 2));
}

async fn live(said: Vec<u8>) -> Result<SendResponse, CallError> {
    let stage = TestServer::plain(move |_, _| said.clone()).await;
    let outbound = outbound();
    let order = SendRequest {
        receiver_id: "bob",
        envelope: &outbound,
        idempotency_key: None,
        question: false,
    };
    let answered = server(&stage).await.send_streaming(&order).await;
    assert!(stage.heard()[0].body.ends_with(r#","stream":true}"#));
    answered
}

async fn words(text: &str) -> ReplyStream {
    match live(stream(text)).await.expect("an answer") {
        SendResponse::Streaming(words) => *words,
        SendResponse::Complete(sent) => panic!("{sent:?}"),
    }
}

#[tokio::test]
async fn a_receiver_at_work_is_heard_to_the_end() {
    let words = words(
        "event: chunk\ndata: {\"text\":\"a\"}\n\n: ping\n\nevent: new\ndata: 1\n\nevent: done\ndata: {\"full_text\":\"ab\",\"envelope\":null}\n\nevent: delivery\ndata: {\"delivery\":\"delivered\",\"trace_id\":\"t\"}\n\n",
    );
    let words = &mut words.await;
    let mut heard = Vec::new();
    while let Some(said) = words.next().await {
        heard.push(match said.expect("no error") {
            ReplyStreamItem::Event(ReplyEvent::Chunk { text }) => text,
            ReplyStreamItem::Event(word) => format!("{word:?}"),
            ReplyStreamItem::Delivery(sent) => sent.delivery_status().to_owned(),
        });
    }
    assert_eq!((heard.len(), heard[0].as_str(), heard[2].as_str()), (3, "a", "delivered"));
    assert!(words.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_an_end() {
    let mut cut = words("event: chunk\ndata: {\"text\":\"a\"}\n\nevent: done\ndata: {").await;
    assert!(cut.next().await.expect("a chunk").is_ok());
    assert!(cut.next().await.expect("the cut").is_err());
    assert!(cut.next().await.is_none());
    let mut failed = words("event: error\ndata: {\"code\":\"X\",\"message\":\"no\"}\n\n").await;
    assert!(matches!(
        failed.next().await,
        Some(Ok(ReplyStreamItem::Event(ReplyEvent::Error { .. })))
    ));
    let Some(Ok(ReplyStreamItem::Delivery(sent))) = failed.next().await else {
        panic!("no verdict")
    };
    assert_eq!(sent.delivery_status(), "failed");
    assert!(failed.next().await.is_none());
}

#[tokio::test]
async fn servers_may_answer_a_live_order_at_once() {
    for (said, word) in [
        (success(r#"{"delivery":"queued","trace_id":"t"}"#), "queued"),
        (failure(404, "ERR_AGENT_NOT_FOUND", ""), "rejected"),
        (failure(502, "ERR_AGENT_UNREACHABLE", ""), "failed"),
    ] {
        match live(said).await.expect("an answer") {
            SendResponse::Complete(sent) => assert_eq!(sent.delivery_status(), word),
            SendResponse::Streaming(_) => panic!("{word}"),
        }
    }
}
