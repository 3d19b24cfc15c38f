//! A hub with relay agents for the send benchmarks; some of them are never online.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;

use super::hub::BenchHub;
use super::inbox::{Arrival, OpenInboxes};
use super::load::{self, LoadPlan};
use super::measurement::{Measurement, Tally};
use super::message::{self, Messages};
use super::relay_agent::{RelayAgent, register_agents};

/// A running hub with its senders and receivers.
pub struct RelayFixture {
    pub hub: BenchHub,
    pub senders: Vec<RelayAgent>,
    /// Receivers without an open inbox: messages to them are queued.
    pub offline_receivers: Vec<RelayAgent>,
    /// Receivers whose inbox is open while arrivals are counted.
    pub online_receivers: Vec<RelayAgent>,
}

impl RelayFixture {
    /// Starts a hub over the named store.
    pub fn start(
        threads: usize,
        backend: &str,
        senders: usize,
        receivers: usize,
    ) -> io::Result<Self> {
        let hub = BenchHub::start(threads, backend)?;
        let people = |prefix, count| register_agents(hub.address, prefix, count);
        let (senders, away) = (people("from", senders)?, people("away", receivers)?);
        let here = people("here", receivers)?;
        Ok(Self { hub, senders, offline_receivers: away, online_receivers: here })
    }

    /// Sends to offline receivers. The plan may also point at an echo.
    pub fn send(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        let letters = Messages::new(plan.address, &self.senders, &self.offline_receivers, 0);
        let ask = move |at: usize, n: u64| letters.nth(at, n);
        load::run(plan, ask, |status, _: &[u8]| status == StatusCode::ACCEPTED)
    }

    /// Sends to online receivers and measures arrivals and delivery times.
    pub fn send_and_receive(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        let inboxes = OpenInboxes::open(plan.address, &self.online_receivers)?;
        let letters = Messages::new(plan.address, &self.senders, &self.online_receivers, 0);
        let accepted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&accepted);
        let ask = move |at: usize, n: u64| letters.nth(at, n);
        let check = move |status: StatusCode, _: &[u8]| {
            counter.fetch_add(u64::from(status.is_success()), Ordering::Relaxed);
            status.is_success()
        };
        let (sent, window) = load::run_timed(plan, ask, check)?;
        let accepted = accepted.load(Ordering::Relaxed);
        inboxes.wait_for(accepted);
        let arrivals = inboxes.close()?;
        Ok(measure_arrivals(plan, sent, &window, &arrivals, accepted))
    }
}

/// The measurement at the receivers: the rate counts messages that arrived in the measured time,
/// the latencies are those of messages sent in it.
fn measure_arrivals(
    plan: &LoadPlan,
    sent: Measurement,
    window: &Range<Instant>,
    arrivals: &[Arrival],
    accepted: u64,
) -> Measurement {
    let window = message::clock_ns(window.start)..=message::clock_ns(window.end);
    let mut tally = Tally::default();
    for Arrival { sent_ns, arrived_ns: came_ns } in arrivals {
        tally.good += u64::from(window.contains(came_ns));
        if window.contains(sent_ns) {
            tally.record_latency(Duration::from_nanos(came_ns.saturating_sub(*sent_ns)));
        }
    }
    let Measurement { errors, queued, unsent, .. } = sent;
    let mut measured = Measurement { errors, queued, unsent, ..tally.into_measurement(plan) };
    let lost = accepted.saturating_sub(arrivals.len() as u64);
    if lost > 0 {
        measured.errors.broken += lost;
        let told = || format!("{lost} of {accepted} accepted messages did not arrive");
        measured.errors.first.get_or_insert_with(told);
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_of(arrivals: &[(u64, u64)], accepted: u64) -> Measurement {
        let zero = Instant::now();
        let base = message::clock_ns(zero);
        let window = zero + Duration::from_millis(10)..zero + Duration::from_millis(20);
        let at = |ms: u64| base + ms * 1_000_000;
        let arrivals: Vec<_> = arrivals
            .iter()
            .map(|(sent, came)| Arrival { sent_ns: at(*sent), arrived_ns: at(*came) })
            .collect();
        let plan = LoadPlan {
            duration: Duration::from_millis(10),
            ..LoadPlan::new(([127, 0, 0, 1], 1).into())
        };
        let sent = Tally::default().into_measurement(&plan);
        measure_arrivals(&plan, sent, &window, &arrivals, accepted)
    }

    #[test]
    fn the_rate_counts_what_came_in_time_and_the_latency_what_was_sent_in_it() {
        let measured = made_of(&[(1, 2), (5, 12), (12, 14), (15, 18), (19, 40)], 5);
        assert_eq!((measured.good, measured.per_second), (3, 300.0));
        assert!((measured.latency.max_us - 21_000.0).abs() < 50.0, "{measured:?}");
        assert!((measured.latency.p50_us - 3_000.0).abs() < 10.0, "{measured:?}");
        assert_eq!(measured.errors.total(), 0);
    }

    #[test]
    fn letters_that_were_accepted_and_never_came_are_errors() {
        let measured = made_of(&[(12, 14)], 3);
        assert_eq!(measured.errors.total(), 2);
        assert_eq!(
            measured.errors.first.as_deref(),
            Some("2 of 3 accepted messages did not arrive")
        );
        // A message may also arrive although its sender got no confirmation.
        assert_eq!(made_of(&[(12, 14)], 0).errors.total(), 0);
    }
}
