//! An item that is signed, and what it is called.

use bytes::Bytes;

/// A signed message. Sent again it is still the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// What everybody calls it.
    pub id: String,
    pub(super) bytes: Bytes,
}

impl Signed {
    /// The item as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
