//! Interleaved rounds: everything that is compared is measured alternately and several times.
//!
//! A machine is never idle. If one thing were measured first and the other afterwards, a backup
//! that starts in between would decide the result. So the benchmarks alternate (A, B, A, B, …),
//! each round gives the ratio of two measurements close in time, and the median of the ratios
//! counts.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use crate::load::{LoadPlan, Pace};
use crate::measurement::Measurement;
use crate::report::Goal;

/// What a scenario measured, and its goals.
pub type Results = (Vec<Series>, Vec<Goal>);

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct BenchOptions {
    pub rounds: usize,
    pub connections: usize,
    pub seconds: u64,
    pub threads: usize,
    pub pace: Pace,
    /// Jobs a worker fetches with one poll.
    pub batch: u64,
}

impl BenchOptions {
    /// The load of one round over this many connections.
    pub fn plan(&self, address: SocketAddr, connections: usize) -> LoadPlan {
        LoadPlan {
            connections,
            duration: Duration::from_secs(self.seconds),
            pace: self.pace,
            ..LoadPlan::new(address)
        }
    }
}

/// Something that is measured once per round.
pub struct Benchmark<'a> {
    /// Its name in the report.
    pub name: String,
    /// Measures it. The argument is the number of the round, from 0.
    pub measure: Box<dyn FnMut(usize) -> io::Result<Measurement> + 'a>,
}

/// All rounds of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What was measured.
    pub name: String,
    /// The result of each round, in order.
    pub rounds: Vec<Measurement>,
}

impl<'a> Benchmark<'a> {
    /// Names a measurement.
    pub fn new(
        name: impl Into<String>,
        measure: impl FnMut(usize) -> io::Result<Measurement> + 'a,
    ) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }
}

/// Runs all benchmarks alternately for `rounds` rounds. Stops at the first error.
pub fn run_interleaved(
    rounds: usize,
    mut benchmarks: Vec<Benchmark<'_>>,
) -> io::Result<Vec<Series>> {
    let mut all: Vec<Series> = benchmarks
        .iter()
        .map(|benchmark| Series { name: benchmark.name.clone(), rounds: Vec::new() })
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

    /// The median over the rounds of this figure divided by the other's in the same round.
    pub fn ratio_to(&self, other: &Self, figure: impl Fn(&Measurement) -> f64) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)))
    }

    /// The median over the rounds of this figure minus the other's in the same round.
    pub fn difference_to(&self, other: &Self, figure: impl Fn(&Measurement) -> f64) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(pairs.map(|(ours, theirs)| figure(ours) - figure(theirs)))
    }
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
        }
    }

    fn series(rates: &[f64]) -> Series {
        Series { name: "some".to_owned(), rounds: rates.iter().copied().map(measured).collect() }
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
        assert_eq!(hub.ratio_to(&echo, |round| round.per_second), 0.5);
        assert_eq!(hub.median(|round| round.per_second), 300.0);
        assert_eq!(hub.ratio_to(&echo, |round| round.latency.p99_us), 2.0);
        assert_eq!(hub.difference_to(&echo, |round| round.per_second), -500.0);
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
        assert_eq!(all[1].ratio_to(&all[0], |round| round.per_second), 0.5);
    }

    #[test]
    fn the_first_failure_ends_the_rounds() {
        let broken = Benchmark::new("broken", |_| Err(io::Error::other("gone")));
        let never = Benchmark::new("never", |_| panic!("must not be measured"));
        assert!(run_interleaved(3, vec![broken, never]).is_err());
    }
}
