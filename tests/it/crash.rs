//! SIGKILL: an acknowledged operation is there once; an unacknowledged one is there whole or not at
//! all.
//!
//! The real binary is killed at random moments under load and restarted on the same data. Its
//! clients record the answers they got, and compare.

mod book;
mod checks;
mod clients;
#[cfg(unix)]
mod copies;
mod pushes;

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;
use tokio::task::JoinHandle;

pub use crate::kit::{Dice, SEED, assert_audit_is_clean, seed};
use crate::kit::{Process, eventually, in_time, number, operator_key};
use book::Book;
use clients::Cast;

/// The default number of rounds.
const ROUNDS_USUALLY: usize = 200;
/// Environment variable: the number of rounds.
const ROUNDS: &str = "RIALTO_CRASH_ROUNDS";
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (3, 60);

/// The address of a hub that restarts at the same port. No other test may take the port meanwhile,
/// so it is on an address from which no client of another test connects.
pub const TO_COME_BACK: &str =
    if cfg!(target_os = "linux") { "127.0.2.1:0" } else { "127.0.0.1:0" };

/// A hub over this data, as `rialto serve` runs it, but without limits.
pub fn start(data: &Path) -> Process {
    start_at(data, "127.0.0.1:0")
}

/// The same at a given address. Its log changes files often, so that kills come at all times of a
/// checkpoint.
pub fn start_at(data: &Path, address: &str) -> Process {
    let (key, (name, divisor)) = (operator_key(), log_divisor("256"));
    let env = [("RIALTO_OPERATOR_KEY", key.as_str()), (name, &divisor)];
    Process::at(address, "serve", data, &flags(), &env)
}

/// Environment variable that divides the limits of the log, in builds with debug assertions.
pub fn log_divisor(divisor: &str) -> (&'static str, String) {
    ("RIALTO_TEST_LOG_DIVISOR", divisor.to_owned())
}

/// No rate limits, and no timer that fires during a test.
pub fn flags() -> Vec<&'static str> {
    let set = [
        "limits.registrations_per_minute=0",
        "limits.registrations_per_minute_total=0",
        "limits.writes_per_minute=0",
        // Removed agents are requested with their old keys, many times.
        "limits.wrong_keys_per_minute=0",
        "registry.heartbeat_ttl=24h",
        "jobs.lease=24h",
        "egress.allow=127.0.0.0/8",
        // A signed envelope is sent again, possibly much later.
        "agora.window=1h",
        "egress.per_host_per_minute=0",
        // The tests' clients are configured with the published process id.
        "clara.process_id=CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc",
    ];
    set.iter().flat_map(|one| ["--set", one]).collect()
}

/// Waits for the moment of a kill: a random time between `least` and `most` milliseconds after the
/// load has made progress, however long that takes on a busy machine.
pub async fn under_load(
    dice: &mut Dice,
    (least, most): (u64, u64),
    mut came_to: impl AsyncFnMut() -> usize,
) {
    let before = came_to().await;
    eventually(async || came_to().await > before).await;
    // The random moment is the point of the test, so a real sleep is right here.
    tokio::time::sleep(Duration::from_millis(least + dice.roll(most - least))).await;
}

/// How long a client without an answer waits for a new address before it retries the old one:
/// longer than a restart takes, so that it does not call another process at that port.
const AWAY: Duration = Duration::from_secs(20);

/// Waits for the next hub after a failed call. There is none after the last kill, and calls may
/// fail for other reasons, so the wait ends after a while.
pub async fn moved(urls: &mut watch::Receiver<String>) -> Result<(), RecvError> {
    tokio::time::timeout(AWAY, urls.changed()).await.unwrap_or(Ok(()))
}

/// Waits until all clients have finished their current operations.
pub async fn all_done(clients: Vec<JoinHandle<()>>) {
    for one in clients {
        in_time(one).await.expect("no client panicked");
    }
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
    let (mut acknowledged, mut restarts) = (0, Vec::new());
    for round in 0..rounds {
        let load = clients::load(&hub.url, &cast, &book, dice.roll(u64::MAX));
        under_load(&mut dice, LOAD_MS, async || book.open().done()).await;
        hub.kill();
        load.over().await;
        assert_audit_is_clean(data.path());
        let began = Instant::now();
        hub = start(data.path());
        restarts.push(began.elapsed());
        acknowledged += checks::all(&hub.url, &cast, &book, round).await;
    }
    hub.kill();
    assert_audit_is_clean(data.path());
    println!("{acknowledged} acknowledged operations over {rounds} kills");
    restarts.sort_unstable();
    println!("restarts: median {:?}, longest {:?}", restarts[rounds / 2], restarts[rounds - 1]);
    assert!(acknowledged >= rounds, "too little load: {acknowledged}");
}
