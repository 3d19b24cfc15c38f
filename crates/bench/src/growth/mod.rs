//! Benchmarks growth: the same requests on a hub with few and on a hub with many agents, open jobs,
//! waiting jobs, finished jobs or stored messages. Nothing should cost more because there is more of it.
//!
//! The ratio is one of CPU time per request, which shows a linear search even where a sync takes most
//! of the wall time. Memory and start time of both hubs are compared too.

mod cases;

use std::io;
use std::thread;
use std::time::Duration;

use crate::echo::EchoProcess;
use crate::figure::Figure;
use crate::hub::{BenchHub, Ending, HubBinary};
use crate::load::LoadPlan;
use crate::measurement::Measurement;
use crate::relay::RelayAgent;
use crate::rounds::{BenchOptions, Benchmark, Results, run_interleaved};

pub use cases::{ALL, GrowthCase};

/// Things in the small hub, where there are any.
const FEW: usize = 100;
/// Starts that are measured at most.
const STARTS_MAX: usize = 3;
/// Time until a hub has written behind what it was filled with, or released what it started with.
const SETTLE: Duration = Duration::from_millis(500);
/// Start times are given for this many.
const MILLION: f64 = 1e6;

/// One kind of request whose cost is compared.
pub struct GrowthLoad {
    /// What it does, for example `register an agent`.
    pub name: &'static str,
    /// Goal for the ratio.
    pub target: Option<f64>,
    /// Over how many connections it is sent.
    pub connections: Connections,
    /// Sends it.
    pub run: fn(&FilledHub, &LoadPlan) -> io::Result<Measurement>,
}

/// Over how many connections a load is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// One, so that nothing waits for anything else.
    One,
    /// As many as the other scenarios use.
    Middle,
}

/// A hub with many things in it.
pub struct FilledHub {
    pub hub: BenchHub,
    count: usize,
    /// Senders of messages.
    senders: Vec<RelayAgent>,
}

/// Measures all cases, one after the other, with `many` things in the large hub.
pub fn measure(options: &BenchOptions, cases: &[GrowthCase], many: usize) -> io::Result<Results> {
    let echo = EchoProcess::start()?;
    let mut results = Results::default();
    for case in cases {
        results.add(measure_case(options, case, many, &echo)?);
    }
    Ok(results)
}

fn measure_case(
    options: &BenchOptions,
    case: &GrowthCase,
    many: usize,
    echo: &EchoProcess,
) -> io::Result<Results> {
    let few = if case.compares_with_none { 0 } else { FEW.min(many) };
    let start = |binary| {
        let few = FilledHub::start(options, case, binary, few)?;
        Ok::<_, io::Error>([few, FilledHub::start(options, case, binary, many)?])
    };
    let mut hubs = options.hubs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    thread::sleep(SETTLE);

    let echo_plan = options.plan(echo.target(), options.middle_connections());
    let mut benchmarks =
        vec![Benchmark::new("echo of a job", move |_| cases::run_echo(&echo_plan))];
    for load in case.loads {
        for filled in hubs.iter().flatten() {
            let connections = match load.connections {
                Connections::One => 1,
                Connections::Middle => options.middle_connections(),
            };
            let plan = options.plan(filled.hub.target(), connections);
            let name = format!("{}, {} {}", load.name, filled.count, case.things);
            let run = move |_| (load.run)(filled, &plan);
            benchmarks.push(Benchmark::new(name, run).of_hub(&filled.hub.label));
        }
    }
    let series = run_interleaved(options.rounds, benchmarks)?;
    let echo_us = series[0].median(Measurement::cpu_us);

    let mut figures = Vec::new();
    let pairs = series[1..].chunks(2);
    let loads = case.loads.iter().flat_map(|load| options.hubs.iter().map(move |_| load));
    for (load, pair) in loads.zip(pairs) {
        let name = format!("{}: {many} / {few} {}", load.name, case.things);
        let ratio = Figure::lower(name, pair[1].ratios_to(&pair[0], cost), "×");
        figures.push(ratio.with_target(load.target).of_hub(&pair[1].hub));
    }
    for (binary, pair) in options.hubs.iter().zip(&mut hubs) {
        let (mut seconds, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds.min(STARTS_MAX) {
            seconds.push(start_per_million(pair)?);
            thread::sleep(SETTLE);
            bytes.push(memory_per_thing(pair));
        }
        let name = format!("memory per {}, {many} of them", case.thing);
        let memory = Figure::lower(name, bytes, "bytes").with_target(case.memory_target);
        let name = format!("start per million {}, from {many}", case.things);
        let start = Figure::lower(name, seconds, "s").with_target(case.start_target);
        let start = start.with_reference(echo_us);
        figures.extend([memory, start].map(|figure| figure.of_hub(&binary.label)));
    }
    Ok(Results { series, figures, notes: Vec::new() })
}

/// CPU time per request, or the median latency where the system does not report CPU time.
fn cost(round: &Measurement) -> f64 {
    let cpu = round.cpu_us();
    if cpu.is_finite() { cpu } else { round.latency.p50_us }
}

/// Memory of one of them in a hub that has just been started, which has nothing else to keep.
fn memory_per_thing([few, many]: &[FilledHub; 2]) -> f64 {
    let grown = many.hub.rss_bytes().zip(few.hub.rss_bytes());
    let grown = grown.map_or(f64::NAN, |(large, small)| large as f64 - small as f64);
    grown / (many.count - few.count) as f64
}

/// Seconds that a million more things would add to a start, if all took as long as these.
fn start_per_million([few, many]: &mut [FilledHub; 2]) -> io::Result<f64> {
    let (short, long) = (few.hub.restart(Ending::Clean)?, many.hub.restart(Ending::Clean)?);
    let added = long.as_secs_f64() - short.as_secs_f64();
    Ok(added.max(0.0) * MILLION / (many.count - few.count) as f64)
}

impl FilledHub {
    fn start(
        options: &BenchOptions,
        case: &GrowthCase,
        binary: &HubBinary,
        count: usize,
    ) -> io::Result<Self> {
        let hub = BenchHub::start(binary, case.settings)?;
        let senders = options.middle_connections();
        let mut filled = Self { hub, count, senders: Vec::new() };
        (case.fill)(&mut filled, senders)?;
        Ok(filled)
    }
}
