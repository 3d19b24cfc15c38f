//! Benchmarks signed REQUESTs against bare signature verification, both per core
//! ([`crate::signatures`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rialto_client::agora::{Agent, Identity, MessageType, Profile, PublicKey, Seed, Server, Skill};
use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::{SIGNATURE_LEN, Verifier};

use crate::connection::RawRequest;
use crate::hub::BenchHub;
use crate::measurement::Measurement;
use crate::rounds::{BenchOptions, Results};
use crate::signatures::{Comparison, SignedLoad, compare, on_all_cores};

/// Requests per second for which envelopes are signed in the first round. Later rounds use the
/// measured rate.
const EXPECTED_RATE: f64 = if cfg!(debug_assertions) { 1_000.0 } else { 20_000.0 };
const WARM_UP: Duration = Duration::from_millis(500);
/// The resource that all senders request.
const RESOURCE: &str = "bench:echo:v1";
/// A typical request body with some input; the published example is as long.
const PARAMS: &str = r#"{"q":"weather tokyo","max_results":3,"text":"some words of input"}"#;

/// Measures verification and requests in alternating rounds.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let hubs = options.hubs.iter().map(|binary| BenchHub::start(binary, &[]));
    let hubs = hubs.collect::<io::Result<Vec<_>>>()?;
    let provider = identity(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for hub in &hubs {
        let registering = async {
            let server = Server::discover(&format!("http://{}", hub.address)).await?;
            let skills = Some(vec![Skill::new(RESOURCE)]);
            let profile = Profile { name: Some("bench".to_owned()), skills, endpoint: None };
            Agent::new(provider.clone(), server).hello(&profile, false).await
        };
        runtime.block_on(registering).map_err(io::Error::other)?;
    }
    let verifier = EnvelopeVerifier::new(&sign_envelope(&identity(1), provider.key())?)?;
    let loads: Vec<_> =
        hubs.iter().map(|hub| SignedLoad::new(hub, options, EXPECTED_RATE)).collect();
    for load in &loads {
        send(load, WARM_UP.min(options.duration))?;
    }
    let comparison = Comparison {
        message: "agora REQUEST",
        verification: "verify_strict",
        verification_series: "verify_strict, one core",
        target_share: 0.5,
        rounds: options.rounds,
    };
    let send = |at: usize| send(&loads[at], options.duration);
    compare(&loads, &comparison, || verifier.verify(), send)
}

fn send(load: &SignedLoad<'_>, duration: Duration) -> io::Result<Measurement> {
    let senders = load.options.middle_connections();
    let each = (load.expected_rate() * duration.as_secs_f64() / senders as f64).ceil() as usize;
    let envelopes = SignedEnvelopes::sign(load.hub.address, identity(0).key(), senders, each)?;
    load.send(duration, move |at, n| envelopes.nth(at, n))
}

/// An identity that is the same in every run.
fn identity(number: usize) -> Identity {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Identity::new(&Seed::from_bytes(seed))
}

/// REQUESTs of several senders to one provider, ready to send. They are fresh for one minute.
struct SignedEnvelopes {
    hub: SocketAddr,
    provider: PublicKey,
    senders: Vec<Identity>,
    ready: Vec<Vec<RawRequest>>,
}

impl SignedEnvelopes {
    /// Signs `each` envelopes for each sender, on all cores.
    fn sign(
        hub: SocketAddr,
        provider: PublicKey,
        senders: usize,
        each: usize,
    ) -> io::Result<Arc<Self>> {
        // Number 0 is the provider.
        let senders: Vec<_> = (1..=senders).map(identity).collect();
        let ready = on_all_cores(senders.len(), |at| {
            (0..each).map(|_| request(hub, &senders[at], provider)).collect()
        })?;
        Ok(Arc::new(Self { hub, provider, senders, ready }))
    }

    /// The `n`th envelope of a sender. One that was not signed in advance is signed now, which
    /// costs the client time but not the hub.
    fn nth(&self, sender: usize, n: u64) -> RawRequest {
        let ready = usize::try_from(n).ok().and_then(|n| self.ready[sender].get(n));
        ready.cloned().unwrap_or_else(|| {
            let request = request(self.hub, &self.senders[sender], self.provider);
            request.expect("signing worked before with the same input")
        })
    }
}

fn sign_envelope(sender: &Identity, provider: PublicKey) -> io::Result<String> {
    let payload = format!(r#"{{"params":{PARAMS},"resource":"{RESOURCE}"}}"#);
    let signed = sender.sign(MessageType::Request, &payload, Some(provider));
    signed.map(|envelope| envelope.as_str().to_owned()).map_err(io::Error::other)
}

fn request(hub: SocketAddr, sender: &Identity, provider: PublicKey) -> io::Result<RawRequest> {
    let body = sign_envelope(sender, provider)?;
    let json = "content-type: application/json\r\n";
    Ok(RawRequest::post(hub, "/agora/envelopes", json, body.as_bytes()))
}

/// An envelope to verify repeatedly.
struct EnvelopeVerifier {
    verifier: Verifier,
    message: String,
    signature: [u8; SIGNATURE_LEN],
}

impl EnvelopeVerifier {
    /// Prepares everything that can be prepared: the key, the canonical text and the signature's
    /// bytes.
    fn new(text: &str) -> io::Result<Self> {
        let invalid = |why: &str| io::Error::other(why.to_owned());
        let json = envelope::read_json(text.as_bytes()).map_err(|bad| invalid(&bad.message))?;
        let envelope = Envelope::read(&json).map_err(|bad| invalid(&bad.message))?;
        let signature = base64url::decode_array(envelope.signature).map_err(io::Error::other)?;
        let verifier = Verifier::new(envelope.sender).map_err(io::Error::other)?;
        Ok(Self { verifier, message: envelope.canonical().to_owned(), signature })
    }

    fn verify(&self) -> io::Result<()> {
        let verified = self.verifier.verify(self.message.as_bytes(), &self.signature);
        verified.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::signatures::verify_for;

    #[test]
    fn every_sender_has_its_own_envelopes_and_never_runs_out() {
        let hub = ([127, 0, 0, 1], 7425).into();
        let envelopes = SignedEnvelopes::sign(hub, identity(0).key(), 3, 2).unwrap();
        let mut all = HashSet::new();
        for (sender, n) in [(0, 0), (0, 1), (1, 0), (2, 1), (2, 2), (2, 3)] {
            let raw = envelopes.nth(sender, n);
            let text = String::from_utf8(raw.0.to_vec()).unwrap();
            assert!(text.contains(identity(sender + 1).did()), "{text}");
            assert!(all.insert(text));
        }
    }

    #[test]
    fn a_valid_envelope_is_verified_and_a_changed_one_is_not() {
        let text = sign_envelope(&identity(1), identity(0).key()).unwrap();
        let brief = Duration::from_millis(5);
        let verifier = EnvelopeVerifier::new(&text).unwrap();
        let measured = verify_for(brief, || verifier.verify()).unwrap();
        assert!(measured.good > 0 && measured.per_second > 0.0);
        let changed = EnvelopeVerifier::new(&text.replace("tokyo", "kyoto")).unwrap();
        assert!(verify_for(brief, || changed.verify()).is_err());
    }
}
