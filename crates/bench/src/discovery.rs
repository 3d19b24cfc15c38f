//! Benchmarks discovery over few and many agents: the time must depend on the result size, not on
//! the number of agents.

use std::io;

use crate::figure::Figure;
use crate::hub::BenchHub;
use crate::load::{self, LoadPlan, Request};
use crate::measurement::Measurement;
use crate::rounds::{BenchOptions, Benchmark, Results, rate, run_interleaved};

/// Goal: at most this many times slower.
const GOAL: f64 = 4.0;
/// Agents that share one rare skill, in both hubs.
const HITS: usize = 20;
/// Agents in the small hub.
const FEW: usize = 1_000;
const CONNECTIONS: usize = 8;

/// Measures one hub with few agents and one with many, in alternating rounds.
pub fn measure(options: &BenchOptions, many: usize) -> io::Result<Results> {
    let mut results = Results::default();
    for binary in &options.hubs {
        // The index is in memory whatever the store. A disk store would only slow down the setup.
        let hubs = [FEW, many].map(|agents| {
            let hub = BenchHub::start(binary, &[("store.backend", "memory")])?;
            hub.register_crowd(agents, skill_of)?;
            Ok::<_, io::Error>((hub, agents))
        });
        let hubs = hubs.into_iter().collect::<io::Result<Vec<_>>>()?;
        let benchmarks = ["rare", "common"].into_iter().flat_map(|kind| {
            hubs.iter().map(move |(hub, agents)| {
                let plan = options.plan(hub.target(), CONNECTIONS);
                let name = format!("discover {kind} skill, {agents} agents");
                let discover = move |_| discover(&plan, *agents, kind == "common");
                Benchmark::new(name, discover).of_hub(&hub.label)
            })
        });
        let series = run_interleaved(options.rounds, benchmarks.collect())?;
        for (kind, pair) in ["rare", "common"].into_iter().zip(series.chunks(2)) {
            let name = format!("discovery, {kind} skill: {many} / {FEW} agents");
            let slower = Figure::lower(name, pair[0].ratios_to(&pair[1], rate), "×");
            results.figures.push(slower.with_target(GOAL).of_hub(&binary.label));
        }
        results.series.extend(series);
    }
    Ok(results)
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
fn skill_of(at: usize) -> (String, u32) {
    let (skill, cents) = match at % 2 {
        0 => (rare(at), 1 + (at / 2) % 20),
        _ => ("common".to_owned(), 1 + (at / 2) % 100),
    };
    (skill, cents as u32)
}

/// The rare skill of the agent's group of twenty.
fn rare(at: usize) -> String {
    format!("rare-{}", at / (2 * HITS))
}
