use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use sha2::Sha256;

use super::hub::accepted;
use crate::openclaw::webhook::{WebhookError, WebhookReceiver};
use crate::openclaw::{Event, Timestamp, VerifyError, WebhookSecret};

const SECRET: [u8; 24] = [7; 24];
const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn headers(id: &str, event: &str, body: &str) -> HeaderMap {
    let mut mac = Hmac::<Sha256>::new_from_slice(&SECRET).expect("a key");
    mac.update(format!("{id}.1700000000.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", id),
        ("webhook-timestamp", "1700000000"),
        ("webhook-signature", &signature),
        ("rialto-event", event),
    ] {
        headers.insert(name, HeaderValue::from_str(value).expect("text"));
    }
    headers
}

fn receiver() -> WebhookReceiver {
    let secret = format!("whsec_{}", STANDARD.encode(SECRET));
    WebhookReceiver::new(WebhookSecret::read(&secret).expect("a secret"))
}

#[test]
fn a_push_is_read_by_its_header_and_handed_out_once() {
    let (receiver, body) = (receiver(), accepted(5, "echo").to_string());
    let push = headers("msg_1", "collaboration_request", &body);
    let first = receiver.receive(&push, body.as_bytes(), NOW).expect("trusted");
    assert!(matches!(first, Some(Event::Request(incoming)) if incoming.accepted));
    assert_eq!(receiver.receive(&push, body.as_bytes(), NOW), Ok(None));
    let other = headers("msg_2", "of another time", &body);
    assert_eq!(receiver.receive(&other, body.as_bytes(), NOW), Ok(None));
}

#[test]
fn a_push_that_is_not_the_hubs_is_not_read() {
    let (receiver, body) = (receiver(), accepted(5, "echo").to_string());
    let push = headers("msg_1", "collaboration_request", &body);
    let forged = receiver.receive(&push, b"{}", NOW);
    assert_eq!(forged, Err(WebhookError::NotVerified(VerifyError::BadSignature)));
    let mut nameless = push.clone();
    nameless.remove("rialto-event");
    let taken = receiver.receive(&nameless, body.as_bytes(), NOW);
    assert!(matches!(taken, Err(WebhookError::Unreadable(_))));
    assert!(matches!(receiver.receive(&push, body.as_bytes(), NOW), Ok(Some(_))));
}
