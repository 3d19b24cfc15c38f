//! `cargo xtask bench`: how fast the hub is, as ratios that hold on every machine.
//!
//! A rate alone says more about the machine than about the hub. So the hub is measured next to a
//! bare [`echo`] of the same bodies, by the same [`load`] client, on the same cores, in alternating
//! [`rounds`]; beside the rate stands the server's CPU time per request ([`usage`]). Every server is
//! a process of its own, and several hubs can be measured in turns. The [`report`] compares the
//! [`figure`]s with the goals, and [`baseline`] with an earlier run.
//!
//! The scenarios are [`jobs`], [`send`] and [`delivery`] for the relay, [`discovery`], [`footprint`]
//! for start time and memory, [`a2a`], [`checkpoint`] and [`growth`]. [`worker`] measures our own agent runtime
//! by one requester's consecutive jobs, without an echo. [`agora`] and [`clara`] are measured next to
//! bare signature verification instead, and [`cluster`] next to a hub of one node over SQLite.

mod a2a;
mod agora;
mod arrivals;
mod baseline;
mod checkpoint;
mod clara;
#[cfg(unix)]
mod cluster;
mod components;
mod connection;
mod delivery;
mod discovery;
mod echo;
mod figure;
mod fill;
mod footprint;
mod growth;
mod hub;
mod inbox;
mod jobs;
mod load;
mod measurement;
mod message;
mod peers;
mod process;
mod relay;
mod report;
mod rounds;
mod scrape;
mod send;
mod signatures;
mod usage;
mod worker;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use baseline::Baseline;
use growth::GrowthCase;
use hub::HubBinary;
use load::Pace;
use report::BenchReport;
use rounds::{BenchOptions, Results};

/// Measure the hub next to a bare echo server, and check the goals
///
/// Hubs, echo and other servers run on this machine, each in a process and a temporary directory of
/// its own. Everything that is compared is measured in turns, several times, and the median counts.
/// `send / echo` is the hub's rate divided by that of a server that only parses and answers.
#[derive(Parser)]
#[command(name = "cargo xtask bench", version, after_help = AFTER_HELP)]
struct Args {
    /// Scenarios to measure
    #[arg(value_enum, default_values_t = [Scenario::All])]
    what: Vec<Scenario>,
    /// Program of the hub to measure; name it twice or more to compare programs in turns. Goals and
    /// saved runs are about the last. Default: the `rialto` that was built beside this program
    #[arg(long, value_name = "PATH")]
    hub: Vec<PathBuf>,
    /// Number of alternating rounds; their median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of one round in seconds
    #[arg(long, default_value_t = 4.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Connections of the job and send scenarios; the others use the middle one
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64, 256], value_parser = clap::value_parser!(u32).range(1..=4096))]
    connections: Vec<u32>,
    /// Jobs a worker fetches with one poll
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=50))]
    batch: u64,
    /// Consecutive jobs per round of the worker scenario
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Agents that messages are sent to
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    receivers: u32,
    /// Agents, jobs or messages in the large hub of the growth, discovery and cluster scenarios. The
    /// goals are about 100000 for choices and waiting jobs, and 1000000 for memory and start
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    scale: u32,
    /// What grows in the growth scenario
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = growth::ALL.map(|case| case.name))]
    grow: Vec<String>,
    /// Also open this many idle inbox streams and measure the hub's memory for each
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    streams: Option<u32>,
    /// Also stall this many readers and measure what they cost the others
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    stalled: Option<u32>,
    /// Send at this fixed rate per second instead of as fast as answers arrive
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Also deliver the same messages through Redis streams and NATS JetStream, where redis-server and
    /// nats-server are installed (delivery)
    #[arg(long)]
    peers: bool,
    /// Fail-overs of each kind in the cluster scenario
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    failovers: u32,
    /// Also print CPU time by thread, and the hub's own counters, per request
    #[arg(long)]
    components: bool,
    /// Save the figures of the last hub to a file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare the figures of the last hub with a saved file; exit 1 if one is worse
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// How much worse a figure may be than the saved one: 0.15 is 15 percent
    #[arg(long, default_value_t = 0.15)]
    tolerance: f64,
    /// Exit 1 when a goal is missed
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
How to read it: rates depend on the machine and on what else it does, so look at ratios, and on a busy
machine at CPU time per request. --compare divides figures that depend on the machine's speed by the bare
echo or verification of the same run.

Examples:
  cargo xtask bench
  cargo xtask bench send jobs --components
  cargo xtask bench send --connections 64 --stalled 1000 --streams 5000
  cargo xtask bench send jobs --hub old/rialto --hub new/rialto
  cargo xtask bench delivery --peers
  cargo xtask bench cluster --failovers 50 --scale 100000
  cargo xtask bench growth --grow choice,waiting --scale 100000
  cargo xtask bench growth --grow agents --scale 1000000
  cargo xtask bench --save baseline.json
  cargo xtask bench --compare baseline.json --tolerance 0.1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Everything below
    All,
    /// Start-up time and idle memory, and the start after kill -9 at full load
    Start,
    /// Full registry jobs against the echo
    Jobs,
    /// Relay messages against the echo
    Send,
    /// Relay messages all the way to their receivers, which acknowledge them
    Delivery,
    /// The p99 of a send beside a background checkpoint
    Checkpoint,
    /// SendMessage of A2A to a free agent, against the echo and against a server of a2a-sdk where that
    /// is installed
    A2a,
    /// Signed agora envelopes against bare signature verification, per core
    Agora,
    /// Signed clara messages against bare RSA verification, per core
    Clara,
    /// Discovery over few and many agents
    Discover,
    /// Cost of requests, memory and start with few and many agents, jobs and messages
    Growth,
    /// Consecutive jobs at an agent of `rialto agent run`'s runtime
    Worker,
    /// Three nodes over PostgreSQL against one, and one against SQLite; fail-overs. Left out where
    /// PostgreSQL is not installed
    Cluster,
    /// Be the echo server
    #[value(hide = true, name = echo::SERVE_ECHO)]
    ServeEcho,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(passed) if passed => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}; check the machine's limits: `ulimit -n`, memory and disk");
            ExitCode::FAILURE
        }
    }
}

/// Measures, prints and saves; returns whether everything that was to be checked passed.
fn run(args: &Args) -> io::Result<bool> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    if args.what.contains(&Scenario::ServeEcho) {
        return echo::serve(threads).map(|()| true);
    }
    // A wrong file name is reported before an hour of measuring, not after.
    let saved = args.compare.as_deref().map(Baseline::load).transpose()?;
    let hubs = HubBinary::all(&args.hub)?;
    let labels = hubs.iter().map(|hub| hub.label.clone()).collect();
    let mut report = BenchReport::new(labels, measure(args, hubs, threads)?);
    report.components = args.components;
    report.comparison =
        saved.map(|saved| saved.compare(&report.figures, report.judged_hub(), args.tolerance));
    println!("{}", if args.json { report.to_json()? } else { report.to_string() });
    if let Some(file) = &args.save {
        Baseline::of(&report.figures, report.judged_hub()).save(file)?;
    }
    let has_regression = report.comparison.as_ref().is_some_and(|one| one.has_regression());
    Ok(!has_regression && (!args.check || report.all_goals_met()))
}

fn measure(args: &Args, hubs: Vec<HubBinary>, threads: usize) -> io::Result<Results> {
    let mut connections: Vec<_> = args.connections.iter().map(|count| *count as usize).collect();
    connections.sort_unstable();
    connections.dedup();
    let options = &BenchOptions {
        hubs,
        rounds: args.rounds as usize,
        connections,
        duration: Duration::from_secs_f64(args.seconds),
        threads,
        pace: args.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
        components: args.components,
        receivers: args.receivers as usize,
    };
    let includes = |what| args.what.iter().any(|one| [Scenario::All, what].contains(one));
    let mut results = Results::default();
    if includes(Scenario::Start) {
        results.add(footprint::measure_start(options)?);
    }
    if includes(Scenario::Jobs) {
        results.add(jobs::measure(options, args.batch)?);
    }
    if includes(Scenario::Worker) {
        results.add(worker::measure(options, args.jobs)?);
    }
    if includes(Scenario::Discover) {
        results.add(discovery::measure(options, args.scale as usize)?);
    }
    if includes(Scenario::A2a) {
        results.add(a2a::measure(options)?);
    }
    if includes(Scenario::Agora) {
        results.add(agora::measure(options)?);
    }
    if includes(Scenario::Clara) {
        results.add(clara::measure(options)?);
    }
    if includes(Scenario::Send) {
        results.add(send::measure(options)?);
        if let Some(count) = args.streams {
            results.add(footprint::measure_streams(options, count as usize)?);
        }
        if let Some(count) = args.stalled {
            results.add(send::measure_stalled(options, count as usize)?);
        }
    }
    if includes(Scenario::Delivery) {
        results.add(delivery::measure(options, args.peers)?);
    }
    if includes(Scenario::Checkpoint) {
        results.add(checkpoint::measure(options)?);
    }
    if includes(Scenario::Growth) {
        let is_chosen = |case: &GrowthCase| {
            args.grow.is_empty() || args.grow.iter().any(|name| name == case.name)
        };
        let cases: Vec<_> = growth::ALL.into_iter().filter(is_chosen).collect();
        results.add(growth::measure(options, &cases, args.scale as usize)?);
    }
    if includes(Scenario::Cluster) {
        results.add(measure_cluster(options, args)?);
    }
    Ok(results)
}

#[cfg(unix)]
fn measure_cluster(options: &BenchOptions, args: &Args) -> io::Result<Results> {
    let cluster = cluster::ClusterOptions {
        batch: args.batch,
        failovers: args.failovers as usize,
        agents: args.scale as usize,
    };
    cluster::measure(options, cluster)
}

#[cfg(not(unix))]
fn measure_cluster(_: &BenchOptions, _: &Args) -> io::Result<Results> {
    let note = "A private PostgreSQL cannot be started on this system, so the cluster was left out";
    Ok(Results { notes: vec![note.to_owned()], ..Results::default() })
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let is_valid = (0.05..=3_600.0).contains(&seconds);
    is_valid.then_some(seconds).ok_or_else(|| "must be from 0.05 to 3600".to_owned())
}
