//! Upper bound for one core: verifying the signature of one envelope, and nothing else.

use std::io;
use std::time::{Duration, Instant};

use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::{SIGNATURE_LEN, Verifier};

use super::load::LoadPlan;
use super::measurement::{Measurement, Tally};

/// Verifications between two reads of the clock.
const BATCH: u64 = 16;

/// An envelope to verify repeatedly.
pub struct EnvelopeVerifier {
    verifier: Verifier,
    message: String,
    signature: [u8; SIGNATURE_LEN],
}

impl EnvelopeVerifier {
    /// Prepares everything that can be prepared: the key, the canonical text and the signature's
    /// bytes.
    pub fn of(text: &str) -> io::Result<Self> {
        let wrong = |why: &str| io::Error::other(why.to_owned());
        let json = envelope::read_json(text.as_bytes()).map_err(|bad| wrong(&bad.message))?;
        let envelope = Envelope::read(&json).map_err(|bad| wrong(&bad.message))?;
        let signature = base64url::decode_array(envelope.signature).map_err(io::Error::other)?;
        let verifier = Verifier::new(envelope.sender).map_err(io::Error::other)?;
        Ok(Self { verifier, message: envelope.canonical().to_owned(), signature })
    }

    /// Verifies on this thread for `duration`.
    pub fn run(&self, duration: Duration) -> io::Result<Measurement> {
        let (began, mut tally) = (Instant::now(), Tally::default());
        while began.elapsed() < duration {
            for _ in 0..BATCH {
                self.verifier
                    .verify(self.message.as_bytes(), &self.signature)
                    .map_err(io::Error::other)?;
            }
            tally.good += BATCH;
        }
        let plan = LoadPlan {
            connections: 1,
            duration: began.elapsed(),
            ..LoadPlan::new(([127, 0, 0, 1], 0).into())
        };
        Ok(tally.into_measurement(&plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelopes;

    #[test]
    fn a_good_envelope_is_checked_and_a_changed_one_is_not() {
        let text = envelopes::example_envelope(envelopes::identity(0).key()).unwrap();
        let measured = EnvelopeVerifier::of(&text).unwrap().run(Duration::from_millis(5)).unwrap();
        assert!(measured.good >= BATCH && measured.per_second > 0.0);
        let changed = EnvelopeVerifier::of(&text.replace("tokyo", "kyoto")).unwrap();
        assert!(changed.run(Duration::from_millis(5)).is_err());
    }
}
