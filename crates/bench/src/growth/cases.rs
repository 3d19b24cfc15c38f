//! What grows, how a hub is filled with it, and which requests are measured.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::StatusCode;
use rialto_client::clara::{Action, MarketClient, Seed, Server, SignedItem, Wallet};
use serde_json::json;
use uuid::Uuid;

use super::{Connections, FilledHub, GrowthLoad};
use crate::clara::{check_assigned, owner_of, request as item_request};
use crate::connection::RawRequest;
use crate::fill::send_all;
use crate::hub::{BenchAgent, BenchHub, NewAgent, json_headers};
use crate::jobs::{JobPair, body, job_id, next_run, register_pairs, run_jobs};
use crate::load::{self, LoadPlan, Request};
use crate::measurement::Measurement;
use crate::message::Messages;
use crate::relay::register_agents;

/// Open jobs of one requester: a hub allows ten thousand.
const JOBS_PER_REQUESTER: usize = 5_000;
/// Jobs a worker fetches with one poll.
const BATCH: u64 = 8;
/// Goal: at most twice as expensive.
const TWICE: Option<f64> = Some(2.0);
/// The topic of tasks that are chosen for, and of tasks that no agent does.
const TOPIC: &str = "tweet";
const UNSERVED_TOPIC: &str = "discord";

/// What grows.
pub struct GrowthCase {
    pub name: &'static str,
    /// One of them, and several.
    pub thing: &'static str,
    pub things: &'static str,
    pub settings: &'static [(&'static str, &'static str)],
    /// Whether the small hub has none of them.
    pub compares_with_none: bool,
    /// Fills a hub; the number is that of senders, if there are any.
    pub fill: fn(&mut FilledHub, usize) -> io::Result<()>,
    pub loads: &'static [GrowthLoad],
    /// Goals for bytes of memory, and for seconds of a start per million.
    pub memory_target: Option<f64>,
    pub start_target: Option<f64>,
}

/// Registering an agent. Only its cost beside waiting jobs has a goal.
const fn register(target: Option<f64>) -> GrowthLoad {
    let run = run_registrations;
    GrowthLoad { name: "register an agent", target, connections: Connections::One, run }
}

const fn choose(
    name: &'static str,
    run: fn(&FilledHub, &LoadPlan) -> io::Result<Measurement>,
) -> GrowthLoad {
    GrowthLoad { name, target: TWICE, connections: Connections::One, run }
}

const FULL_JOB: GrowthLoad = GrowthLoad {
    name: "full job",
    target: None,
    connections: Connections::Middle,
    run: run_full_jobs,
};

/// Everything that grows.
pub const ALL: [GrowthCase; 6] = [
    GrowthCase {
        name: "agents",
        thing: "idle agent",
        things: "agents",
        settings: &[],
        compares_with_none: false,
        fill: |filled, _| filled.hub.register_crowd(filled.count, |_| ("idle".to_owned(), 1)),
        loads: &[register(None)],
        memory_target: Some(1_024.0),
        start_target: Some(2.0),
    },
    GrowthCase {
        name: "choice",
        thing: "candidate",
        things: "candidates",
        settings: &[],
        compares_with_none: false,
        fill: |filled, _| {
            let skill = |at: usize| (TOPIC.to_owned(), 1 + (at % 50) as u32);
            filled.hub.register_crowd(filled.count, skill)
        },
        loads: &[
            choose("choose the best", run_best),
            choose("choose round robin", |filled, plan| run_tasks(filled, plan, "roundRobin")),
            choose("choose the cheapest", |filled, plan| run_tasks(filled, plan, "cheapest")),
            choose("choose the least occupied", |filled, plan| {
                run_tasks(filled, plan, "leastOccupied")
            }),
        ],
        memory_target: None,
        start_target: None,
    },
    GrowthCase {
        name: "open",
        thing: "open job",
        things: "open jobs",
        settings: &[],
        compares_with_none: false,
        fill: |filled, _| open_jobs(filled).map(drop),
        loads: &[FULL_JOB],
        memory_target: None,
        start_target: None,
    },
    GrowthCase {
        name: "waiting",
        thing: "waiting job",
        things: "waiting jobs",
        settings: &[("clara.queue_unmatched", "true")],
        compares_with_none: true,
        fill: |filled, _| queue_tasks(filled),
        loads: &[register(TWICE)],
        memory_target: None,
        start_target: None,
    },
    GrowthCase {
        name: "finished",
        thing: "finished job",
        things: "finished jobs",
        settings: &[],
        compares_with_none: false,
        fill: |filled, _| finish_jobs(filled),
        loads: &[FULL_JOB],
        memory_target: None,
        start_target: None,
    },
    GrowthCase {
        name: "stored",
        thing: "stored message",
        things: "stored messages",
        settings: &[],
        compares_with_none: false,
        fill: store_messages,
        loads: &[GrowthLoad {
            name: "send",
            target: Some(1.25),
            connections: Connections::Middle,
            run: run_sends,
        }],
        memory_target: None,
        start_target: None,
    },
];

fn is_success(status: StatusCode, _: &[u8]) -> Option<()> {
    status.is_success().then_some(())
}

/// The same jobs at an echo, to know how fast the machine is.
pub fn run_echo(plan: &LoadPlan) -> io::Result<Measurement> {
    let agent = || BenchAgent { id: Uuid::nil(), key: String::new() };
    let pair = JobPair { requester: agent(), worker: agent(), skill: "echo".to_owned() };
    let run = next_run();
    let request_for =
        move |at: usize, n: u64| Request::post("/registry/jobs", body(job_id(run, at, n), &pair));
    load::run(plan, request_for, |status, _: &[u8]| status.is_success())
}

/// Registers agents with a skill that no job needs.
fn run_registrations(filled: &FilledHub, plan: &LoadPlan) -> io::Result<Measurement> {
    let (hub, run) = (filled.hub.address, next_run());
    let request_for = move |at: usize, n: u64| {
        NewAgent::worker(format!("new-{run}-{at}-{n}"), "unneeded", 1).request(hub)
    };
    load::run(plan, request_for, |status, _: &[u8]| status.is_success())
}

/// Opens jobs for the agent with the best reputation.
fn run_best(filled: &FilledHub, plan: &LoadPlan) -> io::Result<Measurement> {
    let (hub, owner) = (filled.hub.address, format!("asks-{}", next_run()));
    let requester = filled.hub.register_agents(&[NewAgent::requester(&owner)])?.remove(0);
    filled.hub.grant_credits(&[owner])?;
    let headers = json_headers(&requester.key);
    let request_for = move |at: usize, n: u64| {
        let input = json!({"connection": at, "n": n});
        let body = json!({"skill": TOPIC, "input": input, "budget": 1, "select": "best"});
        RawRequest::post(hub, "/v1/jobs", &headers, body.to_string().as_bytes())
    };
    load::run(plan, request_for, |status, _: &[u8]| status.is_success())
}

/// Registers tasks that are matched by a strategy. A task of this run is looked up afterwards,
/// because a message is accepted even if no task comes of it.
fn run_tasks(
    filled: &FilledHub,
    plan: &LoadPlan,
    strategy: &'static str,
) -> io::Result<Measurement> {
    let client = requesters(&filled.hub, 1)?.remove(0);
    let first = sign_task(&client, TOPIC, strategy)?;
    let hub = plan.address;
    send_all(hub, 1, |_| item_request(hub, &first), is_success)?;
    check_assigned(&client, &first.id)?;
    let request_for = move |_, _| {
        let item = sign_task(&client, TOPIC, strategy);
        item_request(hub, &item.expect("signing worked before with the same input"))
    };
    load::run(plan, request_for, |status, _: &[u8]| status == StatusCode::ACCEPTED)
}

fn run_full_jobs(filled: &FilledHub, plan: &LoadPlan) -> io::Result<Measurement> {
    let prefix = format!("run-{}", next_run());
    let pairs = register_pairs(&filled.hub, &prefix, plan.connections)?;
    run_jobs(plan, Arc::new(pairs), BATCH)
}

fn run_sends(filled: &FilledHub, plan: &LoadPlan) -> io::Result<Measurement> {
    let receivers = register_agents(plan.address, &format!("to-{}", next_run()), 16)?;
    let messages = Messages::new(plan.address, &filled.senders, &receivers, 0);
    let request_for = move |at: usize, n: u64| messages.nth(at, n);
    load::run(plan, request_for, |status, _: &[u8]| status == StatusCode::ACCEPTED)
}

/// Requesters of tasks, with credits.
fn requesters(hub: &BenchHub, count: usize) -> io::Result<Vec<MarketClient>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = runtime.block_on(Server::discover(&format!("http://{}", hub.address)));
    let server = server.map_err(io::Error::other)?;
    let client = |_| {
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&next_run().to_be_bytes());
        MarketClient::new(Wallet::new(&Seed::from_bytes(seed)), server.clone())
    };
    let clients: Vec<_> = (0..count).map(client).collect();
    hub.grant_credits(&clients.iter().map(owner_of).collect::<Vec<_>>())?;
    Ok(clients)
}

fn sign_task(client: &MarketClient, topic: &str, strategy: &str) -> io::Result<SignedItem> {
    let tags = [
        ("RedStone-Agent-Topic", topic),
        ("RedStone-Agent-Reward", "1"),
        ("RedStone-Agent-Matching", strategy),
    ];
    client.sign(Action::RegisterTask, &tags, r#"{"n":1}"#).map_err(io::Error::other)
}

/// Fills the queue with tasks that no agent does.
fn queue_tasks(filled: &FilledHub) -> io::Result<()> {
    let clients = requesters(&filled.hub, filled.count.div_ceil(JOBS_PER_REQUESTER))?;
    let hub = filled.hub.address;
    let request_for = |number: usize| {
        let item = sign_task(&clients[number % clients.len()], UNSERVED_TOPIC, "roundRobin");
        item_request(hub, &item.expect("tags and payload are constants that can be signed"))
    };
    send_all(hub, filled.count, request_for, is_success)?;
    let queued = waiting_jobs(hub)?;
    if queued < filled.count as f64 {
        let count = filled.count;
        return Err(io::Error::other(format!("{queued} of {count} tasks are waiting")));
    }
    Ok(())
}

/// How many jobs wait for a worker, as the hub reports it.
fn waiting_jobs(hub: SocketAddr) -> io::Result<f64> {
    let metrics = crate::hub::get(hub, "/metrics")?;
    let line = metrics.lines().find_map(|line| line.strip_prefix("rialto_jobs_queued "));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| io::Error::other("the hub does not report how many jobs wait"))
}

/// Opens jobs at workers that never work, and returns the pair of each.
fn open_jobs(filled: &FilledHub) -> io::Result<(u64, Vec<JobPair>)> {
    let pairs = register_pairs(&filled.hub, "fill", filled.count.div_ceil(JOBS_PER_REQUESTER))?;
    let (hub, run) = (filled.hub.address, next_run());
    let request_for = |number: usize| {
        let pair = &pairs[number % pairs.len()];
        let path = format!("/registry/agents/{}/jobs", pair.worker.id);
        let body = body(job_id(run, 0, number as u64), pair);
        RawRequest::post(hub, &path, &json_headers(&pair.requester.key), &body)
    };
    send_all(hub, filled.count, request_for, is_success)?;
    Ok((run, pairs))
}

fn finish_jobs(filled: &FilledHub) -> io::Result<()> {
    let (run, pairs) = open_jobs(filled)?;
    let hub = filled.hub.address;
    let request_for = |number: usize| {
        let worker = &pairs[number % pairs.len()].worker;
        let result = json!({
            "job_id": job_id(run, 0, number as u64),
            "agent_id": worker.id,
            "status": "SUCCESS",
            "output_data": {"value": 42},
            "execution_cost": 0.01,
        });
        let headers = json_headers(&worker.key);
        RawRequest::post(hub, "/registry/results", &headers, result.to_string().as_bytes())
    };
    send_all(hub, filled.count, request_for, is_success).map(drop)
}

fn store_messages(filled: &mut FilledHub, senders: usize) -> io::Result<()> {
    let hub = filled.hub.address;
    filled.senders = register_agents(hub, "from", senders)?;
    let receivers = register_agents(hub, "away", senders)?;
    let messages = Messages::new(hub, &filled.senders, &receivers, 0);
    let request_for = |number: usize| messages.nth(number % senders, (number / senders) as u64);
    send_all(hub, filled.count, request_for, is_success).map(drop)
}
