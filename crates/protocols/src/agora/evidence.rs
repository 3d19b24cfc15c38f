//! Evidence: the envelope that opened a job, stored with it unchanged (B3).
//!
//! The job already stores its input, so only the text before and after it is stored here.

use serde::{Deserialize, Serialize};

use super::payload::Request;

/// The data that a job of this protocol stores in `meta`.
#[derive(Debug, Serialize, Deserialize)]
struct StoredEvidence {
    /// The envelope before and after its params.
    envelope: (String, String),
}

/// The text to store with the job.
pub fn write_evidence(envelope: &str, request: &Request<'_>) -> String {
    let start = (request.params.as_ptr() as usize).checked_sub(envelope.as_ptr() as usize);
    let around = start.and_then(|start| {
        let head = envelope.get(..start)?;
        let tail = envelope.get(start..)?.strip_prefix(request.params)?;
        Some((head.to_owned(), tail.to_owned()))
    });
    match around {
        Some(envelope) => serde_json::to_string(&StoredEvidence { envelope }).unwrap_or_default(),
        None => "{}".to_owned(),
    }
}

/// Restores the envelope; `None` for jobs without a stored one.
pub fn restore_envelope(kept: &str, input: &str) -> Option<String> {
    let StoredEvidence { envelope: (head, tail) } = serde_json::from_str(kept).ok()?;
    Some([&head, input, &tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agora::envelope::{self, Envelope};
    use crate::agora::examples::ENVELOPE;

    #[test]
    fn an_envelope_is_kept_without_its_params_and_restored_to_the_letter() {
        let spaced = ENVELOPE.replace("\"params\":", " \"x\" : {\"q\":1}, \"params\" :\n ");
        for text in [ENVELOPE, &spaced] {
            let json = envelope::read_json(text.as_bytes()).expect("JSON");
            let envelope = Envelope::read(&json).expect("an envelope");
            let request = Request::read(envelope.payload).expect("a request");
            let kept = write_evidence(envelope.raw(), &request);
            assert!(!kept.contains("weather"), "{kept}");
            assert_eq!(restore_envelope(&kept, request.params).as_deref(), Some(text));
        }
        assert_eq!(restore_envelope("{}", "{}"), None);
    }
}
