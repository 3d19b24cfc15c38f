//! Saved figures of an earlier run, and how a new run compares with them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figure::{Better, Figure};
use crate::report::{number, table};

/// The form of the file; a file of another form is refused.
const VERSION: u32 = 1;

/// The figures of one run, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    version: u32,
    figures: BTreeMap<String, SavedFigure>,
}

/// A figure as saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedFigure {
    /// What was measured, for people.
    value: f64,
    unit: String,
    /// What is compared: the value, or its ratio to the same run's echo or verification.
    comparable: f64,
}

impl Baseline {
    /// The figures of one hub that could be measured.
    pub fn of(figures: &[Figure], hub: &str) -> Self {
        let measured = figures.iter().filter(|figure| figure.hub == hub);
        let measured = measured.filter(|figure| figure.comparable().is_finite());
        let saved = measured.map(|figure| {
            let comparable = figure.comparable();
            let saved =
                SavedFigure { value: figure.value, unit: figure.unit.to_owned(), comparable };
            (figure.name.clone(), saved)
        });
        Self { version: VERSION, figures: saved.collect() }
    }

    pub fn save(&self, file: &Path) -> io::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        fs::write(file, json + "\n").map_err(|error| with_path(file, &error))
    }

    pub fn load(file: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(file).map_err(|error| with_path(file, &error))?;
        let saved: Self = serde_json::from_str(&text).map_err(|error| with_path(file, &error))?;
        if saved.version != VERSION {
            let problem = format!("version {} is not supported; save it again", saved.version);
            return Err(with_path(file, &problem));
        }
        Ok(saved)
    }

    /// How these figures compare with the saved ones. A figure is worse if it is off by more than
    /// `tolerance`, for example 0.15 for 15 percent.
    pub fn compare(&self, figures: &[Figure], hub: &str, tolerance: f64) -> Comparison {
        let mut left: BTreeMap<_, _> = self.figures.iter().collect();
        let (mut lines, mut unknown) = (Vec::new(), Vec::new());
        for figure in figures.iter().filter(|figure| figure.hub == hub) {
            let Some(old) = left.remove(&figure.name) else {
                unknown.push(format!("{} (not saved)", figure.name));
                continue;
            };
            let ratio = figure.comparable() / old.comparable;
            lines.push(ComparedFigure {
                name: figure.name.clone(),
                old: old.value,
                new: figure.value,
                unit: figure.unit,
                ratio,
                by_reference: figure.reference.is_some(),
                is_worse: is_worse(figure.better, ratio, tolerance),
            });
        }
        unknown.extend(left.keys().map(|name| format!("{name} (not measured)")));
        Comparison { lines, unknown, tolerance }
    }
}

fn with_path(file: &Path, error: &impl fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", file.display()))
}

/// A figure that could not be measured again is worse.
fn is_worse(better: Better, ratio: f64, tolerance: f64) -> bool {
    match better {
        _ if ratio.is_nan() => true,
        Better::Higher => ratio < 1.0 - tolerance,
        Better::Lower => ratio > 1.0 + tolerance,
    }
}

/// A run compared with a saved one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    lines: Vec<ComparedFigure>,
    /// Figures that only one of the two runs has.
    unknown: Vec<String>,
    tolerance: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ComparedFigure {
    name: String,
    old: f64,
    new: f64,
    unit: &'static str,
    /// New divided by old, both divided by their run's reference if there is one.
    ratio: f64,
    by_reference: bool,
    is_worse: bool,
}

impl Comparison {
    /// Whether a figure is worse than the tolerance allows.
    pub fn has_regression(&self) -> bool {
        self.lines.iter().any(|line| line.is_worse)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["compared with the saved run", "saved", "now", "unit", "now / saved", ""];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for line in &self.lines {
            let mark = if line.by_reference { " *" } else { "" };
            rows.push(vec![
                line.name.clone(),
                number(line.old, 3),
                number(line.new, 3),
                line.unit.to_owned(),
                format!("{}{mark}", number(line.ratio, 3)),
                if line.is_worse { "WORSE" } else { "" }.to_owned(),
            ]);
        }
        writeln!(f, "{}", table(&rows))?;
        if self.lines.iter().any(|line| line.by_reference) {
            writeln!(f, "* each divided by the bare echo or verification of its own run")?;
        }
        writeln!(f, "WORSE: off by more than {:.0} % (--tolerance)", self.tolerance * 100.0)?;
        if !self.unknown.is_empty() {
            writeln!(f, "only in one of the two runs: {}", self.unknown.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(share: f64, cpu: f64, echo: f64) -> Vec<Figure> {
        vec![
            Figure::higher("send / echo", vec![share], "×").of_hub("new"),
            Figure::lower("CPU", vec![cpu], "µs").with_reference(echo).of_hub("new"),
            Figure::higher("send / echo", vec![9.0], "×").of_hub("old"),
        ]
    }

    fn worse(share: f64, cpu: f64, echo: f64) -> Vec<String> {
        let saved = Baseline::of(&figures(0.5, 30.0, 15.0), "new");
        let compared = saved.compare(&figures(share, cpu, echo), "new", 0.1);
        let worse = compared.lines.iter().filter(|line| line.is_worse);
        let names: Vec<_> = worse.map(|line| line.name.clone()).collect();
        assert_eq!(compared.has_regression(), !names.is_empty());
        names
    }

    #[test]
    fn only_what_is_worse_than_the_tolerance_is_a_regression() {
        assert_eq!(worse(0.5, 30.0, 15.0), [""; 0]);
        assert_eq!(worse(0.451, 32.9, 15.0), [""; 0]);
        assert_eq!(worse(0.9, 10.0, 15.0), [""; 0], "better is never a regression");
        assert_eq!(worse(0.449, 30.0, 15.0), ["send / echo"]);
        assert_eq!(worse(0.5, 33.1, 15.0), ["CPU"]);
        assert_eq!(worse(f64::NAN, 30.0, 15.0), ["send / echo"]);
    }

    #[test]
    fn a_machine_of_another_speed_is_not_a_regression() {
        assert_eq!(worse(0.5, 60.0, 30.0), [""; 0]);
        assert_eq!(worse(0.5, 30.0, 10.0), ["CPU"], "three echoes instead of two");
    }

    #[test]
    fn figures_of_only_one_run_are_named_and_do_not_count() {
        let saved = Baseline::of(&figures(0.5, 30.0, 15.0)[..1], "new");
        let other = [Figure::lower("start", vec![20.0], "ms").of_hub("new")];
        let compared = saved.compare(&other, "new", 0.1);
        assert!(!compared.has_regression());
        let text = compared.to_string();
        assert!(text.contains("start (not saved), send / echo (not measured)"), "{text}");
    }

    #[test]
    fn what_is_saved_can_be_loaded_and_anything_else_is_refused() {
        let dir = crate::process::temporary_dir().unwrap();
        let file = dir.path().join("baseline.json");
        let saved = Baseline::of(&figures(0.5, f64::NAN, 15.0), "new");
        assert_eq!(saved.figures.len(), 1, "what was not measured is not saved");
        saved.save(&file).unwrap();
        assert_eq!(Baseline::load(&file).unwrap(), saved);
        for bad in [r#"{"version":2,"figures":{}}"#, "[]", ""] {
            fs::write(&file, bad).unwrap();
            let error = Baseline::load(&file).unwrap_err().to_string();
            assert!(error.contains("baseline.json: "), "{error}");
        }
        assert!(Baseline::load(&dir.path().join("missing.json")).is_err());
    }
}
