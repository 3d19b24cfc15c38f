//! Fail-overs at a hub of three nodes: how long the clients of the nodes that survive get no send
//! acknowledged.
//!
//! Each surviving node has its own clients, which send at a fixed rate. The outage of a node is the
//! longest time between two acknowledged sends at it, and that of a fail-over the longest of its nodes.

use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::database::{Database, Installation};
use super::nodes::Nodes;
use crate::figure::Figure;
use crate::hub::{BenchHub, HubBinary};
use crate::load::{LoadPlan, LoadRun, Pace};
use crate::measurement::Errors;
use crate::relay::RelayAgents;
use crate::rounds::{BenchOptions, Results};

const NODES: usize = 3;
/// Sends per second at each surviving node, and its connections: enough to see an outage of some
/// milliseconds, and few enough that nothing waits for a core.
const PER_SECOND: f64 = 200.0;
const CONNECTIONS: usize = 16;
/// Time of load before the fail-over, of which some is not counted.
const WARM_UP: Duration = Duration::from_millis(300);
const BEFORE: Duration = Duration::from_millis(500);
/// The default of `cluster.lease`.
const LEASE: Duration = Duration::from_secs(3);

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailOver {
    /// The writer is killed.
    Killed,
    /// The writer is stopped as an operator would.
    HandedOver,
    /// The writer is paused, and keeps its connections.
    Silent,
    /// The database ends without a checkpoint and is started again at once.
    DatabaseCrash,
}

impl FailOver {
    const ALL: [Self; 4] = [Self::Killed, Self::HandedOver, Self::Silent, Self::DatabaseCrash];

    /// Load after it.
    fn after(self) -> Duration {
        match self {
            Self::Killed | Self::HandedOver => Duration::from_secs(2),
            Self::Silent => LEASE + Duration::from_secs(3),
            Self::DatabaseCrash => Duration::from_secs(4),
        }
    }

    /// Goal for the p99 of the outage.
    fn target_ms(self) -> f64 {
        match self {
            Self::Killed => 250.0,
            Self::HandedOver => 100.0,
            Self::Silent => LEASE.as_secs_f64() * 1_000.0 + 500.0,
            Self::DatabaseCrash => 1_000.0,
        }
    }
}

impl fmt::Display for FailOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "writer killed",
            Self::HandedOver => "writer stopped",
            Self::Silent => "writer silent",
            Self::DatabaseCrash => "database crash, beyond its recovery",
        })
    }
}

/// One fail-over.
struct Outcome {
    outage: Duration,
    /// How long the database took to crash and recover; nothing if it did not.
    recovery: Duration,
    errors: Errors,
}

/// Measures `count` fail-overs of each kind, in turns.
pub fn measure(
    options: &BenchOptions,
    binary: &HubBinary,
    postgres: &Installation,
    count: usize,
) -> io::Result<Results> {
    let database = Database::start(postgres)?;
    let mut nodes = Nodes::start(binary, &database.new_hub("failing"), NODES)?;
    let agents = RelayAgents::register(nodes.0[0].address, CONNECTIONS, options.receivers)?;
    let mut outcomes = FailOver::ALL.map(|_| Vec::new());
    let mut ended = 0;
    for _ in 0..count {
        for (failover, outcomes) in FailOver::ALL.into_iter().zip(&mut outcomes) {
            outcomes.push(fail_over(failover, &mut nodes, &agents, &database, options)?);
            let expected = usize::from(failover != FailOver::DatabaseCrash);
            ended += nodes.repair()?.saturating_sub(expected);
        }
    }
    let mut results = Results::default();
    for (failover, outcomes) in FailOver::ALL.into_iter().zip(&outcomes) {
        results.add(summarize(failover, outcomes));
    }
    if ended > 0 {
        results.notes.push(format!("fail-over: {ended} nodes ended by themselves"));
    }
    for figure in &mut results.figures {
        figure.hub.clone_from(&binary.label);
    }
    Ok(results)
}

fn fail_over(
    failover: FailOver,
    nodes: &mut Nodes,
    agents: &RelayAgents,
    database: &Database,
    options: &BenchOptions,
) -> io::Result<Outcome> {
    let writer = nodes.writer()?;
    let survives = |at: usize| failover == FailOver::DatabaseCrash || at != writer;
    let survivors = nodes.0.iter().enumerate().filter(|(at, _)| survives(*at));
    let plans: Vec<_> = survivors
        .map(|(_, node)| LoadPlan {
            threads: 1,
            keeps_spans: true,
            warm_up: WARM_UP,
            duration: BEFORE + failover.after(),
            pace: Pace::Open { per_second: PER_SECOND },
            pid: None,
            reads_counters: false,
            ..options.plan(node.target(), CONNECTIONS)
        })
        .collect();
    let (at, recovery, runs) = thread::scope(|scope| {
        let load = |plan| scope.spawn(move || agents.send_timed(plan));
        let loads: Vec<_> = plans.iter().map(load).collect();
        thread::sleep(WARM_UP + BEFORE);
        let at = Instant::now();
        let recovery = inject(failover, &nodes.0[writer], database)?;
        let join = |load: thread::ScopedJoinHandle<'_, io::Result<LoadRun>>| {
            load.join().map_err(|_| io::Error::other("a client thread panicked"))?
        };
        let runs = loads.into_iter().map(join).collect::<io::Result<Vec<_>>>()?;
        Ok::<_, io::Error>((at, recovery, runs))
    })?;
    let mut errors = Errors::default();
    let mut outage = Duration::ZERO;
    for run in runs {
        errors.add(&run.measured.errors);
        outage = outage.max(longest_outage(run, at));
    }
    end_writer(failover, nodes, writer)?;
    Ok(Outcome { outage, recovery, errors })
}

/// Lets it happen, and returns how long the database took to recover.
fn inject(failover: FailOver, writer: &BenchHub, database: &Database) -> io::Result<Duration> {
    let signal = match failover {
        FailOver::Killed => "KILL",
        FailOver::HandedOver => "TERM",
        FailOver::Silent => "STOP",
        FailOver::DatabaseCrash => return database.crash(),
    };
    writer.signal(signal)?;
    Ok(Duration::ZERO)
}

/// Ends the old writer, so that it can be started again.
fn end_writer(failover: FailOver, nodes: &mut Nodes, writer: usize) -> io::Result<()> {
    if failover == FailOver::DatabaseCrash {
        return Ok(());
    }
    match nodes.0[writer].take_server() {
        Some(server) if failover == FailOver::HandedOver => server.wait_for_end(),
        Some(server) => server.kill(),
        None => Ok(()),
    }
}

/// The longest time without an acknowledged send that ended after `at`.
fn longest_outage(run: LoadRun, at: Instant) -> Duration {
    let mut ends: Vec<_> = run.spans.iter().map(|span| span.end).collect();
    ends.push(run.window.start);
    ends.sort_unstable();
    // An answer that comes after the end of the load ends the outage too.
    if ends.last().is_some_and(|last| *last < run.window.end) {
        ends.push(run.window.end);
    }
    let pairs = ends.windows(2).filter(|pair| pair[1] > at);
    pairs.map(|pair| pair[1].duration_since(pair[0])).max().unwrap_or_default()
}

fn summarize(failover: FailOver, outcomes: &[Outcome]) -> Results {
    let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    let beyond = |one: &Outcome| ms(one.outage.saturating_sub(one.recovery));
    let outages: Vec<f64> = outcomes.iter().map(beyond).collect();
    let figure = |what: &str, value: f64| {
        let name = format!("fail-over, {failover}: {what} of {}", outages.len());
        Figure { value, ..Figure::lower(name, outages.clone(), "ms") }
    };
    let figures = vec![
        figure("p50", percentile(&outages, 0.5)),
        figure("p99", percentile(&outages, 0.99)).with_target(failover.target_ms()),
        figure("max", percentile(&outages, 1.0)),
    ];
    let mut results = Results { figures, ..Results::default() };
    if failover == FailOver::DatabaseCrash {
        let recoveries = outcomes.iter().map(|one| ms(one.recovery)).collect();
        results.figures.push(Figure::lower("crash and recovery of the database", recoveries, "ms"));
    }
    let mut errors = Errors::default();
    for outcome in outcomes {
        errors.add(&outcome.errors);
    }
    if errors.total() > 0 {
        results.notes.push(format!("fail-over, {failover}: not all sends were accepted: {errors}"));
    }
    results
}

/// The smallest value that this share of the values does not exceed.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Tally;

    #[test]
    fn the_outage_is_the_longest_pause_that_ends_after_the_failure() {
        let zero = Instant::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let outage = |ends: &[u64], failed: u64| {
            let spans = ends.iter().map(|ms| at(ms.saturating_sub(1))..at(*ms)).collect();
            let measured = Tally::default().measured_in(Duration::from_secs(1));
            let run = LoadRun { measured, window: at(0)..at(1_000), spans };
            longest_outage(run, at(failed)).as_millis()
        };
        let steady: Vec<_> = (0..=1_000).step_by(5).collect();
        assert_eq!(outage(&steady, 500), 5);
        let paused: Vec<_> = (0..=1_000).step_by(5).filter(|ms| !(400..550).contains(ms)).collect();
        assert_eq!(outage(&paused, 500), 155, "it began before");
        assert_eq!(outage(&paused, 600), 5, "it was over before");
        assert_eq!(outage(&[100, 300], 350), 700, "nothing was acknowledged any more");
        assert_eq!(outage(&[300, 1_700], 350), 1_400, "acknowledged after the end of the load");
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| percentile(&values, share)), [10.0, 20.0, 20.0]);
        assert_eq!(percentile(&[7.0], 0.5), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
