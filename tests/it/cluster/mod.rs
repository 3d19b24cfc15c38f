//! Several nodes: real processes on one PostgreSQL, under traffic and faults (G1 to G22).
//!
//! Clients of all protocols use all nodes. Every request is recorded with its begin, its end and its
//! outcome; after each round the record is compared with what the nodes show. What was acknowledged
//! is there once, what was refused is not, what got no answer is there at most once, and no node
//! shows a state older than another has shown before.
//!
//! `cargo xtask cluster` runs more rounds, and the planted mistakes that the checks must notice.

mod checks;
mod client;
mod clocks;
mod database;
mod disk;
mod failover;
mod faults;
mod harness;
mod history;
mod membership;
mod memory;
mod mistakes;
mod nemesis;
mod node;
mod report;
mod sharing;
mod traffic;
mod upgrade;

use sha2::{Digest, Sha256};

use crate::crash::Dice;
use disk::FaultyDisk;
use faults::Fault;
use harness::{Cluster, ClusterOptions};
use nemesis::Plan;
use rialto_engine::random::{OsRandom, RandomSource};

/// Environment variable: the number of rounds.
const ROUNDS: &str = "RIALTO_CLUSTER_ROUNDS";
/// Environment variable: the seed, to repeat a run.
const SEED: &str = "RIALTO_CLUSTER_SEED";
/// Environment variable: the faults to choose from, separated by commas.
const FAULTS: &str = "RIALTO_CLUSTER_FAULTS";
/// The default number of rounds.
const ROUNDS_USUALLY: usize = 40;
/// Commands that are acknowledged in a round at least, on average.
const ACKS_PER_ROUND: usize = 50;
/// Rounds of the same traffic at one hub on SQLite.
const ROUNDS_OF_ONE_HUB: usize = 4;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")))
}

fn seed() -> u64 {
    let seed = number(SEED).unwrap_or_else(|| OsRandom.new_uuid().as_u64_pair().0);
    println!("{SEED}={seed}");
    seed
}

fn chosen_faults() -> Vec<Fault> {
    let Ok(names) = std::env::var(FAULTS) else { return Fault::usual() };
    let fault = |name: &str| {
        let known = Fault::ALL.map(Fault::name).join(", ");
        Fault::named(name)
            .unwrap_or_else(|| panic!("{FAULTS} has {name}, which is none of {known}"))
    };
    names.split(',').filter(|name| !name.is_empty()).map(fault).collect()
}

/// A short name for bytes.
fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_under_faults_lose_nothing_double_nothing_and_never_go_back() {
    const NAME: &str =
        "cluster::three_nodes_under_faults_lose_nothing_double_nothing_and_never_go_back";
    let seed = seed();
    let (faults, mut options) = (chosen_faults(), ClusterOptions::default());
    if faults.iter().any(|fault| fault.needs_disk()) {
        let Some(disk) = FaultyDisk::create(NAME) else { return };
        options = ClusterOptions::with_disk(disk);
    }
    let Some(cluster) = Cluster::start(NAME, &options).await else { return };
    let rounds = number(ROUNDS).map_or(ROUNDS_USUALLY, |rounds| rounds as usize);
    let plan = Plan { rounds, seed, faults, stops_at_violation: false };
    let report = nemesis::run(&cluster, &plan).await;
    println!("{report}");
    if report.has_violations() {
        let logs = cluster.keep_logs(&seed.to_string());
        panic!("{} violations; logs are in {logs}", report.violations().len());
    }
    let audit = tokio::task::block_in_place(|| cluster.audit());
    for node in &cluster.nodes {
        let status = tokio::task::block_in_place(|| node.stop()).expect("it runs");
        assert!(status.success(), "node {} stopped with {status}", node.number);
    }
    assert!(report.acknowledged() >= ACKS_PER_ROUND * rounds, "too little load");
    match audit {
        Some(audit) => audit.expect("the audit finds nothing"),
        None => println!("this binary cannot audit a database"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_traffic_at_one_hub_passes_the_same_checks() {
    let seed = seed();
    let cluster = Cluster::single().await;
    let faults = Fault::ALL.into_iter().filter(|fault| fault.fits_one_hub()).collect();
    let plan = Plan { rounds: ROUNDS_OF_ONE_HUB, seed, faults, stops_at_violation: false };
    let report = nemesis::run(&cluster, &plan).await;
    println!("{report}");
    assert!(!report.has_violations(), "{:?}", report.violations());
}

#[test]
fn every_fault_has_a_name_of_its_own() {
    for fault in Fault::ALL {
        assert_eq!(Fault::named(fault.name()), Some(fault));
    }
    let mut dice = Dice(1);
    assert_eq!(Fault::choose(&mut dice, &[Fault::KillNode]), Fault::KillNode);
}
