//! What a run has counted and found.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::checks::Counts;
use super::faults::Fault;

/// How many violations of a round are shown.
const SHOWN_MAX: usize = 12;
/// How much of each.
const SHOWN_CHARS: usize = 1_500;

/// The sums of a run.
#[derive(Clone, Debug)]
pub struct Report {
    seed: u64,
    rounds: usize,
    counts: Counts,
    faults: BTreeMap<&'static str, usize>,
    /// The longest time without an acknowledgement of each round with only that fault.
    gaps: BTreeMap<&'static str, Vec<Duration>>,
    violations: Vec<String>,
}

impl Report {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            rounds: 0,
            counts: Counts::default(),
            faults: BTreeMap::new(),
            gaps: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub fn add_round(&mut self, faults: &[Fault], counts: Counts, gap: Duration) {
        self.rounds += 1;
        let sum = &mut self.counts;
        sum.acknowledged += counts.acknowledged;
        sum.unknown += counts.unknown;
        sum.refused += counts.refused;
        sum.reads += counts.reads;
        sum.stream_events += counts.stream_events;
        for fault in faults {
            *self.faults.entry(fault.name()).or_default() += 1;
        }
        if let [only] = faults {
            self.gaps.entry(only.name()).or_default().push(gap);
        }
    }

    pub fn add_violations(&mut self, round: usize, faults: &[Fault], found: Vec<String>) {
        if found.is_empty() {
            return;
        }
        let (count, seed) = (found.len(), self.seed);
        let names: Vec<_> = faults.iter().map(|fault| fault.name()).collect();
        println!("{count} violations in round {round} of seed {seed} with {}:", names.join(", "));
        for one in found.iter().take(SHOWN_MAX) {
            println!("  {}", one.chars().take(SHOWN_CHARS).collect::<String>());
        }
        self.violations.extend(found.into_iter().map(|one| format!("round {round}: {one}")));
    }

    pub fn has_violations(&self) -> bool {
        !self.violations.is_empty()
    }

    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    pub fn rounds(&self) -> usize {
        self.rounds
    }

    pub fn acknowledged(&self) -> usize {
        self.counts.acknowledged
    }
}

/// The value below which this share of sorted values is.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { acknowledged, unknown, refused, reads, stream_events } = self.counts;
        let faults: usize = self.faults.values().sum();
        writeln!(f, "seed {}: {} rounds, {faults} faults", self.seed, self.rounds)?;
        writeln!(
            f,
            "{acknowledged} acknowledged commands, {unknown} without an answer, {refused} refused"
        )?;
        writeln!(f, "{reads} reads, {stream_events} events of streams")?;
        writeln!(f, "{:<20}{:>7}{:>9}{:>9}", "fault", "times", "median", "longest")?;
        for (name, times) in &self.faults {
            let mut gaps = self.gaps.get(name).cloned().unwrap_or_default();
            gaps.sort_unstable();
            let show = |gap: Duration| match gaps.is_empty() {
                true => "–".to_owned(),
                false => format!("{} ms", gap.as_millis()),
            };
            let (median, longest) =
                (percentile(&gaps, 0.5), gaps.last().copied().unwrap_or_default());
            writeln!(f, "{name:<20}{times:>7}{:>9}{:>9}", show(median), show(longest))?;
        }
        writeln!(f, "median and longest time without any acknowledgement, in rounds of one fault")?;
        write!(f, "{} violations", self.violations.len())
    }
}
