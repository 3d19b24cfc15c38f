//! Interleaved rounds: everything that is compared is measured alternately and several times.
//!
//! A machine is never idle. If one thing were measured first and the other afterwards, a backup
//! that starts in between would decide the result. So the benchmarks alternate (A, B, A, B, …),
//! each round gives the ratio of two measurements close in time, and the median of the ratios
//! counts.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::figure::Figure;
use crate::hub::HubBinary;
use crate::load::{LoadPlan, Pace, Target};
use crate::measurement::Measurement;

/// The longest warm-up of a round.
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// What a scenario measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub series: Vec<Series>,
    pub figures: Vec<Figure>,
    /// What a reader must know about it, for example why something was left out.
    pub notes: Vec<String>,
}

impl Results {
    /// Adds the results of another scenario.
    pub fn add(&mut self, other: Self) {
        self.series.extend(other.series);
        self.figures.extend(other.figures);
        self.notes.extend(other.notes);
    }
}

/// How to measure.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The hubs to measure, in turns.
    pub hubs: Vec<HubBinary>,
    pub rounds: usize,
    /// Numbers of connections, smallest first.
    pub connections: Vec<usize>,
    pub duration: Duration,
    pub threads: usize,
    pub pace: Pace,
    /// Whether the hub's own counters are read as well.
    pub components: bool,
    /// Agents that messages are sent to.
    pub receivers: usize,
}

impl BenchOptions {
    /// The load of one round over this many connections.
    pub fn plan(&self, target: Target, connections: usize) -> LoadPlan {
        LoadPlan {
            connections,
            duration: self.duration,
            warm_up: WARM_UP_MAX.min(self.duration / 4),
            pace: self.pace,
            pid: target.pid,
            database: target.database,
            reads_counters: self.components && target.has_counters,
            ..LoadPlan::new(target.address)
        }
    }

    /// The middle number of connections, for what is measured only once.
    pub fn middle_connections(&self) -> usize {
        self.connections[self.connections.len() / 2]
    }

    /// The largest number of connections.
    pub fn most_connections(&self) -> usize {
        self.connections.iter().copied().max().unwrap_or(1)
    }
}

/// Something that is measured once per round.
pub struct Benchmark<'a> {
    /// Its name in the report.
    pub name: String,
    /// The hub it measures; empty if that is clear.
    pub hub: String,
    /// Measures it. The argument is the number of the round, from 0.
    pub measure: Box<dyn FnMut(usize) -> io::Result<Measurement> + 'a>,
}

/// All rounds of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What was measured.
    pub name: String,
    /// The hub that was measured; empty if that is clear.
    pub hub: String,
    /// The result of each round, in order.
    pub rounds: Vec<Measurement>,
}

impl<'a> Benchmark<'a> {
    /// Names a measurement.
    pub fn new(
        name: impl Into<String>,
        measure: impl FnMut(usize) -> io::Result<Measurement> + 'a,
    ) -> Self {
        Self { name: name.into(), hub: String::new(), measure: Box::new(measure) }
    }

    /// The hub that it measures.
    pub fn of_hub(self, label: &str) -> Self {
        Self { hub: label.to_owned(), ..self }
    }
}

/// Runs all benchmarks alternately for `rounds` rounds. Stops at the first error.
pub fn run_interleaved(
    rounds: usize,
    mut benchmarks: Vec<Benchmark<'_>>,
) -> io::Result<Vec<Series>> {
    let mut all: Vec<Series> = benchmarks
        .iter()
        .map(|Benchmark { name, hub, .. }| Series {
            name: name.clone(),
            hub: hub.clone(),
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        for (benchmark, series) in benchmarks.iter_mut().zip(&mut all) {
            series.rounds.push((benchmark.measure)(round)?);
        }
    }
    Ok(all)
}

impl Series {
    /// The median of one figure over all rounds.
    pub fn median(&self, figure: impl Fn(&Measurement) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// One figure of each round.
    pub fn of_rounds(&self, figure: impl Fn(&Measurement) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }

    /// This figure divided by the other's in the same round, for each round.
    pub fn ratios_to(&self, other: &Self, figure: impl Fn(&Measurement) -> f64) -> Vec<f64> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)).collect()
    }

    /// This figure minus the other's in the same round, for each round.
    pub fn differences_to(&self, other: &Self, figure: impl Fn(&Measurement) -> f64) -> Vec<f64> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.map(|(ours, theirs)| figure(ours) - figure(theirs)).collect()
    }

    /// CPU time of the server per request, compared between runs as a ratio to the bare echo's.
    pub fn cpu_figure(&self, request: &str, echo_us: f64) -> Figure {
        let name = format!("CPU of the hub per {request}");
        let figure = Figure::lower(name, self.of_rounds(Measurement::cpu_us), "µs");
        figure.with_reference(echo_us).of_hub(&self.hub)
    }
}

/// Good answers per second.
pub fn rate(round: &Measurement) -> f64 {
    round.per_second
}

/// The middle value, or the mean of the two middle values. NaN if there are no values or one of
/// them is NaN: a round that could not be measured must not be hidden by the others.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::measurement::{Errors, Percentiles};

    fn measured(per_second: f64) -> Measurement {
        let us = 1_000_000.0 / per_second;
        Measurement {
            connections: 1,
            planned_per_second: None,
            seconds: 1.0,
            good: per_second as u64,
            per_second,
            latency: Percentiles { p50_us: us, p90_us: us, p99_us: us, p999_us: us, max_us: us },
            errors: Errors::default(),
            queued: 0,
            unsent: 0,
            usage: None,
            counters: Default::default(),
        }
    }

    fn series(rates: &[f64]) -> Series {
        let hub = String::new();
        Series {
            name: "some".to_owned(),
            hub,
            rounds: rates.iter().copied().map(measured).collect(),
        }
    }

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([7.0]), 7.0);
    }

    #[test]
    fn the_median_of_nothing_or_of_a_failed_round_is_no_number() {
        assert!(median([]).is_nan());
        assert!(median([1.0, f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn rounds_are_compared_with_their_neighbours_not_with_each_other() {
        // Something slowed both in the second round and only the hub in the third. The ratio of the
        // medians, 300 to 1,000, would count both against the hub.
        let echo = series(&[1_000.0, 250.0, 1_200.0]);
        let hub = series(&[500.0, 125.0, 300.0]);
        assert_eq!(median(hub.ratios_to(&echo, rate)), 0.5);
        assert_eq!(hub.median(rate), 300.0);
        assert_eq!(median(hub.ratios_to(&echo, |round| round.latency.p99_us)), 2.0);
        assert_eq!(median(hub.differences_to(&echo, rate)), -500.0);
    }

    #[test]
    fn benchmarks_take_turns() {
        let order = RefCell::new(Vec::new());
        let benchmark = |name: &'static str, rate: f64| {
            let order = &order;
            Benchmark::new(name, move |round| {
                order.borrow_mut().push((name, round));
                Ok(measured(rate))
            })
        };
        let all = run_interleaved(2, vec![benchmark("echo", 2.0), benchmark("hub", 1.0)]).unwrap();
        assert_eq!(*order.borrow(), [("echo", 0), ("hub", 0), ("echo", 1), ("hub", 1)]);
        assert_eq!(all[1].ratios_to(&all[0], rate), [0.5, 0.5]);
    }

    #[test]
    fn the_first_failure_ends_the_rounds() {
        let broken = Benchmark::new("broken", |_| Err(io::Error::other("gone")));
        let never = Benchmark::new("never", |_| panic!("must not be measured"));
        assert!(run_interleaved(3, vec![broken, never]).is_err());
    }
}
