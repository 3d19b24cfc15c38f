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

use super::cpu::Cpu;
use super::envelopes::{self, Envelopes, RESOURCE};
use super::hub::BenchHub;
use super::jobs::How;
use super::load::{self, Plan};
use super::measurement::Measured;
use super::report::Goal;
use super::rounds::{Contestant, Series, take_turns};
use super::envelope_verifier::Check;

/// Target share of the rate at which one core verifies signatures.
const SHARE: f64 = 0.6;
/// Requests per second for which envelopes are signed in the first round. Later rounds use the
/// measured rate.
const FORESEEN: f64 = if cfg!(debug_assertions) { 1_000.0 } else { 20_000.0 };
/// How much faster a round may be than the previous one without running out of signed envelopes.
const SPARE: f64 = 1.3;
/// Warm-up, not counted: keys are checked and pages loaded for the first time.
const WARM_UP: Duration = Duration::from_millis(500);

/// Measures verification and requests in alternating rounds.
pub fn measure(how: &How) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let hub = BenchHub::start(how.threads, "sqlite")?;
    let provider = envelopes::identity(0);
    hub.wait(async {
        let server = Server::discover(&format!("http://{}", hub.address)).await?;
        let skills = Some(vec![Skill::new(RESOURCE)]);
        let profile = Profile { name: Some("bench".to_owned()), skills, endpoint: None };
        Agent::new(provider.clone(), server).hello(&profile, false).await
    })
    .map_err(io::Error::other)?;
    let check = Check::of(&envelopes::example(provider.key())?)?;
    let second = Duration::from_secs(how.seconds.min(1));
    let office = Office {
        hub: &hub,
        how,
        foreseen: Cell::new(FORESEEN),
        taken: RefCell::default(),
        by_wall_time: Cell::new(false),
    };
    office.load(WARM_UP)?;
    office.taken.borrow_mut().clear();
    let mut series = take_turns(
        how.rounds,
        vec![
            Contestant::new("verify_strict, one core", |_| check.run(second)),
            Contestant::new("agora REQUEST, per core of the hub", |_| {
                office.load(Duration::from_secs(how.seconds))
            }),
        ],
    )?;
    let ratio = series[1].ratio_to(&series[0], |round| round.per_second);
    let counted = if office.by_wall_time.get() { ", by wall time × cores" } else { "" };
    let goal = Goal::at_least(
        format!("agora REQUEST / verify_strict, per core{counted}"),
        ratio,
        SHARE,
        "×",
    );
    let rounds = office.taken.take();
    series.push(Series { name: "agora REQUEST, all cores".to_owned(), rounds });
    Ok((series, vec![goal]))
}

/// A hub, and the figures kept between rounds.
struct Office<'h> {
    hub: &'h BenchHub,
    how: &'h How,
    foreseen: Cell<f64>,
    /// The same rounds in wall time, as a client sees them.
    taken: RefCell<Vec<Measured>>,
    /// Whether the system does not report CPU time per thread.
    by_wall_time: Cell<bool>,
}

impl Office<'_> {
    /// Sends for `duration` and returns the rate per second of the hub's own CPU time.
    fn load(&self, duration: Duration) -> io::Result<Measured> {
        let connections = self.how.connections;
        let wanted = self.foreseen.get() * duration.as_secs_f64() / connections as f64;
        let provider = envelopes::identity(0).key();
        let signed =
            Envelopes::sign(self.hub.address, provider, connections, wanted.ceil() as usize)?;
        let plan = Plan {
            connections,
            duration,
            warm_up: Duration::ZERO,
            pace: self.how.pace,
            ..Plan::new(self.hub.address)
        };
        let before = Cpu::of_hub();
        let ask = move |at: usize, n: u64| signed.nth(at, n);
        let measured = load::run(&plan, ask, |status, _: &[u8]| status == StatusCode::ACCEPTED)?;
        let used = Cpu::of_hub().zip(before).map(|(after, before)| after.since(&before));
        self.foreseen.set((measured.per_second * SPARE).max(1.0));
        let seconds = match used.filter(|used| !used.is_zero()) {
            Some(used) => used.as_secs_f64(),
            None => {
                self.by_wall_time.set(true);
                measured.seconds * self.how.threads as f64
            }
        };
        self.taken.borrow_mut().push(measured.clone());
        Ok(Measured { seconds, per_second: measured.good as f64 / seconds, ..measured })
    }
}
