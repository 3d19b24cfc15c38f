//! Keys, secrets and the files that store them.

use rialto_client::KeyFile;
use rialto_client::clara::Wallet;
use rialto_engine::delivery::signature::WebhookSecret;
use rialto_engine::keys::{Key, parse_bearer};

use super::text;

/// Checks every parser of keys.
pub fn key(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Some(key) = Key::parse(text) {
        assert_eq!(key.expose(), text);
        assert!(text.starts_with(&key.prefix().to_string()));
        assert!(!key.to_string().contains(&text[8..]), "printing reveals the key");
        for at in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] ^= 1;
            let other = String::from_utf8_lossy(&other);
            assert!(Key::parse(&other).is_none(), "{other} is accepted as a key as well");
        }
    }
    assert!(parse_bearer(text).is_none_or(|key| text.contains(key)));
    if let Some(secret) = WebhookSecret::parse(text) {
        assert_eq!(secret.to_text(), text, "a secret has two texts");
    }
    if let Some(file) = KeyFile::read(text) {
        assert_eq!(KeyFile::read(&file.to_text()), Some(file));
    }
    let _ = Wallet::read(text);
}
