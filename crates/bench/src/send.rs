//! Benchmarks sending relay messages: against the echo, all the way to the receivers' streams, on a
//! hub that already stores many messages, and beside readers that never read.

use std::io;
use std::thread;

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use hyper::StatusCode;
use rialto_core::command::{Command, SendMessage};
use rialto_core::id::AgentId;
use rialto_core::time::Millis;
use rialto_engine::Engine;
use rialto_protocols::relay;

use crate::connection::{BenchConnection, RawConnection};
use crate::echo::{EchoServer, EchoWorker};
use crate::inbox::StalledInboxes;
use crate::load::{self, LoadPlan, Pace};
use crate::measurement::{Measurement, RequestError};
use crate::message::{Messages, PER_CONVERSATION};
use crate::relay::{RelayAgent, RelayFixture, register_agents};
use crate::report::Goal;
use crate::rounds::{BenchOptions, Benchmark, Results, Series, run_interleaved};

/// The wide phase has this many times the connections.
const WIDER: usize = 4;
/// Target shares of the echo's rate, with few and many connections.
const RATE: f64 = 0.5;
const RATE_WIDE: f64 = 0.6;
/// How many times the echo's p99 the p99 of a send may be.
const P99: f64 = 2.5;
/// Target share of the memory store's rate, end to end.
const DURABLE: f64 = 0.6;

/// Messages in the smaller store.
const STORED_FEW: u64 = 10_000;
/// Target share of its rate on the larger store.
const STORED_SHARE: f64 = 0.8;
/// Messages in flight into the store at once.
const STORE_CONCURRENCY: usize = 2_048;

/// Milliseconds of p99 that all stalled readers together may add for the others.
const STALLED_MS: f64 = 5.0;
/// Default messages per second to either kind of reader: far below the hub's limit, where p99 would
/// only show the queue.
const STALLED_PER_SECOND: f64 = 500.0;
/// Messages waiting in each stalled inbox when it is opened: more than the system buffers for a
/// reader, so that the rest waits in the hub, and less than the limit at which the hub closes a
/// reader (relay R64).
const WAITING: usize = 8;
const WAITING_CHARS: usize = 48_000;
/// Connections that fill the stalled inboxes.
const FILL_CONNECTIONS: usize = 32;

/// Measures echo, durable sends and end-to-end deliveries in alternating rounds.
pub fn measure(options: &BenchOptions, receivers: usize) -> io::Result<Results> {
    let (few, many) = (options.connections, options.connections * WIDER);
    let echo = EchoServer::start(options.threads, EchoWorker::default())?;
    let durable = &RelayFixture::start(options.threads, "sqlite", many, receivers)?;
    let memory = &RelayFixture::start(options.threads, "memory", few, receivers)?;
    let echo_of = |connections| {
        let plan = options.plan(echo.address(), connections);
        Benchmark::new("echo of a message", move |_| durable.send(&plan))
    };
    let send = |connections| {
        let plan = options.plan(durable.hub.address, connections);
        Benchmark::new("send, receivers offline", move |_| durable.send(&plan))
    };
    // At full speed, whatever pace the others have: here the rate is measured.
    let at_full_speed = BenchOptions { pace: Pace::Closed, ..*options };
    let durable_plan = at_full_speed.plan(durable.hub.address, few);
    let memory_plan = at_full_speed.plan(memory.hub.address, few);
    let series = run_interleaved(
        options.rounds,
        vec![
            echo_of(few),
            send(few),
            echo_of(many),
            send(many),
            Benchmark::new("end to end, sqlite", move |_| durable.send_and_receive(&durable_plan)),
            Benchmark::new("end to end, memory", move |_| memory.send_and_receive(&memory_plan)),
        ],
    )?;
    let goals = goals(&series, few, many);
    Ok((series, goals))
}

fn goals(series: &[Series], few: usize, many: usize) -> Vec<Goal> {
    let rate = |round: &Measurement| round.per_second;
    let p99 = |round: &Measurement| round.latency.p99_us;
    let ratio = |one: usize, other: usize, figure: fn(&Measurement) -> f64| {
        series[one].ratio_to(&series[other], figure)
    };
    vec![
        Goal::at_least(format!("send / echo ({few} connections)"), ratio(1, 0, rate), RATE, "×"),
        Goal::at_least(
            format!("send / echo ({many} connections)"),
            ratio(3, 2, rate),
            RATE_WIDE,
            "×",
        ),
        Goal::at_most(format!("p99 send / echo ({few} connections)"), ratio(1, 0, p99), P99, "×"),
        Goal::at_most(format!("p99 send / echo ({many} connections)"), ratio(3, 2, p99), P99, "×"),
        Goal::at_least("end to end, sqlite / memory", ratio(4, 5, rate), DURABLE, "×"),
    ]
}

/// Measures sending on a small and on a large store in alternating rounds: the rate must not depend
/// on the store's size.
pub fn measure_stored(options: &BenchOptions, receivers: usize, many: u64) -> io::Result<Results> {
    let fixtures = [STORED_FEW, many].map(|stored| {
        let fixture =
            RelayFixture::start(options.threads, "sqlite", options.connections, receivers)?;
        fixture.hub.block_on(store_messages(&fixture, stored))?;
        Ok::<_, io::Error>((fixture, stored))
    });
    let fixtures = fixtures.into_iter().collect::<io::Result<Vec<_>>>()?;
    let benchmarks = fixtures.iter().map(|(fixture, stored)| {
        let plan = options.plan(fixture.hub.address, options.connections);
        Benchmark::new(format!("send, {stored} messages stored"), move |_| fixture.send(&plan))
    });
    let series = run_interleaved(options.rounds, benchmarks.collect())?;
    let ratio = series[1].ratio_to(&series[0], |round| round.per_second);
    let name = format!("send, {many} / {STORED_FEW} messages stored");
    Ok((series, vec![Goal::at_least(name, ratio, STORED_SHARE, "×")]))
}

/// Puts messages into the inboxes of offline receivers through the commit lane, without HTTP.
async fn store_messages(fixture: &RelayFixture, count: u64) -> io::Result<()> {
    let engine = &fixture.hub.engine;
    let senders = &agent_ids(engine, &fixture.senders)?;
    let receivers = &agent_ids(engine, &fixture.offline_receivers)?;
    let sends = (0..count).map(|n| async move {
        let at = n as usize;
        let (sender, receiver) = (at % senders.len(), at / 16 % receivers.len());
        let body = format!(
            r#"{{"chorus_version":"0.4","sender_id":"{}","original_text":"Benchmark message {n:09}, stored before anything was measured","sender_culture":"en","conversation_id":"{:018}"}}"#,
            fixture.senders[sender].id,
            n / 16,
        );
        let message = SendMessage {
            from: Some(senders[sender]),
            to: receivers[receiver],
            protocol: relay::ID,
            body,
            url: None,
            first_try: Millis::seconds(0),
            identity: None,
            by_operator: false,
        };
        let result = engine.run(Command::SendMessage(Box::new(message))).await;
        result.map(drop).map_err(io::Error::other)
    });
    stream::iter(sends).buffer_unordered(STORE_CONCURRENCY).try_collect().await
}

fn agent_ids(engine: &Engine, agents: &[RelayAgent]) -> io::Result<Vec<AgentId>> {
    let id =
        |agent: &RelayAgent| engine.with_world(|world| world.agent_by_alias(relay::ID, &agent.id));
    let ids: Option<Vec<_>> = agents.iter().map(id).collect();
    ids.ok_or_else(|| io::Error::other("the hub does not know an agent that was just registered"))
}

/// Measures deliveries with and without `count` readers that never read, in alternating rounds.
///
/// Both benchmarks send the same messages. In one, half of them go to agents whose inboxes are open
/// and whose buffers are full; in the other, these agents have no open inbox.
pub fn measure_stalled(
    options: &BenchOptions,
    receivers: usize,
    count: usize,
) -> io::Result<Results> {
    let connections = options.connections;
    let fixture = &RelayFixture::start(options.threads, "sqlite", connections, receivers)?;
    let stalled = &register_agents(fixture.hub.address, "hung", count)?;
    fill_inboxes(fixture, stalled)?;
    let mut plan = options.plan(fixture.hub.address, connections);
    if plan.pace == Pace::Closed {
        plan.pace = Pace::Open { per_second: STALLED_PER_SECOND };
    }
    let series = run_interleaved(
        options.rounds,
        vec![
            Benchmark::new("end to end, 0 stalled", move |_| send_to_both(fixture, stalled, &plan)),
            Benchmark::new(format!("end to end, {count} stalled"), move |_| {
                let _open = StalledInboxes::open(plan.address, stalled)?;
                send_to_both(fixture, stalled, &plan)
            }),
        ],
    )?;
    let p99_ms = |round: &Measurement| round.latency.p99_us / 1_000.0;
    let added = series[1].difference_to(&series[0], p99_ms);
    let name = format!("p99 added by {count} stalled readers");
    Ok((series, vec![Goal::at_most(name, added, STALLED_MS, "ms")]))
}

/// Sends to the readers that read, which is measured, and to those that do not.
fn send_to_both(
    fixture: &RelayFixture,
    stalled: &[RelayAgent],
    plan: &LoadPlan,
) -> io::Result<Measurement> {
    let messages = Messages::new(plan.address, &fixture.senders, stalled, 0);
    thread::scope(|scope| {
        let aside = scope.spawn(|| {
            let request_for = move |at: usize, n: u64| messages.nth(at, n);
            load::run(plan, request_for, |status, _: &[u8]| status.is_success())
        });
        let measured = fixture.send_and_receive(plan);
        let aside = aside.join().map_err(|_| io::Error::other("a client thread panicked"))??;
        let mut measured = measured?;
        measured.errors.add(&aside.errors);
        Ok(measured)
    })
}

/// Queues messages for all stalled readers.
fn fill_inboxes(fixture: &RelayFixture, stalled: &[RelayAgent]) -> io::Result<()> {
    let address = fixture.hub.address;
    let messages = &Messages::new(address, &fixture.senders, stalled, WAITING_CHARS);
    let connections = FILL_CONNECTIONS.min(stalled.len());
    let shares = (0..connections).map(|first| async move {
        let mut connection = RawConnection::connect(address).await?;
        // A conversation has one receiver; the next conversation has the next receiver.
        for conversation in (first..stalled.len()).step_by(connections) {
            for n in (conversation as u64 * PER_CONVERSATION..).take(WAITING) {
                let (status, answer) = connection.exchange(messages.nth(0, n)).await?;
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
