//! A signed envelope, kept with the data needed to sign it again.

use rialto_core::time::Timestamp;
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;

/// An envelope that is ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEnvelope {
    /// Its id, by which answers refer to it.
    pub id: String,
    /// The message type.
    pub kind: MessageType,
    /// The recipient.
    pub recipient: Option<PublicKey>,
    /// The only hub that may act on it, if set.
    pub hub: Option<PublicKey>,
    /// When it was signed.
    pub timestamp: Timestamp,
    /// SHA-256 of the signed text, as used in receipts.
    pub sha256: [u8; 32],
    pub(super) payload: String,
    pub(super) text: String,
}

impl SignedEnvelope {
    /// The whole envelope, as sent over the wire.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The payload: a JSON object, as text.
    pub fn payload(&self) -> &str {
        &self.payload
    }
}
