//! Tests of signed envelopes: they are canonical, and valid by our own rules (R24).

use super::*;
use crate::agora::{Bridge, EnvelopeSigner, MessageType, UnsignedEnvelope};

fn plain(payload: &str) -> UnsignedEnvelope<'_> {
    UnsignedEnvelope {
        id: "m-1",
        timestamp: NOW,
        kind: MessageType::Status,
        payload,
        recipient: None,
        hub: None,
        bridge: None,
    }
}

#[test]
fn what_we_sign_verifies_and_stands_in_order() {
    let hub = EnvelopeSigner::new(alice());
    let marked = Bridge { hub: hub.did(), protocol: "registry", agent: "a\"b" };
    for (recipient, bridge) in [
        (None, None),
        (Some(bob().public()), None),
        (None, Some(marked)),
        (Some(bob().public()), Some(marked)),
    ] {
        let draft = UnsignedEnvelope { recipient, bridge, ..plain("{\"a\":\"é\",\"b\":5.25}") };
        let made = hub.sign(&draft).expect("a good draft");
        let json = read_json(made.text.as_bytes()).expect("JSON");
        assert_eq!(jcs::canonicalize(&json).expect("numbers"), made.text);
        let envelope = Envelope::read(&json).expect("an envelope");
        let proof = prove(&envelope, NOW, WINDOW).expect("a good signature");
        assert_eq!(
            (proof.form, proof.key, proof.content),
            (SignatureForm::Empty, hub.key(), made.sha256())
        );
        assert_eq!((envelope.id, envelope.message_type), ("m-1", MessageType::Status));
        assert_eq!(envelope.timestamp_text, "2026-03-20T10:00:00.000Z");
        assert_eq!(envelope.payload.raw(), "{\"a\":\"é\",\"b\":5.25}");
        assert_eq!(envelope.recipient, recipient);
        assert_eq!(envelope.bridge.and_then(Bridge::read), bridge);
    }
}

#[test]
fn a_payload_goes_out_as_it_was_given() {
    let payload = "{ \"b\": 1e20,\t\"a\" : \"\\u00e9\"}";
    let made = EnvelopeSigner::new(alice()).sign(&plain(payload)).expect("a good draft");
    assert!(made.text.contains(payload), "{}", made.text);
    assert_eq!(arrive(&made.text).expect("a good signature").content, made.sha256());
}

#[test]
fn what_no_reader_would_take_is_not_signed() {
    let hub = EnvelopeSigner::new(alice());
    for (payload, field) in [
        ("[]", "/payload"),
        ("{", ""),
        ("{\"a\":1,\"a\":1}", ""),
        ("{\"n\":9007199254740992}", "/payload/n"),
    ] {
        assert_eq!(hub.sign(&plain(payload)).expect_err(payload).field, field);
    }
    for id in ["", "a\u{200b}", &"x".repeat(129)] {
        assert_eq!(hub.sign(&UnsignedEnvelope { id, ..plain("{}") }).expect_err(id).field, "/id");
    }
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", EnvelopeSigner::new(alice()));
    assert!(shown.contains("did:key:"));
    assert!(!shown.contains("1, 1, 1"), "{shown}");
}
