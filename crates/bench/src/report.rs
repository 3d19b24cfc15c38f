//! The benchmark report: tables for people, JSON for programs, and whether the goals are met.

use std::fmt;

use serde::Serialize;

use crate::baseline::Comparison;
use crate::components::write_components;
use crate::figure::{Better, Figure};
use crate::measurement::{Errors, Measurement};
use crate::rounds::{Results, Series};

/// All results of one benchmark run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The machine it ran on.
    pub machine: Machine,
    /// The hubs that were measured.
    pub hubs: Vec<String>,
    /// Load measurements, round by round.
    pub series: Vec<Series>,
    /// The figures, their goals, and whether each was met.
    pub figures: Vec<Figure>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// How the last hub compares with a saved run.
    pub comparison: Option<Comparison>,
    /// Whether the cost per component is printed.
    #[serde(skip)]
    pub components: bool,
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

impl BenchReport {
    /// A report about this machine.
    pub fn new(hubs: Vec<String>, results: Results) -> Self {
        let Results { series, figures, notes } = results;
        Self {
            machine: Machine::current(),
            hubs,
            series,
            figures,
            notes,
            comparison: None,
            components: false,
        }
    }

    /// The hub that goals and saved runs are about: the last one.
    pub fn judged_hub(&self) -> &str {
        self.hubs.last().map_or("", String::as_str)
    }

    /// Whether the judged hub meets every goal.
    pub fn all_goals_met(&self) -> bool {
        let mut judged = self.figures.iter().filter(|figure| figure.hub == self.judged_hub());
        judged.all(|figure| figure.is_met() != Some(false))
    }

    /// The whole report as one JSON document.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
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
            writeln!(f, "\nMedians of all rounds; CPU is that of the server, per request:")?;
            writeln!(f, "{}", load_table(&self.series))?;
            for series in &self.series {
                write_remarks(f, series)?;
            }
        }
        if self.components {
            write_components(f, &self.series)?;
        }
        if !self.figures.is_empty() {
            writeln!(f, "\n{}", figure_table(&self.hubs, &self.figures))?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        if let Some(comparison) = &self.comparison {
            write!(f, "\n{comparison}")?;
        }
        Ok(())
    }
}

/// The table of load measurements; each figure is the median of the rounds.
fn load_table(all: &[Series]) -> String {
    let head = [
        "",
        "conns",
        "per second",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "user",
        "system",
        "rounds",
        "errors",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for series in all {
        let latency = |of: fn(&Measurement) -> f64| duration(series.median(of));
        let cpu = |of: fn(&Measurement) -> f64| match series.median(of) {
            us if us.is_finite() => format!("{us:.1} µs"),
            _ => "–".to_owned(),
        };
        let connections = series.rounds.first().map_or(0, |round| round.connections);
        rows.push(vec![
            full_name(series),
            connections.to_string(),
            number(series.median(|round| round.per_second), 0),
            latency(|round| round.latency.p50_us),
            latency(|round| round.latency.p90_us),
            latency(|round| round.latency.p99_us),
            latency(|round| round.latency.p999_us),
            latency(|round| round.latency.max_us),
            cpu(|round| round.cpu_us_parts().0),
            cpu(|round| round.cpu_us_parts().1),
            series.rounds.len().to_string(),
            errors(series).total().to_string(),
        ]);
    }
    table(&rows)
}

/// The name of a series, with its hub if there are several.
pub fn full_name(series: &Series) -> String {
    match series.hub.as_str() {
        "" => series.name.clone(),
        hub => format!("{} [{hub}]", series.name),
    }
}

/// One line per figure. Several hubs stand side by side, with the last divided by the first.
fn figure_table(hubs: &[String], figures: &[Figure]) -> String {
    let several = hubs.len() > 1;
    let mut head = vec!["figure".to_owned()];
    if several {
        head.extend(hubs.iter().cloned());
        head.push(format!("{} / {}", hubs[hubs.len() - 1], hubs[0]));
    } else {
        head.extend(["measured".to_owned(), "all rounds".to_owned()]);
    }
    head.extend(["goal".to_owned(), String::new()]);
    let mut rows = vec![head];
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if names.contains(&figure.name.as_str()) {
            continue;
        }
        names.push(&figure.name);
        let of = |hub: &str| figures.iter().find(|one| one.name == figure.name && one.hub == hub);
        let shown = |one: &Figure| format!("{} {}", number(one.value, decimals(one)), one.unit);
        let (first, last) =
            (hubs.first().and_then(|hub| of(hub)), hubs.last().and_then(|hub| of(hub)));
        let mut row = vec![figure.name.clone()];
        if several {
            row.extend(hubs.iter().map(|hub| of(hub).map_or_else(String::new, shown)));
            let ratio = first.zip(last).map(|(first, last)| number(last.value / first.value, 3));
            row.push(ratio.unwrap_or_default());
        } else {
            let (low, high) =
                (number(figure.lowest, decimals(figure)), number(figure.highest, decimals(figure)));
            row.extend([shown(figure), format!("{low} … {high}")]);
        }
        row.extend(goal_cells(last.unwrap_or(figure)));
        rows.push(row);
    }
    table(&rows)
}

/// The goal of a figure, and whether it is met.
fn goal_cells(figure: &Figure) -> [String; 2] {
    let Some(target) = figure.target else { return [String::new(), String::new()] };
    let sign = match figure.better {
        Better::Higher => "≥",
        Better::Lower => "≤",
    };
    let goal = format!("{sign} {} {}", number(target, decimals(figure)), figure.unit);
    let met = if figure.is_met() == Some(true) { "met" } else { "MISSED" };
    [goal, met.to_owned()]
}

/// Remarks that do not fit the table but must not be overlooked.
fn write_remarks(f: &mut fmt::Formatter<'_>, series: &Series) -> fmt::Result {
    let errors = errors(series);
    if errors.total() > 0 {
        writeln!(f, "{}: {errors}", full_name(series))?;
    }
    let overrun = series.rounds.iter().filter(|round| round.is_overrun()).count();
    if overrun > 0 {
        let (name, rounds) = (full_name(series), series.rounds.len());
        writeln!(f, "{name}: the rate was too high in {overrun} of {rounds} rounds")?;
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
pub fn table(rows: &[Vec<String>]) -> String {
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
fn decimals(figure: &Figure) -> usize {
    if figure.target.unwrap_or(figure.value).abs() < 10.0 { 3 } else { 1 }
}

/// A number, or a dash if there is none.
pub fn number(value: f64, decimals: usize) -> String {
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
    use crate::rounds::rate;

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
            usage: None,
            counters: Default::default(),
        }
    }

    fn series(name: &str, rounds: Vec<Measurement>) -> Series {
        Series { name: name.to_owned(), hub: String::new(), rounds }
    }

    fn one_hub(series: Vec<Series>, figures: Vec<Figure>) -> BenchReport {
        let results = Results { series, figures, notes: vec!["no redis-server".to_owned()] };
        BenchReport::new(vec![String::new()], results)
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
        let share = all[1].ratios_to(&all[0], rate);
        let figures = vec![
            Figure::higher("job / echo", share, "×").with_target(0.15),
            Figure::lower("idle memory", vec![f64::NAN], "MB").with_target(60.0),
            Figure::lower("CPU", vec![12.25], "µs"),
        ];
        let report = one_hub(all, figures);
        assert!(!report.all_goals_met());
        let text = report.to_string();
        let has = |part: &str| assert!(text.contains(part), "{part:?} is not in:\n{text}");
        has(
            "echo             64       42000   95 µs  190 µs   475 µs   950 µs   4.75 ms     –       –       2       0",
        );
        has("registry job     64        9500  225 µs  450 µs  1.12 ms  2.25 ms  11.25 ms");
        has("registry job: 2 × 503; the first: 503 busy");
        has("registry job: the rate was too high in 1 of 2 rounds");
        has("job / echo    0.227 ×  0.205 … 0.250  ≥ 0.150 ×     met");
        has("idle memory      – MB          – … –  ≤ 60.0 MB  MISSED");
        has("CPU           12.2 µs    12.2 … 12.2\n");
        has("no redis-server");
    }

    #[test]
    fn several_hubs_stand_side_by_side_and_the_last_is_judged() {
        let figure = |hub: &str, value| {
            Figure::higher("send / echo", vec![value], "×").with_target(0.5).of_hub(hub)
        };
        let results =
            Results { figures: vec![figure("old", 0.4), figure("new", 0.6)], ..Results::default() };
        let report = BenchReport::new(vec!["old".to_owned(), "new".to_owned()], results);
        let text = report.to_string();
        assert!(
            text.contains("send / echo  0.400 ×  0.600 ×      1.500  ≥ 0.500 ×  met"),
            "{text}"
        );
        assert!(report.all_goals_met(), "the old hub does not count");
    }

    #[test]
    fn the_document_names_everything() {
        let figures = vec![Figure::higher("job / echo", vec![0.2], "×").with_target(0.15)];
        let report = one_hub(vec![series("echo", vec![round(10.0, 1.0)])], figures);
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(json["series"][0]["rounds"][0]["latency"]["p99_us"], 5.0);
        assert_eq!(json["figures"][0]["better"], "higher");
        assert_eq!(json["figures"][0]["target"], 0.15);
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
