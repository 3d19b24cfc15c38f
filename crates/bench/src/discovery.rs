//! Benchmarks discovery over few and many agents: the time must depend on the result size, not on
//! the number of agents.

use std::io;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use rialto_core::agent::Liveness;
use rialto_core::money::Credits;

use crate::hub::{BenchHub, SkillPrice, register_agent};
use crate::load::{self, LoadPlan, Request};
use crate::measurement::Measurement;
use crate::report::Goal;
use crate::rounds::{BenchOptions, Benchmark, Results, run_interleaved};

/// Goal: at most this many times slower.
const GOAL: f64 = 4.0;
/// Agents that share one rare skill, in both hubs.
const HITS: usize = 20;
/// Registrations in flight at once during setup.
const REGISTRATIONS_MAX: usize = 2_048;

/// Measures one hub with a thousand agents and one with many, in alternating rounds.
pub fn measure(options: &BenchOptions, many: usize) -> io::Result<Results> {
    let few = 1_000;
    // The index is in memory whatever the store. A disk store would only slow down the setup.
    let hubs =
        [BenchHub::start(options.threads, "memory")?, BenchHub::start(options.threads, "memory")?];
    for (hub, agents) in hubs.iter().zip([few, many]) {
        hub.block_on(register_agents(hub, agents))?;
    }
    let benchmarks = ["rare", "common"].into_iter().flat_map(|kind| {
        hubs.iter().zip([few, many]).map(move |(hub, agents)| {
            let plan = LoadPlan {
                connections: 8,
                duration: Duration::from_secs(options.seconds),
                warm_up: Duration::from_millis(500),
                ..LoadPlan::new(hub.address)
            };
            let name = format!("discover {kind} skill, {agents} agents");
            Benchmark::new(name, move |_| discover(&plan, agents, kind == "common"))
        })
    });
    let series = run_interleaved(options.rounds, benchmarks.collect())?;
    let goals = ["rare", "common"].into_iter().zip(series.chunks(2)).map(|(kind, pair)| {
        let slower = pair[0].ratio_to(&pair[1], |round| round.per_second);
        Goal::at_most(format!("discovery, {kind} skill: {many} / {few} agents"), slower, GOAL, "×")
    });
    let goals = goals.collect();
    Ok((series, goals))
}

fn discover(plan: &LoadPlan, agents: usize, common: bool) -> io::Result<Measurement> {
    let request_for = move |at: usize, n: u64| {
        let place = (at as u64 * 7_919 + n * 31) % agents as u64;
        let skill = if common { "common".to_owned() } else { rare(place as usize) };
        let filters = "min_reputation=40&max_cost=0.20&limit=20";
        Request::get(format!("/registry/discover?skill={skill}&{filters}"))
    };
    // The twentieth hit must be present, or the figure is meaningless.
    load::run(plan, request_for, |status, body| status.is_success() && body.len() > 5_000)
}

/// Every second agent has the common skill, at one of a hundred prices. Each of the others shares
/// its rare skill with nineteen.
async fn register_agents(hub: &BenchHub, agents: usize) -> io::Result<()> {
    let registrations = (0..agents).map(|at| async move {
        let (skill, cents) = match at % 2 {
            0 => (rare(at), 1 + (at / 2) % 20),
            _ => ("common".to_owned(), 1 + (at / 2) % 100),
        };
        let offered = SkillPrice { skill, price: Credits::from_micros(cents as i64 * 10_000) };
        let owner = format!("owner-{}", at % 1_000);
        register_agent(&hub.engine, &owner, Liveness::Always, Some(offered)).await.map(drop)
    });
    stream::iter(registrations).buffer_unordered(REGISTRATIONS_MAX).try_collect().await
}

/// The rare skill of the agent's group of twenty.
fn rare(at: usize) -> String {
    format!("rare-{}", at / (2 * HITS))
}
