use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use rialto_core::time::Timestamp;
use rialto_protocols::relay::EnvelopeFormat;
use rialto_protocols::relay::wire::envelope::write_receive_body;
use rialto_protocols::relay::wire::error::ENVELOPE_EXAMPLE;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;
use crate::relay::EnvelopeSpec;
use crate::relay::WebhookSecret;
use crate::testing::{TestServer, answer};

type RecordedRequest = Arc<Mutex<Vec<ReceivedEnvelope>>>;

const NOW: Timestamp = Timestamp(1_614_265_330_000);

/// Stores received envelopes, and fails to adapt those that ask for it.
async fn keep(heard: RecordedRequest, received: ReceivedEnvelope) -> Result<(), AdaptError> {
    let fails = received.contents.original_text == "too hard";
    heard.lock().expect("sound").push(received);
    if fails { Err(AdaptError { detail: "no idea".to_owned() }) } else { Ok(()) }
}

/// An endpoint that stores received envelopes, and its stop signal.
async fn endpoint(heard: &RecordedRequest) -> (String, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/receive", listener.local_addr().expect("an address"));
    let heard = Arc::clone(heard);
    let receiver = EnvelopeReceiver::new(move |received| keep(Arc::clone(&heard), received));
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(serve(listener, receiver, async {
        let _ = stopped.await;
    }));
    (url, stop)
}

fn envelope(text: &str) -> ValidEnvelope {
    EnvelopeSpec::new("alice@chorus", "en", text).build().expect("a letter")
}

async fn post(url: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
    let client = crate::testing::http();
    let answer = client.post(url).body(body).send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test]
async fn two_agents_talk_without_a_server() {
    let heard = RecordedRequest::default();
    let (url, _stop) = endpoint(&heard).await;
    let reply = send(&url, &envelope("Hello!")).await.expect("a reply");
    assert_eq!((reply.status, reply.raw.as_str()), (ReplyStatus::Ok, r#"{"status":"ok"}"#));
    let reply = send(&url, &envelope("too hard")).await.expect("a reply");
    let error = ReplyStatus::Error { code: "ADAPTATION_FAILED".into(), detail: "no idea".into() };
    assert_eq!(reply.status, error);
    let heard = heard.lock().expect("sound");
    assert_eq!(heard[0].sender_id, "alice@chorus");
    assert_eq!(heard[0].contents.original_text, "Hello!");
}

#[tokio::test]
async fn an_envelope_is_taken_out_of_both_a2a_shapes() {
    let heard = RecordedRequest::default();
    let (url, _stop) = endpoint(&heard).await;
    let plain = envelope("Hello!");
    for format in [None, Some(EnvelopeFormat::A2a10), Some(EnvelopeFormat::A2a03)] {
        let (status, _) = post(&url, write_receive_body(plain.as_str(), format, "m-1")).await;
        assert_eq!(status, 200, "{format:?}");
    }
    let heard = heard.lock().expect("sound");
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|received| received.contents.envelope == plain.as_str()));
}

#[tokio::test]
async fn a_body_that_is_no_envelope_is_refused_before_the_handler() {
    let heard = RecordedRequest::default();
    let (url, _stop) = endpoint(&heard).await;
    let old = ENVELOPE_EXAMPLE.replace("0.4", "0.3");
    let no_culture = ENVELOPE_EXAMPLE.replace("sender_culture", "culture");
    let long = format!("{{\"envelope\":\"{}\"}}", "x".repeat(BODY_BYTES_MAX));
    for (body, status, code) in [
        ("", 400, "INVALID_ENVELOPE"),
        ("{}", 400, "INVALID_ENVELOPE"),
        (r#"{"envelope":7}"#, 400, "INVALID_ENVELOPE"),
        (no_culture.as_str(), 400, "INVALID_ENVELOPE"),
        (old.as_str(), 400, "UNSUPPORTED_VERSION"),
        (long.as_str(), 413, "INVALID_ENVELOPE"),
    ] {
        let (told, text) = post(&url, body.to_owned()).await;
        assert_eq!(told, status, "{text}");
        assert!(text.starts_with(r#"{"status":"error","error_code":""#) && text.contains(code));
    }
    let client = crate::testing::http();
    let answer = client.get(&url).send().await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["allow"]),
        (405, &"POST".parse().expect("text"))
    );
    assert!(heard.lock().expect("sound").is_empty());
}

#[tokio::test]
async fn an_endpoint_stops_at_its_signal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let receiver = EnvelopeReceiver::new(|_| async { Ok(()) });
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(serve(listener, receiver, async {
        let _ = stopped.await;
    }));
    send(&url, &envelope("Hello!")).await.expect("a reply");
    stop.send(()).expect("running");
    running.await.expect("no panic");
    assert!(matches!(send(&url, &envelope("Hello!")).await, Err(CallError::Unreachable { .. })));
}

#[tokio::test]
async fn replies_in_other_formats_are_recognised() {
    let own = r#"{"status":"error","error_code":"MOOD","detail":"bad"}"#;
    let error = ReplyStatus::Error { code: "MOOD".into(), detail: "bad".into() };
    for (status, body, said) in [
        (200, r#"{"status":"ok","more":1}"#, Some(ReplyStatus::Ok)),
        (400, own, Some(error)),
        (200, r#"{"hello":1}"#, Some(ReplyStatus::Other)),
        (404, r#"{"success":false}"#, None),
        (200, "thanks", None),
        (500, "oops", None),
        (302, "", None),
    ] {
        let stage = TestServer::new(move |_, _| answer(status, "", body)).await;
        let reply = send(&stage.url, &envelope("Hello!")).await;
        assert_eq!(reply.ok().map(|reply| reply.status), said, "{status} {body}");
    }
    let long = "x".repeat(BODY_BYTES_MAX + 1);
    let stage = TestServer::new(move |_, _| answer(200, "", &long)).await;
    assert!(matches!(send(&stage.url, &envelope("x")).await, Err(CallError::Unreadable(_))));
    assert!(matches!(send("nowhere", &envelope("x")).await, Err(CallError::Refused { .. })));
}

#[tokio::test]
async fn with_a_secret_only_signed_deliveries_are_accepted() {
    let secret = WebhookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let receiver = EnvelopeReceiver::new(|_| async { Ok(()) }).with_secret(secret);
    let body = ENVELOPE_EXAMPLE.as_bytes();
    let unsigned = receiver.receive(&HeaderMap::new(), body, NOW).await;
    assert_eq!(unsigned.status, 401);
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        // python3: hmac-sha256 of id.timestamp.body with the decoded secret
        ("webhook-signature", "v1,nXfv0nLJnbcNu17b6+OYUfWRqsSzFhK9poq0pN/1uPI="),
    ] {
        headers.insert(name, value.parse().expect("text"));
    }
    assert_eq!(receiver.receive(&headers, body, NOW).await.status, 200);
    assert_eq!(receiver.receive(&headers, b"{}", NOW).await.status, 401);
}

fn turn(number: u64, text: &str) -> Vec<u8> {
    let mut draft = EnvelopeSpec::new("Alice@chorus", "en", text);
    draft.conversation_id = Some("c".to_owned());
    draft.turn_number = Some(number);
    write_receive_body(draft.build().expect("a letter").as_str(), None, "")
}

#[tokio::test]
async fn a_turn_is_handed_over_once() {
    let calls = AtomicUsize::new(0);
    let receiver = EnvelopeReceiver::new(|received: ReceivedEnvelope| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::task::yield_now().await;
            match received.contents.original_text.as_str() {
                "hard" if call < 4 => Err(AdaptError { detail: "not yet".to_owned() }),
                _ => Ok(()),
            }
        }
    })
    .deduplicate_turns();
    let status = async |body: &[u8]| receiver.receive(&HeaderMap::new(), body, NOW).await.status;
    let hello = turn(1, "Hello!");
    assert_eq!(tokio::join!(status(&hello), status(&hello)), (200, 200));
    assert_eq!(status(&hello).await, 200);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(status(&turn(1, "Something else")).await, 200);
    assert_eq!(status(&turn(2, "Hello!")).await, 200);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!((status(&turn(3, "hard")).await, status(&turn(3, "hard")).await), (500, 200));
    assert_eq!(status(ENVELOPE_EXAMPLE.as_bytes()).await, 200);
    assert_eq!(status(ENVELOPE_EXAMPLE.as_bytes()).await, 200);
    assert_eq!(calls.load(Ordering::SeqCst), 7, "what has no turn is always handed over");
}
