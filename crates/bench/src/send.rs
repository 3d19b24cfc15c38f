//! Benchmarks sending relay messages: against the echo with few and many connections, and beside
//! readers that never read.

use std::io;
use std::thread;

use crate::echo::EchoProcess;
use crate::figure::Figure;
use crate::fill::send_all;
use crate::inbox::StalledInboxes;
use crate::load::{self, LoadPlan, Pace};
use crate::measurement::Measurement;
use crate::message::{Messages, PER_CONVERSATION};
use crate::relay::{RelayAgent, RelayFixture, register_agents};
use crate::rounds::{BenchOptions, Benchmark, Results, rate, run_interleaved};

/// Goals for the share of the echo's rate, by connections.
const RATES: [(usize, f64); 2] = [(64, 0.62), (256, 0.70)];
/// How many times the echo's p99 the p99 of a send may be.
const P99: f64 = 2.5;

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

/// Measures echo and durable sends in alternating rounds, for each number of connections.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let echo = EchoProcess::start()?;
    let start = |binary| {
        RelayFixture::start(binary, "sqlite", options.most_connections(), options.receivers)
    };
    let fixtures = options.hubs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let mut benchmarks = Vec::new();
    for &connections in &options.connections {
        let plan = options.plan(echo.target(), connections);
        let first = &fixtures[0];
        benchmarks.push(Benchmark::new("echo of a message", move |_| first.send(&plan)));
        for fixture in &fixtures {
            let plan = options.plan(fixture.hub.target(), connections);
            let send = Benchmark::new("send, receivers offline", move |_| fixture.send(&plan));
            benchmarks.push(send.of_hub(&fixture.hub.label));
        }
    }
    let series = run_interleaved(options.rounds, benchmarks)?;
    let mut figures = Vec::new();
    for (connections, group) in options.connections.iter().zip(series.chunks(1 + fixtures.len())) {
        let (echo, sends) = (&group[0], &group[1..]);
        let target = RATES.iter().find(|(count, _)| count == connections).map(|(_, rate)| *rate);
        for send in sends {
            let name = format!("send / echo ({connections} connections)");
            let share = Figure::higher(name, send.ratios_to(echo, rate), "×");
            figures.push(share.with_target(target).of_hub(&send.hub));
            let name = format!("p99 send / echo ({connections} connections)");
            let p99 = send.ratios_to(echo, |round| round.latency.p99_us);
            figures.push(Figure::lower(name, p99, "×").with_target(P99).of_hub(&send.hub));
            let request = format!("send ({connections} connections)");
            figures.push(send.cpu_figure(&request, echo.median(Measurement::cpu_us)));
        }
    }
    Ok(Results { series, figures, notes: Vec::new() })
}

/// Measures deliveries with and without `count` readers that never read, in alternating rounds.
///
/// Both benchmarks send the same messages. In one, half of them go to agents whose inboxes are open
/// and whose buffers are full; in the other, these agents have no open inbox.
pub fn measure_stalled(options: &BenchOptions, count: usize) -> io::Result<Results> {
    let connections = options.middle_connections();
    let mut results = Results::default();
    for binary in &options.hubs {
        let fixture = &RelayFixture::start(binary, "sqlite", connections, options.receivers)?;
        let stalled = &register_agents(fixture.hub.address, "hung", count)?;
        fill_inboxes(fixture, stalled)?;
        let mut plan = options.plan(fixture.hub.target(), connections);
        if plan.pace == Pace::Closed {
            plan.pace = Pace::Open { per_second: STALLED_PER_SECOND };
        }
        let benchmarks = vec![
            Benchmark::new("end to end, 0 stalled", move |_| send_to_both(fixture, stalled, &plan)),
            Benchmark::new(format!("end to end, {count} stalled"), move |_| {
                let _open = StalledInboxes::open(plan.address, stalled)?;
                send_to_both(fixture, stalled, &plan)
            }),
        ];
        let benchmarks = benchmarks.into_iter().map(|one| one.of_hub(&binary.label)).collect();
        let series = run_interleaved(options.rounds, benchmarks)?;
        let added = series[1].differences_to(&series[0], |round| round.latency.p99_us / 1_000.0);
        let name = format!("p99 added by {count} stalled readers");
        let figure = Figure::lower(name, added, "ms").with_target(STALLED_MS);
        results.figures.push(figure.of_hub(&binary.label));
        results.series.extend(series);
    }
    Ok(results)
}

/// Sends to the readers that read, which is measured, and to those that do not.
fn send_to_both(
    fixture: &RelayFixture,
    stalled: &[RelayAgent],
    plan: &LoadPlan,
) -> io::Result<Measurement> {
    let messages = Messages::new(plan.address, &fixture.agents.senders, stalled, 0);
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
    let messages = Messages::new(address, &fixture.agents.senders, stalled, WAITING_CHARS);
    // A conversation has one receiver; the next conversation has the next receiver.
    let request_for = |number: usize| {
        let (conversation, place) = (number / WAITING, number % WAITING);
        messages.nth(0, conversation as u64 * PER_CONVERSATION + place as u64)
    };
    let count = stalled.len() * WAITING;
    send_all(address, count, request_for, |status, _| status.is_success().then_some(())).map(drop)
}
