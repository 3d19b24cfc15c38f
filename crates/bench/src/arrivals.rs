//! Messages at their receivers: the tasks that read them, and what their arrivals tell.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::load::{LoadPlan, LoadRun};
use crate::measurement::{Measurement, Tally};
use crate::message;

/// How long to wait for accepted messages before they count as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a receiver acknowledges what it has read, at the hub and at its peers alike.
pub const ACK_INTERVAL: Duration = Duration::from_millis(20);

/// A message that arrived, on the benchmark's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub sent_ns: u64,
    pub arrived_ns: u64,
}

/// Receivers that read at full speed, on one thread.
pub struct Receivers {
    pub runtime: Runtime,
    count: Arc<AtomicU64>,
    close: watch::Sender<bool>,
    tasks: Vec<JoinHandle<io::Result<Vec<Arrival>>>>,
}

/// What a receiver's task needs: where it counts arrivals, and when to end.
#[derive(Clone)]
pub struct ReceiverContext {
    count: Arc<AtomicU64>,
    pub closing: watch::Receiver<bool>,
}

impl ReceiverContext {
    /// Counts messages that have arrived.
    pub fn count(&self, messages: usize) {
        self.count.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// Whether the receivers are being closed.
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

impl Receivers {
    /// No receivers yet, and a thread for them.
    pub fn new() -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("receivers").enable_all().build()?;
        let (close, _) = watch::channel(false);
        Ok(Self { runtime, count: Arc::default(), close, tasks: Vec::new() })
    }

    /// The context of a new receiver.
    pub fn context(&self) -> ReceiverContext {
        ReceiverContext { count: Arc::clone(&self.count), closing: self.close.subscribe() }
    }

    /// Adds a receiver; it ends when its context is closing.
    pub fn spawn(
        &mut self,
        receiver: impl Future<Output = io::Result<Vec<Arrival>>> + Send + 'static,
    ) {
        self.tasks.push(self.runtime.spawn(receiver));
    }

    /// Waits until this many messages have arrived, or no more arrive.
    pub fn wait_for(&self, messages: u64) {
        let (mut seen, mut since) = (0, Instant::now());
        while seen < messages && since.elapsed() < IDLE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
            let now = self.count.load(Ordering::Relaxed);
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Closes all receivers and returns the arrivals.
    pub fn close(self) -> io::Result<Vec<Arrival>> {
        self.close.send_replace(true);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(self.runtime.block_on(task).map_err(io::Error::other)??);
        }
        Ok(all)
    }
}

/// The measurement at the receivers: the rate counts messages that arrived in the measured time,
/// the latencies are those of messages sent in it.
pub fn measure_arrivals(
    plan: &LoadPlan,
    sent: LoadRun,
    arrivals: &[Arrival],
    accepted: u64,
) -> Measurement {
    let window = message::clock_ns(sent.window.start)..=message::clock_ns(sent.window.end);
    let mut tally = Tally::default();
    for Arrival { sent_ns, arrived_ns } in arrivals {
        tally.good += u64::from(window.contains(arrived_ns));
        if window.contains(sent_ns) {
            tally.record_latency(Duration::from_nanos(arrived_ns.saturating_sub(*sent_ns)));
        }
    }
    let Measurement { errors, queued, unsent, usage, counters, .. } = sent.measured;
    let arrived = tally.into_measurement(plan);
    let mut measured = Measurement { errors, queued, unsent, usage, counters, ..arrived };
    let lost = accepted.saturating_sub(arrivals.len() as u64);
    if lost > 0 {
        measured.errors.broken += lost;
        let message = || format!("{lost} of {accepted} accepted messages did not arrive");
        measured.errors.first.get_or_insert_with(message);
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(arrivals: &[(u64, u64)], accepted: u64) -> Measurement {
        let zero = Instant::now();
        let base = message::clock_ns(zero);
        let window = zero + Duration::from_millis(10)..zero + Duration::from_millis(20);
        let at = |ms: u64| base + ms * 1_000_000;
        let arrivals: Vec<_> = arrivals
            .iter()
            .map(|(sent, arrived)| Arrival { sent_ns: at(*sent), arrived_ns: at(*arrived) })
            .collect();
        let plan = LoadPlan {
            duration: Duration::from_millis(10),
            ..LoadPlan::new(([127, 0, 0, 1], 1).into())
        };
        let sent = Tally::default().into_measurement(&plan);
        let sent = LoadRun { measured: sent, window, spans: Vec::new() };
        measure_arrivals(&plan, sent, &arrivals, accepted)
    }

    #[test]
    fn the_rate_counts_what_came_in_time_and_the_latency_what_was_sent_in_it() {
        let result = measured(&[(1, 2), (5, 12), (12, 14), (15, 18), (19, 40)], 5);
        assert_eq!((result.good, result.per_second), (3, 300.0));
        assert!((result.latency.max_us - 21_000.0).abs() < 50.0, "{result:?}");
        assert!((result.latency.p50_us - 3_000.0).abs() < 10.0, "{result:?}");
        assert_eq!(result.errors.total(), 0);
    }

    #[test]
    fn accepted_messages_that_never_arrive_are_errors() {
        let result = measured(&[(12, 14)], 3);
        assert_eq!(result.errors.total(), 2);
        assert_eq!(result.errors.first.as_deref(), Some("2 of 3 accepted messages did not arrive"));
        // A message may also arrive although its sender got no confirmation.
        assert_eq!(measured(&[(12, 14)], 0).errors.total(), 0);
    }
}
