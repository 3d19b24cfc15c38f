//! `cargo xtask bench`: how fast the hub is, as ratios that hold on every machine.
//!
//! A rate alone says more about the machine than about the hub. So the hub is measured next to a
//! bare [`echo`] of the same bodies, by the same [`load`] client, on the same cores, in alternating
//! [`rounds`]. The [`report`] compares the ratios with the goals. The scenarios are [`jobs`],
//! [`discovery`], [`send`] for the relay, and [`footprint`] for start time and memory.
//! [`worker`] measures our own agent runtime by one requester's consecutive jobs, without an echo.
//! [`agora`] and [`clara`] are measured next to bare signature verification instead.

mod agora;
mod clara;
mod connection;
mod discovery;
mod echo;
mod footprint;
mod hub;
mod inbox;
mod jobs;
mod load;
mod measurement;
mod message;
mod relay;
mod report;
mod rounds;
mod send;
mod signatures;
mod usage;
mod worker;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use load::Pace;
use report::BenchReport;
use rounds::{BenchOptions, Results};

/// Measure the hub next to a bare echo server, and check the goals
#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    version,
    after_help = "Examples:\n  cargo xtask bench\n  cargo xtask bench jobs --rounds 7 --connections 256\n  cargo xtask bench send --stored 10000000 --streams 5000 --stalled 1000\n  cargo xtask bench discover --agents 100000 --json\n  cargo xtask bench agora --rounds 3 --connections 32\n  cargo xtask bench clara --rounds 3\n  cargo xtask bench worker --rounds 3 --jobs 100"
)]
struct Args {
    /// Scenario to measure
    #[arg(value_enum, default_value_t = BenchScenario::All)]
    what: BenchScenario,
    /// Number of alternating rounds; the median of their ratios counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Length of one round in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections of the job and send scenarios; messages are also sent over four times as many
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Jobs a worker fetches with one poll
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=50))]
    batch: u64,
    /// Consecutive jobs per round of the worker scenario
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// Agents that messages are sent to
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    receivers: u32,
    /// Also send on a hub that already stores this many messages
    #[arg(long, value_name = "MESSAGES")]
    stored: Option<u64>,
    /// Also open this many idle inbox streams and measure the hub's memory for each
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    streams: Option<u32>,
    /// Also stall this many readers and measure what they cost the others
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    stalled: Option<u32>,
    /// Number of agents in the large discovery hub
    #[arg(long, default_value_t = 1_000_000)]
    agents: usize,
    /// Send at this fixed rate per second instead of as fast as answers arrive
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Exit 1 when a goal is missed
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchScenario {
    All,
    /// Full registry jobs against the echo
    Jobs,
    /// Relay messages against the echo, and all the way to the receivers
    Send,
    /// Signed agora envelopes against bare signature verification, per core
    Agora,
    /// Signed clara messages against bare RSA verification, per core
    Clara,
    /// Discovery over few and many agents
    Discover,
    /// Start-up time and idle memory
    Start,
    /// Consecutive jobs at an agent of `rialto agent run`'s runtime
    Worker,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let printed = measure(&args).and_then(|report| {
        let text = if args.json { report.to_json()? } else { report.to_string() };
        println!("{text}");
        Ok(report)
    });
    match printed {
        Ok(report) if args.check && !report.all_goals_met() => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}; check the machine's limits: `ulimit -n`, memory and disk");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> std::io::Result<BenchReport> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let options = &BenchOptions {
        rounds: args.rounds,
        connections: args.connections,
        seconds: args.seconds,
        threads,
        batch: args.batch,
        pace: args.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
    };
    let includes = |what| args.what == BenchScenario::All || args.what == what;
    let mut results: Vec<Results> = Vec::new();
    if includes(BenchScenario::Start) {
        results.push((Vec::new(), footprint::measure_start(args.rounds)?));
    }
    if includes(BenchScenario::Jobs) {
        results.push(jobs::measure(options)?);
    }
    if includes(BenchScenario::Worker) {
        results.push(worker::measure(args.rounds, threads, args.jobs)?);
    }
    if includes(BenchScenario::Discover) {
        results.push(discovery::measure(options, args.agents)?);
    }
    if includes(BenchScenario::Agora) {
        results.push(agora::measure(options)?);
    }
    if includes(BenchScenario::Clara) {
        results.push(clara::measure(options)?);
    }
    if includes(BenchScenario::Send) {
        let receivers = args.receivers as usize;
        results.push(send::measure(options, receivers)?);
        if let Some(messages) = args.stored {
            results.push(send::measure_stored(options, receivers, messages)?);
        }
        if let Some(count) = args.streams {
            results.push((Vec::new(), vec![footprint::measure_streams(count as usize)?]));
        }
        if let Some(count) = args.stalled {
            results.push(send::measure_stalled(options, receivers, count as usize)?);
        }
    }
    let (series, goals): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    Ok(BenchReport::new(series.concat(), goals.concat()))
}
