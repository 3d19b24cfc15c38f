//! Benchmarks messages end to end: sent, on disk, read by their receivers and acknowledged. The hub is
//! measured beside itself without a disk, and beside [`peers`](crate::peers) where they are installed.

use std::io;

use crate::echo::EchoProcess;
use crate::figure::Figure;
use crate::load::Pace;
use crate::measurement::Measurement;
use crate::peers::Peer;
use crate::relay::RelayFixture;
use crate::rounds::{BenchOptions, Benchmark, Results, rate, run_interleaved};

/// Goal for the share of the memory store's rate.
const DURABLE: f64 = 0.6;

/// Measures the hub over both stores, and all peers if `with_peers`, in alternating rounds.
pub fn measure(options: &BenchOptions, with_peers: bool) -> io::Result<Results> {
    // At full speed, whatever pace the others have: here the rate is measured.
    let options = &BenchOptions { pace: Pace::Closed, ..options.clone() };
    let connections = options.middle_connections();
    let (peers, notes) =
        if with_peers { Peer::start_all(options.receivers)? } else { Default::default() };
    let echo = EchoProcess::start()?;
    let start = |backend| {
        let hubs = options.hubs.iter();
        let start =
            move |binary| RelayFixture::start(binary, backend, connections, options.receivers);
        hubs.map(start).collect::<io::Result<Vec<_>>>()
    };
    let (durable, memory) = (start("sqlite")?, start("memory")?);
    let echo_plan = options.plan(echo.target(), connections);
    let first = &durable[0];
    let mut benchmarks = vec![Benchmark::new("echo of a message", move |_| first.send(&echo_plan))];
    for (name, fixtures) in [("end to end, sqlite", &durable), ("end to end, memory", &memory)] {
        benchmarks.extend(fixtures.iter().map(|fixture| {
            let plan = options.plan(fixture.hub.target(), connections);
            let deliver = Benchmark::new(name, move |_| fixture.send_and_receive(&plan));
            deliver.of_hub(&fixture.hub.label)
        }));
    }
    benchmarks.extend(peers.iter().map(|peer| {
        let plan = options.plan(peer.target(), connections);
        let receivers = options.receivers;
        Benchmark::new(peer.name.clone(), move |_| peer.send_and_receive(&plan, receivers))
    }));
    let series = run_interleaved(options.rounds, benchmarks)?;

    let hubs = options.hubs.len();
    let (echo, of_hubs) = (&series[0], &series[1..]);
    let (durable, of_others) = of_hubs.split_at(hubs);
    let (memory, of_peers) = of_others.split_at(hubs);
    let mut figures = Vec::new();
    for (durable, memory) in durable.iter().zip(memory) {
        let share =
            Figure::higher("end to end, sqlite / memory", durable.ratios_to(memory, rate), "×");
        figures.push(share.with_target(DURABLE).of_hub(&durable.hub));
        for (peer, measured) in peers.iter().zip(of_peers) {
            let name = format!("end to end, hub / {}", peer.name);
            let ratio = Figure::higher(name, durable.ratios_to(measured, rate), "×");
            figures.push(ratio.with_target(peer.goal).of_hub(&durable.hub));
        }
        let request = "message end to end";
        figures.push(durable.cpu_figure(request, echo.median(Measurement::cpu_us)));
    }
    Ok(Results { series, figures, notes })
}
