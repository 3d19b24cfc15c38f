//! Verification: the owner of the key sent this envelope, and sent it just now.
//!
//! The current time is an argument. What the envelope alone cannot show (whether it was seen
//! before, whether its sender is blocked) is checked elsewhere.

use rialto_core::time::{Millis, Timestamp};
use sha2::{Digest as _, Sha256};

use super::envelope::Envelope;
use super::failure::Failure;
use crate::kit::ed25519::{PublicKey, SIGNATURE_LEN, Verifier};
use crate::kit::{base64url, rfc3339};

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
    let message = match timestamp < now {
        true => format!("stale timestamp: it is more than {seconds} s old"),
        false => format!("timestamp is more than {seconds} s ahead"),
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
