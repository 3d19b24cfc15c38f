//! Sends, jobs and reads at one and at three nodes over PostgreSQL, next to a hub over SQLite.
//!
//! Reads as is are `GET /v1/agents?limit=1`, and strict ones `GET /v1/agents/{id}`: both answer with
//! one agent, without a key. At a hub over SQLite, where no read is strict, the ratio of their rates
//! shows how alike they are.

use std::io;
use std::sync::Arc;

use super::database::{Database, Installation};
use super::nodes::Nodes;
use crate::connection::RawRequest;
use crate::figure::Figure;
use crate::hub::{BenchHub, HubBinary};
use crate::jobs::{JobPair, register_pairs, run_jobs};
use crate::load::{self, LoadPlan, Pace};
use crate::measurement::Measurement;
use crate::relay::{RelayAgents, RelayFixture};
use crate::rounds::{BenchOptions, Benchmark, Results, Series, rate, run_interleaved};

/// Nodes of the hub that is compared with one of a single node.
const NODES: usize = 3;

/// Goals.
const SEND: f64 = 0.5;
const SEND_SPREAD: f64 = 1.0;
const SEND_SPREAD_TO_SQLITE: f64 = 0.45;
const SEND_AT_FOLLOWER: f64 = 1.5;
const STREAM: f64 = 2.0;
const READ_AT_FOLLOWER: f64 = 0.95;
const STRICT: f64 = 0.5;
const JOB: f64 = 0.5;

/// What is measured in each round, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    SendSqlite,
    SendOne,
    SendSpread,
    JobSqlite,
    JobOne,
    SendAtWriter,
    SendAtFollower,
    StreamAtWriter,
    StreamFromWriter,
    StreamAtFollower,
    StreamFromFollower,
    AsIsSqlite,
    StrictSqlite,
    AsIsAtWriter,
    AsIsAtFollower,
    StrictAtWriter,
    StrictAtFollower,
}

/// The hubs, their agents, and how they are measured.
struct Hubs<'a> {
    sqlite: &'a RelayFixture,
    one: &'a RelayFixture,
    nodes: &'a Nodes,
    /// Agents of the hub of three nodes.
    agents: &'a RelayAgents,
    job_pairs: [Arc<Vec<JobPair>>; 2],
    options: &'a BenchOptions,
    batch: u64,
}

/// Measures everything in alternating rounds.
pub fn measure(
    options: &BenchOptions,
    binary: &HubBinary,
    postgres: &Installation,
    batch: u64,
) -> io::Result<Results> {
    // At full speed, whatever pace the others have: here rates are compared.
    let options = &BenchOptions { pace: Pace::Closed, ..options.clone() };
    let database = Database::start(postgres)?;
    let connections = options.middle_connections();
    let fixture = |hub| RelayFixture::at(hub, connections, options.receivers);
    let sqlite = &fixture(BenchHub::start(binary, &[("store.backend", "sqlite")])?)?;
    let one = &fixture(BenchHub::start_node(binary, &database.new_hub("one"), None)?)?;
    let nodes = &Nodes::start(binary, &database.new_hub("three"), NODES)?;
    let (writer, _) = nodes.by_role()?;
    let agents = &RelayAgents::register(writer.address, connections, options.receivers)?;
    let pairs = |hub| register_pairs(hub, "bench", connections).map(Arc::new);
    let job_pairs = [pairs(&sqlite.hub)?, pairs(&one.hub)?];
    let hubs = &Hubs { sqlite, one, nodes, agents, job_pairs, options, batch };

    let benchmarks = Part::ALL
        .map(|part| Benchmark::new(part.name(), move |_| hubs.measure(part)).of_hub(&binary.label));
    let series = run_interleaved(options.rounds, benchmarks.into())?;
    let figures = figures(&series, connections, batch);
    let figures = figures.into_iter().map(|figure| figure.of_hub(&binary.label)).collect();
    Ok(Results { series, figures, notes: Vec::new() })
}

impl Hubs<'_> {
    fn measure(&self, part: Part) -> io::Result<Measurement> {
        let (writer, followers) = self.nodes.by_role()?;
        let (near, far) = (followers[0], followers[1]);
        let plan =
            |hub: &BenchHub| self.options.plan(hub.target(), self.options.middle_connections());
        let single = |hub: &BenchHub| self.options.plan(hub.target(), 1);
        let [sqlite_pairs, one_pairs] = &self.job_pairs;
        let jobs = |hub, pairs: &Arc<_>| run_jobs(&plan(hub), Arc::clone(pairs), self.batch);
        let send = |hub| Ok(self.agents.send_timed(&single(hub))?.measured);
        let stream = |from, to: &BenchHub| self.agents.send_and_receive(&single(from), to.address);
        let names = |agents: &RelayAgents| {
            agents.senders.iter().map(|agent| agent.id.clone()).collect::<Vec<_>>()
        };
        match part {
            Part::SendSqlite => self.sqlite.send(&plan(&self.sqlite.hub)),
            Part::SendOne => self.one.send(&plan(&self.one.hub)),
            Part::SendSpread => {
                let sent = self.agents.send_spread(&plan(writer), &self.nodes.targets())?;
                Ok(sent.measured)
            }
            Part::JobSqlite => jobs(&self.sqlite.hub, sqlite_pairs),
            Part::JobOne => jobs(&self.one.hub, one_pairs),
            Part::SendAtWriter => send(writer),
            Part::SendAtFollower => send(near),
            Part::StreamAtWriter => stream(writer, writer),
            Part::StreamFromWriter => stream(writer, near),
            Part::StreamAtFollower => stream(near, near),
            Part::StreamFromFollower => stream(near, far),
            Part::AsIsSqlite => read_as_is(&plan(&self.sqlite.hub)),
            Part::StrictSqlite => {
                read_strictly(&plan(&self.sqlite.hub), names(&self.sqlite.agents))
            }
            Part::AsIsAtWriter => read_as_is(&plan(writer)),
            Part::AsIsAtFollower => read_as_is(&plan(near)),
            Part::StrictAtWriter => read_strictly(&plan(writer), names(self.agents)),
            Part::StrictAtFollower => read_strictly(&plan(near), names(self.agents)),
        }
    }
}

/// Reads a list of one agent.
fn read_as_is(plan: &LoadPlan) -> io::Result<Measurement> {
    let request = RawRequest::get(plan.address, "/v1/agents?limit=1");
    load::run(
        plan,
        move |_, _| request.clone(),
        |status, body| status.is_success() && body.len() > 100,
    )
}

/// Reads single agents by name.
fn read_strictly(plan: &LoadPlan, names: Vec<String>) -> io::Result<Measurement> {
    let request = |name: &String| RawRequest::get(plan.address, &format!("/v1/agents/{name}"));
    let requests: Vec<_> = names.iter().map(request).collect();
    let request_for = move |at: usize, _| requests[at % requests.len()].clone();
    load::run(plan, request_for, |status, body| status.is_success() && body.len() > 100)
}

impl Part {
    const ALL: [Self; 17] = [
        Self::SendSqlite,
        Self::SendOne,
        Self::SendSpread,
        Self::JobSqlite,
        Self::JobOne,
        Self::SendAtWriter,
        Self::SendAtFollower,
        Self::StreamAtWriter,
        Self::StreamFromWriter,
        Self::StreamAtFollower,
        Self::StreamFromFollower,
        Self::AsIsSqlite,
        Self::StrictSqlite,
        Self::AsIsAtWriter,
        Self::AsIsAtFollower,
        Self::StrictAtWriter,
        Self::StrictAtFollower,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::SendSqlite => "send, SQLite",
            Self::SendOne => "send, PostgreSQL, one node",
            Self::SendSpread => "send, PostgreSQL, three nodes",
            Self::JobSqlite => "registry job (requests), SQLite",
            Self::JobOne => "registry job (requests), PostgreSQL, one node",
            Self::SendAtWriter => "send at the writer",
            Self::SendAtFollower => "send at a follower",
            Self::StreamAtWriter => "sender to stream, both at the writer",
            Self::StreamFromWriter => "sender at the writer to stream at a follower",
            Self::StreamAtFollower => "sender to stream, both at a follower",
            Self::StreamFromFollower => "sender at a follower to stream at another",
            Self::AsIsSqlite => "read of a list of one agent, SQLite",
            Self::StrictSqlite => "read of an agent by name, SQLite",
            Self::AsIsAtWriter => "read as is at the writer",
            Self::AsIsAtFollower => "read as is at a follower",
            Self::StrictAtWriter => "strict read at the writer",
            Self::StrictAtFollower => "strict read at a follower",
        }
    }
}

fn figures(series: &[Series], connections: usize, batch: u64) -> Vec<Figure> {
    let of = |part: Part| &series[Part::ALL.iter().position(|one| *one == part).unwrap_or(0)];
    let rates = |part, other| of(part).ratios_to(of(other), rate);
    let medians = |part, other| of(part).ratios_to(of(other), |round| round.latency.p50_us);
    let higher = |name: &str, part, other| {
        Figure::higher(format!("{name} ({connections} connections)"), rates(part, other), "×")
    };
    let lower = |name: &str, part, other| {
        Figure::lower(format!("{name} (1 connection, p50)"), medians(part, other), "×")
    };
    let job = format!(
        "full registry job, PostgreSQL / SQLite ({connections} connections, {batch} a poll)"
    );
    vec![
        higher("send, PostgreSQL / SQLite", Part::SendOne, Part::SendSqlite).with_target(SEND),
        higher("send, three nodes / one on PostgreSQL", Part::SendSpread, Part::SendOne)
            .with_target(SEND_SPREAD),
        higher("send, three nodes / SQLite", Part::SendSpread, Part::SendSqlite)
            .with_target(SEND_SPREAD_TO_SQLITE),
        lower("send, follower / writer", Part::SendAtFollower, Part::SendAtWriter)
            .with_target(SEND_AT_FOLLOWER),
        lower(
            "sender to stream, writer to follower / at the writer",
            Part::StreamFromWriter,
            Part::StreamAtWriter,
        )
        .with_target(STREAM),
        lower(
            "sender to stream, two followers / one",
            Part::StreamFromFollower,
            Part::StreamAtFollower,
        )
        .with_target(STREAM),
        higher("read as is, follower / writer", Part::AsIsAtFollower, Part::AsIsAtWriter)
            .with_target(READ_AT_FOLLOWER),
        higher("strict read, follower / writer", Part::StrictAtFollower, Part::StrictAtWriter)
            .with_target(READ_AT_FOLLOWER),
        higher("strict read / as is, writer", Part::StrictAtWriter, Part::AsIsAtWriter)
            .with_target(STRICT),
        higher("strict read / as is, follower", Part::StrictAtFollower, Part::AsIsAtFollower)
            .with_target(STRICT),
        higher("the same reads, SQLite", Part::StrictSqlite, Part::AsIsSqlite),
        Figure::higher(job, rates(Part::JobOne, Part::JobSqlite), "×").with_target(JOB),
    ]
}
