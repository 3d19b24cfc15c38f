//! Envelopes built by hand, so that they can be wrong in every way.

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::SignatureForm;
use rialto_protocols::kit::ed25519::{PublicKey, SecretKey};
use rialto_protocols::kit::jcs::{self, Edit};
use rialto_protocols::kit::{base64url, ijson, rfc3339};
use serde_json::{Value, json};

use super::kit::{Hub, Token, fresh_id, now};
use crate::kit::{Reply, Snapshot};

/// The placeholder of the signature.
const UNSIGNED: &str = r#""signature":"""#;

/// A key that signs any text.
pub struct Pen {
    secret: SecretKey,
}

impl Pen {
    /// The same key as [`super::kit::Key::of`].
    pub fn of(number: u8) -> Self {
        Self { secret: SecretKey::from_seed(&[number; 32]) }
    }

    pub fn key(&self) -> PublicKey {
        self.secret.public()
    }

    pub fn did(&self) -> String {
        self.key().did()
    }

    /// The three spellings of the key, the last in both cases.
    pub fn spellings(&self) -> [String; 4] {
        let key = self.key();
        let hex: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        [key.did(), base64url::encode(key.as_bytes()), hex.to_uppercase(), hex]
    }

    /// An unsigned envelope with the current time.
    pub fn draft(&self, kind: &str, payload: Value) -> Value {
        json!({
            "protocol": "agora/1.0",
            "id": fresh_id(kind),
            "timestamp": rfc3339::format_millis(now()),
            "type": kind,
            "sender": {"id": self.did(), "signature": ""},
            "payload": payload,
        })
    }

    /// A STATUS for an agent: it goes into one inbox and has no other effect.
    pub fn note(&self, to: PublicKey) -> Value {
        let mut draft = self.draft("STATUS", json!({"status": "busy", "note": "é€😀"}));
        draft["recipient"] = json!({"id": to.did()});
        draft
    }

    /// The text of an envelope with its signature filled in.
    pub fn sign(&self, draft: &Value) -> String {
        self.sign_text(&draft.to_string(), SignatureForm::Empty)
    }

    /// The same, signed without the signature member.
    pub fn sign_removed(&self, draft: &Value) -> String {
        self.sign_text(&draft.to_string(), SignatureForm::Removed)
    }

    /// Signs a text unchanged, whatever its members are.
    pub fn sign_text(&self, text: &str, form: SignatureForm) -> String {
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let to = (form == SignatureForm::Empty).then_some(r#""""#);
        let edit = Edit { path: &["sender", "signature"], replacement: to };
        let canonical = jcs::canonicalize_with(&json, edit).expect("numbers");
        self.sign_over(text, &canonical)
    }

    /// Signs other bytes than the envelope's.
    pub fn sign_over(&self, text: &str, canonical: &str) -> String {
        assert!(text.contains(UNSIGNED), "{text} was signed before");
        let signature = base64url::encode(&self.secret.sign(canonical.as_bytes()));
        text.replace(UNSIGNED, &format!(r#""signature":"{signature}""#))
    }
}

/// A time some seconds from now, as text.
pub fn from_now(seconds: i64) -> String {
    rfc3339::format_millis(Timestamp(now().0 + Millis::seconds(seconds).0))
}

/// The canonical text, as the hub computes it.
pub fn canonical(text: &str) -> String {
    jcs::canonicalize(&ijson::read(text.as_bytes()).expect("JSON")).expect("numbers")
}

/// Everything a refused envelope could have changed: rows, public pages and inboxes.
pub async fn state(hub: &Hub) -> (Snapshot, Vec<String>, String) {
    let (snapshot, boxes) = hub.held().await;
    let agents = hub.get("/agora/agents?limit=200", None).await.expect(200);
    (snapshot, boxes, agents.text)
}

impl Hub {
    /// Posts any text.
    pub async fn post_envelope(&self, text: &str) -> Reply {
        self.call("POST", "/agora/envelopes", None, Some(text)).await
    }

    /// Ids of the envelopes in an inbox.
    pub async fn ids(&self, token: &Token) -> Vec<String> {
        let letters = self.letters(token).await;
        letters
            .iter()
            .map(|item| item["envelope"]["id"].as_str().expect("an id").to_owned())
            .collect()
    }
}
