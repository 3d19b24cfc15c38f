//! Benchmarks the full registry job against the echo: open, assign, deliver, result, settle.
//!
//! Each connection alternates between an orchestrator and a worker, like a busy pair: it posts
//! several jobs, the worker fetches them all with one poll, and each is reported. Credits and
//! scores move with the report. Every request is on disk before it is answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue};
use uuid::Uuid;

use crate::echo::EchoProcess;
use crate::figure::Figure;
use crate::hub::{BenchAgent, BenchHub, NewAgent};
use crate::load::{self, LoadPlan, Request};
use crate::measurement::Measurement;
use crate::rounds::{BenchOptions, Benchmark, Results, rate, run_interleaved};

/// Goal: a full job at this share of the echo's rate.
const GOAL: f64 = 0.2;

/// Each run posts jobs of its own.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// The requester and worker of one connection.
#[derive(Clone)]
pub struct JobPair {
    pub requester: BenchAgent,
    pub worker: BenchAgent,
    pub skill: String,
}

/// Measures echo and hub in alternating rounds, for each number of connections.
pub fn measure(options: &BenchOptions, batch: u64) -> io::Result<Results> {
    let echo = EchoProcess::start()?;
    let start = |binary| {
        let hub = BenchHub::start(binary, &[])?;
        let pairs = register_pairs(&hub, "bench", options.most_connections())?;
        Ok::<_, io::Error>((hub, Arc::new(pairs)))
    };
    let hubs = options.hubs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let mut benchmarks = Vec::new();
    for &connections in &options.connections {
        let plan = options.plan(echo.target(), connections);
        let pairs = &hubs[0].1;
        benchmarks.push(Benchmark::new("echo of a job", move |_| {
            let (run, pairs) = (next_run(), Arc::clone(pairs));
            let request_for = move |at: usize, n: u64| {
                Request::post("/registry/jobs", body(job_id(run, at, n), &pairs[at]))
            };
            load::run(&plan, request_for, |status, _: &[u8]| status.is_success())
        }));
        for (hub, pairs) in &hubs {
            let plan = options.plan(hub.target(), connections);
            let jobs = Benchmark::new("registry job (requests)", move |_| {
                run_jobs(&plan, Arc::clone(pairs), batch)
            });
            benchmarks.push(jobs.of_hub(&hub.label));
        }
    }
    let series = run_interleaved(options.rounds, benchmarks)?;
    // One cycle has one request per job and one poll that do not complete a job.
    let jobs_per_request = batch as f64 / requests_per_cycle(batch) as f64;
    let mut figures = Vec::new();
    for (connections, group) in options.connections.iter().zip(series.chunks(1 + hubs.len())) {
        let echo = &group[0];
        for jobs in &group[1..] {
            let shares = jobs.ratios_to(echo, rate).into_iter().map(|one| one * jobs_per_request);
            let name =
                format!("full registry job / echo ({connections} connections, {batch} a poll)");
            let target = (*connections == options.middle_connections()).then_some(GOAL);
            let share = Figure::higher(name, shares.collect(), "×");
            figures.push(share.with_target(target).of_hub(&jobs.hub));
            let request = format!("job request ({connections} connections)");
            figures.push(jobs.cpu_figure(&request, echo.median(Measurement::cpu_us)));
        }
    }
    Ok(Results { series, figures, notes: Vec::new() })
}

/// Runs full jobs, one pair on each connection.
pub fn run_jobs(plan: &LoadPlan, pairs: Arc<Vec<JobPair>>, batch: u64) -> io::Result<Measurement> {
    let run = next_run();
    let request_for = move |at: usize, n: u64| nth_request(run, (at, n), batch, &pairs[at]);
    load::run(plan, request_for, |status, _: &[u8]| status.is_success())
}

/// Registers pairs whose requesters have credits.
pub fn register_pairs(hub: &BenchHub, prefix: &str, count: usize) -> io::Result<Vec<JobPair>> {
    let skill = |at: usize| format!("{prefix}-{at}");
    let payers: Vec<_> = (0..count).map(|at| format!("{prefix}-asks-{at}")).collect();
    let workers: Vec<_> = (0..count)
        .map(|at| NewAgent::worker(format!("{prefix}-works-{at}"), skill(at), 1))
        .collect();
    let requesters: Vec<_> = payers.iter().map(NewAgent::requester).collect();
    let workers = hub.register_agents(&workers)?;
    let requesters = hub.register_agents(&requesters)?;
    hub.grant_credits(&payers)?;
    let pairs = requesters.into_iter().zip(workers).enumerate();
    Ok(pairs
        .map(|(at, (requester, worker))| JobPair { requester, worker, skill: skill(at) })
        .collect())
}

/// The number of a new run.
pub fn next_run() -> u64 {
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// Requests of one cycle: each job is posted and reported, plus one poll.
fn requests_per_cycle(batch: u64) -> u64 {
    2 * batch + 1
}

/// The n-th request of a connection: post, post …, poll, report, report …, and again.
fn nth_request(run: u64, (at, n): (usize, u64), batch: u64, pair: &JobPair) -> Request {
    let (cycle, place) = (n / requests_per_cycle(batch), n % requests_per_cycle(batch));
    let id = |which: u64| job_id(run, at, cycle * batch + which);
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
pub fn body(id: Uuid, pair: &JobPair) -> Bytes {
    let (requester, skill) = (pair.requester.id, &pair.skill);
    format!(
        r#"{{"job_id":"{id}","orchestrator_id":"{requester}","skill_name":"{skill}","input_data":{{"text":"Revenue for Q3 was 42000"}},"budget":0.01,"currency":"chorus_credits_v1","callback_url":"","timestamp_utc":"2026-02-11T14:15:09Z"}}"#
    )
    .into()
}

/// An id that is unique over runs, connections and jobs.
pub fn job_id(run: u64, at: usize, n: u64) -> Uuid {
    let place = (u128::from(run) << 100) | ((at as u128) << 68) | u128::from(n);
    Uuid::from_u128(place | (4 << 76) | (8 << 60))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_jobs_share_an_id() {
        let ids = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 255, 1_000_000)];
        let ids: HashSet<_> = ids.iter().map(|(run, at, n)| job_id(*run, *at, *n)).collect();
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn a_cycle_posts_all_jobs_fetches_them_once_and_reports_each() {
        let agent = || BenchAgent { id: Uuid::nil(), key: "rk_1".to_owned() };
        let pair = JobPair { requester: agent(), worker: agent(), skill: "s".to_owned() };
        let request = |n| nth_request(1, (0, n), 2, &pair);
        let paths: Vec<_> =
            (0..6).map(|n| request(n).path.replace(&Uuid::nil().to_string(), "A")).collect();
        let jobs = "/registry/agents/A/jobs";
        let poll = format!("{jobs}?status=PENDING");
        assert_eq!(paths, [jobs, jobs, &poll, "/registry/results", "/registry/results", jobs]);
        let (posted, reported) = (request(1), request(4));
        let id = job_id(1, 0, 1).to_string();
        for request in [posted, reported] {
            assert!(String::from_utf8_lossy(&request.body).contains(&id), "{request:?}");
        }
    }
}
