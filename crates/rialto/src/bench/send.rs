//! Benchmarks sending relay messages against the echo, and delivery all the way to the receivers'
//! streams.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use super::echo::{Echo, Worker};
use super::jobs::How;
use super::load::{Pace, Plan};
use super::measurement::Measured;
use super::relay_fixture::Office;
use super::report::Goal;
use super::rounds::{Contestant, Series, take_turns};

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
pub fn plan(how: &How, address: SocketAddr, connections: usize) -> Plan {
    Plan {
        connections,
        duration: Duration::from_secs(how.seconds),
        warm_up: Duration::from_secs(1),
        pace: how.pace,
        ..Plan::new(address)
    }
}

/// Measures echo, durable sends and end-to-end deliveries in alternating rounds.
pub fn measure(how: &How, receivers: usize) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let (few, many) = (how.connections, how.connections * WIDER);
    let echo = Echo::start(how.threads, Worker { agent_id: Uuid::nil().to_string(), cost: 0.01 })?;
    let durable = Office::open(how.threads, "sqlite", many, receivers)?;
    let memory = Office::open(how.threads, "memory", few, receivers)?;
    let echoed = |connections| {
        Contestant::new(
            "echo of a message",
            sending(&durable, plan(how, echo.address(), connections)),
        )
    };
    let sent = |connections| {
        let plan = plan(how, durable.hub.address, connections);
        Contestant::new("send, receivers offline", sending(&durable, plan))
    };
    // At full speed, whatever pace the others have: here the rate is measured.
    let at_full_speed = How { pace: Pace::Closed, ..*how };
    let series = take_turns(
        how.rounds,
        vec![
            echoed(few),
            sent(few),
            echoed(many),
            sent(many),
            Contestant::new("end to end, sqlite", receiving(&durable, &at_full_speed)),
            Contestant::new("end to end, memory", receiving(&memory, &at_full_speed)),
        ],
    )?;
    let goals = goals(&series, few, many);
    Ok((series, goals))
}

fn sending(office: &Office, plan: Plan) -> impl FnMut(usize) -> io::Result<Measured> {
    move |_round| office.send(&plan)
}

fn receiving(office: &Office, how: &How) -> impl FnMut(usize) -> io::Result<Measured> {
    let plan = plan(how, office.hub.address, how.connections);
    move |_round| office.send_and_receive(&plan)
}

fn goals(series: &[Series], few: usize, many: usize) -> Vec<Goal> {
    let rate = |round: &Measured| round.per_second;
    let p99 = |round: &Measured| round.latency.p99_us;
    let ratio = |one: usize, other: usize, figure: fn(&Measured) -> f64| {
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
