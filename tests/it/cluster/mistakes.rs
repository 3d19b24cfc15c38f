//! Planted mistakes: each must be noticed, or the checks are worth nothing.
//!
//! `cargo xtask cluster --mistakes` runs them. A hub built with debug assertions makes a mistake
//! that `RIALTO_TEST_MISTAKE` names.

use super::faults::Fault;
use super::harness::{Cluster, ClusterOptions, SCHEMA};
use super::nemesis::{self, Plan};
use super::{number, seed};

/// The mistake that any place of the log can be written twice.
const NO_KEY: &str = "no-key";
/// Rounds in which a mistake must be noticed.
const ROUNDS: usize = 60;

/// Faults that bring a deposed writer and a new one together.
const DEPOSING: [Fault; 7] = [
    Fault::PartitionWriter,
    Fault::PartitionWriter,
    Fault::PauseWriter,
    Fault::CutDatabase,
    Fault::OneWayDatabase,
    Fault::CutAfterCommit,
    Fault::KillWriter,
];
/// Faults that lose replies between nodes.
const LOSING: [Fault; 6] = [
    Fault::BreakHop,
    Fault::CutHop,
    Fault::OneWayHop,
    Fault::LoseHints,
    Fault::KillWriter,
    Fault::PauseWriter,
];

async fn assert_noticed(mistake: &str, faults: &[Fault]) {
    let test = format!("cluster::mistakes::{mistake}");
    let seed = seed();
    let env = vec![("RIALTO_TEST_MISTAKE".to_owned(), mistake.to_owned())];
    let options = ClusterOptions { env, ..ClusterOptions::default() };
    let Some(cluster) = Cluster::start(&test, &options).await else { return };
    if mistake == NO_KEY {
        // The key is the database's, so the test takes it away.
        let drop = format!("ALTER TABLE {SCHEMA}.log DROP CONSTRAINT IF EXISTS log_pkey");
        cluster.with_database(|database| database.run_sql(&drop)).expect("a log without its key");
    }
    let rounds = number(super::ROUNDS).map_or(ROUNDS, |rounds| rounds as usize);
    let plan = Plan { rounds, seed, faults: faults.to_vec(), stops_at_violation: true };
    let report = nemesis::run(&cluster, &plan).await;
    println!("{mistake}: {report}");
    assert!(report.has_violations(), "{mistake} was not noticed in {} rounds", report.rounds());
    println!("{mistake} was noticed in round {}", report.rounds());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by `cargo xtask cluster --mistakes`"]
async fn a_log_without_its_key_is_noticed() {
    assert_noticed(NO_KEY, &DEPOSING).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by `cargo xtask cluster --mistakes`"]
async fn commands_sent_to_a_new_writer_too_early_are_noticed() {
    assert_noticed("resend-early", &DEPOSING).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by `cargo xtask cluster --mistakes`"]
async fn commands_that_are_decided_again_are_noticed() {
    assert_noticed("no-dedupe", &LOSING).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by `cargo xtask cluster --mistakes`"]
async fn refusals_of_a_deposed_writer_are_noticed() {
    assert_noticed("unconfirmed-refusal", &DEPOSING).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; run by `cargo xtask cluster --mistakes`"]
async fn answers_before_their_batch_is_applied_are_noticed() {
    assert_noticed("early-answer", &LOSING).await;
}
