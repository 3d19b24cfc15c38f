//! Metrics: what the engine counts while it runs.
//!
//! All counters start at zero with the process. The store keeps what must survive it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use rialto_core::changes::Changes;
use rialto_core::event::Event;
use rialto_core::job::State;
use rialto_core::refusal::Refusal;

/// Upper bounds of the buckets for writing to disk: from a fast disk to a failing one.
const DURATION_BUCKETS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Upper bounds of the buckets for commands in one batch.
const BATCH_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// The engine's counters.
pub struct Metrics {
    /// Commands that were committed together.
    pub batches: Histogram,
    /// Writing and syncing one batch.
    pub commits: Histogram,
    /// The sync alone, if the store syncs.
    pub syncs: Option<Arc<Histogram>>,
    pub deliveries: DeliveryCounters,
    /// Rows that commits changed or added.
    pub rows: AtomicU64,
    refusals: Mutex<BTreeMap<String, u64>>,
    jobs_ended: Mutex<BTreeMap<&'static str, u64>>,
}

/// Delivery attempts, by result.
#[derive(Default)]
pub struct DeliveryCounters {
    pub delivered: AtomicU64,
    /// To be retried.
    pub failed: AtomicU64,
    pub given_up: AtomicU64,
}

impl Metrics {
    pub fn new(syncs: Option<Arc<Histogram>>) -> Self {
        Self {
            batches: Histogram::new(BATCH_BUCKETS),
            commits: Histogram::for_durations(),
            syncs,
            deliveries: DeliveryCounters::default(),
            rows: AtomicU64::default(),
            refusals: Mutex::default(),
            jobs_ended: Mutex::default(),
        }
    }

    /// Counts a command that was refused.
    pub(crate) fn count_refusal(&self, refusal: &Refusal) {
        *self.refusals.lock().entry(refusal.code()).or_default() += 1;
    }

    /// Counts what was committed.
    pub(crate) fn count_commit(&self, changes: &Changes) {
        self.rows.fetch_add(changes.row_count() as u64, Relaxed);
        let sent = &self.deliveries;
        for event in changes.history_lines.iter().flat_map(|line| &line.events) {
            let counter = match event {
                Event::DeliverySucceeded { .. } => &sent.delivered,
                Event::DeliveryFailed { .. } => &sent.failed,
                Event::DeliveryAbandoned { .. } => &sent.given_up,
                Event::JobEnded { state, .. } => {
                    *self.jobs_ended.lock().entry(end_state_name(*state)).or_default() += 1;
                    continue;
                }
                _ => continue,
            };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Refused commands by code.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        self.refusals.lock().clone()
    }

    /// Jobs that ended, by state.
    pub fn jobs_ended(&self) -> BTreeMap<&'static str, u64> {
        self.jobs_ended.lock().clone()
    }
}

/// The states in which a job ends; the others are not counted.
fn end_state_name(state: State) -> &'static str {
    match state {
        State::Completed => "completed",
        State::Failed => "failed",
        State::Expired => "expired",
        State::Cancelled => "cancelled",
        State::Withdrawn => "withdrawn",
        State::Open
        | State::Queued
        | State::Negotiating
        | State::Deferred { .. }
        | State::Assigned
        | State::Running
        | State::InputRequired { .. } => "other",
    }
}

/// Counts of values per bucket.
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds: the last is for values above all of them.
    counts: Vec<AtomicU64>,
    /// The sum in millionths, so that addition is exact.
    sum: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// Upper bound and count of each bucket; the last has no bound.
    pub buckets: Vec<(f64, u64)>,
    pub sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { bounds, counts, sum: AtomicU64::default() }
    }

    /// For durations on disk.
    pub fn for_durations() -> Self {
        Self::new(DURATION_BUCKETS)
    }

    pub fn observe_duration(&self, took: Duration) {
        self.add(took.as_secs_f64(), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub fn observe_count(&self, whole: usize) {
        self.add(whole as f64, whole as u64 * 1_000_000);
    }

    fn add(&self, value: f64, micros: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        self.counts[bucket.unwrap_or(self.bounds.len())].fetch_add(1, Relaxed);
        self.sum.fetch_add(micros, Relaxed);
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let bounds = self.bounds.iter().copied().chain([f64::MAX]);
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        HistogramSnapshot {
            buckets: bounds.zip(counts).collect(),
            sum: self.sum.load(Relaxed) as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::new(BATCH_BUCKETS);
        for value in [1, 2, 3, 1_024, 5_000] {
            histogram.observe_count(value);
        }
        let HistogramSnapshot { buckets, sum } = histogram.snapshot();
        let counts: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(sum, 6_030.0);
        assert_eq!(buckets.last().map(|(bound, _)| *bound), Some(f64::MAX));
    }
}
