//! Benchmarks sending relay messages against the echo, and delivery all the way to the receivers'
//! streams.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use super::echo::{EchoServer, EchoWorker};
use super::jobs::BenchOptions;
use super::load::{LoadPlan, Pace};
use super::measurement::Measurement;
use super::relay_fixture::RelayFixture;
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};

/// The wide phase has this many times the connections.
const WIDER: usize = 4;
/// Target shares of the echo's rate, with few and many connections.
const RATE: f64 = 0.5;
const RATE_WIDE: f64 = 0.6;
/// How many times the echo's p99 the p99 of a send may be.
const P99: f64 = 2.5;
/// Target share of the memory store's rate, end to end.
const DURABLE: f64 = 0.6;

/// The load plan for one phase.
pub fn send_plan(how: &BenchOptions, address: SocketAddr, connections: usize) -> LoadPlan {
    LoadPlan {
        connections,
        duration: Duration::from_secs(how.seconds),
        warm_up: Duration::from_secs(1),
        pace: how.pace,
        ..LoadPlan::new(address)
    }
}

/// Measures echo, durable sends and end-to-end deliveries in alternating rounds.
pub fn measure(how: &BenchOptions, receivers: usize) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let (few, many) = (how.connections, how.connections * WIDER);
    let echo = EchoServer::start(
        how.threads,
        EchoWorker { agent_id: Uuid::nil().to_string(), cost: 0.01 },
    )?;
    let durable = RelayFixture::start(how.threads, "sqlite", many, receivers)?;
    let memory = RelayFixture::start(how.threads, "memory", few, receivers)?;
    let echoed = |connections| {
        Benchmark::new(
            "echo of a message",
            sending(&durable, send_plan(how, echo.address(), connections)),
        )
    };
    let sent = |connections| {
        let plan = send_plan(how, durable.hub.address, connections);
        Benchmark::new("send, receivers offline", sending(&durable, plan))
    };
    // At full speed, whatever pace the others have: here the rate is measured.
    let at_full_speed = BenchOptions { pace: Pace::Closed, ..*how };
    let series = run_interleaved(
        how.rounds,
        vec![
            echoed(few),
            sent(few),
            echoed(many),
            sent(many),
            Benchmark::new("end to end, sqlite", receiving(&durable, &at_full_speed)),
            Benchmark::new("end to end, memory", receiving(&memory, &at_full_speed)),
        ],
    )?;
    let goals = goals(&series, few, many);
    Ok((series, goals))
}

fn sending(office: &RelayFixture, plan: LoadPlan) -> impl FnMut(usize) -> io::Result<Measurement> {
    move |_round| office.send(&plan)
}

fn receiving(
    office: &RelayFixture,
    how: &BenchOptions,
) -> impl FnMut(usize) -> io::Result<Measurement> {
    let plan = send_plan(how, office.hub.address, how.connections);
    move |_round| office.send_and_receive(&plan)
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
