//! Public keys as text: one DID per key, with one spelling.

use rialto_client::agora::Seed;
use rialto_protocols::kit::ed25519::{PublicKey, Verifier};

use super::text;

/// Checks did:key, the other two encodings of a key, and seeds.
pub fn did_key(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(key) = PublicKey::parse(text) {
        let did = key.did();
        assert_eq!(PublicKey::parse(&did), Ok(key), "its own DID cannot be parsed");
        assert_eq!(
            did,
            independent(key.as_bytes()),
            "another implementation writes a different DID"
        );
        if let Ok(verifier) = Verifier::new(key) {
            assert_eq!(verifier.key(), key, "the point has a second encoding");
        }
        if text.starts_with("did:") {
            assert_eq!(did, text, "a second DID for the same key");
        }
    }
    if let Some(seed) = Seed::read(text) {
        assert!(Seed::read(&seed.reveal()).is_some_and(|again| again == seed));
    }
}

fn independent(key: &[u8; 32]) -> String {
    let bytes: Vec<u8> = [0xed, 0x01].iter().chain(key).copied().collect();
    format!("did:key:z{}", bs58::encode(bytes).into_string())
}
