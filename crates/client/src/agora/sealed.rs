//! A sealed envelope: signed, and kept with what it takes to sign it again.

use rialto_core::time::Timestamp;
use rialto_protocols::agora::Kind;
use rialto_protocols::kit::ed25519::PublicKey;

/// An envelope ready to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its id, by which answers name it.
    pub id: String,
    /// What it is for.
    pub kind: Kind,
    /// Whom it is for.
    pub recipient: Option<PublicKey>,
    /// The one hub it may be acted on, if it says so.
    pub hub: Option<PublicKey>,
    /// When it was signed.
    pub timestamp: Timestamp,
    /// SHA-256 of what was signed, as receipts name it.
    pub sha256: [u8; 32],
    pub(super) payload: String,
    pub(super) text: String,
}

impl Sealed {
    /// The whole envelope, as it goes over the wire.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it says: JSON text of an object.
    pub fn payload(&self) -> &str {
        &self.payload
    }
}
