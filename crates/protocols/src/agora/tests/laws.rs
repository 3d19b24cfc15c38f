//! Property tests that hold for every envelope and every sequence of bytes.

use proptest::prelude::*;

use super::*;
use crate::agora::wire::hello::{Hello, Welcome};
use crate::agora::wire::payload::{Accept, ErrorPayload, Offer, Payload, Request, ResultPayload};
use crate::agora::wire::receipt::check_receipt;
use crate::agora::wire::responses::Ack;
use crate::agora::wire::status::{MessageStatus, StatusUpdate};
use crate::agora::{Bridge, EnvelopeSigner, MessageType, Receipt, UnsignedEnvelope};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object with known and unknown members, whose values mostly do not fit.
fn any_payload() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 22] = [
        "resource",
        "params",
        "budget",
        "timeout",
        "request_id",
        "cost",
        "ttl",
        "eta",
        "offer_id",
        "payment_proof",
        "status",
        "data",
        "final",
        "code",
        "message",
        "nonce",
        "name",
        "capabilities",
        "endpoint",
        "inbox",
        "up_to",
        "received_at",
    ];
    let name = prop_oneof![3 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => any::<String>()];
    let value = prop_oneof![
        any_value(),
        Just(json!({"max": 5, "currency": "credits"})),
        Just(json!({})),
        Just(json!("success")),
        Just(json!(["a", {"resource": "b", "price": 1}])),
        (0..100_000_u32).prop_map(Value::from),
    ];
    prop::collection::vec((name, value), 0..10)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Runs every reader.
fn read_everything(bytes: &[u8]) {
    let Ok(json) = read_json(bytes) else { return };
    let _ =
        (Request::read(&json), Offer::read(&json), Accept::read(&json), ResultPayload::read(&json));
    let _ = (
        ErrorPayload::read(&json),
        Hello::read(&json),
        Welcome::read(&json),
        StatusUpdate::read(&json),
    );
    let _ =
        (MessageStatus::read(&json), Receipt::read(&json), Bridge::read(&json), Ack::read(&json));
    let Ok(envelope) = Envelope::read(&json) else { return };
    let _ = (Payload::read(&envelope), prove(&envelope, NOW, WINDOW));
    let _ = check_receipt(envelope.raw(), envelope.sender, &envelope, WINDOW);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_signed_verifies(
        seed in any::<[u8; 32]>(),
        extra in any_value(),
        payload in any_payload(),
        removed in any::<bool>(),
    ) {
        let secret = SecretKey::from_seed(&seed);
        let form = if removed { SignatureForm::Removed } else { SignatureForm::Empty };
        let mut envelope = draft();
        envelope["sender"]["id"] = json!(secret.public().did());
        envelope["extra"] = extra;
        envelope["payload"] = payload;
        let text = signed(envelope, &secret, form).to_string();
        let proof = arrive(&text).expect("a good signature");
        prop_assert_eq!((proof.key, proof.form), (secret.public(), form));
        prop_assert_eq!(arrive(&format!("\n{text} ")), Ok(proof));
    }

    #[test]
    fn what_we_make_verifies(seed in any::<[u8; 32]>(), payload in any_payload(), id in "\\w{1,128}") {
        let composer = EnvelopeSigner::new(SecretKey::from_seed(&seed));
        let payload = payload.to_string();
        let draft = UnsignedEnvelope {
            id: &id,
            timestamp: NOW,
            kind: MessageType::Result,
            payload: &payload,
            recipient: Some(bob().public()),
            hub: None,
            bridge: None,
        };
        let Ok(made) = composer.sign(&draft) else { return Ok(()) };
        let proof = arrive(&made.text).expect("a good signature");
        prop_assert_eq!((proof.key, proof.content), (composer.key(), made.sha256()));
    }

    #[test]
    fn a_changed_byte_is_found_or_says_the_same(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        pretty in any::<bool>(),
        removed in any::<bool>(),
    ) {
        let form = if removed { SignatureForm::Removed } else { SignatureForm::Empty };
        let envelope = signed(draft(), &alice(), form);
        let text = if pretty { format!("{envelope:#}") } else { envelope.to_string() };
        let proof = arrive(&text).expect("a good signature");
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(changed) = arrive_at(&bytes, NOW) {
            prop_assert_eq!(changed, proof);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in any::<Vec<u8>>()) {
        read_everything(&bytes);
    }

    #[test]
    fn no_json_makes_a_reader_panic(value in any_value(), payload in any_payload()) {
        read_everything(value.to_string().as_bytes());
        read_everything(payload.to_string().as_bytes());
    }

    #[test]
    fn no_envelope_makes_a_reader_panic(
        member in prop::sample::select(vec![
            "protocol", "id", "timestamp", "type", "sender", "recipient", "payload", "bridge",
        ]),
        value in any_value(),
        payload in any_payload(),
        kind in prop::sample::select(MessageType::ALL.to_vec()),
    ) {
        let mut envelope = draft();
        envelope["payload"] = payload;
        envelope["type"] = json!(kind.as_str());
        read_everything(envelope.to_string().as_bytes());
        envelope[member] = value;
        read_everything(envelope.to_string().as_bytes());
    }
}
