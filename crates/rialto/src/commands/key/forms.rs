//! A public key in its three forms.

use rialto_client::agora::PublicKey;
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::Verifier;
use serde_json::{Value, json};

/// All forms of one key.
pub struct KeyForms {
    did: String,
    raw: String,
    hex: String,
    /// Whether signatures of this key are accepted.
    usable: bool,
}

impl KeyForms {
    pub fn of(key: PublicKey) -> Self {
        let hex = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let raw = base64url::encode(key.as_bytes());
        Self { did: key.did(), raw, hex, usable: Verifier::new(key).is_ok() }
    }

    /// As lines for people.
    pub fn lines(&self) -> String {
        let Self { did, raw, hex, usable } = self;
        let weak = if *usable {
            ""
        } else {
            "\nweak       its signatures can be forged; it is rejected everywhere"
        };
        format!("did        {did}\nbase64url  {raw}\nhex        {hex}{weak}")
    }

    /// As JSON for programs.
    pub fn to_json(&self) -> Value {
        let Self { did, raw, hex, usable } = self;
        json!({"did": did, "public_key": raw, "public_key_hex": hex, "usable": usable})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_key_has_its_three_forms() {
        let did = "did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
        let raw = "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y";
        let hex = "39578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bd6";
        for text in [did, raw, hex] {
            let forms = KeyForms::of(PublicKey::parse(text).expect(text));
            assert_eq!(
                forms.lines(),
                format!("did        {did}\nbase64url  {raw}\nhex        {hex}")
            );
            assert_eq!(forms.to_json()["usable"], true);
        }
        let weak = KeyForms::of(PublicKey::from_bytes([0; 32]));
        assert!(weak.lines().contains("\nweak ") && weak.to_json()["usable"] == false);
    }
}
