//! SIGKILL: what was acknowledged is there, once; what was not is there whole or not at all.
//!
//! The real binary is killed at random moments under load and started again on the same data. Its
//! clients remember what they were told, and compare.

mod book;
mod checks;
mod clients;
mod pushes;

use std::path::Path;
use std::time::Duration;

use rialto_engine::ids::{Ids, OsIds};
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;
use tokio::task::JoinHandle;

use crate::kit::{Process, eventually, in_time, operator_key, run};
use book::Book;
use clients::Cast;

/// How many rounds there are when nobody says otherwise.
const ROUNDS_USUALLY: usize = 200;
/// How many rounds there are.
const ROUNDS: &str = "RIALTO_CRASH_ROUNDS";
/// The load of a round, in milliseconds: at least and at most.
const LOAD_MS: (u64, u64) = (3, 60);
/// Set it to see a failed run again.
pub const SEED: &str = "RIALTO_CRASH_SEED";

/// Where a hub listens that is to come back there. While it is away nobody must take its port, so it is
/// on an address no client of another test calls from.
pub const TO_COME_BACK: &str =
    if cfg!(target_os = "linux") { "127.0.2.1:0" } else { "127.0.0.1:0" };

/// A hub over this data, as `rialto serve` runs it but for the limits.
pub fn start(data: &Path) -> Process {
    start_at(data, "127.0.0.1:0")
}

/// The same where one was before.
pub fn start_at(data: &Path, address: &str) -> Process {
    let key = operator_key();
    Process::at(address, "serve", data, &flags(), &[("RIALTO_OPERATOR_KEY", &key)])
}

/// No limits on writing, and nothing that happens by itself while a test is running.
pub fn flags() -> Vec<&'static str> {
    let set = [
        "limits.registrations_per_minute=0",
        "limits.registrations_per_minute_total=0",
        "limits.writes_per_minute=0",
        // Whoever has left is asked for with its old key, many times.
        "limits.wrong_keys_per_minute=0",
        "registry.heartbeat_ttl=24h",
        "jobs.lease=24h",
        "egress.allow=127.0.0.0/8",
        // What was signed once is said again, however long that takes.
        "agora.window=1h",
        "egress.per_host_per_minute=0",
        // The tests' clients have the published id in their settings.
        "clara.process_id=CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc",
    ];
    set.iter().flat_map(|one| ["--set", one]).collect()
}

pub fn assert_audit_is_clean(data: &Path) {
    let (code, said, trouble) = run(&["audit", "--data", data.to_str().expect("a path")]);
    assert_eq!(code, 0, "{said}{trouble}");
}

/// Waits for the moment of a kill: so many milliseconds, at least and at most, after the load has come
/// to something, however long that takes on a busy machine.
pub async fn under_load(
    dice: &mut Dice,
    (least, most): (u64, u64),
    mut came_to: impl AsyncFnMut() -> usize,
) {
    let before = came_to().await;
    eventually(async || came_to().await > before).await;
    // The moment of the kill is the experiment, so here time is what is meant.
    tokio::time::sleep(Duration::from_millis(least + dice.roll(most - least))).await;
}

/// How long whoever was not answered waits for the hub to be somewhere else before it asks again where
/// it did: longer than a hub is away, so that nobody asks who listens there by then.
const AWAY: Duration = Duration::from_secs(20);

/// Waits for the next hub after a call that failed. There is none after the last kill, and calls may
/// fail for other reasons, so after a while it is time to ask again anyway.
pub async fn moved(urls: &mut watch::Receiver<String>) -> Result<(), RecvError> {
    tokio::time::timeout(AWAY, urls.changed()).await.unwrap_or(Ok(()))
}

/// Waits until all clients have done what they had begun.
pub async fn all_done(clients: Vec<JoinHandle<()>>) {
    for one in clients {
        in_time(one).await.expect("no client panicked");
    }
}

/// Splitmix64: as random as a kill needs to be, and the same again for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) % sides
    }
}

pub fn seed() -> u64 {
    number(SEED).unwrap_or_else(|| OsIds.uuid().as_u64_pair().0)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_nothing_and_double_nothing() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let cast = Cast::assemble(&hub.url).await;
    let book = std::sync::Arc::new(Book::default());
    let rounds = number(ROUNDS).map_or(ROUNDS_USUALLY, |rounds| rounds as usize);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let load = clients::load(&hub.url, &cast, &book, dice.roll(u64::MAX));
        under_load(&mut dice, LOAD_MS, async || book.open().done()).await;
        hub.kill();
        load.over().await;
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        acknowledged += checks::all(&hub.url, &cast, &book, round).await;
    }
    hub.kill();
    assert_audit_is_clean(data.path());
    println!("{acknowledged} acknowledged operations over {rounds} kills");
    assert!(acknowledged >= rounds, "hardly any load: {acknowledged}");
}
