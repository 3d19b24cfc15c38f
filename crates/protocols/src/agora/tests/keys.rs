//! Tests of keys: one key in three spellings, and keys that prove nothing.

use super::*;
use crate::agora::wire::signature::{prove_with_verifier, verifier};
use crate::kit::ed25519::{PublicKey, Verifier};

#[test]
fn three_spellings_of_a_key_are_one_sender() {
    let key = alice().public();
    let hex: String = key.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    for text in [key.did(), base64url::encode(key.as_bytes()), hex.to_uppercase(), hex] {
        let mut envelope = draft();
        envelope["sender"]["id"] = json!(text);
        let proof =
            arrive(&signed(envelope, &alice(), SignatureForm::Empty).to_string()).expect("Alice");
        assert_eq!(proof.key, key);
        assert_eq!(proof.key.to_string(), key.did());
    }
}

#[test]
fn a_signature_of_another_agent_is_refused() {
    let failure =
        arrive(&signed(draft(), &bob(), SignatureForm::Empty).to_string()).expect_err("not Alice");
    assert_eq!(failure.code.number(), 401);
    let text = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    let json = read_json(text.as_bytes()).expect("JSON");
    let envelope = Envelope::read(&json).expect("an envelope");
    let kept = verifier(&envelope).expect("a good key");
    assert!(prove_with_verifier(&kept, &envelope, NOW, WINDOW).is_ok());
    let another = Verifier::new(bob().public()).expect("a good key");
    assert!(prove_with_verifier(&another, &envelope, NOW, WINDOW).is_err());
}

#[test]
fn weak_keys_are_refused() {
    let mut low = [0; 32];
    let mut weak = vec![low];
    low[0] = 1;
    weak.push(low);
    low[31] = 0x80;
    weak.push(low);
    for (first, last) in
        [(0xec, 0x7f), (0xec, 0xff), (0xed, 0x7f), (0xed, 0xff), (0xee, 0x7f), (0xff, 0xff)]
    {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (first, last);
        weak.push(bytes);
    }
    // With the identity as R and 0 as S, a lax verifier would accept this for all of them.
    let mut forged = [0; 64];
    forged[0] = 1;
    for bytes in weak {
        let mut envelope = draft();
        envelope["sender"]["signature"] = json!(base64url::encode(&forged));
        for text in [PublicKey::from_bytes(bytes).did(), base64url::encode(&bytes)] {
            envelope["sender"]["id"] = json!(text);
            envelope["timestamp"] = json!("2026-03-20T10:00:00Z");
            let failure = arrive(&envelope.to_string()).expect_err("weak");
            assert_eq!(failure.code.number(), 401);
            assert!(failure.message.starts_with("sender.id is a weak"), "{}", failure.message);
            envelope["timestamp"] = json!("2020-03-20T10:00:00Z");
            let stale = arrive(&envelope.to_string()).expect_err("weak and stale");
            assert_eq!(stale.message, failure.message, "the key comes before the time");
        }
    }
}

#[test]
fn a_signature_with_an_unreduced_s_is_refused() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut envelope = signed(draft(), &alice(), SignatureForm::Empty);
    let good = envelope["sender"]["signature"].as_str().expect("text").to_owned();
    let mut bytes: [u8; 64] = base64url::decode_array(&good).expect("64 bytes");
    let mut carry = 0;
    for (byte, add) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    envelope["sender"]["signature"] = json!(base64url::encode(&bytes));
    assert_eq!(arrive(&envelope.to_string()).expect_err("S + L").code.number(), 401);
}
