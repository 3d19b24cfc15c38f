//! Signatures: signs envelopes, and verifies that the owner of the key sent one, just now.
//!
//! The current time is an argument. What the envelope alone cannot show (whether it was seen
//! before, whether its sender is blocked) is checked elsewhere.

use std::ops::Range;

use rialto_core::time::{Millis, Timestamp};
use sha2::{Digest as _, Sha256};

use super::envelope::{Bridge, Envelope, MessageType};
use super::error::Failure;
use crate::agora::{ID_MAX, VERSION};
use crate::kit::ed25519::{PublicKey, SIGNATURE_LEN, SecretKey, Verifier};
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
    /// The text that was signed.
    canonical: String,
}

impl SignedMessage {
    /// SHA-256 of the signed text, as receipts contain it.
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.canonical).into()
    }
}

/// The signed text of an envelope, and where its payload and signature are in it.
struct CanonicalText {
    text: String,
    payload: Range<usize>,
    signature: usize,
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
        let CanonicalText { text: canonical, payload: place, signature: end } =
            self.canonical_text(draft, &canonical);
        let signature = base64url::encode(&self.secret.sign(canonical.as_bytes()));
        // The payload is sent as it was given: the canonical text of 1e20 is an integer, which
        // strict readers do not accept (D17).
        let (before, after) = (&canonical[..place.start], &canonical[place.end..end]);
        let text = [before, payload.raw(), after, &signature, &canonical[end..]].concat();
        Ok(SignedMessage { text, canonical })
    }

    /// The envelope with an empty signature and its members in canonical order, so that no sorting
    /// is needed.
    fn canonical_text(&self, draft: &UnsignedEnvelope<'_>, payload: &str) -> CanonicalText {
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
        let start = out.len();
        out.push_str(payload);
        let payload = start..out.len();
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
        let signature = out.len();
        out.push_str("\"},\"timestamp\":\"");
        out.push_str(&rfc3339::format_millis(draft.timestamp));
        out.push_str("\",\"type\":\"");
        out.push_str(draft.kind.as_str());
        out.push_str("\"}");
        CanonicalText { text: out, payload, signature }
    }
}

/// The form that the signature covers (R12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureForm {
    /// The envelope with `sender.signature` set to `""`.
    Empty,
    /// The envelope without `sender.signature`.
    Removed,
}

/// What is proven about an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The sender's key.
    pub key: PublicKey,
    /// The signed form.
    pub form: SignatureForm,
    /// SHA-256 of the canonical text that was signed, as in receipts.
    pub canonical_sha256: [u8; 32],
    /// SHA-256 of the canonical text with an empty signature, whichever form was signed. The same
    /// message signed in both forms is one message (R25).
    pub content: [u8; 32],
}

/// Verifies an envelope that arrives at `now`: its key, its time, its signature, in this order
/// (R73).
pub fn prove(envelope: &Envelope<'_>, now: Timestamp, window: Millis) -> Result<Proof, Failure> {
    prove_with_verifier(&verifier(envelope)?, envelope, now, window)
}

/// The same with a cached verifier.
pub fn prove_with_verifier(
    verifier: &Verifier,
    envelope: &Envelope<'_>,
    now: Timestamp,
    window: Millis,
) -> Result<Proof, Failure> {
    check_freshness(envelope.timestamp, now, window)?;
    verify_with(verifier, envelope)
}

/// The verifier of an envelope's sender. Refuses keys for which any party could sign (R22).
pub fn verifier(envelope: &Envelope<'_>) -> Result<Verifier, Failure> {
    let weak = |bad| Failure::unauthorized(format!("sender.id {bad}"));
    Verifier::new(envelope.sender).map_err(weak)
}

/// Verifies the sender of an envelope at any later time, for envelopes with a receipt.
pub fn verify(envelope: &Envelope<'_>) -> Result<Proof, Failure> {
    verify_with(&verifier(envelope)?, envelope)
}

/// Checks that a time is within the window around now (R5), limits included.
pub fn check_freshness(
    timestamp: Timestamp,
    now: Timestamp,
    window: Millis,
) -> Result<(), Failure> {
    if is_within_window(timestamp, now, window) {
        return Ok(());
    }
    let seconds = window.0 / 1_000;
    let message = if timestamp < now {
        format!("stale timestamp: it is more than {seconds} s old")
    } else {
        format!("timestamp is more than {seconds} s ahead")
    };
    let clock = rfc3339::format_millis(now);
    let hint = format!("the hub's clock is {clock}; sign again with the current time");
    Err(Failure::unauthorized(message).with_hint(hint))
}

/// Whether two times are at most the window apart.
pub(super) fn is_within_window(a: Timestamp, b: Timestamp, window: Millis) -> bool {
    a.0.abs_diff(b.0) <= window.0.max(0).unsigned_abs()
}

fn verify_with(verifier: &Verifier, envelope: &Envelope<'_>) -> Result<Proof, Failure> {
    if verifier.key() != envelope.sender {
        return Err(invalid());
    }
    let signature: [u8; SIGNATURE_LEN] = base64url::decode_array(envelope.signature)
        .map_err(|_| Failure::unauthorized("sender.signature is not Base64Url of 64 bytes"))?;
    let key = envelope.sender;
    let empty = envelope.canonical();
    if verifier.verify(empty.as_bytes(), &signature).is_ok() {
        let content = Sha256::digest(empty).into();
        return Ok(Proof { key, form: SignatureForm::Empty, canonical_sha256: content, content });
    }
    let removed = envelope.canonical_without_signature()?;
    verifier.verify(removed.as_bytes(), &signature).map_err(|_| invalid())?;
    Ok(Proof {
        key,
        form: SignatureForm::Removed,
        canonical_sha256: Sha256::digest(removed).into(),
        content: Sha256::digest(empty).into(),
    })
}

fn invalid() -> Failure {
    Failure::unauthorized("the signature is not one of sender.id over this envelope").with_hint(
        "sign the UTF-8 bytes of the RFC 8785 form of the whole envelope with sender.signature set \
         to \"\", and put the Base64Url of the signature there",
    )
}
