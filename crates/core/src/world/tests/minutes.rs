//! When an agent with a start limit may start again, compared with its recent starts.

use proptest::prelude::*;

use crate::agent::Capacity;
use crate::agent::Terms;
use crate::command::{OpenJob, Registration};
use crate::id::AgentId;
use crate::job::Selection;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, registration};
use crate::time::Millis;

fn keeps(scene: &mut TestHub, per_minute: Option<u32>) -> AgentId {
    let terms = Terms {
        capacity: Capacity { max_starts_per_minute: per_minute, ..Capacity::default() },
        ..Terms::default()
    };
    scene.register(Registration { terms, ..registration("ada", "acme", &[("sum", "0")]) }).unwrap()
}

fn begin(scene: &mut TestHub, client: AgentId, ada: AgentId) -> Result<(), Refusal> {
    let order = scene.job_order(client, "sum", "0");
    scene.try_open_job(OpenJob { selection: Selection::Direct(ada), ..order }).map(|_| ())
}

#[test]
fn who_does_not_limit_it_and_who_is_not_there_may_always() {
    let mut scene = TestHub::default();
    let client = scene.register_worker("client", "rich", &[]);
    let ada = keeps(&mut scene, None);
    for _ in 0..5 {
        begin(&mut scene, client, ada).unwrap();
    }
    assert_eq!(scene.world.next_start_at(ada, scene.now), None);
    assert_eq!(scene.world.next_start_at(AgentId(99), scene.now), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any starts and any changes of the limit: the agent may start now exactly when it has
    /// started fewer jobs than its limit lately, and the time returned is the first at which it
    /// may.
    #[test]
    fn the_moment_named_is_the_first_at_which_it_may_begin(
        limit in 1_u32..5,
        steps in prop::collection::vec((0_u8..8, 0_i64..40_000), 1..40),
    ) {
        let mut scene = TestHub::default();
        scene.checks_invariants = false;
        let client = scene.register_worker("client", "rich", &[]);
        let (mut limit, ada) = (limit, keeps(&mut scene, Some(limit)));
        for (step, n) in steps {
            match step {
                0 => {
                    limit = 1 + n as u32 % 5;
                    keeps(&mut scene, Some(limit));
                }
                1..=3 => scene.advance_without_timers(Millis(n)),
                _ => {
                    let full = scene.world.next_start_at(ada, scene.now).is_some();
                    let began = begin(&mut scene, client, ada);
                    prop_assert_eq!(began, if full { Err(Refusal::AtRateLimit) } else { Ok(()) });
                }
            }
            let (world, now) = (&scene.world, scene.now);
            let room = |at| world.recent_start_count(ada, at) < limit as usize;
            match world.next_start_at(ada, now) {
                None => prop_assert!(room(now)),
                Some(at) => {
                    prop_assert!(now < at && at <= now.plus(Millis::minutes(1)));
                    prop_assert!(room(at) && !room(at.plus(Millis(-1))) && !room(now));
                    prop_assert_eq!(world.next_start_at(ada, at), None);
                }
            }
        }
    }
}
