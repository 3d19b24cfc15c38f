//! The published vectors (R62) and the envelope the spec prints.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::*;
use crate::agora::wire::error::ENVELOPE_EXAMPLE;
use crate::agora::wire::payload::{Budget, Payload, Request, ResultPayload, ResultStatus};
use crate::kit::ed25519::{BadSignature, PublicKey, Verifier};
use crate::kit::rfc3339;

const VECTORS: &str = include_str!("../fixtures/vectors.json");
const PRINTED: &str = include_str!("../fixtures/envelope.txt");

/// The vectors as (the whole vector, the text of its envelope).
pub(super) fn all() -> Vec<(Value, String)> {
    let file = ijson::read(VECTORS.as_bytes()).expect("JSON");
    let known: Value = serde_json::from_str(VECTORS).expect("JSON");
    let ijson::JsonValue::Array(items) = file.get("vectors").expect("a list").value() else {
        panic!("a list")
    };
    let text = |item: &ijson::Json<'_>| item.get("envelope").expect("one").raw().to_owned();
    let known = known["vectors"].as_array().expect("a list").clone();
    known.into_iter().zip(items.iter().map(text)).collect()
}

pub(super) fn now(vector: &Value) -> Timestamp {
    rfc3339::parse(vector["now"].as_str().expect("text")).expect("a time")
}

#[test]
fn both_vectors_verify_at_their_time() {
    for (vector, text) in all() {
        let json = read_json(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        assert_eq!(envelope.raw(), text);
        assert_eq!(envelope.canonical(), vector["canonical"]);
        let proof = prove(&envelope, now(&vector), WINDOW).expect("a good signature");
        assert_eq!(proof.form, SignatureForm::Empty);
        assert_eq!(proof.key.did(), vector["did_key"]);
        let key = |name: &str| PublicKey::parse(vector[name].as_str().expect("text"));
        assert_eq!(key("public_key_base64url"), Ok(proof.key));
        assert_eq!(key("public_key_hex"), Ok(proof.key));
        let sha256: String = proof.content.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(sha256, vector["canonical_sha256_hex"]);
        assert_eq!(proof.canonical_sha256, proof.content);
    }
}

#[test]
fn the_example_we_show_is_the_first_of_them() {
    let (vector, _) = all().swap_remove(0);
    let shown = ENVELOPE_EXAMPLE;
    assert_eq!(serde_json::from_str::<Value>(shown).expect("JSON"), vector["envelope"]);
    assert!(arrive_at(shown.as_bytes(), now(&vector)).is_ok());
}

#[test]
fn their_signatures_are_not_over_the_removed_form() {
    for (_, text) in all() {
        let json = read_json(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let removed = envelope.canonical_without_signature().expect("numbers");
        let signature = base64url::decode_array(envelope.signature).expect("64 bytes");
        let verifier = Verifier::new(envelope.sender).expect("a good key");
        assert_eq!(verifier.verify(removed.as_bytes(), &signature), Err(BadSignature));
    }
}

#[test]
fn their_payloads_are_read() {
    let [(_, request), (_, result)] = all().try_into().expect("two");
    let json = read_json(request.as_bytes()).expect("JSON");
    let read = Payload::read(&Envelope::read(&json).expect("an envelope")).expect("a payload");
    let Payload::Request(Request { resource, params, budget, timeout }) = read else {
        panic!("{read:?}")
    };
    assert_eq!((resource, timeout), ("agora:search:v1", Some(Millis(10_000))));
    let max = Some(Credits::from_micros(5_000_000));
    assert_eq!(budget, Some(Budget { max, currency: None }));
    assert!(request.contains(params), "not a byte is changed");
    let json = read_json(result.as_bytes()).expect("JSON");
    let read = Payload::read(&Envelope::read(&json).expect("an envelope")).expect("a payload");
    let Payload::Result(ResultPayload { request_id, status, data }) = read else {
        panic!("{read:?}")
    };
    assert_eq!(request_id, "11111111-1111-1111-1111-111111111111");
    assert_eq!(status, ResultStatus::Success);
    assert!(result.contains(data));
}

#[test]
fn the_printed_envelope_is_read_once_its_gaps_are_filled() {
    let filled = PRINTED.replace("{ ... }", r#"{"resource":"r","params":{}}"#);
    let json = read_json(filled.as_bytes()).expect("JSON");
    let failure = Envelope::read(&json).expect_err("a key with dots in it");
    assert_eq!(failure.field.as_deref(), Some("/sender/id"));
    let filled = filled.replace("did:key:z6MkhaXgBZDvotDkL5257...", &alice().public().did());
    let json = read_json(filled.as_bytes()).expect("JSON");
    let envelope = Envelope::read(&json).expect("an envelope");
    assert_eq!(envelope.id, "uuid-v4-or-similar");
    assert_eq!(envelope.timestamp_text, "2023-10-27T10:00:00Z");
    assert_eq!(envelope.signature, "base64-signature");
    let failure = prove(&envelope, envelope.timestamp, WINDOW).expect_err("no signature");
    assert_eq!(failure.code.number(), 401);
}
