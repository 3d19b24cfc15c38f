//! Presence first: a job that waits for a worker that is away has no hold, and everything is
//! checked when the worker is back.

use super::responding::{seconds, whole};
use super::{market, order_for, stand};
use crate::agent::Capacity;
use crate::agent::presence::Availability;
use crate::agent::{Liveness, Terms};
use crate::command::{Approver, Command, OpenJob, Registration};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Policy, State, readiness};
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, credits, registration, skill};
use crate::time::Millis;
use proptest::prelude::*;

pub(super) const PRESENCE_FIRST: Policy = Policy {
    reassignment: Reassignment {
        when_unreachable: false,
        when_declined: false,
        when_failed: false,
    },
    queueing: Queueing { when_unmatched: false, after_failure: false },
    requester: RequesterOptions {
        answered_at_once: true,
        cancels_any_time: true,
        waits: false,
        unpaid: false,
        follows_log: false,
    },
    named_worker: NamedWorker { may_be_offline: false, not_before: None },
};

fn order(scene: &mut TestHub, client: AgentId, ada: AgentId) -> OpenJob {
    OpenJob { policy: PRESENCE_FIRST, ..order_for(scene, client, ada) }
}

/// A job for an agent that is away for a minute, with `presence_first`.
pub(super) fn put_off() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let order = order(&mut scene, client, ada);
    let job = scene.open_job(order).id;
    (scene, client, ada, job)
}

#[test]
fn the_requester_is_told_to_wait_from_the_start() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let there = order(&mut scene, client, ada);
    let job = scene.open_job(there);
    assert!(job.pending);
    assert_eq!(scene.balance_text("rich").1, "0.50", "held at acceptance");
    let plain = order_for(&mut scene, client, ada);
    let reached = crate::testkit::registration_with_endpoint("bob", "acme", &[("sum", "0.10")]);
    let bob = scene.register(reached).unwrap();
    let selection = crate::job::Selection::Direct(bob);
    assert!(!scene.open_job(OpenJob { selection, ..plain.clone() }).pending);
    let foreign = "other".to_owned();
    let uuid = uuid::Uuid::from_u128(77);
    let order = OpenJob { selection, policy: PRESENCE_FIRST, foreign_id: foreign, uuid, ..plain };
    let job = scene.open_job(order).id;
    // So it can never vanish as if it had not been requested.
    assert_eq!(scene.unreachable(job).state, State::Failed);
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
}

#[test]
fn what_is_held_back_is_given_out_at_its_moment_and_not_before() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let until = scene.now.plus(seconds(5));
    let policy = Policy {
        named_worker: NamedWorker { not_before: Some(until), ..PRESENCE_FIRST.named_worker },
        ..PRESENCE_FIRST
    };
    let order = OpenJob { policy, ..order(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    let held = (State::Deferred { until }, None);
    assert_eq!((scene.job(job).state, scene.job(job).worker()), held);
    // Its worker is online all the time and reports so.
    stand(&mut scene, ada, Availability::Idle, None);
    scene.advance(seconds(4));
    assert_eq!((scene.job(job).state, scene.job(job).worker()), held);
    assert_eq!(scene.balance_text("rich"), whole(), "nothing is held meanwhile");
    scene.advance(seconds(1));
    assert_eq!((scene.job(job).state, scene.job(job).worker()), (State::Assigned, Some(ada)));
}

#[test]
fn nothing_is_held_while_the_worker_is_away_and_all_of_it_at_acceptance() {
    let (mut scene, client, ada, job) = put_off();
    assert_eq!((scene.balance_text("rich"), scene.job(job).payment.held), (whole(), credits("0")));
    assert!(scene.job(job).pending);
    scene.advance(seconds(30));
    stand(&mut scene, ada, Availability::Idle, None);
    let given = scene.job(job);
    assert_eq!((given.state, given.worker(), given.payment.held), {
        (State::Assigned, Some(ada), credits("0.50"))
    });
    assert_eq!(scene.balance_text("rich"), ("99.50".to_owned(), "0.50".to_owned()));
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("rich"), ("99.90".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.balance_text("acme").0, "0.10");
}

#[test]
fn a_purse_that_is_empty_by_then_ends_it_without_blame() {
    let (mut scene, client, ada, job) = put_off();
    let burn = Command::Burn { name: "rich".to_owned(), amount: credits("99.60") };
    scene.run(burn).unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    let report = scene.job(job).result.clone().unwrap();
    assert_eq!((scene.state(job), report.cause), (State::Failed, Some(Cause::Payment)));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!((scene.job(job).worker(), scene.notices_to(ada)), (None, vec![]));
    assert_eq!(
        scene.agent_state(ada).standing.outcomes,
        0,
        "Payment is a worker failure, but not here"
    );
    assert_eq!(scene.balance_text("rich"), ("0.40".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_price_above_the_budget_is_found_when_it_is_back() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.60")]);
    let there = order(&mut scene, client, ada);
    let price = credits("0.60");
    assert_eq!(scene.try_open_job(there).unwrap_err(), Refusal::BudgetTooLow { price });
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let away = order(&mut scene, client, ada);
    let job = scene.open_job(away).id;
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!((scene.state(job), scene.cause(job)), (State::Failed, Some(Cause::BudgetTooLow)));
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
}

#[test]
fn a_deadline_in_the_past_is_asked_about_after_presence() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let late = |scene: &mut TestHub, policy| {
        let deadline = scene.now.plus(Millis(-1));
        OpenJob { deadline, policy, wanted_by: Some(deadline), ..order_for(scene, client, ada) }
    };
    let order = late(&mut scene, PRESENCE_FIRST);
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::DeadlineTooSoon);
    for (availability, why) in
        [(Availability::Error, Refusal::Offline), (Availability::Broken, Refusal::AgentBroken)]
    {
        stand(&mut scene, ada, availability, None);
        let order = late(&mut scene, PRESENCE_FIRST);
        assert_eq!(scene.try_open_job(order).unwrap_err(), why);
    }
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let order = late(&mut scene, Policy::default());
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::DeadlineTooSoon);
    let order = late(&mut scene, PRESENCE_FIRST);
    let job = scene.open_job(order).id;
    let until = scene.now.plus(seconds(60));
    assert_eq!(scene.state(job), State::Deferred { until }, "maintenance comes first");
    // But nothing waits past its deadline.
    scene.advance(Millis(0));
    assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
}

#[test]
fn an_agent_that_returns_gets_no_job_past_its_deadline() {
    let (mut scene, client, ada, _) = put_off();
    let deadline = scene.now.plus(seconds(30));
    let order = OpenJob { deadline, ..order(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    scene.advance_without_timers(seconds(30));
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!((scene.state(job), scene.cause(job)), (State::Failed, Some(Cause::TimedOut)));
    assert_eq!(scene.job(job).worker(), None);
}

#[test]
fn who_stays_away_longer_than_it_said_is_waited_for_until_then() {
    let (mut scene, client, ada, job) = put_off();
    stand(&mut scene, ada, Availability::Maintenance, Some(300));
    let until = scene.now.plus(seconds(300));
    // At the time it named first at the latest, the job is deferred again.
    scene.advance(seconds(60));
    assert_eq!(scene.state(job), State::Deferred { until });
    assert_eq!(scene.balance_text("rich"), whole(), "nothing is held meanwhile");
    assert!(scene.notices_to(client).is_empty());
    // If it is back before that, the job does not wait any longer.
    stand(&mut scene, ada, Availability::Maintenance, Some(200));
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.job(job).worker(), Some(ada));
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    assert_eq!(scene.balance_text("rich").1, "0.50");
}

#[test]
fn who_leaves_instead_of_coming_back_ends_it_without_money_having_moved() {
    let (mut scene, client, ada, job) = put_off();
    scene.remove(ada);
    assert_eq!((scene.state(job), scene.cause(job)), (State::Failed, Some(Cause::NoSuchSkill)));
    assert_eq!((scene.balance_text("rich"), scene.notices_to(client).len()), (whole(), 1));
    assert!(scene.store.rows.entries.iter().all(|entry| entry.job.is_none()));
}

#[test]
fn presence_is_known_before_a_request_is_sent() {
    let (mut scene, client) = market();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let terms = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(0), ..Capacity::default() },
        ..Terms::default()
    };
    let liveness = Liveness::ByPolling;
    let ada = scene.register(Registration { terms, liveness, ..order }).unwrap();
    let away = |scene: &TestHub| readiness::return_time(&scene.world, scene.agent(ada), scene.now);
    for availability in [Availability::Idle, Availability::Busy] {
        stand(&mut scene, ada, availability, Some(60));
        assert_eq!(away(&scene), Ok(None), "load is not checked");
    }
    let back = scene.now.plus(seconds(60));
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    assert_eq!(away(&scene), Ok(Some(back)));
    scene.advance_without_timers(Millis(59_999));
    assert_eq!(away(&scene), Ok(Some(back)));
    scene.advance_without_timers(Millis(1));
    assert_eq!(away(&scene), Err(Refusal::Offline), "it has not come back");
    stand(&mut scene, ada, Availability::Maintenance, None);
    assert_eq!(away(&scene), Err(Refusal::Offline), "the end is unknown");
    stand(&mut scene, ada, Availability::Error, Some(60));
    assert_eq!(away(&scene), Err(Refusal::Offline));
    stand(&mut scene, ada, Availability::Broken, Some(60));
    assert_eq!(away(&scene), Err(Refusal::AgentBroken));
    stand(&mut scene, ada, Availability::Idle, None);
    scene.advance_without_timers(Millis(90_001));
    assert_eq!(away(&scene), Err(Refusal::Offline), "no heartbeat for too long");
    assert_eq!(readiness::return_time(&scene.world, scene.agent(client), scene.now), Ok(None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a worker comes and goes and however the balance changes, a job has a hold exactly
    /// while it is assigned or about to be, and no credit is lost.
    #[test]
    fn money_is_held_exactly_from_acceptance_to_the_end(
        approval in any::<bool>(),
        steps in prop::collection::vec((0_u8..9, 0_i64..40), 1..40),
    ) {
        let (mut scene, client) = market();
        let mut sum = skill("sum", "0.10");
        sum.needs_approval = approval;
        let ada = scene
            .register(Registration { skills: vec![sum], ..registration("ada", "acme", &[]) })
            .unwrap();
        for (step, n) in steps {
            let job = scene.world.live_jobs().map(|job| job.id).min();
            match (step, job) {
                (0 | 1, _) => {
                    let order = order(&mut scene, client, ada);
                    let budget = credits(["0.05", "0.50", "60.00"][n as usize % 3]);
                    drop(scene.try_open_job(OpenJob { budget, ..order }));
                }
                (2 | 3, _) => stand(&mut scene, ada, Availability::Maintenance, Some(1 + n)),
                (4, _) => stand(&mut scene, ada, Availability::Idle, None),
                (5, Some(job)) if scene.job(job).worker().is_some() => {
                    drop(scene.succeed(job, "0.10"));
                }
                (6, Some(job)) => drop(scene.approve(job, Approver::Operator, n % 4 != 0)),
                (7, Some(job)) => drop(scene.cancel(job, if n % 2 == 0 { ada } else { client })),
                _ => scene.advance(seconds(n)),
            }
            for job in scene.world.live_jobs() {
                let away = job.candidates.pending_assignment.is_some_and(|waits| !waits.needs_approval && !waits.approved);
                let held = if away { credits("0") } else { job.payment.budget };
                prop_assert_eq!(job.payment.held, held, "{:?}", job);
            }
        }
        scene.advance(Millis::hours(48));
        let sum = |name: &str| scene.owner(name).available.micros() + scene.owner(name).held.micros();
        prop_assert_eq!(sum("rich") + sum("acme"), credits("100").micros());
        prop_assert_eq!(scene.owner("rich").held, credits("0"));
    }
}
