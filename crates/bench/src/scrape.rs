//! The hub's own counters: what `/metrics` reports before and after a round.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::hub::get;

/// Counters by name, in the Prometheus text format without labels.
pub type Counters = BTreeMap<String, f64>;

/// The hub's counters now; empty if it does not report any.
pub fn read_counters(hub: SocketAddr) -> Counters {
    get(hub, "/metrics").map(|answer| parse(&answer)).unwrap_or_default()
}

/// How much each counter has grown.
pub fn growth(before: &Counters, after: &Counters) -> Counters {
    let grown = after
        .iter()
        .map(|(name, now)| (name.clone(), now - before.get(name).copied().unwrap_or(0.0)));
    grown.filter(|(_, difference)| *difference > 0.0).collect()
}

/// Reads the hub's counters, and sums and counts of its histograms. Gauges and buckets are left out,
/// and counters with labels are added up.
fn parse(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines().filter(|line| line.starts_with("rialto_")) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let name = name.split('{').next().unwrap_or(name);
        let counts = ["_total", "_sum", "_count"].iter().any(|ending| name.ends_with(ending));
        if let Some(value) = value.parse::<f64>().ok().filter(|_| counts) {
            *counters.entry(name.to_owned()).or_default() += value;
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "HTTP/1.1 200 OK\r\n\r\n# TYPE rialto_agents gauge\nrialto_agents 7.0\n\
        rialto_refusals_total{code=\"offline\"} 2\nrialto_refusals_total{code=\"no {x}\"} 3\n\
        rialto_fsync_seconds_count 4\nrialto_fsync_seconds_bucket{le=\"0.1\"} 4\n\
        rialto_fsync_seconds_sum 0.5\nprocess_cpu_seconds_total 9\n";

    #[test]
    fn counters_are_read_and_labels_added_up() {
        let counters = parse(BEFORE);
        let expected = [
            ("rialto_fsync_seconds_count", 4.0),
            ("rialto_fsync_seconds_sum", 0.5),
            ("rialto_refusals_total", 5.0),
        ];
        assert_eq!(counters, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn only_what_grew_is_kept_and_a_new_counter_starts_at_zero() {
        let after = format!("{BEFORE}rialto_rows_total 10\n").replace("count 4", "count 6");
        let grown = growth(&parse(BEFORE), &parse(&after));
        let expected = [("rialto_fsync_seconds_count", 2.0), ("rialto_rows_total", 10.0)];
        assert_eq!(grown, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn a_server_without_counters_has_none() {
        assert!(read_counters(([127, 0, 0, 1], 1).into()).is_empty());
    }
}
