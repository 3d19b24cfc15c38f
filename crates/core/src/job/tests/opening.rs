use super::{PATIENT, market};
use crate::agent::Liveness;
use crate::alias::{ClaimTarget, Digest, claim};
use crate::command::{Canceller, Command, JobRef, OpenJob, Registration};
use crate::id::AgentId;
use crate::job::open::HOPS_MAX;
use crate::job::{Policy, Requester, Selection, State};
use crate::job::{Queueing, RequesterOptions};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, credits, registration, registration_with_endpoint};
use crate::time::{Millis, Timestamp};
use crate::world::Rules;

/// A refused job costs nothing, changes nothing, and its id stays free.
fn refused(scene: &mut TestHub, order: OpenJob, why: Refusal) {
    let before = (scene.world.next, scene.balance_text("rich"));
    assert_eq!(scene.try_open_job(order).unwrap_err(), why);
    assert_eq!((scene.world.next, scene.balance_text("rich")), before);
    assert_eq!(scene.world.live_jobs().count(), 0);
}

fn named(agent: AgentId, order: OpenJob) -> OpenJob {
    OpenJob { selection: Selection::Direct(agent), ..order }
}

#[test]
fn a_job_goes_to_its_worker_with_its_budget_set_aside() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "0.15");
    let job = scene.open_job(order);
    assert_eq!((job.state, job.epoch, job.worker()), (State::Assigned, 1, Some(ada)));
    assert_eq!(job.assignment.unwrap().price, credits("0.10"));
    assert_eq!(scene.balance_text("rich"), ("99.85".to_owned(), "0.15".to_owned()));
    assert_eq!(scene.notices_to(ada), [NoticeKind::Assigned { job: job.id, epoch: 1 }]);
}

#[test]
fn checks_come_in_the_order_skill_budget_presence_funds() {
    let mut scene = TestHub::default();
    let poor = scene.register_client("poor", "rich", "0.12");
    let order = registration_with_endpoint("ada", "acme", &[("sum", "0.20")]);
    let ada = scene.register(order).unwrap();
    let order = scene.job_order(poor, "sum", "0.20");
    let other = OpenJob { skill: "other".to_owned(), budget: Credits::ZERO, ..order.clone() };
    refused(&mut scene, named(ada, other.clone()), Refusal::SkillNotOffered);
    refused(&mut scene, other, Refusal::NoSuchSkill);
    let low = OpenJob { budget: credits("0.19"), ..order.clone() };
    let price = credits("0.20");
    refused(&mut scene, named(ada, low.clone()), Refusal::BudgetTooLow { price });
    refused(&mut scene, low, Refusal::BudgetTooLow { price });
    refused(&mut scene, named(ada, order.clone()), Refusal::TooFewCredits);
    refused(&mut scene, order.clone(), Refusal::TooFewCredits);
    refused(&mut scene, named(AgentId(99), order.clone()), Refusal::NoSuchAgent);

    // Offline is reported before the lack of funds.
    scene.grant("rich", "1.00");
    let job = scene.open_job(order.clone()).id;
    scene.unreachable(job);
    let burn = Command::Burn { name: "rich".to_owned(), amount: credits("1.12") };
    scene.run(burn).unwrap();
    refused(&mut scene, named(ada, order.clone()), Refusal::Offline);
    refused(&mut scene, order, Refusal::Offline);
}

#[test]
fn a_budget_equal_to_the_price_is_enough() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "0.09");
    let price = credits("0.10");
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::BudgetTooLow { price });
    let order = scene.job_order(client, "sum", "0.10");
    assert_eq!(scene.open_job(order).state, State::Assigned);
}

#[test]
fn the_same_id_again_returns_the_job_and_runs_nothing() {
    let (mut scene, client) = market();
    let thief = scene.register_client("thief", "crime", "100.00");
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order.clone());
    let before = scene.world.next;
    assert_eq!(scene.open_job(order.clone()).id, job.id);
    let other = OpenJob { content: Digest::of(&[b"other"]), ..order.clone() };
    assert_eq!(scene.try_open_job(other.clone()).unwrap_err(), Refusal::SameIdOtherContent);
    let stolen = OpenJob { requester: Requester::Agent(thief), ..order.clone() };
    assert_eq!(scene.try_open_job(stolen.clone()).unwrap_err(), Refusal::IdTaken);
    assert_eq!(scene.world.next, before);
    assert_eq!(scene.notices_to(ada).len(), 1);

    // All of this still holds when the job is finished and no longer in memory.
    scene.succeed(job.id, "0.10");
    assert_eq!(scene.open_job(order.clone()).state, State::Completed);
    assert_eq!(scene.try_open_job(other).unwrap_err(), Refusal::SameIdOtherContent);
    assert_eq!(scene.try_open_job(stolen).unwrap_err(), Refusal::IdTaken);
    assert_eq!(scene.balance_text("rich").0, "99.90");
}

#[test]
fn a_job_never_comes_back_to_its_own_requester() {
    let mut scene = TestHub::default();
    scene.grant("rich", "100.00");
    let client = scene.register_worker("client", "rich", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "1.00");
    refused(&mut scene, order.clone(), Refusal::NoSuchSkill);
    refused(&mut scene, named(client, order.clone()), Refusal::BridgeLoop { max: HOPS_MAX });
    let far = OpenJob { hops: HOPS_MAX + 1, ..order.clone() };
    refused(&mut scene, far, Refusal::BridgeLoop { max: HOPS_MAX });
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    assert!(scene.try_open_job(OpenJob { hops: HOPS_MAX, ..order }).is_ok());
}

#[test]
fn a_deadline_that_has_passed_is_refused() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "1.00");
    let late = OpenJob { deadline: scene.now, ..order.clone() };
    refused(&mut scene, late, Refusal::DeadlineTooSoon);
    let deadline = scene.now.plus(Millis(1));
    assert!(scene.try_open_job(OpenJob { deadline, ..order }).is_ok());
}

#[test]
fn a_guest_gets_only_what_is_free() {
    let mut scene = TestHub::default();
    let paid = scene.register_worker("paid", "acme", &[("sum", "0.10")]);
    let guest = |scene: &mut TestHub| {
        let requester = Requester::Guest("guest".to_owned());
        OpenJob { requester, ..scene.job_order(AgentId(0), "sum", "1.00") }
    };
    let order = guest(&mut scene);
    assert_eq!(
        scene.try_open_job(named(paid, order.clone())).unwrap_err(),
        Refusal::GuestCannotPay
    );
    assert_eq!(scene.try_open_job(order.clone()).unwrap_err(), Refusal::GuestCannotPay);
    let patient = OpenJob { policy: PATIENT, ..order.clone() };
    assert_eq!(scene.try_open_job(patient).unwrap_err(), Refusal::GuestCannotPay);

    let free = scene.register_worker("free", "acme", &[("sum", "0")]);
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order });
    assert_eq!(job.worker(), Some(free), "the paid one is skipped");
    let job = scene.decline(job.id);
    assert_eq!(job.state, State::Queued, "nor chosen when the free one declines");
    scene.register_worker("paid-too", "others", &[("sum", "0.10")]);
    assert_eq!(scene.state(job.id), State::Queued);
    let late = scene.register_worker("free-too", "others", &[("sum", "0")]);
    assert_eq!(scene.job(job.id).worker(), Some(late));
    let job = scene.succeed(job.id, "5.00");
    assert_eq!(job.result.as_ref().unwrap().paid, Credits::ZERO);
}

#[test]
fn an_unknown_or_departed_agent_cannot_ask() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(AgentId(99), "sum", "1.00");
    refused(&mut scene, order, Refusal::NoSuchAgent);
    scene.remove(client);
    let order = scene.job_order(client, "sum", "1.00");
    refused(&mut scene, order, Refusal::NoSuchAgent);
}

#[test]
fn a_queued_job_waits_for_a_capable_agent() {
    let (mut scene, client) = market();
    scene.register_worker("dear", "acme", &[("sum", "9.00")]);
    let policy = Policy {
        queueing: Queueing { when_unmatched: true, ..Queueing::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..scene.job_order(client, "sum", "1.00") };
    let first = scene.open_job(order);
    let order = OpenJob { policy, ..scene.job_order(client, "sum", "1.00") };
    let second = scene.open_job(order);
    assert_eq!((first.state, second.state), (State::Queued, State::Queued));
    assert_eq!(
        scene.balance_text("rich"),
        ("98.00".to_owned(), "2.00".to_owned()),
        "the hold stays"
    );
    assert_eq!(scene.notices_to(client)[0], NoticeKind::Queued { job: first.id });

    scene.register_worker("wrong", "acme", &[("other", "0.10")]);
    assert_eq!(scene.state(first.id), State::Queued);
    // A new registration that fits takes queued jobs, oldest first.
    let bob = scene.register_worker("bob", "bobs", &[("sum", "0.50")]);
    assert_eq!(scene.job(first.id).worker(), Some(bob));
    let given = |id| NoticeKind::Assigned { job: id, epoch: 1 };
    assert_eq!(scene.notices_to(bob), [given(first.id), given(second.id)]);
    assert_eq!(scene.succeed(first.id, "0.50").state, State::Completed);
}

#[test]
fn an_update_that_fits_takes_what_waits_at_the_new_price() {
    let (mut scene, client) = market();
    let dear = scene.register_worker("dear", "acme", &[("sum", "9.00")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.state(job), State::Queued);
    scene.register(registration("dear", "acme", &[("sum", "0.80")])).unwrap();
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price), (dear, credits("0.80")));
}

#[test]
fn an_update_that_no_longer_fits_takes_nothing() {
    let (mut scene, client) = market();
    let ada =
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    let lost = scene.open_job(order).id;
    scene.unreachable(lost);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.state(job), State::Queued);
    // It is back, but it has dropped the skill in the same command.
    scene.register(registration_with_endpoint("ada", "acme", &[("other", "0.10")])).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    assert!(scene.is_online(ada));
}

#[test]
fn an_update_that_raises_the_price_is_not_held_to_the_old_one() {
    let (mut scene, client) = market();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let polls = |order| Registration { liveness: Liveness::ByPolling, ..order };
    let ada = scene.register(polls(order)).unwrap();
    scene.advance_without_timers(Millis::hours(1));
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.state(job), State::Queued);
    // It is back, and in the index again at the old price, when the new price comes.
    scene.world.record_activity(ada, scene.now);
    scene.register(polls(registration("ada", "acme", &[("sum", "9.00")]))).unwrap();
    assert_eq!(scene.state(job), State::Queued);
}

#[test]
fn a_waiting_job_past_its_deadline_is_not_assigned() {
    let (mut scene, client) = market();
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    // The hub was down; the registration comes before the timer.
    scene.advance_without_timers(Millis::hours(25));
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    assert_eq!(scene.state(job), State::Queued);
    scene.advance(Millis(0));
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(ada).standing.outcomes, 0, "and it counts as no one's failure");
}

#[test]
fn a_job_is_found_by_any_of_its_names() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order.clone());
    let names = [
        JobRef::Id(job.id),
        JobRef::Uuid(order.uuid),
        JobRef::Foreign { origin: order.origin, id: order.foreign_id.clone() },
    ];
    for name in &names {
        let by = job.worker().unwrap();
        assert!(scene.run(Command::Start { job: name.clone(), by }).is_ok(), "{name:?}");
    }
    let stranger = JobRef::Foreign { origin: crate::testkit::AWAY, id: order.foreign_id };
    let by = job.worker().unwrap();
    let lost = scene.run(Command::Start { job: stranger, by }).unwrap_err();
    assert_eq!(lost, Refusal::NotFound);
    // Finished jobs are not in memory; every id loads them.
    scene.succeed(job.id, "0.10");
    for name in names {
        let by = job.worker().unwrap();
        let late = scene.run(Command::Start { job: name, by }).unwrap_err();
        assert_eq!(late, Refusal::WrongState { state: State::Completed });
    }
    assert_eq!(scene.world.next_timer_at(), None::<Timestamp>);
}

#[test]
fn the_id_of_a_request_leads_to_the_newest_job_of_its_requester_and_to_none_of_two() {
    let (mut scene, client) = market();
    let other = scene.register_client("other", "rich-too", "100.00");
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let ask = |scene: &mut TestHub, by, id: &str| {
        let request_id = Some(id.to_owned());
        let order = OpenJob { request_id, ..scene.job_order(by, "sum", "1.00") };
        let origin = order.origin;
        (scene.open_job(order).id, claim::request(origin, id))
    };
    let leads_to = |scene: &TestHub, digest| scene.store.claim(digest).map(|claim| claim.target);
    let (first, name) = ask(&mut scene, client, "r-1");
    assert_eq!(leads_to(&scene, name), Some(ClaimTarget::Job(first)));
    // It still does when the job is finished, and the next one replaces it.
    scene.succeed(first, "0.10");
    let (second, _) = ask(&mut scene, client, "r-1");
    assert_eq!(leads_to(&scene, name), Some(ClaimTarget::Job(second)));
    ask(&mut scene, other, "r-1");
    assert_eq!(leads_to(&scene, name), Some(ClaimTarget::Ambiguous));
    ask(&mut scene, client, "r-1");
    assert_eq!(leads_to(&scene, name), Some(ClaimTarget::Ambiguous));
}

#[test]
fn open_jobs_are_limited_in_number_and_bytes() {
    let rules =
        |open_jobs_max, open_bytes_max| Rules { open_jobs_max, open_bytes_max, ..Rules::default() };
    for rules in [rules(2, 1 << 20), rules(100, 70)] {
        let mut scene = TestHub::new(rules);
        let client = scene.register_client("client", "rich", "100.00");
        let other = scene.register_client("other", "rich-too", "100.00");
        scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        let sized = |scene: &mut TestHub, by| {
            let input = format!("\"{}\"", "x".repeat(28));
            OpenJob { input, ..scene.job_order(by, "sum", "1.00") }
        };
        let first = sized(&mut scene, client);
        let first = scene.open_job(first).id;
        let second = sized(&mut scene, client);
        scene.open_job(second);
        let third = sized(&mut scene, client);
        assert_eq!(scene.try_open_job(third.clone()).err(), Some(Refusal::TooManyOpen));
        // Others do not count against its limit, and ended jobs free capacity.
        let others = sized(&mut scene, other);
        assert!(scene.try_open_job(others).is_ok());
        let (job, by) = (JobRef::Id(first), Canceller::Agent(client));
        scene.run(Command::Cancel { job, by, reason: None }).unwrap();
        assert!(scene.try_open_job(third).is_ok());
    }
}

#[test]
fn a_requester_that_waits_is_told_to_wait_only_once_it_gives_up() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let plain = scene.job_order(client, "sum", "0.10");
    assert!(scene.open_job(plain).pending, "its worker polls");
    let order = scene.job_order(client, "sum", "0.10");
    let policy = Policy {
        requester: RequesterOptions { waits: true, ..order.policy.requester },
        ..order.policy
    };
    let job = scene.open_job(OpenJob { policy, ..order });
    assert_eq!((job.state, job.pending), (State::Assigned, false));
    let job = job.id;
    scene.run(Command::Start { job: JobRef::Id(job), by: ada }).unwrap();
    assert_eq!((scene.job(job).state, scene.job(job).pending), (State::Running, false));
    scene.run(Command::MarkPending { job }).unwrap();
    assert!(scene.job(job).pending, "from now on it is notified of the end");
}
