//! Tests of receipts: what the hub confirms, and what it does not.

use super::*;
use crate::agora::wire::receipt::{ReceiptError, check_receipt, from_header, to_header};
use crate::agora::wire::signature::verify;
use crate::agora::{EnvelopeSigner, MessageType, Receipt, UnsignedEnvelope};

fn hub() -> EnvelopeSigner {
    EnvelopeSigner::new(SecretKey::from_seed(&[9; 32]))
}

/// The hub's STATUS with this payload.
fn status(payload: &str) -> String {
    let draft = UnsignedEnvelope {
        id: "s-1",
        timestamp: NOW,
        kind: MessageType::Status,
        payload,
        recipient: None,
        hub: None,
        bridge: None,
    };
    hub().sign(&draft).expect("a good draft").text
}

fn receipt_for(envelope: &Envelope<'_>, received_at: Timestamp) -> String {
    let proof = verify(envelope).expect("a good signature");
    Receipt::of(envelope, &proof, received_at).write()
}

#[test]
fn a_receipt_vouches_for_its_envelope_in_both_forms() {
    for form in [SignatureForm::Empty, SignatureForm::Removed] {
        let text = signed(draft(), &alice(), form).to_string();
        let json = read_json(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let receipt = status(&receipt_for(&envelope, NOW));
        let (proof, at) = check_receipt(&receipt, hub().key(), &envelope, WINDOW).expect("trusted");
        assert_eq!((proof.key, proof.form, at), (alice().public(), form, NOW));
        let back = from_header(&to_header(&receipt)).expect("a header");
        assert_eq!(back, receipt);
    }
    assert_eq!(from_header("+"), None);
    assert_eq!(from_header(&"A".repeat(10_000)), None);
}

#[test]
fn a_receipt_has_the_books_members() {
    let text = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    let json = read_json(text.as_bytes()).expect("JSON");
    let envelope = Envelope::read(&json).expect("an envelope");
    let payload: Value = serde_json::from_str(&receipt_for(&envelope, NOW)).expect("JSON");
    let sha256 = payload["sha256"].as_str().expect("text").to_owned();
    assert!(sha256.len() == 64 && sha256 == sha256.to_lowercase());
    let wanted = json!({
        "status": "received",
        "message_id": "r-1",
        "message_sender": alice().public().did(),
        "received_at": "2026-03-20T10:00:00.000Z",
        "sha256": sha256,
    });
    assert_eq!(payload, wanted);
}

#[test]
fn freshness_counts_from_when_the_hub_received_it() {
    let text = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    let json = read_json(text.as_bytes()).expect("JSON");
    let envelope = Envelope::read(&json).expect("an envelope");
    for (after, fresh) in
        [(0, true), (60_000, true), (-60_000, true), (60_001, false), (-60_001, false)]
    {
        let receipt = status(&receipt_for(&envelope, Timestamp(NOW.0 + after)));
        let checked = check_receipt(&receipt, hub().key(), &envelope, WINDOW);
        assert_eq!(checked.is_ok(), fresh, "{after}");
        if !fresh {
            assert_eq!(checked, Err(ReceiptError::Stale));
        }
    }
}

#[test]
fn nothing_else_vouches() {
    let text = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    let json = read_json(text.as_bytes()).expect("JSON");
    let envelope = Envelope::read(&json).expect("an envelope");
    let payload = receipt_for(&envelope, NOW);
    let good = status(&payload);
    let why =
        |receipt: &str| check_receipt(receipt, hub().key(), &envelope, WINDOW).expect_err(receipt);
    assert_eq!(
        check_receipt(&good, bob().public(), &envelope, WINDOW),
        Err(ReceiptError::WrongSigner)
    );
    assert!(matches!(
        why(&good.replace("10:00:00.000Z", "10:00:01.000Z")),
        ReceiptError::Receipt(_)
    ));
    assert!(matches!(why("{}"), ReceiptError::Receipt(_)));
    assert_eq!(
        why(&status(r#"{"status":"accepted","message_id":"r-1"}"#)),
        ReceiptError::WrongMessage
    );
    assert_eq!(why(&status(&payload.replace("r-1", "r-2"))), ReceiptError::OtherEnvelope);
    let other_sender = payload.replace(&alice().public().did(), &bob().public().did());
    assert_eq!(why(&status(&other_sender)), ReceiptError::OtherEnvelope);
    let sha256 = serde_json::from_str::<Value>(&payload).expect("JSON")["sha256"].clone();
    let zeros = payload.replace(sha256.as_str().expect("text"), &"0".repeat(64));
    assert_eq!(why(&status(&zeros)), ReceiptError::OtherEnvelope);
    let forged = text.replace("weather", "weapons");
    let json = read_json(forged.as_bytes()).expect("JSON");
    let forged = Envelope::read(&json).expect("an envelope");
    assert!(matches!(
        check_receipt(&good, hub().key(), &forged, WINDOW),
        Err(ReceiptError::Envelope(_))
    ));
}
