//! A figure: one number of the report, the median of several rounds.

use serde::Serialize;

use crate::rounds::median;

/// One number of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, for example `send / echo (64 connections)`.
    pub name: String,
    /// The hub it belongs to; empty if only one was measured.
    pub hub: String,
    /// The median of all rounds.
    pub value: f64,
    /// The lowest and the highest round.
    pub lowest: f64,
    pub highest: f64,
    /// The unit, for example `×` or `ms`.
    pub unit: &'static str,
    /// Whether more or less is better.
    pub better: Better,
    /// The goal, if there is one.
    pub target: Option<f64>,
    /// For a figure that depends on the machine's speed: what the bare echo or the bare verification
    /// took in the same run, in the same kind of unit. Runs are compared after dividing by it.
    pub reference: Option<f64>,
}

/// Which side of a target is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Higher,
    Lower,
}

impl Figure {
    /// A figure of which more is better, by round.
    pub fn higher(name: impl Into<String>, rounds: Vec<f64>, unit: &'static str) -> Self {
        Self::new(name, rounds, unit, Better::Higher)
    }

    /// A figure of which less is better, by round.
    pub fn lower(name: impl Into<String>, rounds: Vec<f64>, unit: &'static str) -> Self {
        Self::new(name, rounds, unit, Better::Lower)
    }

    fn new(name: impl Into<String>, rounds: Vec<f64>, unit: &'static str, better: Better) -> Self {
        Self {
            name: name.into(),
            hub: String::new(),
            lowest: rounds.iter().copied().fold(f64::NAN, f64::min),
            highest: rounds.iter().copied().fold(f64::NAN, f64::max),
            value: median(rounds),
            unit,
            better,
            target: None,
            reference: None,
        }
    }

    /// The hub it belongs to.
    pub fn of_hub(self, label: &str) -> Self {
        Self { hub: label.to_owned(), ..self }
    }

    /// Its goal.
    pub fn with_target(self, target: impl Into<Option<f64>>) -> Self {
        Self { target: target.into(), ..self }
    }

    /// What to divide it by before it is compared with another run.
    pub fn with_reference(self, reference: f64) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// Whether the goal is met, if there is one. A value that could not be measured does not meet it.
    pub fn is_met(&self) -> Option<bool> {
        let target = self.target?;
        let is_good = match self.better {
            Better::Higher => self.value >= target,
            Better::Lower => self.value <= target,
        };
        Some(self.value.is_finite() && is_good)
    }

    /// The value that can be compared between runs and machines.
    pub fn comparable(&self) -> f64 {
        self.reference.map_or(self.value, |reference| self.value / reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_target_and_missed_beyond() {
        let rate = |value| Figure::higher("rate", vec![value], "×").with_target(0.5);
        let start = |value| Figure::lower("start", vec![value], "ms").with_target(150.0);
        assert_eq!(rate(0.5).is_met(), Some(true));
        assert_eq!(rate(0.499).is_met(), Some(false));
        assert_eq!(start(150.0).is_met(), Some(true));
        assert_eq!(start(150.1).is_met(), Some(false));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(rate(value).is_met(), Some(false));
            assert_eq!(start(value).is_met(), Some(false));
        }
        assert_eq!(Figure::higher("rate", vec![1.0], "×").is_met(), None);
    }

    #[test]
    fn the_median_counts_and_the_spread_is_kept() {
        let figure = Figure::lower("p99", vec![3.0, 1.0, 7.0], "ms");
        assert_eq!((figure.lowest, figure.value, figure.highest), (1.0, 3.0, 7.0));
    }

    #[test]
    fn what_depends_on_the_machine_is_compared_as_a_share_of_its_speed() {
        let cpu = |us, echo| Figure::lower("CPU", vec![us], "µs").with_reference(echo).comparable();
        assert_eq!(cpu(30.0, 15.0), cpu(60.0, 30.0), "the second machine is half as fast");
        assert_eq!(Figure::higher("share", vec![0.5], "×").comparable(), 0.5);
    }
}
