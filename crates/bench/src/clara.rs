//! Benchmarks messages with RSA signatures against bare RSA verification, both per core.
//!
//! As in [`super::agora`], the messages accepted per second of the hub's own CPU time are divided
//! by the signatures one core verifies per second. Each message is a task that is assigned to an
//! agent, has credits held for it, and is on disk before it is answered. Signing takes much longer
//! than verifying, so each round sends only as many messages as can be signed in a reasonable time.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use hyper::StatusCode;
use rialto_client::clara::{Credits, MarketClient, Profile, Seed, Server, Wallet};

use super::agents;
use super::cpu::CpuTime;
use super::hub::BenchHub;
use super::items::{self, SignedItems};
use super::jobs::BenchOptions;
use super::load::{self, LoadPlan};
use super::measurement::Measurement;
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};
use super::rsa_verifier::RsaVerifier;

/// Target share of the rate at which one core verifies signatures.
const TARGET_SHARE: f64 = 0.5;
/// Each message opens a task of one requester, and a requester may have ten thousand tasks.
const ROUNDS_MAX: usize = 2;
/// Messages signed for one round.
const SIGNED_PER_ROUND: f64 = if cfg!(debug_assertions) { 400.0 } else { 4_000.0 };
/// Messages per second in the first round. Later rounds use the measured rate.
const EXPECTED_RATE: f64 = if cfg!(debug_assertions) { 500.0 } else { 8_000.0 };
/// How much faster a round may be than the previous one without running out of signed messages.
const RATE_MARGIN: f64 = 1.3;
/// Share of a round's messages sent before counting starts: pages are loaded and threads started
/// for the first time.
const WARM_UP: f64 = 0.25;

/// Measures verification and messages in alternating rounds.
pub fn measure(how: &BenchOptions) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let hub = BenchHub::start(how.threads, "sqlite")?;
    let requester = hub.block_on(register_agents(&hub))?;
    let check = RsaVerifier::of(items::sign_task(&requester)?.as_bytes())?;
    let second = Duration::from_secs(how.seconds.min(1));
    let market = MessageLoad {
        hub: &hub,
        how,
        requester,
        expected_rate: Cell::new(EXPECTED_RATE),
        rounds: RefCell::default(),
        by_wall_time: Cell::new(false),
    };
    market.load(WARM_UP)?;
    market.rounds.borrow_mut().clear();
    let mut series = run_interleaved(
        how.rounds.min(ROUNDS_MAX),
        vec![
            Benchmark::new("RSA-4096-PSS verify, one core", |_| check.run(second)),
            Benchmark::new("clara message, per core of the hub", |_| market.load(1.0)),
        ],
    )?;
    let ratio = series[1].ratio_to(&series[0], |round| round.per_second);
    let counted = if market.by_wall_time.get() { ", by wall time × cores" } else { "" };
    let name = format!("clara message / RSA-4096-PSS verify, per core{counted}");
    let goal = Goal::at_least(name, ratio, TARGET_SHARE, "×");
    let rounds = market.rounds.take();
    series.push(Series { name: "clara message, all cores".to_owned(), rounds });
    Ok((series, vec![goal]))
}

/// Registers a worker that never works, and a requester with an RSA key and more credits than it
/// can spend.
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
    let requester = MarketClient::new(Wallet::generate_rsa().map_err(io::Error::other)?, server);
    agents::grant_credits(&hub.engine, &format!("clara:{}", requester.address())).await?;
    Ok(requester)
}

/// A hub, and the figures kept between rounds.
struct MessageLoad<'h> {
    hub: &'h BenchHub,
    how: &'h BenchOptions,
    requester: MarketClient,
    expected_rate: Cell<f64>,
    /// The same rounds in wall time, as a client sees them.
    rounds: RefCell<Vec<Measurement>>,
    /// Whether the system does not report CPU time per thread.
    by_wall_time: Cell<bool>,
}

impl MessageLoad<'_> {
    /// Sends this share of a round and returns the rate per second of the hub's own CPU time.
    fn load(&self, share: f64) -> io::Result<Measurement> {
        let longest = Duration::from_secs(self.how.seconds);
        let duration = Duration::from_secs_f64(share * SIGNED_PER_ROUND / self.expected_rate.get())
            .min(longest);
        let wanted = self.expected_rate.get() * duration.as_secs_f64();
        let signed = SignedItems::sign(self.hub.address, &self.requester, wanted.ceil() as usize)?;
        let plan = LoadPlan {
            connections: self.how.connections,
            duration,
            warm_up: Duration::ZERO,
            pace: self.how.pace,
            ..LoadPlan::new(self.hub.address)
        };
        let items = signed.clone();
        let ask = move |_: usize, _: u64| items.next();
        let before = CpuTime::of_hub();
        let measured = load::run(&plan, ask, |status, _: &[u8]| status == StatusCode::ACCEPTED)?;
        let used = CpuTime::of_hub().zip(before).map(|(after, before)| after.since(&before));
        self.check_assigned(&signed.sample_id)?;
        self.expected_rate.set((measured.per_second * RATE_MARGIN).max(1.0));
        let seconds = match used.filter(|used| !used.is_zero()) {
            Some(used) => used.as_secs_f64(),
            None => {
                self.by_wall_time.set(true);
                measured.seconds * self.how.threads as f64
            }
        };
        self.rounds.borrow_mut().push(measured.clone());
        Ok(Measurement { seconds, per_second: measured.good as f64 / seconds, ..measured })
    }

    /// Looks up one task. A message is accepted even if no task comes of it.
    fn check_assigned(&self, id: &str) -> io::Result<()> {
        let result =
            self.hub.block_on(self.requester.server().result(id)).map_err(io::Error::other)?;
        let action = result.messages.first().and_then(|message| message.tag("Action"));
        match action {
            Some("Agent-Task-Assignment") => Ok(()),
            _ => Err(io::Error::other(format!("a task was not assigned: {result:?}"))),
        }
    }
}
