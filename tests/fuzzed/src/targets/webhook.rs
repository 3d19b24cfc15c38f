//! Signed deliveries: accepted only with a valid signature, by hub and client alike.
//!
//! The input is headers, one on each line, then `\n=\n` and a body.

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_client::relay::WebhookSecret as ClientSecret;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::signature::{self, WebhookSecret};

use super::{halves, text};

/// The secret used in the corpus: 32 bytes that count up.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NOW: Timestamp = Timestamp(1_754_000_000_999);

/// Checks which deliveries are accepted.
pub fn webhook(bytes: &[u8]) {
    let (head, body) = halves(bytes);
    let Some(head) = text(head) else { return };
    let pairs: Vec<(&str, &str)> = head.lines().filter_map(|line| line.split_once(": ")).collect();
    let secret = WebhookSecret::parse(SECRET).expect("a secret");
    let believed = signature::verify(&secret, pairs.iter().copied(), body, NOW);
    let mut headers = HeaderMap::new();
    for (name, value) in &pairs {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    let client = ClientSecret::read(SECRET).expect("a secret");
    let by_client = client.verify(&headers, body, NOW);
    if by_client.is_ok() {
        assert_eq!(believed, Ok(()), "the client accepts what the hub rejects");
    }
    if believed.is_ok() {
        genuine(&secret, &pairs, body);
    }
}

/// An accepted delivery has the signature that the hub itself would make.
fn genuine(secret: &WebhookSecret, pairs: &[(&str, &str)], body: &[u8]) {
    let last = |wanted: &str| {
        let fits = |(name, _): &&(&str, &str)| name.eq_ignore_ascii_case(wanted);
        pairs.iter().rfind(fits).map(|(_, value)| *value).expect("it was there")
    };
    let seconds = last("webhook-timestamp");
    let at: i64 = seconds.parse().expect("it was a number");
    let [_, (_, canonical), (_, made)] =
        signature::sign(secret, last("webhook-id"), Timestamp(at * 1_000), body);
    // A sender that knows the secret may write the time differently and sign that.
    let ours = canonical == seconds;
    assert!(!ours || last("webhook-signature").split(' ').any(|given| given == made), "not ours");
}
