//! Linearizability of one object whose versions are numbers: what begins after another has ended
//! shows no older version.

use std::time::Duration;

/// A version that was seen or made between two moments.
#[derive(Clone, Debug)]
pub struct Observation {
    pub begin: Duration,
    pub end: Duration,
    pub version: u64,
    /// What saw it, for the report.
    pub by: String,
}

/// Reports each observation that shows an older version than another which had ended before it
/// began.
pub fn find_regressions(object: &str, observations: &[Observation]) -> Vec<String> {
    find_stale(object, observations, observations, Duration::ZERO)
}

/// Reports each of `later` that shows an older version than one of `earlier` which had ended more
/// than `slack` before it began.
pub fn find_stale(
    object: &str,
    earlier: &[Observation],
    later: &[Observation],
    slack: Duration,
) -> Vec<String> {
    let mut ended: Vec<&Observation> = earlier.iter().collect();
    ended.sort_by_key(|seen| seen.end);
    // The newest version of all that had ended by then.
    let mut newest: Vec<&Observation> = Vec::with_capacity(ended.len());
    for seen in &ended {
        let best = newest.last().filter(|best| best.version >= seen.version);
        newest.push(best.copied().unwrap_or(seen));
    }
    let mut found = Vec::new();
    for seen in later {
        let count = ended.partition_point(|one| one.end.saturating_add(slack) < seen.begin);
        let Some(before) = count.checked_sub(1).map(|last| newest[last]) else { continue };
        if before.version > seen.version {
            found.push(format!(
                "{object} went back from {} to {}: first {before}, then {seen}",
                before.version, seen.version
            ));
        }
    }
    found
}

impl std::fmt::Display for Observation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?} to {:?})", self.by, self.begin, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(begin: u64, end: u64, version: u64) -> Observation {
        let (begin, end) = (Duration::from_millis(begin), Duration::from_millis(end));
        Observation { begin, end, version, by: format!("{begin:?}") }
    }

    #[test]
    fn an_older_version_is_fine_only_while_the_newer_one_was_on_its_way() {
        let overlapping = [seen(0, 10, 5), seen(9, 12, 4), seen(13, 14, 5)];
        assert!(find_regressions("x", &overlapping).is_empty());
        let later = [seen(0, 10, 5), seen(11, 12, 4)];
        assert_eq!(find_regressions("x", &later).len(), 1);
        assert!(find_stale("x", &later, &later, Duration::from_millis(5)).is_empty());
        let hidden = [seen(0, 10, 5), seen(0, 30, 2), seen(40, 41, 3)];
        assert_eq!(find_regressions("x", &hidden).len(), 1);
    }
}
