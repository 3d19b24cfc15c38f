//! Benchmarks the full registry job against the echo: open, assign, deliver, result, settle.
//!
//! Each connection alternates between an orchestrator and a worker, like a busy pair: it posts
//! several jobs, the worker fetches them all with one poll, and each is reported. Credits and
//! scores move with the report. Every request is on disk before it is answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue};
use rialto_core::agent::Liveness;
use rialto_core::money::Credits;
use uuid::Uuid;

use super::agents::{self, BenchAgent, SkillPrice};
use super::echo::{EchoServer, EchoWorker};
use super::hub::BenchHub;
use super::load::{self, LoadPlan, Pace, Request};
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};

/// Goal: a full job at this share of the echo's rate.
const GOAL: f64 = 0.15;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct BenchOptions {
    pub rounds: usize,
    pub connections: usize,
    pub seconds: u64,
    pub threads: usize,
    pub pace: Pace,
    /// Jobs a worker fetches with one poll.
    pub batch: u64,
}

/// The requester and worker of one connection.
struct JobPair {
    requester: BenchAgent,
    worker: BenchAgent,
    skill: String,
}

/// Measures echo and hub in alternating rounds.
pub fn measure(how: BenchOptions) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let echo = EchoServer::start(
        how.threads,
        EchoWorker { agent_id: Uuid::nil().to_string(), cost: 0.01 },
    )?;
    let hub = BenchHub::start(how.threads, "sqlite")?;
    let pairs = Arc::new(hub.block_on(register_pairs(&hub, how.connections))?);
    let plan = |address| LoadPlan {
        connections: how.connections,
        duration: Duration::from_secs(how.seconds),
        warm_up: Duration::from_secs(1),
        pace: how.pace,
        ..LoadPlan::new(address)
    };
    let (echo_plan, hub_plan) = (plan(echo.address()), plan(hub.address));
    let echoed = pairs.clone();
    let contestants = vec![
        Benchmark::new("echo", move |round| {
            let pairs = echoed.clone();
            let ask = move |at: usize, n: u64| {
                Request::post("/registry/jobs", body(job_id(round, at, n), &pairs[at]))
            };
            load::run(&echo_plan, ask, |status, _: &[u8]| status.is_success())
        }),
        Benchmark::new("registry job (requests)", move |round| {
            let pairs = pairs.clone();
            let ask = move |at: usize, n: u64| nth_request(round, (at, n), how.batch, &pairs[at]);
            load::run(&hub_plan, ask, |status, _: &[u8]| status.is_success())
        }),
    ];
    let series = run_interleaved(how.rounds, contestants)?;
    // One cycle has one request per job and one poll that do not complete a job.
    let jobs_a_request = how.batch as f64 / requests_per_cycle(how.batch) as f64;
    let share = series[1].ratio_to(&series[0], |round| round.per_second) * jobs_a_request;
    let (connections, batch) = (how.connections, how.batch);
    let name = format!("full registry job / echo ({connections} connections, {batch} a poll)");
    Ok((series, vec![Goal::at_least(name, share, GOAL, "×")]))
}

async fn register_pairs(hub: &BenchHub, connections: usize) -> io::Result<Vec<JobPair>> {
    let mut pairs = Vec::new();
    for at in 0..connections {
        let price = Credits::from_micros(10_000);
        let skill = format!("bench-{at}");
        let sells = SkillPrice { skill: skill.clone(), price };
        let (asks, works) = (format!("asks-{at}"), format!("works-{at}"));
        let working =
            agents::register_agent(&hub.engine, &works, Liveness::Always, Some(sells)).await?;
        let asking = agents::register_agent(&hub.engine, &asks, Liveness::Always, None).await?;
        agents::grant_credits(&hub.engine, &asks).await?;
        pairs.push(JobPair { requester: asking, worker: working, skill });
    }
    Ok(pairs)
}

/// Requests of one cycle: each job is posted and reported, plus one poll.
fn requests_per_cycle(batch: u64) -> u64 {
    2 * batch + 1
}

/// The n-th request of a connection: post, post …, poll, report, report …, and again.
fn nth_request(round: usize, (at, n): (usize, u64), batch: u64, pair: &JobPair) -> Request {
    let (turn, place) = (n / requests_per_cycle(batch), n % requests_per_cycle(batch));
    let id = |which: u64| job_id(round, at, turn * batch + which);
    match place {
        asked if asked < batch => {
            let path = format!("/registry/agents/{}/jobs", pair.worker.id);
            let body = body(id(asked), pair);
            Request::post(path, body).with_header(AUTHORIZATION, bearer(&pair.requester))
        }
        fetched if fetched == batch => {
            let path = format!("/registry/agents/{}/jobs?status=PENDING", pair.worker.id);
            Request::get(path).with_header(AUTHORIZATION, bearer(&pair.worker))
        }
        reported => {
            let id = id(reported - batch - 1);
            let result = format!(
                r#"{{"job_id":"{id}","agent_id":"{}","status":"SUCCESS","output_data":{{"entities":[{{"type":"revenue","value":42000,"period":"Q3"}}]}},"execution_cost":0.01,"execution_time_ms":1250,"error_message":null}}"#,
                pair.worker.id
            );
            Request::post("/registry/results", result)
                .with_header(AUTHORIZATION, bearer(&pair.worker))
        }
    }
}

fn bearer(person: &BenchAgent) -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {}", person.key)).expect("keys are plain ASCII")
}

/// The body of a job; the echo gets the same.
fn body(id: Uuid, pair: &JobPair) -> Bytes {
    let (asking, skill) = (pair.requester.id, &pair.skill);
    format!(
        r#"{{"job_id":"{id}","orchestrator_id":"{asking}","skill_name":"{skill}","input_data":{{"text":"Revenue for Q3 was 42000"}},"budget":0.01,"currency":"chorus_credits_v1","callback_url":"","timestamp_utc":"2026-02-11T14:15:09Z"}}"#
    )
    .into()
}

/// An id that is unique over rounds, connections and jobs.
fn job_id(round: usize, at: usize, n: u64) -> Uuid {
    Uuid::from_u128(
        ((round as u128 + 1) << 100) | ((at as u128) << 68) | u128::from(n) | (4 << 76) | (8 << 60),
    )
}
