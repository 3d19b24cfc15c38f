//! A well-behaved client that runs beside every attack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::hub_process::HubProcess;
use crate::kit::{Reply, http_builder};
use crate::relay::kit::Peer;

/// Shorter than any hub's idle timeout.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Sends messages to a peer, reads the directory and the health route, one after the other, until
/// it is stopped.
pub struct Bystander {
    rounds: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
    going: tokio::task::JoinHandle<()>,
}

impl Bystander {
    pub async fn arrive(process: &HubProcess) -> Self {
        let (own, friend) = (process.join("bystander").await, process.join("friend").await);
        let (rounds, enough) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (url, count, stop) = (process.url.clone(), Arc::clone(&rounds), Arc::clone(&enough));
        let going = tokio::spawn(async move {
            // Its own connections, and none of them one that the hub may be about to close.
            let http = http_builder().pool_idle_timeout(IDLE_MAX).build().expect("a client");
            while !stop.load(Ordering::SeqCst) {
                round(&http, &url, &own, &friend).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { rounds, enough, going }
    }

    /// All its requests have succeeded so far, and more succeed from now on.
    pub async fn assert_well(&self) {
        let before = self.rounds.load(Ordering::SeqCst);
        let more = || self.rounds.load(Ordering::SeqCst) > before + 1;
        crate::kit::eventually(async || more() || self.going.is_finished()).await;
        assert!(more(), "the bystander was affected");
    }

    /// Stops it; all its requests have succeeded.
    pub async fn leave(self) {
        self.assert_well().await;
        self.enough.store(true, Ordering::SeqCst);
        self.going.await.expect("nothing went wrong");
    }
}

async fn round(http: &reqwest::Client, url: &str, own: &Peer, friend: &Peer) {
    let post = async |path: &str, key: &str, body: Value| {
        let sent = http.post(format!("{url}{path}")).bearer_auth(key).body(body.to_string());
        Reply::to(sent).await.expect(200)
    };
    let get = async |path: &str, key: &str| {
        let asked = http.get(format!("{url}{path}")).bearer_auth(key);
        Reply::to(asked).await.expect(200)
    };
    let letter = json!({"to": friend.id, "body": {"text": "all well?"}});
    let position = post("/v1/messages", &own.key, letter).await.at("/position");
    let before = position.as_u64().expect("a number") - 1;
    let read = get(&format!("/v1/inbox?after={before}"), &friend.key).await;
    assert!(read.text.contains("all well?"), "{}", read.text);
    // Acknowledges, so that this inbox is never full.
    post("/v1/inbox/ack", &friend.key, json!({ "up_to": position })).await;
    get("/health", &own.key).await;
    get("/registry/skills", &own.key).await;
}
