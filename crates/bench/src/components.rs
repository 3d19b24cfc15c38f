//! Cost per component: the CPU time of each kind of thread, and the hub's own counters, per request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::measurement::Measurement;
use crate::report::{full_name, number, table};
use crate::rounds::{Series, median};
use crate::scrape::Counters;

/// Commands committed, and the batches they were committed in.
const BATCHES: &str = "rialto_batch_commands_count";
const COMMANDS: &str = "rialto_batch_commands_sum";

/// Writes one table for each series whose server's process is known.
pub fn write_components(f: &mut fmt::Formatter<'_>, all: &[Series]) -> fmt::Result {
    for series in all.iter().filter(|series| series.rounds.iter().any(|one| one.usage.is_some())) {
        writeln!(f, "\nCost of {}, per request:\n{}", full_name(series), thread_table(series))?;
        let counters = counter_rows(series);
        if !counters.is_empty() {
            writeln!(f, "{}", table(&counters))?;
        }
    }
    Ok(())
}

fn thread_table(series: &Series) -> String {
    let head = ["thread", "user µs", "system µs", "bytes written"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut total = [0.0; 3];
    for (name, cost) in thread_costs(series) {
        total = [0, 1, 2].map(|at| total[at] + cost[at]);
        rows.push(row(&name, cost));
    }
    rows.push(row("all", total));
    table(&rows)
}

fn row(name: &str, [user, system, written]: [f64; 3]) -> Vec<String> {
    vec![name.to_owned(), number(user, 2), number(system, 2), number(written, 0)]
}

/// User time, system time and written bytes per request, by thread name, medians of the rounds.
fn thread_costs(series: &Series) -> BTreeMap<String, [f64; 3]> {
    let usages: Vec<_> = series
        .rounds
        .iter()
        .filter_map(|one| Some((one.usage.as_ref()?, one.good as f64)))
        .collect();
    let names: BTreeSet<&String> = usages.iter().flat_map(|(usage, _)| usage.0.keys()).collect();
    let cost = |name: &String| {
        let of_rounds = usages.iter().map(|(usage, requests)| {
            let thread = usage.0.get(name).copied().unwrap_or_default();
            [thread.user_us, thread.system_us, thread.written_bytes as f64]
                .map(|all| all / requests)
        });
        let of_rounds: Vec<[f64; 3]> = of_rounds.collect();
        [0, 1, 2].map(|at| median(of_rounds.iter().map(|round| round[at])))
    };
    names.into_iter().map(|name| (name.clone(), cost(name))).collect()
}

/// The hub's counters per request, and how many commands were committed together.
fn counter_rows(series: &Series) -> Vec<Vec<String>> {
    let per_batch =
        |round: &Measurement| value(&round.counters, COMMANDS) / value(&round.counters, BATCHES);
    let names: BTreeSet<&String> =
        series.rounds.iter().flat_map(|round| round.counters.keys()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![["counter", "per request"].map(str::to_owned).to_vec()];
    rows.extend(names.iter().map(|name| {
        let each = |round: &Measurement| value(&round.counters, name) / round.good as f64;
        let each = series.median(each);
        match name.strip_suffix("_seconds_sum") {
            Some(name) => vec![format!("{name}, µs"), number(each * 1e6, 1)],
            None => vec![(*name).clone(), number(each, 4)],
        }
    }));
    rows.push(vec!["commands per batch".to_owned(), number(series.median(per_batch), 1)]);
    rows
}

fn value(counters: &Counters, name: &str) -> f64 {
    counters.get(name).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measurement::Tally;
    use crate::usage::{ThreadUsage, Usage};

    fn round(good: u64, lane_us: f64, commands: f64) -> Measurement {
        let mut tally = Tally::default();
        tally.good = good;
        let lane = ThreadUsage { user_us: lane_us, system_us: lane_us / 2.0, written_bytes: 4_000 };
        let counters = [(COMMANDS, commands), (BATCHES, 2.0), ("rialto_commit_seconds_sum", 0.001)];
        Measurement {
            usage: Some(Usage([("lane".to_owned(), lane)].into())),
            counters: counters.map(|(name, value)| (name.to_owned(), value)).into(),
            ..tally.measured_in(Duration::from_secs(1))
        }
    }

    #[test]
    fn costs_are_medians_per_request() {
        let rounds = vec![round(10, 100.0, 10.0), round(20, 400.0, 20.0), round(10, 900.0, 30.0)];
        let series = Series { name: "send".to_owned(), hub: "new".to_owned(), rounds };
        assert_eq!(thread_costs(&series)["lane"], [20.0, 10.0, 400.0]);
        let rows = counter_rows(&series);
        assert_eq!(rows[1], ["rialto_batch_commands_count", "0.2000"]);
        assert_eq!(rows[3], ["rialto_commit, µs", "100.0"]);
        assert_eq!(rows[4], ["commands per batch", "10.0"]);
        let text = thread_table(&series);
        assert!(text.contains("lane      20.00      10.00            400"), "{text}");
        assert!(text.contains("all       20.00      10.00            400"), "{text}");
    }

    #[test]
    fn a_server_without_counters_has_no_such_table() {
        let rounds = vec![Tally::default().measured_in(Duration::from_secs(1))];
        let series = Series { name: "echo".to_owned(), hub: String::new(), rounds };
        assert!(counter_rows(&series).is_empty() && thread_costs(&series).is_empty());
    }
}
