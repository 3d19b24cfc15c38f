//! The benchmark report: a table for people, JSON for programs, and whether the goals are met.

use std::fmt;

use serde::Serialize;

use crate::measurement::{Errors, Measurement};
use crate::rounds::Series;

/// All results of one benchmark run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The machine it ran on.
    pub machine: Machine,
    /// Load measurements, round by round.
    pub series: Vec<Series>,
    /// The goals, and whether each was met.
    pub goals: Vec<Goal>,
}

/// The machine's relevant properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Cores shared by servers and client.
    pub cores: usize,
    /// The operating system.
    pub os: &'static str,
    /// The processor architecture.
    pub arch: &'static str,
    /// Whether this is a debug build, whose figures are meaningless.
    pub debug_build: bool,
}

/// One goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The goal's name.
    pub name: String,
    /// The measured value.
    pub value: f64,
    /// The target value.
    pub target: f64,
    /// Whether more or less is better.
    pub direction: Direction,
    /// Unit of both, for example `×` or `ms`.
    pub unit: &'static str,
    /// Whether the goal was met. A value that could not be measured does not meet it.
    pub met: bool,
}

/// Which side of a target is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The target or more.
    AtLeast,
    /// The target or less.
    AtMost,
}

impl Machine {
    /// This machine.
    pub fn current() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            debug_build: cfg!(debug_assertions),
        }
    }
}

impl Goal {
    /// A goal of `target` or more.
    pub fn at_least(name: impl Into<String>, value: f64, target: f64, unit: &'static str) -> Self {
        let met = value.is_finite() && value >= target;
        Self { name: name.into(), value, target, direction: Direction::AtLeast, unit, met }
    }

    /// A goal of `target` or less.
    pub fn at_most(name: impl Into<String>, value: f64, target: f64, unit: &'static str) -> Self {
        let met = value.is_finite() && value <= target;
        Self { name: name.into(), value, target, direction: Direction::AtMost, unit, met }
    }
}

impl BenchReport {
    /// A report about this machine.
    pub fn new(series: Vec<Series>, goals: Vec<Goal>) -> Self {
        Self { machine: Machine::current(), series, goals }
    }

    /// Whether every goal was met.
    pub fn all_goals_met(&self) -> bool {
        self.goals.iter().all(|goal| goal.met)
    }

    /// The whole report as one JSON document.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
        })
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, os, arch, debug_build } = &self.machine;
        writeln!(f, "{cores} cores, {os} {arch}")?;
        if *debug_build {
            writeln!(f, "This is a debug build; the figures are meaningless. Use --release.")?;
        }
        if !self.series.is_empty() {
            writeln!(f, "\n{}", load_table(&self.series))?;
            for series in &self.series {
                write_remarks(f, series)?;
            }
        }
        if !self.goals.is_empty() {
            writeln!(f, "\n{}", goal_table(&self.goals))?;
        }
        Ok(())
    }
}

/// The table of load measurements; each figure is the median of the rounds.
fn load_table(all: &[Series]) -> String {
    let head = ["", "conns", "per second", "p50", "p90", "p99", "p99.9", "max", "rounds", "errors"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for series in all {
        let latency = |of: fn(&Measurement) -> f64| duration(series.median(of));
        let connections = series.rounds.first().map_or(0, |round| round.connections);
        rows.push(vec![
            series.name.clone(),
            connections.to_string(),
            number(series.median(|round| round.per_second), 0),
            latency(|round| round.latency.p50_us),
            latency(|round| round.latency.p90_us),
            latency(|round| round.latency.p99_us),
            latency(|round| round.latency.p999_us),
            latency(|round| round.latency.max_us),
            series.rounds.len().to_string(),
            errors(series).total().to_string(),
        ]);
    }
    table(&rows)
}

fn goal_table(goals: &[Goal]) -> String {
    let mut rows = vec![["goal", "measured", "target", ""].map(str::to_owned).to_vec()];
    for Goal { name, value, target, direction, unit, met } in goals {
        rows.push(vec![
            name.clone(),
            format!("{} {unit}", number(*value, decimals(*target))),
            format!("{direction} {} {unit}", number(*target, decimals(*target))),
            if *met { "met" } else { "MISSED" }.to_owned(),
        ]);
    }
    table(&rows)
}

/// Remarks that do not fit the table but must not be overlooked.
fn write_remarks(f: &mut fmt::Formatter<'_>, series: &Series) -> fmt::Result {
    let errors = errors(series);
    if errors.total() > 0 {
        writeln!(f, "{}: {errors}", series.name)?;
    }
    let overrun = series.rounds.iter().filter(|round| round.is_overrun()).count();
    if overrun > 0 {
        let Series { name, rounds } = series;
        writeln!(f, "{name}: the rate was too high in {overrun} of {} rounds", rounds.len())?;
    }
    Ok(())
}

fn errors(series: &Series) -> Errors {
    let mut all = Errors::default();
    for round in &series.rounds {
        all.add(&round.errors);
    }
    all
}

/// Columns as wide as needed: the first aligned left, figures right.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let lines = rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Small figures are ratios, where the third digit matters.
fn decimals(target: f64) -> usize {
    if target.abs() < 10.0 { 3 } else { 1 }
}

fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "–".to_owned() }
}

/// Microseconds, in the unit with the fewest digits.
fn duration(us: f64) -> String {
    match us {
        us if !us.is_finite() => "–".to_owned(),
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 1_000_000.0 => format!("{:.2} ms", us / 1_000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Percentiles;

    fn round(per_second: f64, p50_us: f64) -> Measurement {
        let [p90_us, p99_us, p999_us, max_us] = [2.0, 5.0, 10.0, 50.0].map(|times| p50_us * times);
        Measurement {
            connections: 64,
            planned_per_second: None,
            seconds: 1.0,
            good: per_second as u64,
            per_second,
            latency: Percentiles { p50_us, p90_us, p99_us, p999_us, max_us },
            errors: Errors::default(),
            queued: 0,
            unsent: 0,
        }
    }

    fn series(name: &str, rounds: Vec<Measurement>) -> Series {
        Series { name: name.to_owned(), rounds }
    }

    #[test]
    fn a_goal_is_met_at_its_target_and_missed_beyond() {
        assert!(Goal::at_least("rate", 0.5, 0.5, "×").met);
        assert!(!Goal::at_least("rate", 0.499, 0.5, "×").met);
        assert!(Goal::at_most("start", 150.0, 150.0, "ms").met);
        assert!(!Goal::at_most("start", 150.1, 150.0, "ms").met);
    }

    #[test]
    fn what_could_not_be_measured_is_missed() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!Goal::at_least("rate", value, 0.5, "×").met);
            assert!(!Goal::at_most("start", value, 150.0, "ms").met);
        }
    }

    #[test]
    fn the_table_shows_medians_goals_and_what_went_wrong() {
        let mut bad = round(9_000.0, 250.0);
        bad.errors.by_status.insert(503, 2);
        bad.errors.first = Some("503 busy".to_owned());
        bad.unsent = 100;
        let all = vec![
            series("echo", vec![round(40_000.0, 100.0), round(44_000.0, 90.0)]),
            series("registry job", vec![round(10_000.0, 200.0), bad]),
        ];
        let goals = vec![
            Goal::at_least("job / echo", all[1].ratio_to(&all[0], |m| m.per_second), 0.15, "×"),
            Goal::at_most("idle memory", f64::NAN, 60.0, "MB"),
        ];
        let report = BenchReport::new(all, goals);
        assert!(!report.all_goals_met());
        let text = report.to_string();
        let has = |part: &str| assert!(text.contains(part), "{part:?} is not in:\n{text}");
        has(
            "echo             64       42000   95 µs  190 µs   475 µs   950 µs   4.75 ms       2       0",
        );
        has("registry job     64        9500  225 µs  450 µs  1.12 ms  2.25 ms  11.25 ms");
        has("registry job: 2 × 503; the first: 503 busy");
        has("registry job: the rate was too high in 1 of 2 rounds");
        has("job / echo    0.227 ×  ≥ 0.150 ×     met");
        has("idle memory      – MB  ≤ 60.0 MB  MISSED");
    }

    #[test]
    fn the_document_names_everything() {
        let goals = vec![Goal::at_least("job / echo", 0.2, 0.15, "×")];
        let report = BenchReport::new(vec![series("echo", vec![round(10.0, 1.0)])], goals);
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(json["series"][0]["rounds"][0]["latency"]["p99_us"], 5.0);
        assert_eq!(json["goals"][0]["direction"], "at_least");
        assert_eq!(json["goals"][0]["met"], true);
        assert!(json["machine"]["cores"].as_u64().unwrap() >= 1);
        assert!(report.all_goals_met());
    }

    #[test]
    fn durations_have_a_readable_unit() {
        assert_eq!(duration(12.4), "12 µs");
        assert_eq!(duration(1_240.0), "1.24 ms");
        assert_eq!(duration(1_500_000.0), "1.50 s");
        assert_eq!(duration(f64::NAN), "–");
    }
}
