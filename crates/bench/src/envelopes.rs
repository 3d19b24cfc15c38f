//! Signed REQUESTs of several senders to one provider, signed before the measurement starts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rialto_client::agora::{Identity, MessageType, PublicKey, Seed};

use super::raw_connection::RawRequest;

/// The resource that all senders request.
pub const RESOURCE: &str = "bench:echo:v1";
/// A typical request body with some input; the published example is as long.
const PARAMS: &str = r#"{"q":"weather tokyo","max_results":3,"text":"some words of input"}"#;

/// The envelopes of all senders, ready to send. They are fresh for one minute.
pub struct SignedEnvelopes {
    hub: SocketAddr,
    provider: PublicKey,
    senders: Vec<Identity>,
    ready: Vec<Vec<RawRequest>>,
}

/// An identity that is the same in every run.
pub fn identity(number: usize) -> Identity {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Identity::new(&Seed::from_bytes(seed))
}

impl SignedEnvelopes {
    /// Signs `each` envelopes for each sender, on all cores.
    pub fn sign(
        hub: SocketAddr,
        provider: PublicKey,
        senders: usize,
        each: usize,
    ) -> io::Result<Arc<Self>> {
        // Number 0 is the provider.
        let senders: Vec<_> = (1..=senders).map(identity).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(senders.len());
        let mut ready: Vec<(usize, Vec<RawRequest>)> = thread::scope(|scope| {
            let share = |from: usize| {
                let mine = senders.iter().enumerate().skip(from).step_by(threads);
                let all = mine.map(|(at, sender)| {
                    let made = (0..each).map(|_| request(hub, sender, provider));
                    made.collect::<io::Result<Vec<_>>>().map(|made| (at, made))
                });
                all.collect::<io::Result<Vec<_>>>()
            };
            let workers: Vec<_> = (0..threads).map(|at| scope.spawn(move || share(at))).collect();
            let mut ready = Vec::with_capacity(senders.len());
            for worker in workers {
                let made = worker.join().map_err(|_| io::Error::other("a signer panicked"))?;
                ready.extend(made?);
            }
            Ok::<_, io::Error>(ready)
        })?;
        ready.sort_by_key(|(at, _)| *at);
        let ready = ready.into_iter().map(|(_, made)| made).collect();
        Ok(Arc::new(Self { hub, provider, senders, ready }))
    }

    /// The `n`th envelope of a sender. One that was not signed in advance is signed now, which
    /// costs the client time but not the hub.
    pub fn nth(&self, sender: usize, n: u64) -> RawRequest {
        let ready = usize::try_from(n).ok().and_then(|n| self.ready[sender].get(n));
        ready.cloned().unwrap_or_else(|| {
            let made = request(self.hub, &self.senders[sender], self.provider);
            made.expect("signing worked before with the same input")
        })
    }
}

/// The signed bytes of a REQUEST and the signature: the input of a verifier.
pub fn example_envelope(provider: PublicKey) -> io::Result<String> {
    envelope(&identity(1), provider)
}

fn envelope(sender: &Identity, provider: PublicKey) -> io::Result<String> {
    let payload = format!(r#"{{"params":{PARAMS},"resource":"{RESOURCE}"}}"#);
    let sealed = sender.sign(MessageType::Request, &payload, Some(provider));
    sealed.map(|sealed| sealed.as_str().to_owned()).map_err(io::Error::other)
}

fn request(hub: SocketAddr, sender: &Identity, provider: PublicKey) -> io::Result<RawRequest> {
    let body = envelope(sender, provider)?;
    let length = body.len();
    let request = format!(
        "POST /agora/envelopes HTTP/1.1\r\nhost: {hub}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    Ok(RawRequest(request.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
}
