//! What the benchmarks of signed messages share.
//!
//! A hub cannot accept more messages than it can verify. So the rate is counted per second of the
//! hub's own CPU time and divided by how many signatures one core verifies per second. The rest is
//! the cost of reading, deciding, storing and answering. The client's CPU time does not count: it is
//! another process. Messages are signed before the measurement starts.

use std::cell::{Cell, RefCell};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use hyper::StatusCode;

use crate::connection::RawRequest;
use crate::figure::Figure;
use crate::hub::BenchHub;
use crate::load::{self, LoadPlan};
use crate::measurement::{Measurement, Tally};
use crate::rounds::{BenchOptions, Benchmark, Results, Series, rate, run_interleaved};
use crate::usage::own_thread_time;

/// How much faster a round may be than the previous one without running out of signed messages.
const RATE_MARGIN: f64 = 1.3;
/// Verifications between two reads of the clock.
const BATCH: u64 = 16;
/// The longest time that bare verification is measured for.
const VERIFY_MAX: Duration = Duration::from_secs(1);

/// Names and target of one comparison.
pub struct Comparison<'a> {
    /// The name of the message.
    pub message: &'a str,
    /// The name of the verification, and of its series.
    pub verification: &'a str,
    pub verification_series: &'a str,
    /// Target share of the rate at which one core verifies signatures.
    pub target_share: f64,
    pub rounds: usize,
}

/// A hub under the load of signed messages, and the figures kept between rounds.
pub struct SignedLoad<'h> {
    pub hub: &'h BenchHub,
    pub options: &'h BenchOptions,
    /// Messages per second, as measured in the last round.
    expected_rate: Cell<f64>,
    /// The same rounds in wall time, as a client sees them.
    rounds: RefCell<Vec<Measurement>>,
    /// Whether the system does not report CPU time per thread.
    by_wall_time: Cell<bool>,
}

impl<'h> SignedLoad<'h> {
    /// The load on a hub, with the rate that the first round can be expected to reach.
    pub fn new(hub: &'h BenchHub, options: &'h BenchOptions, expected_rate: f64) -> Self {
        Self {
            hub,
            options,
            expected_rate: Cell::new(expected_rate),
            rounds: RefCell::default(),
            by_wall_time: Cell::new(false),
        }
    }

    /// The rate to expect in the next round.
    pub fn expected_rate(&self) -> f64 {
        self.expected_rate.get()
    }

    /// Sends for `duration` and returns the rate per second of the hub's own CPU time.
    pub fn send(
        &self,
        duration: Duration,
        request_for: impl Fn(usize, u64) -> RawRequest + Send + Sync + 'static,
    ) -> io::Result<Measurement> {
        let plan = self.options.plan(self.hub.target(), self.options.middle_connections());
        let plan = LoadPlan { duration, warm_up: Duration::ZERO, ..plan };
        let accepted = |status, _: &[u8]| status == StatusCode::ACCEPTED;
        let measured = load::run(&plan, request_for, accepted)?;
        self.expected_rate.set((measured.per_second * RATE_MARGIN).max(1.0));
        let used = measured.usage.as_ref().map(|usage| usage.total_us() / 1e6);
        let seconds = used.filter(|used| *used > 0.0).unwrap_or_else(|| {
            self.by_wall_time.set(true);
            measured.seconds * self.options.threads as f64
        });
        self.rounds.borrow_mut().push(measured.clone());
        Ok(Measurement { seconds, per_second: measured.good as f64 / seconds, ..measured })
    }
}

/// Measures verification and the messages of each hub in alternating rounds. What was sent before
/// was warm-up and is not counted: keys are checked and pages loaded for the first time.
pub fn compare(
    loads: &[SignedLoad<'_>],
    comparison: &Comparison<'_>,
    mut verify: impl FnMut() -> io::Result<()>,
    send: impl Fn(usize) -> io::Result<Measurement>,
) -> io::Result<Results> {
    let Comparison { message, verification, target_share, .. } = *comparison;
    let verifying = loads.first().map_or(VERIFY_MAX, |load| load.options.duration.min(VERIFY_MAX));
    let send = &send;
    let mut benchmarks = vec![Benchmark::new(comparison.verification_series, |_| {
        verify_for(verifying, &mut verify)
    })];
    for (at, load) in loads.iter().enumerate() {
        load.rounds.borrow_mut().clear();
        let name = format!("{message}, per core of the hub");
        benchmarks.push(Benchmark::new(name, move |_| send(at)).of_hub(&load.hub.label));
    }
    let mut series = run_interleaved(comparison.rounds, benchmarks)?;
    // One verification takes this many microseconds of a core.
    let verify_us = 1e6 / series[0].median(rate);
    let mut figures = Vec::new();
    for (at, load) in loads.iter().enumerate() {
        let per_core = &series[1 + at];
        let counted = if load.by_wall_time.get() { ", by wall time × cores" } else { "" };
        let name = format!("{message} / {verification}, per core{counted}");
        let share = Figure::higher(name, per_core.ratios_to(&series[0], rate), "×");
        figures.push(share.with_target(target_share).of_hub(&per_core.hub));
        figures.push(per_core.cpu_figure(message, verify_us));
    }
    series.extend(loads.iter().map(|load| Series {
        name: format!("{message}, all cores"),
        hub: load.hub.label.clone(),
        rounds: load.rounds.take(),
    }));
    Ok(Results { series, figures, notes: Vec::new() })
}

/// The upper bound for one core: verifies on this thread for `duration`, and does nothing else. Counted
/// per second of the thread's own CPU time, like the hub's messages, because a busy machine may give the
/// thread only a part of a core.
pub fn verify_for(
    duration: Duration,
    mut verify: impl FnMut() -> io::Result<()>,
) -> io::Result<Measurement> {
    let (began, mut tally) = (Instant::now(), Tally::default());
    let used = own_thread_time();
    while began.elapsed() < duration {
        for _ in 0..BATCH {
            verify()?;
        }
        tally.good += BATCH;
    }
    let used = own_thread_time().zip(used).map(|(now, before)| now.saturating_sub(before));
    Ok(tally.measured_in(used.filter(|used| !used.is_zero()).unwrap_or(began.elapsed())))
}

/// Makes `count` values on all cores, in order.
pub fn on_all_cores<T: Send>(
    count: usize,
    make: impl Fn(usize) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).clamp(1, count.max(1));
    let make = &make;
    let shares = thread::scope(|scope| {
        let share = move |first: usize| {
            let numbers = (first..count).step_by(threads);
            numbers.map(|n| Ok((n, make(n)?))).collect::<io::Result<Vec<_>>>()
        };
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().map_err(|_| io::Error::other("a signer panicked")).flatten()
        });
        joined.collect::<io::Result<Vec<_>>>()
    })?;
    let mut values: Vec<_> = shares.into_iter().flatten().collect();
    values.sort_by_key(|(n, _)| *n);
    Ok(values.into_iter().map(|(_, value)| value).collect())
}
