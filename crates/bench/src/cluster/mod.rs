//! Benchmarks a hub of several nodes over PostgreSQL: next to one node and to SQLite ([`rates`]), while
//! the writer or the database fails ([`failover`]), and at the start of a node ([`start`]).
//!
//! The PostgreSQL is a private one with default settings, so every commit is synced. Nodes, database
//! and client share the machine, so three nodes cannot be faster here than they are on three machines.

mod database;
mod failover;
mod nodes;
mod rates;
mod start;

use std::io;

use crate::rounds::{BenchOptions, Results};

use database::Installation;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct ClusterOptions {
    /// Jobs a worker fetches with one poll.
    pub batch: u64,
    /// Fail-overs of each kind.
    pub failovers: usize,
    /// Agents in the hub whose start is measured.
    pub agents: usize,
}

/// Measures everything, or returns only a note if PostgreSQL is not installed.
pub fn measure(options: &BenchOptions, cluster: ClusterOptions) -> io::Result<Results> {
    let postgres = match Installation::find() {
        Ok(postgres) => postgres,
        Err(missing) => return Ok(Results { notes: vec![missing], ..Results::default() }),
    };
    let mut results = Results::default();
    for binary in &options.hubs {
        results.add(rates::measure(options, binary, &postgres, cluster.batch)?);
        results.add(failover::measure(options, binary, &postgres, cluster.failovers)?);
        results.add(start::measure(options, binary, &postgres, cluster.agents)?);
    }
    Ok(results)
}
