//! A signed item and its id.

use bytes::Bytes;

/// A signed message. Sent again, it is still the same message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedItem {
    /// Its id.
    pub id: String,
    pub(super) bytes: Bytes,
}

impl SignedItem {
    /// The item's bytes, as sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
