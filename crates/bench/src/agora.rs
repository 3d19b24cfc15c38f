//! Benchmarks signed REQUESTs against bare signature verification, both per core.
//!
//! A hub cannot accept more envelopes than it can verify. The rate is counted per second of the
//! hub's own CPU time and divided by how many signatures one core verifies per second. The rest is
//! the cost of reading, deciding, storing and answering. The client's CPU time does not count: its
//! threads have other names.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use hyper::StatusCode;
use rialto_client::agora::{Agent, Profile, Server, Skill};

use super::cpu::CpuTime;
use super::envelope_verifier::EnvelopeVerifier;
use super::envelopes::{self, RESOURCE, SignedEnvelopes};
use super::hub::BenchHub;
use super::jobs::BenchOptions;
use super::load::{self, LoadPlan};
use super::measurement::Measurement;
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};

/// Target share of the rate at which one core verifies signatures.
const TARGET_SHARE: f64 = 0.6;
/// Requests per second for which envelopes are signed in the first round. Later rounds use the
/// measured rate.
const EXPECTED_RATE: f64 = if cfg!(debug_assertions) { 1_000.0 } else { 20_000.0 };
/// How much faster a round may be than the previous one without running out of signed envelopes.
const RATE_MARGIN: f64 = 1.3;
/// Warm-up, not counted: keys are checked and pages loaded for the first time.
const WARM_UP: Duration = Duration::from_millis(500);

/// Measures verification and requests in alternating rounds.
pub fn measure(how: &BenchOptions) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let hub = BenchHub::start(how.threads, "sqlite")?;
    let provider = envelopes::identity(0);
    hub.block_on(async {
        let server = Server::discover(&format!("http://{}", hub.address)).await?;
        let skills = Some(vec![Skill::new(RESOURCE)]);
        let profile = Profile { name: Some("bench".to_owned()), skills, endpoint: None };
        Agent::new(provider.clone(), server).hello(&profile, false).await
    })
    .map_err(io::Error::other)?;
    let check = EnvelopeVerifier::of(&envelopes::example_envelope(provider.key())?)?;
    let second = Duration::from_secs(how.seconds.min(1));
    let office = RequestLoad {
        hub: &hub,
        how,
        expected_rate: Cell::new(EXPECTED_RATE),
        rounds: RefCell::default(),
        by_wall_time: Cell::new(false),
    };
    office.load(WARM_UP)?;
    office.rounds.borrow_mut().clear();
    let mut series = run_interleaved(
        how.rounds,
        vec![
            Benchmark::new("verify_strict, one core", |_| check.run(second)),
            Benchmark::new("agora REQUEST, per core of the hub", |_| {
                office.load(Duration::from_secs(how.seconds))
            }),
        ],
    )?;
    let ratio = series[1].ratio_to(&series[0], |round| round.per_second);
    let counted = if office.by_wall_time.get() { ", by wall time × cores" } else { "" };
    let goal = Goal::at_least(
        format!("agora REQUEST / verify_strict, per core{counted}"),
        ratio,
        TARGET_SHARE,
        "×",
    );
    let rounds = office.rounds.take();
    series.push(Series { name: "agora REQUEST, all cores".to_owned(), rounds });
    Ok((series, vec![goal]))
}

/// A hub, and the figures kept between rounds.
struct RequestLoad<'h> {
    hub: &'h BenchHub,
    how: &'h BenchOptions,
    expected_rate: Cell<f64>,
    /// The same rounds in wall time, as a client sees them.
    rounds: RefCell<Vec<Measurement>>,
    /// Whether the system does not report CPU time per thread.
    by_wall_time: Cell<bool>,
}

impl RequestLoad<'_> {
    /// Sends for `duration` and returns the rate per second of the hub's own CPU time.
    fn load(&self, duration: Duration) -> io::Result<Measurement> {
        let connections = self.how.connections;
        let wanted = self.expected_rate.get() * duration.as_secs_f64() / connections as f64;
        let provider = envelopes::identity(0).key();
        let signed =
            SignedEnvelopes::sign(self.hub.address, provider, connections, wanted.ceil() as usize)?;
        let plan = LoadPlan {
            connections,
            duration,
            warm_up: Duration::ZERO,
            pace: self.how.pace,
            ..LoadPlan::new(self.hub.address)
        };
        let before = CpuTime::of_hub();
        let ask = move |at: usize, n: u64| signed.nth(at, n);
        let measured = load::run(&plan, ask, |status, _: &[u8]| status == StatusCode::ACCEPTED)?;
        let used = CpuTime::of_hub().zip(before).map(|(after, before)| after.since(&before));
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
}
