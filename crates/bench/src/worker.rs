//! Benchmarks consecutive jobs at an agent of our own runtime: each job is posted after the
//! previous one has ended.
//!
//! The other scenarios keep every connection busy and never see a worker that waits. Here one
//! requester has one job at a time, so any pause between two jobs shows in every figure. Measures
//! from the post until the requester learns of the end, with a function as the handler and with a
//! program that is started for each job.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rialto_client::agent::program::Exec;
use rialto_client::agent::{Job, Outcome, Skill, StateDir};
use rialto_client::{Agent, Hub, JobRequest};
use tempfile::TempDir;

use crate::figure::Figure;
use crate::hub::{BenchHub, NewAgent};
use crate::measurement::{Measurement, RequestError, Tally};
use crate::process::temporary_dir;
use crate::rounds::{BenchOptions, Benchmark, Results, run_interleaved};

/// Goal: the median job takes at most this many milliseconds.
const GOAL_MS: f64 = 10.0;
/// Jobs that are not counted: the first ones find cold caches and no connection.
const WARM_UP: u32 = 5;
/// Time limit for one job.
const JOB_TIMEOUT: Duration = Duration::from_secs(30);

/// The handlers that are compared.
const FUNCTION: &str = "echo_function";
const PROGRAM: &str = "echo_program";

/// Measures a function and a program in alternating rounds, `jobs` each per round.
pub fn measure(options: &BenchOptions, jobs: u32) -> io::Result<Results> {
    // The agents run here too, on threads of their own.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(options.threads).enable_all().build()?;
    let state = temporary_dir()?;
    let start = |(at, binary)| {
        let hub = BenchHub::start(binary, &[])?;
        let requester = runtime.block_on(start(&hub, &state, at))?;
        Ok::<_, io::Error>((hub, requester))
    };
    let hubs = options.hubs.iter().enumerate().map(start).collect::<io::Result<Vec<_>>>()?;
    let kinds = [("function", FUNCTION), ("program", PROGRAM)];
    let runtime = &runtime;
    let benchmarks = kinds.into_iter().flat_map(|(name, skill)| {
        hubs.iter().map(move |(hub, requester)| {
            let run = move |_| runtime.block_on(one_round(requester, skill, jobs));
            Benchmark::new(format!("back-to-back jobs, {name}"), run).of_hub(&hub.label)
        })
    });
    let series = run_interleaved(options.rounds, benchmarks.collect())?;
    let figures = series.iter().map(|series| {
        let medians = series.of_rounds(|round| round.latency.p50_us / 1_000.0);
        let figure = Figure::lower(format!("{}, median", series.name), medians, "ms");
        figure.with_target(GOAL_MS).of_hub(&series.hub)
    });
    let figures = figures.collect();
    Ok(Results { series, figures, notes: Vec::new() })
}

/// Registers a requester with credits and starts both agents; they stop with the runtime.
async fn start(hub: &BenchHub, state: &TempDir, number: usize) -> io::Result<Hub> {
    let owner = "asks".to_owned();
    let requester = hub.register_agents(&[NewAgent::requester(&owner)])?.remove(0);
    hub.grant_credits(&[owner])?;
    let state = state.path().join(number.to_string());
    let url = format!("http://{}", hub.address);
    let skill = |name: &str| Skill::new(name, "0.01").map_err(io::Error::other);
    let function = Agent::new(FUNCTION)
        .skill(skill(FUNCTION)?, |job: Job| async { Outcome::Done(job.input) })
        .state_path(state.join(FUNCTION));
    let state_dir = StateDir::open(state.join(PROGRAM)).map_err(io::Error::other)?;
    let records = state_dir.records().map_err(io::Error::other)?;
    let exec = Exec::new("cat", records, Arc::new(|_: &str, _: &str| {}));
    let program = Agent::new(PROGRAM).skill(skill(PROGRAM)?, exec).state_dir(state_dir);
    for agent in [function, program] {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let agent = agent.hub(&url).on_event(move |event| drop(sender.send(event)));
        tokio::spawn(agent.run(std::future::pending()));
        events.recv().await.ok_or_else(|| io::Error::other("an agent did not start"))?;
    }
    Hub::new(&url).map(|hub| hub.with_key(&requester.key)).map_err(io::Error::other)
}

async fn one_round(hub: &Hub, skill: &str, jobs: u32) -> io::Result<Measurement> {
    for _ in 0..WARM_UP {
        hire(hub, skill).await?;
    }
    let (mut tally, began) = (Tally::default(), Instant::now());
    for _ in 0..jobs {
        let posted = Instant::now();
        match hire(hub, skill).await {
            Ok(()) => {
                tally.record_latency(posted.elapsed());
                tally.good += 1;
            }
            Err(error) => tally.record_error(RequestError::connection_failed(error)),
        }
    }
    Ok(tally.measured_in(began.elapsed()))
}

/// One job, from the post until its end is known.
async fn hire(hub: &Hub, skill: &str) -> io::Result<()> {
    let request = JobRequest::new(skill, &serde_json::json!({"n": 1}), "0.01");
    let request = request.map_err(io::Error::other)?;
    let job = hub.hire(&request, JOB_TIMEOUT).await.map_err(io::Error::other)?;
    match job.state.as_str() {
        "completed" => Ok(()),
        state => Err(io::Error::other(format!(
            "the job is {state}: {}",
            job.failure_reason().unwrap_or("")
        ))),
    }
}
