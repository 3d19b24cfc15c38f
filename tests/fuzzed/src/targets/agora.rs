//! Signed envelopes: parsed or rejected, verified in any member order, and never after a change.

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::wire::hello::{Hello, Welcome};
use rialto_protocols::agora::wire::payload::{Accept, Offer, Payload, Request, ResultPayload};
use rialto_protocols::agora::wire::receipt::{self, Receipt};
use rialto_protocols::agora::wire::responses::{Ack, InboxPage};
use rialto_protocols::agora::{Envelope, Failure, MessageType, prove};
use rialto_protocols::kit::ijson::{self, Json};

use super::jcs::mirrored;
use super::text;

/// Checks envelopes, their payloads and their proofs.
pub fn agora(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        if let Some(receipt) = receipt::from_header(text) {
            assert_eq!(receipt::from_header(&receipt::to_header(&receipt)), Some(receipt));
        }
        let _ = serde_json::from_str::<InboxPage<'_>>(text).map(|page| page.next_after);
    }
    let Ok(json) = envelope::read_json(bytes) else { return };
    let _ = Ack::read(&json);
    payloads(&json);
    let Ok(envelope) = Envelope::read(&json) else { return };
    assert_eq!(envelope.raw(), json.raw());
    let payload = Payload::read(&envelope);
    assert!(!matches!(payload, Ok(Payload::Unspecified)) || is_open(envelope.message_type));
    proven(&json, &envelope);
}

fn is_open(kind: MessageType) -> bool {
    matches!(kind, MessageType::Hello | MessageType::Welcome | MessageType::Status)
}

fn proven(json: &Json<'_>, envelope: &Envelope<'_>) {
    let always = Millis(i64::MAX);
    let Ok(proof) = prove(envelope, envelope.timestamp, always) else { return };
    assert_eq!(proof.key, envelope.sender);
    let other = mirrored(json);
    let other = ijson::read(other.as_bytes()).expect("members in another order");
    let other = Envelope::read(&other).expect("members in another order");
    assert_eq!(prove(&other, other.timestamp, always).ok(), Some(proof));
    // The old signature does not fit a changed id.
    let changed = json.raw().replacen("\"id\":\"", "\"id\":\"x", 1);
    let Ok(changed) = ijson::read(changed.as_bytes()) else { return };
    if let Ok(changed) = Envelope::read(&changed)
        && changed.id != envelope.id
    {
        assert!(prove(&changed, changed.timestamp, always).is_err(), "a changed id still verifies");
    }
    let _ = Receipt::of(envelope, &proof, Timestamp(0)).write();
}

/// Every payload is the same after writing and parsing it again.
fn payloads(json: &Json<'_>) {
    again(json, Request::read, Request::write);
    again(json, Offer::read, Offer::write);
    again(json, Accept::read, Accept::write);
    again(json, ResultPayload::read, ResultPayload::write);
    again(json, Hello::read, Hello::write);
    again(json, Welcome::read, Welcome::write);
    if let Some(receipt) = Receipt::read(json) {
        let written = receipt.write();
        let written = ijson::read(written.as_bytes()).expect("JSON");
        assert_eq!(Receipt::read(&written), Some(receipt));
    }
}

fn again<'j, T>(
    json: &'j Json<'j>,
    read: impl Fn(&'j Json<'j>) -> Result<T, Failure>,
    write: impl Fn(&T) -> String,
) {
    let Ok(said) = read(json) else { return };
    let written = write(&said);
    ijson::read(written.as_bytes()).expect("what we write is JSON");
}
