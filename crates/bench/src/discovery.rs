//! Benchmarks discovery over few and many agents: the time must depend on the result size, not on
//! the number of agents.

use std::io;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rialto_core::agent::Liveness;
use rialto_core::money::Credits;

use super::agents::{self, SkillPrice};
use super::hub::BenchHub;
use super::jobs::BenchOptions;
use super::load::{self, LoadPlan, Request};
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};

/// Goal: at most this many times slower.
const GOAL: f64 = 4.0;
/// Agents that share one rare skill, in both hubs.
const HITS: usize = 20;
/// Registrations in flight at once during setup.
const REGISTRATIONS_MAX: usize = 2_048;

/// Measures one hub with a thousand agents and one with many, in alternating rounds.
pub fn measure(how: BenchOptions, many: usize) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let (small, large) = (1_000, many);
    // The index is in memory whatever the store. A disk store would only slow down the setup.
    let few = BenchHub::start(how.threads, "memory")?;
    few.block_on(register_agents(&few, small))?;
    let crowd = BenchHub::start(how.threads, "memory")?;
    crowd.block_on(register_agents(&crowd, large))?;
    let ask = |hub: &BenchHub, agents: usize, common: bool| {
        let plan = LoadPlan {
            connections: 8,
            duration: Duration::from_secs(how.seconds),
            warm_up: Duration::from_millis(500),
            ..LoadPlan::new(hub.address)
        };
        move |_round: usize| {
            let path = move |at: usize, n: u64| {
                let skill = match common {
                    true => "common".to_owned(),
                    false => rare(((at as u64 * 7_919 + n * 31) % agents as u64) as usize),
                };
                let filters = "min_reputation=40&max_cost=0.20&limit=20";
                Request::get(format!("/registry/discover?skill={skill}&{filters}"))
            };
            // The twentieth hit must be present, or the figure is meaningless.
            let full =
                |status: hyper::StatusCode, body: &[u8]| status.is_success() && body.len() > 5_000;
            load::run(&plan, path, full)
        }
    };
    let series = run_interleaved(
        how.rounds,
        vec![
            Benchmark::new(format!("discover rare skill, {small} agents"), ask(&few, small, false)),
            Benchmark::new(
                format!("discover rare skill, {large} agents"),
                ask(&crowd, large, false),
            ),
            Benchmark::new(
                format!("discover common skill, {small} agents"),
                ask(&few, small, true),
            ),
            Benchmark::new(
                format!("discover common skill, {large} agents"),
                ask(&crowd, large, true),
            ),
        ],
    )?;
    let slower =
        |few: usize, many: usize| series[few].ratio_to(&series[many], |round| round.per_second);
    let goals = vec![
        Goal::at_most(
            format!("discovery, rare skill: {large} / {small} agents"),
            slower(0, 1),
            GOAL,
            "×",
        ),
        Goal::at_most(
            format!("discovery, common skill: {large} / {small} agents"),
            slower(2, 3),
            GOAL,
            "×",
        ),
    ];
    Ok((series, goals))
}

/// Each agent shares its rare skill with nineteen others. Every second agent also has the common
/// skill, at one of a hundred prices.
async fn register_agents(hub: &BenchHub, agents: usize) -> io::Result<()> {
    let mut under_way = FuturesUnordered::new();
    for at in 0..agents {
        while under_way.len() >= REGISTRATIONS_MAX {
            under_way.next().await.transpose()?;
        }
        let (skill, cents) = match at % 2 {
            0 => (rare(at), 1 + (at / 2) % 20),
            _ => ("common".to_owned(), 1 + (at / 2) % 100),
        };
        let sells = SkillPrice { skill, price: Credits::from_micros(cents as i64 * 10_000) };
        let owner = format!("owner-{}", at % 1_000);
        let engine = hub.engine.clone();
        under_way.push(async move {
            agents::register_agent(&engine, &owner, Liveness::Always, Some(sells)).await.map(drop)
        });
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

/// The rare skill of the agent's group of twenty.
fn rare(at: usize) -> String {
    format!("rare-{}", at / (2 * HITS))
}
