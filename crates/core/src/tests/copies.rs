//! Copies of a world: each follows from the batches alone, wherever it begins.

use proptest::prelude::*;

use super::Picture;
use super::steps::{self, Step};
use crate::changes::{Batch, Changes, ExpiredRows};
use crate::encoding;
use crate::testkit::TestHub;
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// Expired rows removed in one batch: more than a walk has.
const EXPIRED_MAX: usize = 1_000;

/// A batch as it is read from the log.
type Logged = (Changes, ExpiredRows);

/// Ends a batch as the lane does, and returns what is read from its record.
fn end_batch(scene: &mut TestHub, commands: Vec<Changes>) -> Logged {
    let mut batch = Changes::default();
    commands.into_iter().for_each(|changes| batch.merge(changes));
    let expired = scene.world.expired_rows(scene.now, EXPIRED_MAX);
    scene.world.remove_expired(&expired);
    for id in &expired.answers {
        scene.store.rows.idempotency_records.remove(id);
        scene.store.rows.idempotency_entries.remove(id);
    }
    for (_, id) in &expired.keys {
        scene.store.rows.keys.remove(id);
    }
    let batch = Batch::new(batch, expired);
    let record = encoding::encode_batch(&batch, Vec::new()).expect("it can be encoded");
    let read = encoding::decode_batch(&record).expect("it can be decoded");
    assert_eq!(read, batch, "a batch changed in the log");
    (read.changes, read.expired)
}

/// Panics unless a copy is what the running world is. Keys are left out: the steps use few of them, and
/// one that is issued again after it expired has another place among the keys of its agent.
fn is_a_copy(copy: &mut World, running: &mut World, now: Timestamp) {
    copy.expire_online(now);
    running.expire_online(now);
    assert_eq!(Picture::of(copy), Picture::of(running));
    assert!(copy.idempotency_entries().eq(running.idempotency_entries()), "saved answers");
    assert_eq!(copy.saved_total(), running.saved_total(), "the size of saved answers");
    assert_eq!(copy.next_timer_at(), running.next_timer_at(), "the next timer");
    assert_eq!(copy.next_offline_at(), running.next_offline_at(), "the next agent offline");
    assert_eq!(copy.next_delivery_at(), running.next_delivery_at(), "the next delivery");
    for agent in running.agents() {
        assert_eq!(copy.agent(agent.id), Some(agent), "an agent");
        assert_eq!(copy.inbox(agent.id), running.inbox(agent.id), "an inbox");
        assert!(copy.assigned_jobs(agent.id).eq(running.assigned_jobs(agent.id)), "its jobs");
    }
}

/// Panics unless agents with a start limit may start at the same times.
fn has_the_same_starts(copy: &World, running: &World, now: Timestamp) {
    for agent in running.agents() {
        for at in [now, now.plus(Millis::seconds(30))] {
            let starts = |world: &World| {
                (world.recent_start_count(agent.id, at), world.next_start_at(agent.id, at))
            };
            assert_eq!(starts(copy), starts(running), "starts of {}", agent.id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// One copy gets every batch, as the published world and another node do. A second one begins at
    /// a checkpoint, as a start does: of jobs that had ended by then it knows no start.
    #[test]
    fn every_copy_of_the_world_follows_from_the_batches(
        steps in prop::collection::vec((steps::step(), prop::bool::weighted(0.4)), 60),
        checkpoint in 0_usize..60,
    ) {
        let mut scene = steps::opening();
        scene.checks_invariants = false;
        scene.recorded = Some(Vec::new());
        let mut published = scene.world.clone();
        let mut started = None;
        for (at, (step, is_last)) in steps.iter().enumerate() {
            // Which starts an agent needs follows from its limit, and a batch has only one version
            // of its row.
            let sets_limits = |step: &Step| matches!(step, Step::Enrol { .. } | Step::Say(_));
            let next_sets = steps.get(at + 1).is_some_and(|(next, _)| sets_limits(next));
            let _ = step.perform(&mut scene);
            if !(*is_last || sets_limits(step) || next_sets || at + 1 == steps.len()) {
                continue;
            }
            let commands = scene.recorded.replace(Vec::new()).unwrap_or_default();
            let (changes, expired) = end_batch(&mut scene, commands);
            published.replay(&changes, &expired);
            is_a_copy(&mut published, &mut scene.world, scene.now);
            has_the_same_starts(&published, &scene.world, scene.now);
            match &mut started {
                Some(copy) => {
                    World::replay(copy, &changes, &expired);
                    is_a_copy(copy, &mut scene.world, scene.now);
                }
                None if at >= checkpoint => {
                    started = Some(scene.store.rebuild_world(scene.world.rules));
                }
                None => {}
            }
        }
    }
}
