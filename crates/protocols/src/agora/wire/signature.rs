//! Signs envelopes: members in canonical order, the payload as compact as it was given.

use rialto_core::time::Timestamp;
use sha2::{Digest as _, Sha256};

use super::bridge::Bridge;
use super::kind::MessageType;
use super::{ID_MAX, VERSION};
use crate::kit::ed25519::{PublicKey, SecretKey};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::name::check_name;
use crate::kit::{base64url, ijson, jcs, rfc3339};

/// Space for the members around payload and ids.
const AROUND: usize = 384;

/// The content of an envelope before it is signed.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedEnvelope<'a> {
    /// The message's id, never used before by its sender.
    pub id: &'a str,
    /// When it is sent.
    pub timestamp: Timestamp,
    /// The message type.
    pub kind: MessageType,
    /// JSON text of an object, in any formatting.
    pub payload: &'a str,
    /// The recipient's key.
    pub recipient: Option<PublicKey>,
    /// The only hub that may act on it. Written inside the recipient, so it needs one.
    pub hub: Option<PublicKey>,
    /// The agent for which it is signed, if not the signer itself.
    pub bridge: Option<Bridge<'a>>,
}

/// A signed envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedMessage {
    /// The JSON text of the envelope.
    pub text: String,
    /// SHA-256 of the signed text, as receipts contain it.
    pub sha256: [u8; 32],
}

/// Signs envelopes with one key.
#[derive(Clone, Debug)]
pub struct EnvelopeSigner {
    secret: SecretKey,
    key: PublicKey,
    did: String,
}

impl EnvelopeSigner {
    /// A signer with this key.
    pub fn new(secret: SecretKey) -> Self {
        let key = secret.public();
        Self { secret, key, did: key.did() }
    }

    /// The sender's key.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// The sender as did:key.
    pub fn did(&self) -> &str {
        &self.did
    }

    /// Signs an envelope in the `""` form (R12). Refuses a payload or id that readers would not
    /// accept.
    pub fn sign(&self, draft: &UnsignedEnvelope<'_>) -> Result<SignedMessage, Malformed> {
        let payload = ijson::read(draft.payload.as_bytes())?;
        Fields::read(&payload, "/payload")?;
        check_name(draft.id, ID_MAX)
            .map_err(|bad| Malformed { field: "/id".to_owned(), message: format!("id {bad}") })?;
        let canonical = jcs::canonicalize(&payload).map_err(|bad| {
            Malformed::from(jcs::CanonicalError { field: format!("/payload{}", bad.field), ..bad })
        })?;
        let signed = self.written(draft, &canonical, "");
        let sha256 = Sha256::digest(&signed).into();
        let signature = base64url::encode(&self.secret.sign(signed.as_bytes()));
        // The payload is sent as it was given: the canonical text of 1e20 is an integer, which
        // strict readers do not accept (D17).
        Ok(SignedMessage { text: self.written(draft, payload.raw(), &signature), sha256 })
    }

    /// The envelope with its members in canonical order, so that no sorting is needed.
    fn written(&self, draft: &UnsignedEnvelope<'_>, payload: &str, signature: &str) -> String {
        let mut out = String::with_capacity(AROUND + payload.len());
        out.push('{');
        if let Some(bridge) = &draft.bridge {
            out.push_str("\"bridge\":");
            bridge.write(&mut out);
            out.push(',');
        }
        out.push_str("\"id\":");
        jcs::push_string(&mut out, draft.id);
        out.push_str(",\"payload\":");
        out.push_str(payload);
        out.push_str(",\"protocol\":\"");
        out.push_str(VERSION);
        if let Some(recipient) = draft.recipient {
            out.push_str("\",\"recipient\":{");
            if let Some(hub) = draft.hub {
                out.push_str("\"hub\":\"");
                out.push_str(&hub.did());
                out.push_str("\",");
            }
            out.push_str("\"id\":\"");
            out.push_str(&recipient.did());
            out.push_str("\"},\"sender\":{\"id\":\"");
        } else {
            out.push_str("\",\"sender\":{\"id\":\"");
        }
        out.push_str(&self.did);
        out.push_str("\",\"signature\":\"");
        out.push_str(signature);
        out.push_str("\"},\"timestamp\":\"");
        out.push_str(&rfc3339::format_millis(draft.timestamp));
        out.push_str("\",\"type\":\"");
        out.push_str(draft.kind.as_str());
        out.push_str("\"}");
        out
    }
}
