//! Relay agents for benchmarks, registered over HTTP like any other agent (relay 2.3), and a hub with
//! senders and receivers, of which some are never online.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hyper::StatusCode;
use serde_json::Value;

use crate::connection::{BenchConnection, RawConnection, RawRequest};
use crate::hub::BenchHub;
use crate::inbox::{Arrival, OpenInboxes};
use crate::load::{self, LoadPlan};
use crate::measurement::{Measurement, RequestError, Tally};
use crate::message::{self, Messages};

/// Registrations in flight at once.
const REGISTRATIONS_MAX: usize = 32;

/// An agent, its key, and its position in its inbox.
#[derive(Clone, Debug)]
pub struct RelayAgent {
    pub id: String,
    pub key: String,
    /// Position of the last inbox event it has read.
    pub read_to: Arc<AtomicU64>,
}

impl RelayAgent {
    pub fn new(id: String, key: String) -> Self {
        Self { id, key, read_to: Arc::default() }
    }
}

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
        let register = |prefix, count| register_agents(hub.address, prefix, count);
        Ok(Self {
            senders: register("from", senders)?,
            offline_receivers: register("away", receivers)?,
            online_receivers: register("here", receivers)?,
            hub,
        })
    }

    /// Sends to offline receivers. The plan may also point at an echo.
    pub fn send(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        let messages = Messages::new(plan.address, &self.senders, &self.offline_receivers, 0);
        let request_for = move |at: usize, n: u64| messages.nth(at, n);
        load::run(plan, request_for, |status, _: &[u8]| status == StatusCode::ACCEPTED)
    }

    /// Sends to online receivers and measures arrivals and delivery times.
    pub fn send_and_receive(&self, plan: &LoadPlan) -> io::Result<Measurement> {
        let inboxes = OpenInboxes::open(plan.address, &self.online_receivers)?;
        let messages = Messages::new(plan.address, &self.senders, &self.online_receivers, 0);
        let accepted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&accepted);
        let request_for = move |at: usize, n: u64| messages.nth(at, n);
        let check = move |status: StatusCode, _: &[u8]| {
            counter.fetch_add(u64::from(status.is_success()), Ordering::Relaxed);
            status.is_success()
        };
        let (sent, window) = load::run_timed(plan, request_for, check)?;
        let accepted = accepted.load(Ordering::Relaxed);
        inboxes.wait_for(accepted);
        let arrivals = inboxes.close()?;
        Ok(measure_arrivals(plan, sent, &window, &arrivals, accepted))
    }
}

/// Registers `count` agents without an endpoint. Their names all have the same length.
pub fn register_agents(hub: SocketAddr, prefix: &str, count: usize) -> io::Result<Vec<RelayAgent>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connections = REGISTRATIONS_MAX.min(count);
    let shares = (0..connections)
        .map(|first| register_share(hub, prefix, (first..count).step_by(connections)));
    let agents = runtime.block_on(try_join_all(shares));
    let agents =
        agents.map_err(|error| io::Error::other(format!("registration failed: {error}")))?;
    let mut all: Vec<_> = agents.into_iter().flatten().collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}

async fn register_share(
    hub: SocketAddr,
    prefix: &str,
    numbers: impl Iterator<Item = usize>,
) -> Result<Vec<RelayAgent>, RequestError> {
    let mut connection = RawConnection::connect(hub).await?;
    let mut agents = Vec::new();
    for number in numbers {
        let body = format!(r#"{{"agent_id":"{prefix}-{number:05}"}}"#);
        let json = "content-type: application/json\r\n";
        let request = RawRequest::post(hub, "/relay/register", json, body.as_bytes());
        let (status, answer) = connection.exchange(request).await?;
        let agent = read_agent(status, &answer);
        agents.push(agent.ok_or_else(|| RequestError::unexpected_answer(status, &answer))?);
    }
    Ok(agents)
}

fn read_agent(status: StatusCode, answer: &[u8]) -> Option<RelayAgent> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let text = |name: &str| Some(answer["data"][name].as_str()?.to_owned());
    (status == StatusCode::CREATED).then_some(())?;
    Some(RelayAgent::new(text("agent_id")?, text("api_key")?))
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
    for Arrival { sent_ns, arrived_ns } in arrivals {
        tally.good += u64::from(window.contains(arrived_ns));
        if window.contains(sent_ns) {
            tally.record_latency(Duration::from_nanos(arrived_ns.saturating_sub(*sent_ns)));
        }
    }
    let Measurement { errors, queued, unsent, .. } = sent;
    let mut measured = Measurement { errors, queued, unsent, ..tally.into_measurement(plan) };
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

    #[test]
    fn a_registration_gives_the_full_name_and_the_key() {
        let answer = br#"{"success":true,"data":{"agent_id":"a-1@chorus","api_key":"ca_1f",
            "registration":{"agent_id":"a-1@chorus"}},"metadata":{"timestamp":"x"}}"#;
        let agent = read_agent(StatusCode::CREATED, answer).unwrap();
        assert_eq!((agent.id.as_str(), agent.key.as_str()), ("a-1@chorus", "ca_1f"));
    }

    #[test]
    fn everything_else_is_a_failure() {
        let whole = br#"{"data":{"agent_id":"a@chorus","api_key":"ca_1f"}}"#;
        assert!(read_agent(StatusCode::OK, whole).is_none());
        assert!(read_agent(StatusCode::CREATED, br#"{"data":{"agent_id":"a@chorus"}}"#).is_none());
        assert!(read_agent(StatusCode::CREATED, b"busy").is_none());
    }

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
        measure_arrivals(&plan, sent, &window, &arrivals, accepted)
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
