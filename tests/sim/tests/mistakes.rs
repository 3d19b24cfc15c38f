//! Mistakes that are planted in the nodes or the database: the simulation of a cluster notices each.

use rialto_engine::cluster::mistake::Mistake;
use rialto_sim::cluster::{Cluster, ClusterOptions};
use rialto_sim::run::first_failure;

/// Operations within which a mistake is noticed.
const OPS_MAX: u64 = 20_000;
/// The same for one that needs a rare order of events.
const RARE_OPS_MAX: u64 = 200_000;

/// Runs until the mistake is noticed, in one of these words.
fn is_noticed(mistake: Mistake, words: &[&str]) {
    is_noticed_within(OPS_MAX, mistake, words);
}

fn is_noticed_within(max: u64, mistake: Mistake, words: &[&str]) {
    let options = ClusterOptions { mistake: Some(mistake), ..ClusterOptions::ANY };
    let Some((ops, why)) = first_failure::<Cluster>(1, options, max) else {
        panic!("{mistake:?} was not noticed within {max} operations");
    };
    println!("{mistake:?} noticed after {ops} operations: {}", why.replace('\n', " "));
    assert!(words.iter().any(|word| why.contains(word)), "noticed for another reason: {why}");
}

#[test]
fn a_place_that_can_be_written_twice_is_noticed() {
    is_noticed(Mistake::NoKey, &["was replaced"]);
}

#[test]
#[ignore = "noticed after 87,765 operations, which takes a minute; the process tests notice it too"]
fn commands_sent_again_before_the_first_batch_of_an_epoch_are_noticed() {
    let words = ["an effect twice", "an effect after"];
    is_noticed_within(RARE_OPS_MAX, Mistake::AskBeforeFirstBatch, &words);
}

#[test]
fn a_writer_that_decides_a_command_twice_is_noticed() {
    is_noticed(Mistake::NoDedupe, &["an effect twice", "an effect after"]);
}

#[test]
#[ignore = "not noticed within a million operations; the process tests notice it"]
fn a_reply_from_an_old_state_is_noticed() {
    is_noticed(Mistake::NoConfirmation, &["from an older state", "but decided"]);
}

#[test]
fn a_reply_before_its_batch_is_applied_is_noticed() {
    is_noticed(Mistake::ReplyBeforeBatch, &["before its batch is applied"]);
}
