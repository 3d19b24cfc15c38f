//! The stored form of an envelope: its text, and the data of its receipt.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::proof::Proof;
use super::receipt::Receipt;
use crate::kit::ed25519::PublicKey;
use rialto_core::time::Timestamp;

/// A stored envelope.
#[derive(Serialize, Deserialize)]
pub struct StoredEnvelope<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    sender: Cow<'a, str>,
    #[serde(borrow)]
    sha256: Cow<'a, str>,
    /// Missing in older rows, from when the hub's clock and the wall clock were the same.
    #[serde(default)]
    received_at: Option<i64>,
    #[serde(borrow)]
    envelope: &'a RawValue,
}

/// The text to store.
pub fn write_stored_envelope(
    envelope: &Envelope<'_>,
    proof: &Proof,
    received_at: Timestamp,
) -> String {
    use crate::kit::object::ObjectWriter;
    ObjectWriter::new()
        .text("id", envelope.id)
        .text("sender", &proof.key.did())
        .text("sha256", &super::receipt::to_hex(&proof.canonical_sha256))
        .integer("received_at", received_at.0)
        .raw("envelope", envelope.raw())
        .finish()
}

impl<'a> StoredEnvelope<'a> {
    /// Reads a stored text.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The envelope as it was received.
    pub fn envelope(&self) -> &'a str {
        self.envelope.get()
    }

    /// Its receipt. `recorded_at` is when it was committed.
    pub fn receipt(&self, recorded_at: Timestamp) -> Option<Receipt<'_>> {
        Some(Receipt {
            message_id: &self.id,
            message_sender: PublicKey::parse(&self.sender).ok()?,
            received_at: self.received_at.map_or(recorded_at, Timestamp),
            sha256: super::receipt::from_hex(&self.sha256)?,
        })
    }
}
