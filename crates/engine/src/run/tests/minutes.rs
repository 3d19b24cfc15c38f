//! Agents that limit how many jobs they start in a minute, and commands in the same batch.

use rialto_core::command::JobRef;
use rialto_core::job::Selection;

use super::*;
use crate::fixtures::{enrol, grant};
use crate::run::ManualLane;
use crate::secret::HubSecret;
use crate::testkit::SeededRandom;

/// Runs these in one batch.
async fn batch(
    engine: &Engine,
    lane: &mut ManualLane,
    commands: Vec<Command>,
) -> Vec<Result<Answer, Failure>> {
    let run = |command| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(command).await })
    };
    let running: Vec<_> = commands.into_iter().map(run).collect();
    // Every command reaches the lane's queue; the lane does not run by itself.
    tokio::task::yield_now().await;
    lane.run_batch();
    let mut answers = Vec::new();
    for one in running {
        answers.push(one.await.expect("nothing panics"));
    }
    answers
}

#[tokio::test]
async fn what_was_begun_and_taken_back_in_one_batch_still_counts_after_a_full_disk() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let rules = Rules { welcome_grant: credits("10"), ..Rules::default() };
    let (clock, ids) = (ManualClock::at(START), SeededRandom::new(1));
    let secret = HubSecret::from_bytes([7; 32]);
    let setup = crate::run::EngineParts {
        store,
        rules,
        clock,
        random: ids,
        secret,
        markets: Default::default(),
        cluster: None,
    };
    let (engine, mut lane) = ManualLane::start(setup).expect("an empty store can be read");
    let mut busy = enrol("bob", "bob", &[("sum", "1")]);
    busy.terms.capacity.max_starts_per_minute = Some(1);
    let people = [enrol("ada", "ada", &[]), busy];
    let people = people.into_iter().map(|one| Command::Register(Box::new(one))).collect();
    let came = batch(&engine, &mut lane, people).await;
    let [ada, bob] = [0, 1].map(|at| agent_in(came[at].as_ref().expect("a new name is free")));
    let mut first = open(1, ada, "sum", "1", START);
    first.policy.queueing.when_unmatched = true;
    first.policy.reassignment.when_declined = true;
    let back = JobRef::Foreign { origin: first.origin, id: first.foreign_id.clone() };
    let both = vec![Command::OpenJob(Box::new(first)), Command::Requeue { job: back }];
    assert!(batch(&engine, &mut lane, both).await.iter().all(Result::is_ok));
    probe.fail_with(StoreError::Full);
    let full = batch(&engine, &mut lane, vec![grant("ada", "1")]).await;
    assert!(matches!(full[0], Err(Failure::StoreFull)));
    // Addressed to an agent by name, so that the refusal has a reason.
    let mut second = open(2, ada, "sum", "1", START);
    second.selection = Selection::Direct(bob);
    let refused = batch(&engine, &mut lane, vec![Command::OpenJob(Box::new(second))]).await;
    let too_fast = rialto_core::refusal::Refusal::AtRateLimit;
    assert!(matches!(&refused[0], Err(Failure::Refused(why)) if *why == too_fast), "{refused:?}");
}
