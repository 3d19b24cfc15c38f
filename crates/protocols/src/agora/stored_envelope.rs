//! Stored envelopes: in inboxes with the data of their receipts, and with the jobs that they opened
//! as evidence (B3).

use std::borrow::Cow;

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::wire::envelope::Envelope;
use super::wire::payload::Request;
use super::wire::receipt::{Receipt, from_hex, to_hex};
use super::wire::signature::Proof;
use crate::kit::ed25519::PublicKey;
use crate::kit::object::ObjectWriter;

/// Space for the members around the envelope.
const AROUND: usize = 384;

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
    ObjectWriter::with_capacity(AROUND + envelope.raw().len())
        .text("id", envelope.id)
        .text("sender", &envelope.sender_did)
        .text("sha256", &to_hex(&proof.canonical_sha256))
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
            sha256: from_hex(&self.sha256)?,
        })
    }
}

/// The data that a job of this protocol stores in `meta`. The job already stores its input, so only
/// the text before and after it is stored here.
#[derive(Debug, Serialize, Deserialize)]
struct StoredEvidence<'a> {
    /// The envelope before and after its params.
    #[serde(borrow)]
    envelope: (Cow<'a, str>, Cow<'a, str>),
}

/// The text to store with the job.
pub fn write_evidence(envelope: &str, request: &Request<'_>) -> String {
    let start = (request.params.as_ptr() as usize).checked_sub(envelope.as_ptr() as usize);
    let around = start.and_then(|start| {
        let head = envelope.get(..start)?;
        let tail = envelope.get(start..)?.strip_prefix(request.params)?;
        Some((Cow::Borrowed(head), Cow::Borrowed(tail)))
    });
    match around {
        Some(envelope) => serde_json::to_string(&StoredEvidence { envelope }).unwrap_or_default(),
        None => "{}".to_owned(),
    }
}

/// Restores the envelope; `None` for jobs without a stored one.
pub fn restore_envelope(kept: &str, input: &str) -> Option<String> {
    let StoredEvidence { envelope: (head, tail) } = serde_json::from_str(kept).ok()?;
    Some([head.as_ref(), input, &tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agora::wire::envelope::read_json;
    use crate::agora::wire::error::ENVELOPE_EXAMPLE;

    #[test]
    fn an_envelope_is_kept_without_its_params_and_restored_to_the_letter() {
        let spaced = ENVELOPE_EXAMPLE.replace("\"params\":", " \"x\" : {\"q\":1}, \"params\" :\n ");
        for text in [ENVELOPE_EXAMPLE, &spaced] {
            let json = read_json(text.as_bytes()).expect("JSON");
            let envelope = Envelope::read(&json).expect("an envelope");
            let request = Request::read(envelope.payload).expect("a request");
            let kept = write_evidence(envelope.raw(), &request);
            assert!(!kept.contains("weather"), "{kept}");
            assert_eq!(restore_envelope(&kept, request.params).as_deref(), Some(text));
        }
        assert_eq!(restore_envelope("{}", "{}"), None);
    }
}
