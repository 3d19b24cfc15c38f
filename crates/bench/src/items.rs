//! Signed messages of one wallet, signed before the measurement starts: an RSA signature takes far
//! longer to make than to verify.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rialto_client::clara::{Action, MarketClient, SignedItem};

use super::raw_connection::RawRequest;

/// A typical task with some input; the spec's example is shorter.
const PAYLOAD: &str = r#"{"prompt":"weather tokyo","max_results":3,"text":"some words of input"}"#;
const TAGS: [(&str, &str); 3] = [
    ("RedStone-Agent-Topic", "tweet"),
    ("RedStone-Agent-Reward", "1"),
    ("RedStone-Agent-Matching", "roundRobin"),
];

/// Signed messages; any connection that is free sends the next.
pub struct SignedItems {
    hub: SocketAddr,
    account: MarketClient,
    ready: Mutex<Vec<RawRequest>>,
    /// The id of one of them.
    pub sample_id: String,
}

/// A `Register-Task`.
pub fn sign_task(account: &MarketClient) -> io::Result<SignedItem> {
    account.sign(Action::RegisterTask, &TAGS, PAYLOAD).map_err(io::Error::other)
}

impl SignedItems {
    /// Signs `count` messages, on all cores.
    pub fn sign(hub: SocketAddr, account: &MarketClient, count: usize) -> io::Result<Arc<Self>> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let share = |at: usize| {
            let mine = (at..count.max(1)).step_by(threads);
            mine.map(|_| sign_task(account)).collect::<io::Result<Vec<_>>>()
        };
        let signed = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|at| scope.spawn(move || share(at))).collect();
            let mut signed = Vec::with_capacity(count);
            for worker in workers {
                let made = worker.join().map_err(|_| io::Error::other("a signer panicked"))?;
                signed.extend(made?);
            }
            Ok::<_, io::Error>(signed)
        })?;
        let one = signed.last().map(|one| one.id.clone()).unwrap_or_default();
        let ready = Mutex::new(signed.iter().map(|one| request(hub, one)).collect());
        Ok(Arc::new(Self { hub, account: account.clone(), ready, sample_id: one }))
    }

    /// The next message. One that was not signed in advance is signed now, which costs the client
    /// time but not the hub.
    pub fn next(&self) -> RawRequest {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop();
        ready.unwrap_or_else(|| {
            let signed =
                sign_task(&self.account).expect("signing worked before with the same input");
            request(self.hub, &signed)
        })
    }
}

fn request(hub: SocketAddr, item: &SignedItem) -> RawRequest {
    let length = item.as_bytes().len();
    let head = format!(
        "POST /clara/mu HTTP/1.1\r\nhost: {hub}\r\ncontent-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
    );
    RawRequest([head.as_bytes(), item.as_bytes()].concat().into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use rialto_client::clara::{Seed, Server, Wallet};

    use super::*;
    use crate::hub::BenchHub;
    use crate::rsa_verifier::RsaVerifier;

    #[test]
    fn items_are_all_others_never_run_out_and_are_checked() {
        let hub = BenchHub::start(1, "sqlite").unwrap();
        let server = hub.block_on(Server::discover(&format!("http://{}", hub.address))).unwrap();
        let account = MarketClient::new(Wallet::generate_rsa().unwrap(), server.clone());
        let items = SignedItems::sign(hub.address, &account, 3).unwrap();
        let all: HashSet<_> = (0..5).map(|_| items.next().0).collect();
        assert_eq!(all.len(), 5);
        let signed = sign_task(&account).unwrap();
        let check = RsaVerifier::of(signed.as_bytes()).unwrap();
        assert!(check.run(Duration::from_millis(5)).unwrap().good > 0);
        let mut changed = signed.as_bytes().to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert!(RsaVerifier::of(&changed).unwrap().run(Duration::from_millis(5)).is_err());
        let other = MarketClient::new(Wallet::new(&Seed::from_bytes([1; 32])), server);
        assert!(RsaVerifier::of(sign_task(&other).unwrap().as_bytes()).is_err());
    }
}
