//! Readers that never read, and what they cost the readers that do.
//!
//! Both benchmarks send the same messages. In one, half of them go to agents whose inboxes are open
//! and whose buffers are full; in the other, these agents have no open inbox.

use std::io;
use std::thread;

use futures_util::future::try_join_all;
use hyper::StatusCode;

use super::hyper_connection::BenchConnection;
use super::inbox::StalledInboxes;
use super::jobs::BenchOptions;
use super::load::{self, LoadPlan, Pace};
use super::measurement::{Measurement, RequestError};
use super::message::{Messages, PER_CONVERSATION};
use super::raw_connection::RawConnection;
use super::relay_agent::{RelayAgent, register_agents};
use super::relay_fixture::RelayFixture;
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};
use super::send::send_plan;

/// Milliseconds of p99 that all stalled readers together may add for the others.
const GOAL_MS: f64 = 5.0;
/// Default messages per second to either kind of reader: far below the hub's limit, where p99 would
/// only show the queue.
const PER_SECOND: f64 = 500.0;
/// Messages waiting in each stalled inbox when it is opened: more than the system buffers for a
/// reader, so that the rest waits in the hub, and less than the limit at which the hub closes a
/// reader (relay R64).
const WAITING: u64 = 8;
const WAITING_CHARS: usize = 48_000;
/// Connections that fill the inboxes.
const FILLING: usize = 32;

/// Measures deliveries to the other readers with and without the stalled ones, in alternating
/// rounds.
pub fn measure(
    how: &BenchOptions,
    receivers: usize,
    count: usize,
) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let office = RelayFixture::start(how.threads, "sqlite", how.connections, receivers)?;
    let hung = register_agents(office.hub.address, "hung", count)?;
    fill(&office, &hung)?;
    let pace = match how.pace {
        Pace::Closed => Pace::Open { per_second: PER_SECOND },
        open => open,
    };
    let plan = LoadPlan { pace, ..send_plan(how, office.hub.address, how.connections) };
    let (office, hung) = (&office, &hung);
    let series = run_interleaved(
        how.rounds,
        vec![
            Benchmark::new("end to end, 0 stalled", move |_| send_to_both(office, hung, &plan)),
            Benchmark::new(format!("end to end, {count} stalled"), move |_| {
                let _stalled = StalledInboxes::open(plan.address, hung)?;
                send_to_both(office, hung, &plan)
            }),
        ],
    )?;
    let p99_ms = |round: &Measurement| round.latency.p99_us / 1_000.0;
    let added = series[1].difference_to(&series[0], p99_ms);
    let goal = Goal::at_most(format!("p99 added by {count} stalled readers"), added, GOAL_MS, "ms");
    Ok((series, vec![goal]))
}

/// Sends to the readers that read, which is measured, and to those that do not.
fn send_to_both(
    office: &RelayFixture,
    hung: &[RelayAgent],
    plan: &LoadPlan,
) -> io::Result<Measurement> {
    let letters = Messages::new(plan.address, &office.senders, hung, 0);
    thread::scope(|scope| {
        let aside = scope.spawn(|| {
            let ask = move |at: usize, n: u64| letters.nth(at, n);
            load::run(plan, ask, |status, _: &[u8]| status.is_success())
        });
        let measured = office.send_and_receive(plan);
        let aside = aside.join().map_err(|_| io::Error::other("a client thread panicked"))??;
        let mut measured = measured?;
        measured.errors.add(&aside.errors);
        Ok(measured)
    })
}

/// Queues messages for all stalled readers.
fn fill(office: &RelayFixture, hung: &[RelayAgent]) -> io::Result<()> {
    let address = office.hub.address;
    let letters = &Messages::new(address, &office.senders, hung, WAITING_CHARS);
    let agent_states = FILLING.min(hung.len());
    let shares = (0..agent_states).map(|agent_state| async move {
        let mut line = RawConnection::connect(address).await?;
        // A conversation has one receiver; the next conversation has the next receiver.
        for talk in (agent_state..hung.len()).step_by(agent_states) {
            for n in (talk as u64 * PER_CONVERSATION..).take(WAITING as usize) {
                let (status, answer) = line.exchange(letters.nth(0, n)).await?;
                if status != StatusCode::ACCEPTED {
                    return Err(RequestError::unexpected_answer(status, &answer));
                }
            }
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let filled = runtime.block_on(try_join_all(shares));
    filled.map(drop).map_err(|error| io::Error::other(format!("filling failed: {error}")))
}
