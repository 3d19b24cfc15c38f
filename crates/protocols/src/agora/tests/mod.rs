//! Tests of the wire: the published vectors, refusals and their fields, tampering, and property
//! tests of all envelopes.

mod answers;
mod keys;
mod laws;
mod payload;
mod reading;
mod receipts;
mod signing;
mod tamper;
mod vectors;

use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::wire::envelope::read_json;
use super::{Envelope, Failure, Proof, SignatureForm, WINDOW, prove};
use crate::kit::ed25519::SecretKey;
use crate::kit::{base64url, ijson, jcs};

/// 2026-03-20T10:00:00Z.
const NOW: Timestamp = Timestamp(1_774_000_800_000);

fn alice() -> SecretKey {
    SecretKey::from_seed(&[1; 32])
}

fn bob() -> SecretKey {
    SecretKey::from_seed(&[2; 32])
}

/// An unsigned envelope of Alice with a value of every kind.
fn draft() -> Value {
    json!({
        "protocol": "agora/1.0",
        "id": "r-1",
        "timestamp": "2026-03-20T10:00:00Z",
        "type": "REQUEST",
        "sender": {"id": alice().public().did(), "signature": "", "note": "é€😀\u{fb33}\r\"\\"},
        "recipient": {"id": bob().public().did()},
        "payload": {
            "resource": "agora:search:v1",
            "params": {"q": "weather", "deep": [1, 2.5, -0.0, 1e-7, 1e21, true, null, {"": []}]},
            "budget": {"max": 5.25, "currency": "credits"},
            "timeout": 10000,
        },
        "x-extra": {"kept": [{}, "as it is"]},
    })
}

/// Signs an envelope in one of the two forms and inserts the signature.
fn signed(mut envelope: Value, secret: &SecretKey, form: SignatureForm) -> Value {
    envelope["sender"]["signature"] = json!("");
    let mut signing = envelope.clone();
    if form == SignatureForm::Removed {
        signing["sender"].as_object_mut().expect("an object").remove("signature");
    }
    let text = signing.to_string();
    let canonical =
        jcs::canonicalize(&ijson::read(text.as_bytes()).expect("JSON")).expect("numbers");
    envelope["sender"]["signature"] = json!(base64url::encode(&secret.sign(canonical.as_bytes())));
    envelope
}

/// Reads and verifies an envelope that arrives now.
fn arrive(text: &str) -> Result<Proof, Failure> {
    arrive_at(text.as_bytes(), NOW)
}

fn arrive_at(bytes: &[u8], now: Timestamp) -> Result<Proof, Failure> {
    let json = read_json(bytes)?;
    prove(&Envelope::read(&json)?, now, WINDOW)
}

/// The code and the field of a refusal.
fn refused(text: &str) -> (u16, String) {
    let failure = arrive(text).expect_err(text);
    (failure.code.number(), failure.field.unwrap_or_default().into())
}
