//! Receipts: the hub's signed statement of when an envelope arrived, and its digest.
//!
//! An envelope must be at most a minute old, but may wait in an inbox for days. Its receipt is a
//! STATUS signed by the hub. It shows a receiver that the envelope was fresh when the hub accepted
//! it (section 2.5, D18).

use rialto_core::time::{Millis, Timestamp};

use super::envelope::{self, Envelope, MessageType};
use super::error::Failure;
use super::signature::{self, Proof, is_within_window};
use crate::kit::ed25519::PublicKey;
use crate::kit::fields::Fields;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;
use crate::kit::{base64url, rfc3339};

/// The header of a webhook delivery that carries the receipt of its envelope.
pub const HEADER: &str = "Agora-Receipt";
/// The `status` of a receipt.
const RECEIVED: &str = "received";
/// The longest receipt that is read from a header.
const HEADER_MAX: usize = 8_192;

/// The content of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt<'a> {
    /// The envelope's id.
    pub message_id: &'a str,
    /// The envelope's sender.
    pub message_sender: PublicKey,
    /// When the hub received it.
    pub received_at: Timestamp,
    /// SHA-256 of the canonical text that its sender signed.
    pub sha256: [u8; 32],
}

/// Why a receipt does not confirm an envelope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The receipt is not a valid envelope.
    #[error("the receipt cannot be trusted: {}", .0.message)]
    Receipt(Failure),
    /// The receipt is not signed by the hub.
    #[error("the receipt is not signed by the hub")]
    WrongSigner,
    /// It is a valid envelope of the hub, but not a receipt.
    #[error("this is not a receipt")]
    WrongMessage,
    /// The signature of the envelope is not valid.
    #[error("the envelope cannot be trusted: {}", .0.message)]
    Envelope(Failure),
    /// It is the receipt of another envelope.
    #[error("the receipt is for another envelope")]
    OtherEnvelope,
    /// The envelope was not fresh when the hub received it.
    #[error("the envelope was not fresh when the hub received it")]
    Stale,
}

impl<'a> Receipt<'a> {
    /// The receipt of a verified envelope.
    pub fn of(envelope: &Envelope<'a>, proof: &Proof, received_at: Timestamp) -> Self {
        Self {
            message_id: envelope.id,
            message_sender: proof.key,
            received_at,
            sha256: proof.canonical_sha256,
        }
    }

    /// Writes the payload of the STATUS.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("status", RECEIVED)
            .text("message_id", self.message_id)
            .text("message_sender", &self.message_sender.did())
            .text("received_at", &rfc3339::format_millis(self.received_at))
            .text("sha256", &to_hex(&self.sha256))
            .finish()
    }

    /// Reads the payload of a STATUS; `None` if it is not a receipt.
    pub fn read(payload: &'a Json<'_>) -> Option<Self> {
        let f = Fields::read(payload, "/payload").ok()?;
        let text = |name| f.text(name).ok().flatten();
        if text("status")? != RECEIVED {
            return None;
        }
        Some(Self {
            message_id: text("message_id")?,
            message_sender: PublicKey::parse(text("message_sender")?).ok()?,
            received_at: f.time("received_at").ok()??,
            sha256: from_hex(text("sha256")?)?,
        })
    }
}

/// Checks that `hub` confirms an envelope with this receipt: both are signed, they belong together,
/// and the envelope was fresh when the hub received it. Returns its sender and its time of arrival.
pub fn check_receipt(
    receipt: &str,
    hub: PublicKey,
    envelope: &Envelope<'_>,
    window: Millis,
) -> Result<(Proof, Timestamp), ReceiptError> {
    let json = envelope::read_json(receipt.as_bytes()).map_err(ReceiptError::Receipt)?;
    let status = Envelope::read(&json).map_err(ReceiptError::Receipt)?;
    if status.sender != hub {
        return Err(ReceiptError::WrongSigner);
    }
    signature::verify(&status).map_err(ReceiptError::Receipt)?;
    let said = (status.message_type == MessageType::Status)
        .then(|| Receipt::read(status.payload))
        .flatten();
    let said = said.ok_or(ReceiptError::WrongMessage)?;
    let proof = signature::verify(envelope).map_err(ReceiptError::Envelope)?;
    if said != Receipt::of(envelope, &proof, said.received_at) {
        return Err(ReceiptError::OtherEnvelope);
    }
    if !is_within_window(envelope.timestamp, said.received_at, window) {
        return Err(ReceiptError::Stale);
    }
    Ok((proof, said.received_at))
}

/// A receipt as the value of the webhook header.
pub fn to_header(receipt: &str) -> String {
    base64url::encode(receipt.as_bytes())
}

/// Reads a receipt from the webhook header; `None` if the value is not one.
pub fn from_header(value: &str) -> Option<String> {
    let bytes = (value.len() <= HEADER_MAX).then(|| base64url::decode(value).ok()).flatten()?;
    String::from_utf8(bytes).ok()
}

pub(crate) fn to_hex(bytes: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
    bytes.iter().flat_map(digits).map(char::from).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
