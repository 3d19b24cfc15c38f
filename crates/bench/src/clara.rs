//! Benchmarks messages with RSA signatures against bare RSA verification, both per core
//! ([`crate::signatures`]).
//!
//! Each message is a task that is assigned to an agent, has credits held for it, and is on disk
//! before it is answered. Signing takes much longer than verifying, so each round sends only as many
//! messages as can be signed in a reasonable time.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::signature::{
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPssSaltLength, RsaPublicKeyComponents,
};
use rialto_client::clara::{
    Action, Credits, MarketClient, Profile, Seed, Server, SignedItem, Wallet,
};
use rialto_protocols::kit::ans104::{Item, SignatureType};

use crate::connection::RawRequest;
use crate::hub::BenchHub;
use crate::measurement::Measurement;
use crate::rounds::{BenchOptions, Results};
use crate::signatures::{Comparison, SignedLoad, compare, on_all_cores};

/// Each message opens a task of one requester, and a requester may have ten thousand tasks.
const ROUNDS_MAX: usize = 2;
/// Messages signed for one round.
const SIGNED_PER_ROUND: f64 = if cfg!(debug_assertions) { 400.0 } else { 4_000.0 };
/// Messages per second in the first round. Later rounds use the measured rate.
const EXPECTED_RATE: f64 = if cfg!(debug_assertions) { 500.0 } else { 8_000.0 };
/// Share of a round's messages that are warm-up.
const WARM_UP: f64 = 0.25;
/// A typical task with some input; the spec's example is shorter.
const PAYLOAD: &str = r#"{"prompt":"weather tokyo","max_results":3,"text":"some words of input"}"#;
const TAGS: [(&str, &str); 3] = [
    ("RedStone-Agent-Topic", "tweet"),
    ("RedStone-Agent-Reward", "1"),
    ("RedStone-Agent-Matching", "roundRobin"),
];
/// The public exponent of all wallets.
const EXPONENT: [u8; 3] = [1, 0, 1];
/// The salt length our wallets use.
const PSS_MAX_SALT: RsaParameters =
    RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);

/// Measures verification and messages in alternating rounds.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = |binary| {
        let hub = BenchHub::start(binary, &[])?;
        let requester = runtime.block_on(register_agents(&hub))?;
        hub.grant_credits(&[owner_of(&requester)])?;
        Ok::<_, io::Error>((hub, requester))
    };
    let hubs = options.hubs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let verifier = RsaVerifier::new(sign_task(&hubs[0].1)?.as_bytes())?;
    let loads: Vec<_> =
        hubs.iter().map(|(hub, _)| SignedLoad::new(hub, options, EXPECTED_RATE)).collect();
    let send = |at: usize, share| send(&loads[at], &hubs[at].1, share);
    for at in 0..loads.len() {
        send(at, WARM_UP)?;
    }
    let comparison = Comparison {
        message: "clara message",
        verification: "RSA-4096-PSS verify",
        verification_series: "RSA-4096-PSS verify, one core",
        target_share: 0.5,
        rounds: options.rounds.min(ROUNDS_MAX),
    };
    compare(&loads, &comparison, || verifier.verify(), |at| send(at, 1.0))
}

/// Sends this share of a round.
fn send(load: &SignedLoad<'_>, requester: &MarketClient, share: f64) -> io::Result<Measurement> {
    let rate = load.expected_rate();
    let duration = Duration::from_secs_f64(share * SIGNED_PER_ROUND / rate);
    let duration = duration.min(load.options.duration);
    let count = (rate * duration.as_secs_f64()).ceil() as usize;
    let items = SignedItems::sign(load.hub.address, requester, count)?;
    let sample_id = items.sample_id.clone();
    let measured = load.send(duration, move |_, _| items.next())?;
    check_assigned(requester, &sample_id)?;
    Ok(measured)
}

/// Looks up one task. A message is accepted even if no task comes of it.
pub fn check_assigned(requester: &MarketClient, id: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(requester.server().result(id)).map_err(io::Error::other)?;
    match result.messages.first().and_then(|message| message.tag("Action")) {
        Some("Agent-Task-Assignment") => Ok(()),
        _ => Err(io::Error::other(format!("a task was not assigned: {result:?}"))),
    }
}

/// The account that a wallet pays from.
pub fn owner_of(client: &MarketClient) -> String {
    format!("clara:{}", client.address())
}

/// Registers a worker that never works, and returns a requester with an RSA key.
async fn register_agents(hub: &BenchHub) -> io::Result<MarketClient> {
    let server = Server::discover(&format!("http://{}", hub.address)).await;
    let server = server.map_err(io::Error::other)?;
    let agent = MarketClient::new(Wallet::new(&Seed::from_bytes([7; 32])), server.clone());
    let profile = Profile {
        id: "BENCH".to_owned(),
        topic: "tweet".to_owned(),
        fee: Credits::from_micros(1_000_000),
        metadata: "{}".to_owned(),
    };
    agent.register(&profile).await.map_err(io::Error::other)?;
    Ok(MarketClient::new(Wallet::generate_rsa().map_err(io::Error::other)?, server))
}

/// Signed messages of one wallet; any connection that is free sends the next.
struct SignedItems {
    hub: SocketAddr,
    client: MarketClient,
    ready: Mutex<Vec<RawRequest>>,
    /// The id of one of them.
    sample_id: String,
}

/// A `Register-Task`.
fn sign_task(client: &MarketClient) -> io::Result<SignedItem> {
    client.sign(Action::RegisterTask, &TAGS, PAYLOAD).map_err(io::Error::other)
}

impl SignedItems {
    /// Signs `count` messages, on all cores.
    fn sign(hub: SocketAddr, client: &MarketClient, count: usize) -> io::Result<Arc<Self>> {
        let signed = on_all_cores(count.max(1), |_| sign_task(client))?;
        let sample_id = signed.last().map(|item| item.id.clone()).unwrap_or_default();
        let ready = Mutex::new(signed.iter().map(|item| request(hub, item)).collect());
        Ok(Arc::new(Self { hub, client: client.clone(), ready, sample_id }))
    }

    /// The next message. One that was not signed in advance is signed now, which costs the client
    /// time but not the hub.
    fn next(&self) -> RawRequest {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop();
        ready.unwrap_or_else(|| {
            let item = sign_task(&self.client).expect("signing worked before with the same input");
            request(self.hub, &item)
        })
    }
}

/// The request that sends an item.
pub fn request(hub: SocketAddr, item: &SignedItem) -> RawRequest {
    let bytes = "content-type: application/octet-stream\r\n";
    RawRequest::post(hub, "/clara/mu", bytes, item.as_bytes())
}

/// An item to verify repeatedly. The key is built each time, because it comes with each item.
struct RsaVerifier {
    owner: Vec<u8>,
    hash: [u8; 48],
    signature: Vec<u8>,
}

impl RsaVerifier {
    /// Prepares the verification of an item, with its hash computed.
    fn new(item: &[u8]) -> io::Result<Self> {
        let item = Item::read(item).map_err(io::Error::other)?;
        if item.signature_type != SignatureType::Arweave {
            return Err(io::Error::other("the item is not signed with RSA"));
        }
        let (owner, signature) = (item.owner.to_vec(), item.signature.to_vec());
        Ok(Self { owner, hash: item.deep_hash(), signature })
    }

    fn verify(&self) -> io::Result<()> {
        let key = RsaPublicKeyComponents { n: self.owner.as_slice(), e: &EXPONENT };
        let verified = key.verify(&PSS_MAX_SALT, &self.hash, &self.signature);
        verified.map_err(|_| io::Error::other("the signature does not verify"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// How a hub answers `GET /clara`.
    const ABOUT: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 91\r\n\r\n{\"process\":\"r4T1nDA7KR2CyQs1vpQway2Pl8USE9eR54wYwAmhTwo\",\"mu\":\"/clara/mu\",\"cu\":\"/clara/cu\"}";

    #[test]
    fn items_all_differ_never_run_out_and_are_verified() {
        let address = crate::tests::server(|_| ABOUT);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::discover(&format!("http://{address}"))).unwrap();
        let client = MarketClient::new(Wallet::generate_rsa().unwrap(), server.clone());
        let items = SignedItems::sign(address, &client, 3).unwrap();
        let all: HashSet<_> = (0..5).map(|_| items.next().0).collect();
        assert_eq!(all.len(), 5);
        let signed = sign_task(&client).unwrap();
        RsaVerifier::new(signed.as_bytes()).unwrap().verify().unwrap();
        let mut changed = signed.as_bytes().to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert!(RsaVerifier::new(&changed).unwrap().verify().is_err());
        let other = MarketClient::new(Wallet::new(&Seed::from_bytes([1; 32])), server);
        assert!(RsaVerifier::new(sign_task(&other).unwrap().as_bytes()).is_err());
    }
}
