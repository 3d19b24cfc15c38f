use super::{PATIENT, hire, keeps, market, order_for, stand, sums};
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::agent::{Capacity, JobIntake};
use crate::agent::{Liveness, Terms};
use crate::command::{Command, OfferTerms, OpenJob, Registration};
use crate::id::AgentId;
use crate::job::{Cause, Policy, Requester, Selection, State};
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::refusal;
use crate::testkit::{TestHub, credits, jobs_in, registration};
use crate::time::Millis;
use proptest::prelude::*;

const ONE_AT_ONCE: Terms = Terms {
    capacity: Capacity { max_concurrent_jobs: Some(1), max_starts_per_minute: None },
    intake: JobIntake { confirms_jobs: false, strict_input: false, urgent_first: false },
};
const TWO_A_MINUTE: Terms = Terms {
    capacity: Capacity { max_concurrent_jobs: None, max_starts_per_minute: Some(2) },
    intake: JobIntake { confirms_jobs: false, strict_input: false, urgent_first: false },
};
const PRESENCE_FIRST: Policy = Policy {
    requester: RequesterOptions { answered_at_once: true, ..NO_POLICY.requester },
    ..NO_POLICY
};
const NO_POLICY: Policy = Policy {
    reassignment: Reassignment {
        when_unreachable: false,
        when_declined: false,
        when_failed: false,
    },
    queueing: Queueing { when_unmatched: false, after_failure: false },
    requester: RequesterOptions {
        answered_at_once: false,
        cancels_any_time: false,
        waits: false,
        unpaid: false,
        follows_log: false,
    },
    named_worker: NamedWorker { may_be_offline: false, not_before: None },
};

/// Every strategy that picks a worker at once.
const STRATEGIES: [Selection; 4] = [
    Selection::BestReputation,
    Selection::RoundRobin,
    Selection::Cheapest,
    Selection::LeastOccupied,
];

fn seconds(n: i64) -> Millis {
    Millis::seconds(n)
}

#[test]
fn an_agent_has_exactly_as_much_in_hand_as_it_takes() {
    let (mut scene, client) = market();
    let ada = keeps(
        &mut scene,
        "ada",
        Terms {
            capacity: Capacity { max_concurrent_jobs: Some(5), ..Capacity::default() },
            ..Terms::default()
        },
    );
    let jobs: Vec<_> = (0..5).map(|_| hire(&mut scene, client, ada).unwrap().id).collect();
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtCapacity);
    assert_eq!(scene.world.assigned_job_count(ada), 5);
    scene.succeed(jobs[3], "0.10");
    assert_eq!(hire(&mut scene, client, ada).unwrap().worker(), Some(ada));
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtCapacity);
    let by = ada;
    let until = scene.now.plus(seconds(60));
    let put_off = Command::Defer { job: crate::command::JobRef::Id(jobs[0]), by, until };
    scene.run(put_off).unwrap();
    let full = hire(&mut scene, client, ada).unwrap_err();
    assert_eq!(full, Refusal::AtCapacity, "a job its worker deferred is still assigned");
}

#[test]
fn limits_count_whichever_strategy_chooses() {
    for selection in STRATEGIES {
        for terms in [
            ONE_AT_ONCE,
            Terms {
                capacity: Capacity { max_starts_per_minute: Some(1), ..Capacity::default() },
                ..Terms::default()
            },
        ] {
            let (mut scene, client) = market();
            let ada = keeps(&mut scene, "ada", terms);
            let bob = keeps(&mut scene, "bob", terms);
            let mut given = Vec::new();
            for _ in 0..2 {
                let order = scene.job_order(client, "sum", "0.50");
                given.extend(scene.open_job(OpenJob { selection, ..order }).worker());
            }
            given.sort();
            assert_eq!(given, [ada, bob], "{selection:?}");
            let order = OpenJob { selection, ..scene.job_order(client, "sum", "0.50") };
            assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::Offline, "{selection:?}");
            let order = scene.job_order(client, "sum", "0.50");
            let order = OpenJob { selection: Selection::Broadcast, ..order };
            assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::Offline);
        }
    }
}

#[test]
fn a_broadcast_goes_to_those_with_room() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ONE_AT_ONCE);
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.20")]);
    hire(&mut scene, client, ada).unwrap();
    let order = scene.job_order(client, "sum", "0.50");
    let order = OpenJob { selection: Selection::Broadcast, ..order };
    let jobs = jobs_in(scene.run(Command::OpenJob(Box::new(order))).unwrap());
    assert_eq!(jobs.iter().map(|job| job.worker()).collect::<Vec<_>>(), [Some(bob)]);
}

#[test]
fn who_wins_an_auction_must_have_room_for_it() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ONE_AT_ONCE);
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.20")]);
    let closes = scene.now.plus(seconds(10));
    for worker in [ada, bob] {
        let order = scene.job_order(client, "sum", "0.50");
        let job = scene.open_job(OpenJob { selection: Selection::Auction { closes }, ..order }).id;
        for (by, price) in [(ada, "0.01"), (bob, "0.30")] {
            let job = crate::command::JobRef::Id(job);
            let (price, valid_for) = (credits(price), seconds(60));
            scene
                .run(Command::Offer { job, by, price, terms: OfferTerms::Open { valid_for } })
                .unwrap();
        }
        assert_eq!(scene.state(job), State::Negotiating, "for {worker}");
    }
    scene.advance(seconds(10));
    let mut workers: Vec<_> = scene.world.live_jobs().map(|job| job.worker()).collect();
    workers.sort();
    assert_eq!(workers, [Some(ada), Some(bob)]);
}

#[test]
fn a_minute_slides() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", TWO_A_MINUTE);
    let first = hire(&mut scene, client, ada).unwrap().id;
    scene.advance(seconds(30));
    hire(&mut scene, client, ada).unwrap();
    scene.succeed(first, "0");
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtRateLimit, "also when done");
    scene.advance(Millis(29_999));
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtRateLimit);
    scene.advance(Millis(1));
    hire(&mut scene, client, ada).unwrap();
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtRateLimit);
    scene.advance(seconds(30));
    hire(&mut scene, client, ada).unwrap();
}

#[test]
fn the_twenty_first_within_a_minute_is_refused() {
    let (mut scene, client) = market();
    let ada = keeps(
        &mut scene,
        "ada",
        Terms {
            capacity: Capacity { max_starts_per_minute: Some(20), ..Capacity::default() },
            ..Terms::default()
        },
    );
    for _ in 0..20 {
        hire(&mut scene, client, ada).unwrap();
    }
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtRateLimit);
}

#[test]
fn a_world_made_anew_counts_the_same_minute() {
    let (mut scene, client) = market();
    let eve = scene.register_worker("eve", "acme", &[("sum", "0.10")]);
    let ada = keeps(
        &mut scene,
        "ada",
        Terms {
            capacity: Capacity { max_starts_per_minute: Some(1), ..Capacity::default() },
            ..Terms::default()
        },
    );
    // The older job is started later.
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let passed_on = scene.open_job(order);
    assert_eq!(passed_on.worker(), Some(eve));
    hire(&mut scene, client, ada).unwrap();
    scene.advance(seconds(90));
    assert_eq!(scene.decline(passed_on.id).worker(), Some(ada));
    scene.advance(seconds(1));
    scene.world = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(scene.world.recent_start_count(ada, scene.now), 1);
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::AtRateLimit);
}

#[test]
fn what_an_agent_says_of_itself_decides_what_it_is_given() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for (availability, answer) in [
        (Availability::Error, Err(Refusal::Offline)),
        (Availability::Busy, Ok(State::Assigned)),
        (Availability::Broken, Err(Refusal::AgentBroken)),
        (Availability::Idle, Ok(State::Assigned)),
        (Availability::Offline, Err(Refusal::Offline)),
        (Availability::Maintenance, Err(Refusal::Offline)),
    ] {
        stand(&mut scene, ada, availability, None);
        assert_eq!(hire(&mut scene, client, ada).map(|job| job.state), answer, "{availability:?}");
    }
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let until = scene.now.plus(seconds(60));
    let job = hire(&mut scene, client, ada).unwrap();
    assert_eq!((job.state, job.worker()), (State::Deferred { until }, None));
    let order = scene.job_order(client, "sum", "0.50");
    let nobody = scene.try_open_job(order).unwrap_err();
    assert_eq!(nobody, Refusal::Offline, "the hub chooses no agent that is away");
}

#[test]
fn who_was_silent_too_long_is_asked_again_once_it_is_heard() {
    let (mut scene, client) = market();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    scene.advance(Millis(90_000));
    assert!(hire(&mut scene, client, ada).is_ok());
    scene.advance(Millis(1));
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::Offline);
    stand(&mut scene, ada, Availability::Busy, None);
    assert!(hire(&mut scene, client, ada).is_ok());
}

/// A job for an agent that is away for a minute.
fn put_off() -> (TestHub, AgentId, AgentId, crate::id::JobId) {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let job = hire(&mut scene, client, ada).unwrap().id;
    (scene, client, ada, job)
}

#[test]
fn what_was_put_off_begins_when_its_worker_is_back_and_the_requester_is_told() {
    let (mut scene, client, ada, job) = put_off();
    assert_eq!(scene.balance_text("rich"), ("99.50".to_owned(), "0.50".to_owned()));
    assert!(scene.job(job).pending && scene.job(job).acceptance.accepted_at.is_none());
    assert_eq!(scene.notices_to(ada), [], "it is notified when it is back");
    scene.advance(seconds(20));
    stand(&mut scene, ada, Availability::Idle, None);
    let given = scene.job(job);
    assert_eq!((given.state, given.worker()), (State::Assigned, Some(ada)));
    assert_eq!(given.acceptance.accepted_at, Some(scene.now));
    assert_eq!(given.candidates.pending_assignment, None);
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    assert_eq!(scene.notices_to(ada), [NoticeKind::Assigned { job, epoch: 1 }]);
    scene.advance(seconds(60));
    assert_eq!(scene.job(job).epoch, 1, "the deferral has no effect any more");
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("rich"), ("99.90".to_owned(), "0.00".to_owned()));
}

#[test]
fn who_is_away_for_longer_is_waited_for_once_more() {
    let (mut scene, client, ada, job) = put_off();
    scene.advance(seconds(10));
    stand(&mut scene, ada, Availability::Maintenance, Some(200));
    let until = scene.now.plus(seconds(200));
    scene.advance(seconds(50));
    assert_eq!(scene.state(job), State::Deferred { until });
    assert_eq!(scene.notices_to(client), []);
    scene.advance(seconds(149));
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn who_does_not_come_back_is_not_waited_for() {
    let (mut scene, client, ada, job) = put_off();
    scene.advance(seconds(60));
    let ended = scene.job(job);
    assert_eq!((ended.state, ended.worker()), (State::Failed, None));
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::Offline));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(scene.agent_state(ada).standing.outcomes, 0, "it is no one's failure");
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn an_agent_that_returns_with_changed_skills_is_checked_again() {
    for (price, terms, skill, cause) in [
        ("0.10", Terms::default(), "dig", Cause::NoSuchSkill),
        (
            "0.10",
            Terms {
                capacity: Capacity { max_concurrent_jobs: Some(0), ..Capacity::default() },
                ..Terms::default()
            },
            "sum",
            Cause::Offline,
        ),
    ] {
        let (mut scene, _, ada, job) = put_off();
        let order = registration("ada", "acme", &[(skill, price)]);
        scene.register(Registration { terms, ..order }).unwrap();
        stand(&mut scene, ada, Availability::Idle, None);
        let ended = scene.job(job);
        assert_eq!(ended.state, State::Failed);
        assert_eq!(ended.result.as_ref().unwrap().cause, Some(cause));
        assert_eq!(scene.balance_text("rich").1, "0.00");
    }
    let (mut scene, _, ada, job) = put_off();
    stand(&mut scene, ada, Availability::Broken, None);
    scene.advance(seconds(60));
    assert_eq!(scene.job(job).result.as_ref().unwrap().cause, Some(Cause::NoSuchSkill));
}

#[test]
fn the_most_urgent_come_first_and_then_the_oldest() {
    let (mut scene, client) = market();
    let ada = keeps(
        &mut scene,
        "ada",
        Terms {
            capacity: Capacity { max_concurrent_jobs: Some(3), ..Capacity::default() },
            ..Terms::default()
        },
    );
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let mut jobs = Vec::new();
    for priority in [5, 1, 9, 5] {
        let order = OpenJob { priority, ..order_for(&mut scene, client, ada) };
        jobs.push(scene.open_job(order).id);
    }
    stand(&mut scene, ada, Availability::Idle, None);
    let told: Vec<_> = scene.notices_to(ada).into_iter().filter_map(|news| news.job()).collect();
    assert_eq!(told, [jobs[1], jobs[0], jobs[3]]);
    assert_eq!(scene.state(jobs[2]), State::Failed, "there was no capacity for it");
    assert_eq!(scene.balance_text("rich"), ("98.50".to_owned(), "1.50".to_owned()));
}

#[test]
fn nothing_is_given_out_after_its_deadline() {
    let (mut scene, client, ada, _) = put_off();
    let deadline = scene.now.plus(seconds(30));
    let order = OpenJob { deadline, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    // The hub was down when it was due.
    scene.advance_without_timers(seconds(30));
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), State::Failed);
    assert_eq!(scene.job(job).result.as_ref().unwrap().cause, Some(Cause::TimedOut));
    assert_eq!(scene.score(ada), crate::reputation::Score::START);
}

#[test]
fn a_deadline_must_leave_the_time_the_work_takes() {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.expected_duration = Some(Millis(5_000)));
    for (wanted, answer) in
        [(4_900, Err(Refusal::DeadlineTooSoon)), (5_000, Ok(())), (5_100, Ok(()))]
    {
        let promised = Some(scene.now.plus(Millis(wanted)));
        let order = OpenJob { wanted_by: promised, ..order_for(&mut scene, client, ada) };
        assert_eq!(scene.try_open_job(order).map(|_| ()), answer, "{wanted} as wanted");
        let deadline = scene.now.plus(Millis(wanted));
        let order = OpenJob { deadline, ..order_for(&mut scene, client, ada) };
        assert_eq!(scene.try_open_job(order).map(|_| ()), answer, "{wanted} as the end");
    }
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.10")]);
    let promised = Some(scene.now.plus(Millis(-1)));
    let order = OpenJob { wanted_by: promised, ..order_for(&mut scene, client, bob) };
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::DeadlineTooSoon);
}

#[test]
fn presence_or_price_is_asked_first_as_the_policy_says() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.60")]);
    let ask = |scene: &mut TestHub, policy| {
        let order = OpenJob { policy, ..order_for(scene, client, ada) };
        scene.try_open_job(order).map(|job| job.state)
    };
    let too_low = Refusal::BudgetTooLow { price: credits("0.60") };
    for policy in [PRESENCE_FIRST, NO_POLICY] {
        assert_eq!(ask(&mut scene, policy), Err(too_low.clone()), "it is there");
    }
    stand(&mut scene, ada, Availability::Error, None);
    assert_eq!(ask(&mut scene, PRESENCE_FIRST), Err(Refusal::Offline));
    assert_eq!(ask(&mut scene, NO_POLICY), Err(too_low.clone()));
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let until = scene.now.plus(seconds(60));
    assert_eq!(ask(&mut scene, PRESENCE_FIRST), Ok(State::Deferred { until }));
    assert_eq!(ask(&mut scene, NO_POLICY), Err(too_low));
    let full = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(0), ..Capacity::default() },
        ..Terms::default()
    };
    scene
        .register(Registration { terms: full, ..registration("ada", "acme", &[("sum", "0.60")]) })
        .unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(ask(&mut scene, PRESENCE_FIRST), Err(Refusal::AtCapacity));
}

#[test]
fn what_cannot_be_paid_is_not_put_off() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "poor", "0.40");
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::TooFewCredits);
    let order = order_for(&mut scene, client, ada);
    let requester = Requester::Guest("guest".to_owned());
    assert_eq!(
        scene.try_open_job(OpenJob { requester, ..order }).unwrap_err(),
        Refusal::GuestCannotPay
    );
}

#[test]
fn a_next_worker_that_cannot_begin_at_once_is_passed_over_for_one_that_can() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    sums(&mut scene, "bob", |skill| skill.needs_approval = true);
    let eve = scene.register_worker("eve", "acme", &[("sum", "0.20")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let job = scene.open_job(order);
    assert_eq!(job.worker(), Some(ada));
    assert_eq!(scene.unreachable(job.id).worker(), Some(eve));
}

#[test]
fn the_queue_is_for_those_who_can_begin_at_once() {
    for selection in [Selection::Cheapest, Selection::LeastOccupied] {
        let (mut scene, client) = market();
        let order =
            OpenJob { selection, policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
        let job = scene.open_job(order).id;
        sums(&mut scene, "bob", |skill| skill.needs_approval = true);
        assert_eq!(scene.state(job), State::Queued, "it was not approved");
        let eve = scene.register_worker("eve", "acme", &[("sum", "0.20")]);
        assert_eq!(scene.job(job).worker(), Some(eve), "though another is cheaper");
    }
}

#[test]
fn what_one_worker_promised_does_not_bind_the_next() {
    let (mut scene, client) = market();
    let takes = |skill: &mut crate::agent::Skill| skill.expected_duration = Some(seconds(5));
    let ada = sums(&mut scene, "ada", takes);
    let bob = sums(&mut scene, "bob", takes);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let job = scene.open_job(order);
    assert_eq!(job.worker(), Some(ada));
    scene.advance(seconds(60));
    let next = scene.decline(job.id);
    assert_eq!(next.worker(), Some(bob));
    assert_eq!(next.acceptance.promised, Some(scene.now.plus(seconds(5))));
}

#[test]
fn the_worker_before_is_never_waited_for() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = OpenJob { policy: PATIENT, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    assert_eq!(scene.decline(job).state, State::Queued);
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), State::Queued, "it declined");
}

#[test]
fn those_who_are_asked_in_words_keep_their_terms_too() {
    let mut scene = TestHub::default();
    let cid = scene.introduce("cid", &[]);
    scene.grant("cid", "10");
    let ada = keeps(&mut scene, "ada", ONE_AT_ONCE);
    let free = registration("ada", "acme", &[("sum", "0")]);
    scene.register(Registration { terms: ONE_AT_ONCE, ..free }).unwrap();
    let job = scene.request("cid", "r1", ada, None);
    assert_eq!(scene.job(job).worker(), Some(ada));
    assert_eq!(scene.try_request("cid", "r2", ada, None).unwrap_err(), Refusal::AtCapacity);
    let block = Command::SetBlocked { agent: ada, other: cid, blocked: true };
    scene.run(block).unwrap();
    assert_eq!(scene.try_request("cid", "r3", ada, None).unwrap_err(), Refusal::Blocked);
    let order = scene.sign_order("cid", "x", refusal("r1"));
    assert!(scene.run_signed(order).is_err(), "its worker has it");
}

#[test]
fn who_is_not_registered_any_more_is_not_asked() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ONE_AT_ONCE);
    scene.remove(ada);
    assert_eq!(hire(&mut scene, client, ada).unwrap_err(), Refusal::NoSuchAgent);
    let availability = Command::ReportStatus {
        agent: ada,
        status: AgentStatusUpdate { availability: Availability::Idle, until: None, words: None },
    };
    assert_eq!(scene.run(availability).unwrap_err(), Refusal::NoSuchAgent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For any sequence of orders, ends and pauses, both limits hold and no credit is lost.
    #[test]
    fn limits_are_kept_in_any_sequence(
        at_once in 1_u32..4,
        per_minute in 1_u32..6,
        steps in prop::collection::vec((0_u8..6, 0_i64..40), 1..40),
    ) {
        let (mut scene, client) = market();
        let terms = Terms { capacity: Capacity { max_concurrent_jobs: Some(at_once), max_starts_per_minute: Some(per_minute) }, intake: JobIntake { confirms_jobs: false, strict_input: false, urgent_first: false } };
        let ada = keeps(&mut scene, "ada", terms);
        let mut begun = Vec::new();
        for (step, pause) in steps {
            let (now, in_hand) = (scene.now, scene.world.assigned_job_count(ada));
            let lately = begun.iter().filter(|at| now.since(**at) < seconds(60)).count();
            let oldest = scene.world.assigned_jobs(ada).next().map(|job| job.id);
            match (step, oldest) {
                (0, Some(job)) => drop(scene.succeed(job, "0.10")),
                (1, _) => scene.advance(seconds(pause)),
                _ => {
                    let expected = match () {
                        () if lately >= per_minute as usize => Err(Refusal::AtRateLimit),
                        () if in_hand >= at_once as usize => Err(Refusal::AtCapacity),
                        () => Ok(Some(ada)),
                    };
                    let given = hire(&mut scene, client, ada).map(|job| job.worker());
                    begun.extend(given.is_ok().then_some(now));
                    prop_assert_eq!(given, expected);
                }
            }
        }
        let all: i64 = scene.world.owners().map(|one| (one.available.micros()) + one.held.micros()).sum();
        prop_assert_eq!(Credits::from_micros(all), Credits::ZERO);
    }
}
