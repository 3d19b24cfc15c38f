//! Benchmarks a hub's start and memory: on a small store, after it was killed at full load, and with
//! many open inboxes.

use std::io;
use std::thread;
use std::time::Duration;

use crate::echo::EchoProcess;
use crate::figure::Figure;
use crate::hub::{BenchHub, Ending, HubBinary};
use crate::inbox::open_inboxes;
use crate::load::{LoadPlan, Pace};
use crate::measurement::Measurement;
use crate::relay::{RelayFixture, register_agents};
use crate::rounds::{BenchOptions, Benchmark, Results, run_interleaved};

/// Goal: ready within this many milliseconds.
const READY_MS: f64 = 150.0;
/// Goal: ready within this many milliseconds after a kill at full load.
const READY_AFTER_KILL_MS: f64 = 300.0;
/// Goal: idle memory of at most this many megabytes.
const IDLE_MB: f64 = 60.0;
/// Goal: kibibytes per idle stream.
const STREAM_KIB: f64 = 20.0;
/// Starts that are measured at least.
const STARTS_MIN: usize = 3;
/// Time until memory that was only needed for starting or opening is released.
const SETTLE: Duration = Duration::from_secs(2);
const SETTLE_START: Duration = Duration::from_millis(500);

/// Starts each hub several times on a small store, and after it was killed at full load.
pub fn measure_start(options: &BenchOptions) -> io::Result<Results> {
    // Start times depend on the machine, so the echo is measured too.
    let echo = EchoProcess::start()?;
    let senders = options.middle_connections();
    let fixture = |binary| RelayFixture::start(binary, "sqlite", senders, options.receivers);
    let mut fixtures = options.hubs.iter().map(fixture).collect::<io::Result<Vec<_>>>()?;
    let series = {
        let plan = options.plan(echo.target(), senders);
        let first = &fixtures[0];
        let echo = Benchmark::new("echo of a message", move |_| first.send(&plan));
        run_interleaved(options.rounds, vec![echo])?
    };
    let echo_us = series[0].median(Measurement::cpu_us);
    let rounds = options.rounds.max(STARTS_MIN);
    let mut results = Results { series, ..Results::default() };
    for (binary, fixture) in options.hubs.iter().zip(&mut fixtures) {
        let (times, sizes) = start_repeatedly(binary, rounds)?;
        let after_kill = (0..rounds).map(|_| start_after_kill(options, fixture));
        let after_kill = after_kill.collect::<io::Result<Vec<_>>>()?;
        let figures = [
            Figure::lower("start on a small store until ready", times, "ms")
                .with_target(READY_MS)
                .with_reference(echo_us),
            Figure::lower("start after kill -9 at full load until ready", after_kill, "ms")
                .with_target(READY_AFTER_KILL_MS)
                .with_reference(echo_us),
            Figure::lower("memory of an idle hub", sizes, "MB").with_target(IDLE_MB),
        ];
        results.figures.extend(figures.map(|figure| figure.of_hub(&binary.label)));
    }
    Ok(results)
}

/// Milliseconds until ready and megabytes of memory of each start on the same small store. The first
/// start creates the store and is not counted.
fn start_repeatedly(binary: &HubBinary, rounds: usize) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let mut hub = BenchHub::start_with_defaults(binary)?;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.push(hub.restart(Ending::Killed)?.as_secs_f64() * 1_000.0);
        thread::sleep(SETTLE_START);
        sizes.push(hub.rss_bytes().map_or(f64::NAN, |bytes| bytes as f64 / 1e6));
    }
    Ok((times, sizes))
}

/// Puts the hub under full load, kills it in the middle, and returns how many milliseconds the next
/// start takes.
fn start_after_kill(options: &BenchOptions, fixture: &mut RelayFixture) -> io::Result<f64> {
    let plan = options.plan(fixture.hub.target(), fixture.agents.senders.len());
    let plan = LoadPlan { pace: Pace::Closed, pid: None, ..plan };
    let server = fixture.hub.take_server();
    let loaded = &*fixture;
    thread::scope(|scope| {
        let load = scope.spawn(move || loaded.send(&plan));
        thread::sleep(plan.warm_up + plan.duration.mul_f64(0.8));
        server.map_or(Ok(()), |server| server.kill())?;
        // The load ends with errors, of course.
        load.join().map(drop).map_err(|_| io::Error::other("a client thread panicked"))
    })?;
    Ok(fixture.hub.restart(Ending::Killed)?.as_secs_f64() * 1_000.0)
}

/// Opens `count` inboxes and compares the hub's memory before and after.
pub fn measure_streams(options: &BenchOptions, count: usize) -> io::Result<Results> {
    let mut results = Results::default();
    for binary in &options.hubs {
        let hub = BenchHub::start(binary, &[])?;
        let owners = register_agents(hub.address, "idle", count)?;
        thread::sleep(SETTLE);
        let before = hub.rss_bytes();
        let inboxes = open_inboxes(hub.address, &owners)?;
        thread::sleep(SETTLE);
        let after = hub.rss_bytes();
        inboxes.close()?;
        let grown = before.zip(after).map(|(before, after)| after as f64 - before as f64);
        let each = grown.map_or(f64::NAN, |bytes| bytes / 1_024.0 / count as f64);
        let name = format!("memory of an idle stream, {count} open");
        let figure = Figure::lower(name, vec![each], "KiB").with_target(STREAM_KIB);
        results.figures.push(figure.of_hub(&binary.label));
    }
    Ok(results)
}
