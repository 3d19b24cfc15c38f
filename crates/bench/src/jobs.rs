//! Benchmarks the full registry job against the echo: open, assign, deliver, result, settle.
//!
//! Each connection alternates between an orchestrator and a worker, like a busy pair: it posts
//! several jobs, the worker fetches them all with one poll, and each is reported. Credits and
//! scores move with the report. Every request is on disk before it is answered.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue};
use rialto_core::agent::Liveness;
use rialto_core::money::Credits;
use uuid::Uuid;

use crate::echo::{EchoServer, EchoWorker};
use crate::hub::{BenchAgent, BenchHub, SkillPrice, grant_credits, register_agent};
use crate::load::{self, Request};
use crate::report::Goal;
use crate::rounds::{BenchOptions, Benchmark, Results, run_interleaved};

/// Goal: a full job at this share of the echo's rate.
const GOAL: f64 = 0.15;

/// The requester and worker of one connection.
struct JobPair {
    requester: BenchAgent,
    worker: BenchAgent,
    skill: String,
}

/// Measures echo and hub in alternating rounds.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let BenchOptions { connections, batch, threads, .. } = *options;
    let echo = EchoServer::start(threads, EchoWorker::default())?;
    let hub = BenchHub::start(threads, "sqlite")?;
    let pairs = Arc::new(hub.block_on(register_pairs(&hub, connections))?);
    let echo_plan = options.plan(echo.address(), connections);
    let hub_plan = options.plan(hub.address, connections);
    let echo_pairs = pairs.clone();
    let benchmarks = vec![
        Benchmark::new("echo", move |round| {
            let pairs = echo_pairs.clone();
            let request_for = move |at: usize, n: u64| {
                Request::post("/registry/jobs", body(job_id(round, at, n), &pairs[at]))
            };
            load::run(&echo_plan, request_for, |status, _: &[u8]| status.is_success())
        }),
        Benchmark::new("registry job (requests)", move |round| {
            let pairs = pairs.clone();
            let request_for =
                move |at: usize, n: u64| nth_request(round, (at, n), batch, &pairs[at]);
            load::run(&hub_plan, request_for, |status, _: &[u8]| status.is_success())
        }),
    ];
    let series = run_interleaved(options.rounds, benchmarks)?;
    // One cycle has one request per job and one poll that do not complete a job.
    let jobs_per_request = batch as f64 / requests_per_cycle(batch) as f64;
    let share = series[1].ratio_to(&series[0], |round| round.per_second) * jobs_per_request;
    let name = format!("full registry job / echo ({connections} connections, {batch} a poll)");
    Ok((series, vec![Goal::at_least(name, share, GOAL, "×")]))
}

async fn register_pairs(hub: &BenchHub, connections: usize) -> io::Result<Vec<JobPair>> {
    let mut pairs = Vec::new();
    for at in 0..connections {
        let price = Credits::from_micros(10_000);
        let skill = format!("bench-{at}");
        let offered = Some(SkillPrice { skill: skill.clone(), price });
        let (payer, payee) = (format!("asks-{at}"), format!("works-{at}"));
        let worker = register_agent(&hub.engine, &payee, Liveness::Always, offered).await?;
        let requester = register_agent(&hub.engine, &payer, Liveness::Always, None).await?;
        grant_credits(&hub.engine, &payer).await?;
        pairs.push(JobPair { requester, worker, skill });
    }
    Ok(pairs)
}

/// Requests of one cycle: each job is posted and reported, plus one poll.
fn requests_per_cycle(batch: u64) -> u64 {
    2 * batch + 1
}

/// The n-th request of a connection: post, post …, poll, report, report …, and again.
fn nth_request(round: usize, (at, n): (usize, u64), batch: u64, pair: &JobPair) -> Request {
    let (cycle, place) = (n / requests_per_cycle(batch), n % requests_per_cycle(batch));
    let id = |which: u64| job_id(round, at, cycle * batch + which);
    match place {
        post if post < batch => {
            let path = format!("/registry/agents/{}/jobs", pair.worker.id);
            let body = body(id(post), pair);
            Request::post(path, body).with_header(AUTHORIZATION, bearer(&pair.requester))
        }
        poll if poll == batch => {
            let path = format!("/registry/agents/{}/jobs?status=PENDING", pair.worker.id);
            Request::get(path).with_header(AUTHORIZATION, bearer(&pair.worker))
        }
        report => {
            let id = id(report - batch - 1);
            let result = format!(
                r#"{{"job_id":"{id}","agent_id":"{}","status":"SUCCESS","output_data":{{"entities":[{{"type":"revenue","value":42000,"period":"Q3"}}]}},"execution_cost":0.01,"execution_time_ms":1250,"error_message":null}}"#,
                pair.worker.id
            );
            Request::post("/registry/results", result)
                .with_header(AUTHORIZATION, bearer(&pair.worker))
        }
    }
}

fn bearer(agent: &BenchAgent) -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {}", agent.key)).expect("keys are plain ASCII")
}

/// The body of a job; the echo gets the same.
fn body(id: Uuid, pair: &JobPair) -> Bytes {
    let (requester, skill) = (pair.requester.id, &pair.skill);
    format!(
        r#"{{"job_id":"{id}","orchestrator_id":"{requester}","skill_name":"{skill}","input_data":{{"text":"Revenue for Q3 was 42000"}},"budget":0.01,"currency":"chorus_credits_v1","callback_url":"","timestamp_utc":"2026-02-11T14:15:09Z"}}"#
    )
    .into()
}

/// An id that is unique over rounds, connections and jobs.
fn job_id(round: usize, at: usize, n: u64) -> Uuid {
    Uuid::from_u128(
        ((round as u128 + 1) << 100) | ((at as u128) << 68) | u128::from(n) | (4 << 76) | (8 << 60),
    )
}
