//! The start of a node that follows: how long it takes to read all rows that it keeps in memory.

use std::io;
use std::thread;
use std::time::Duration;

use super::database::{Database, Installation};
use super::nodes::Nodes;
use crate::figure::Figure;
use crate::hub::{Ending, HubBinary};
use crate::rounds::{BenchOptions, Results};

/// Goal: seconds per million rows.
const GOAL: f64 = 2.5;
const MILLION: f64 = 1e6;
/// Starts that are measured at most.
const STARTS_MAX: usize = 5;
/// Time until the tables have everything that is in the log.
const SETTLE: Duration = Duration::from_secs(7);

/// Starts a second node at a hub with `agents` agents and at an empty one, in turns.
pub fn measure(
    options: &BenchOptions,
    binary: &HubBinary,
    postgres: &Installation,
    agents: usize,
) -> io::Result<Results> {
    let database = Database::start(postgres)?;
    let [mut small, mut large] = [
        Nodes::start(binary, &database.new_hub("small"), 2)?,
        Nodes::start(binary, &database.new_hub("large"), 2)?,
    ];
    large.0[0].register_crowd(agents, |_| ("idle".to_owned(), 1))?;
    thread::sleep(SETTLE);
    let rows = database.hot_rows("large")?.saturating_sub(database.hot_rows("small")?);
    let mut seconds = Vec::new();
    for _ in 0..options.rounds.min(STARTS_MAX) {
        let [short, long] = [&mut small, &mut large].map(|nodes| nodes.0[1].restart(Ending::Clean));
        let added = long?.as_secs_f64() - short?.as_secs_f64();
        seconds.push(added.max(0.0) * MILLION / rows as f64);
    }
    let figure = Figure::lower("start of a node per million hot rows", seconds, "s");
    let note = format!(
        "The start per million hot rows is scaled from {rows} rows, those of {agents} agents."
    );
    Ok(Results {
        figures: vec![figure.with_target(GOAL).of_hub(&binary.label)],
        notes: vec![note],
        ..Results::default()
    })
}
