//! What a requester or a worker cannot do to the other: ruin a reputation for free, or change a
//! price.

use super::{market, stand};
use crate::agent::JobIntake;
use crate::agent::presence::Availability;
use crate::agent::{Skill, Terms};
use crate::command::{
    Approver, Command, DeliveryResult, JobRef, JobRequest, OfferRef, OfferTerms, OpenJob,
    Registration, ReportResult, RequestTarget, WorkerResponse,
};
use crate::id::{AgentId, JobId};
use crate::job::readiness::FREE_WAITING_MAX;
use crate::job::{Cause, Policy, Requester, Selection, State};
use crate::job::{Queueing, Reassignment, RequesterOptions};
use crate::message::strangers_room;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::testkit::signed_orders::{offer, partial_result};
use crate::testkit::{
    AWAY, LEASE, TestHub, credits, job_in, message, registration, registration_with_endpoint,
};
use crate::time::Millis;
use crate::world::Rules;

fn seconds(n: i64) -> Millis {
    Millis::seconds(n)
}

fn asked_first() -> Terms {
    Terms { intake: JobIntake { confirms_jobs: true, ..JobIntake::default() }, ..Terms::default() }
}

/// A job with a deadline chosen by the requester.
fn rushed(scene: &mut TestHub, by: AgentId, worker: AgentId, time: Millis) -> JobId {
    let order = scene.job_order(by, "sum", "1.00");
    let (deadline, selection) = (scene.now.plus(time), Selection::Direct(worker));
    scene.open_job(OpenJob { deadline, selection, ..order }).id
}

/// How many failures count against the agent, in each of the two formulas.
fn blamed(scene: &TestHub, agent: AgentId) -> (u64, usize) {
    let agent_state = scene.agent_state(agent);
    (agent_state.standing.failures, agent_state.window.newest().count())
}

fn last_cause(scene: &TestHub) -> Option<Cause> {
    scene.store.rows.outcomes.last().and_then(|outcome| outcome.cause)
}

#[test]
fn a_deadline_that_passes_before_the_worker_sees_the_job_costs_it_nothing() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for _ in 0..12 {
        let job = rushed(&mut scene, client, ada, Millis(50));
        scene.advance(Millis(50));
        assert_eq!(scene.job(job).result.as_ref().unwrap().cause, Some(Cause::TimedOut));
    }
    assert_eq!((scene.score(ada), blamed(&scene, ada)), (Score::START, (0, 0)));
    assert_eq!(last_cause(&scene), Some(Cause::WithinGracePeriod));
}

#[test]
fn silence_counts_from_the_moment_the_worker_has_had_its_fair_time() {
    for (time, failures) in [(29_999, 0), (30_000, 1)] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        rushed(&mut scene, client, ada, Millis(5_000 + time));
        scene.advance(seconds(5));
        scene.read_inbox(ada);
        scene.advance(Millis(time));
        assert_eq!(blamed(&scene, ada), (failures, failures as usize), "{time}");
    }
}

#[test]
fn a_skill_that_takes_longer_has_that_long_and_cannot_be_restated_afterwards() {
    let takes = |takes: i64| {
        let mut order = registration("ada", "acme", &[("sum", "0.10")]);
        order.skills[0].expected_duration = Some(seconds(takes));
        order
    };
    for (restated, time, failures) in [(300, 119, 0), (300, 120, 1), (1, 119, 0)] {
        let (mut scene, client) = market();
        let ada = scene.register(takes(120)).unwrap();
        let job = rushed(&mut scene, client, ada, seconds(120 + 10));
        scene.advance(seconds(130 - time));
        scene.read_inbox(ada);
        scene.register(takes(restated)).unwrap();
        scene.advance(seconds(time));
        assert_eq!((scene.state(job), blamed(&scene, ada).0), (State::Expired, failures));
    }
}

#[test]
fn a_job_is_in_hand_once_it_is_fetched_delivered_accepted_or_begun() {
    type Step = fn(&mut TestHub, AgentId, JobId);
    let steps: [(&str, bool, Step, u64); 5] = [
        ("nothing", false, |_, _, _| {}, 0),
        (
            "fetched",
            false,
            |scene, agent, job| {
                scene.run(Command::HandOver { agent, jobs: vec![job] }).unwrap();
            },
            1,
        ),
        (
            "begun",
            false,
            |scene, by, job| {
                scene.run(Command::Start { job: JobRef::Id(job), by }).unwrap();
            },
            1,
        ),
        ("not delivered", true, |_, _, _| {}, 0),
        (
            "delivered",
            true,
            |scene, _, _| {
                let notice = scene.world.deliveries_due(scene.now).next().unwrap().notice;
                let ended = DeliveryResult::Delivered { reply: None };
                scene.run(Command::RecordDelivery { notice, result: ended, report: None }).unwrap();
            },
            1,
        ),
    ];
    for (name, endpoint, step, failures) in steps {
        let (mut scene, client) = market();
        let order = if endpoint { registration_with_endpoint } else { registration }(
            "ada",
            "acme",
            &[("sum", "0.10")],
        );
        let ada = scene.register(order).unwrap();
        let job = rushed(&mut scene, client, ada, Millis::hours(1));
        step(&mut scene, ada, job);
        scene.advance(LEASE);
        assert_eq!((scene.state(job), blamed(&scene, ada).0), (State::Expired, failures), "{name}");
    }
}

#[test]
fn a_refused_call_counts_as_silence_does() {
    for (had, failures) in [(None, 0), (Some(29), 0), (Some(30), 1)] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        let job = rushed(&mut scene, client, ada, Millis::hours(1));
        if let Some(time) = had {
            scene.read_inbox(ada);
            scene.advance(seconds(time));
        }
        let word = scene.job_report(job, false, "0");
        scene
            .report_result(ReportResult { no_response: true, cause: Some(Cause::Unusable), ..word })
            .unwrap();
        let told = scene.job(job).result.as_ref().unwrap().cause;
        assert_eq!((scene.state(job), told), (State::Failed, Some(Cause::Unusable)));
        assert_eq!(blamed(&scene, ada), (failures, failures as usize), "{had:?}");
        let cause = if failures == 0 { Cause::WithinGracePeriod } else { Cause::Unusable };
        assert_eq!(last_cause(&scene), Some(cause));
    }
}

#[test]
fn a_refused_call_passes_the_job_on_without_blame() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let bob = scene.register_worker("bob", "bobs", &[("sum", "0.20")]);
    let policy = Policy {
        reassignment: Reassignment { when_failed: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(OpenJob { policy, selection: Selection::Cheapest, ..order }).id;
    assert_eq!(scene.job(job).worker(), Some(ada));
    let word = scene.job_report(job, false, "0");
    scene
        .report_result(ReportResult { no_response: true, cause: Some(Cause::Unusable), ..word })
        .unwrap();
    assert_eq!(scene.job(job).worker(), Some(bob));
    assert_eq!((scene.score(ada), blamed(&scene, ada)), (Score::START, (0, 0)));
}

#[test]
fn an_answer_that_makes_no_sense_weighs_only_for_requesters_that_have_ever_paid() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for (paid, weighed) in [(false, 0), (true, 1)] {
        if paid {
            let job = rushed(&mut scene, client, ada, Millis::hours(1));
            scene.succeed(job, "0.10");
        }
        let job = rushed(&mut scene, client, ada, Millis::hours(1));
        let word = scene.job_report(job, false, "0");
        scene.report_result(ReportResult { cause: Some(Cause::Unusable), ..word }).unwrap();
        assert_eq!(scene.agent_state(ada).ranking_standing().failures, weighed);
        assert_eq!(scene.agent_state(ada).standing.failures, weighed + 1, "as published");
    }
}

#[test]
fn a_part_of_the_work_or_a_price_for_it_shows_that_it_is_in_hand() {
    let says: [fn(&str) -> Command; 2] = [partial_result, |id| offer(id, "1")];
    for say in says {
        let (mut scene, client) = market();
        let mut order = registration("pat", "pat", &[("sum", "1")]);
        order.home = AWAY;
        let pat = scene.register(order).unwrap();
        let order = scene.job_order(client, "sum", "5");
        let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
        scene.sign_and_run("pat", "p", say(&job.uuid.to_string())).unwrap();
        scene.advance(LEASE);
        assert_eq!((scene.state(job.id), blamed(&scene, pat).0), (State::Expired, 1));
    }
}

#[test]
fn silence_without_a_fair_time_passes_the_job_on_without_blame() {
    let (mut scene, client) = market();
    let [a, b] = ["a", "b"].map(|one| scene.register_worker(one, one, &[("sum", "0.10")]));
    let policy = Policy {
        reassignment: Reassignment { when_failed: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let lease = seconds(1);
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(OpenJob { policy, lease, ..order }).id;
    scene.read_inbox(a);
    scene.advance(lease);
    assert_eq!((scene.job(job).worker(), blamed(&scene, a)), (Some(b), (0, 0)));
}

#[test]
fn who_leaves_answers_only_for_jobs_it_has_in_hand() {
    for reads in [false, true] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        rushed(&mut scene, client, ada, Millis::hours(1));
        if reads {
            scene.read_inbox(ada);
        }
        scene.remove(ada);
        assert_eq!(blamed(&scene, ada).0, u64::from(reads));
    }
}

#[test]
fn a_worker_that_says_itself_that_it_failed_is_blamed_at_once() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = rushed(&mut scene, client, ada, Millis(50));
    scene.fail(job);
    assert_eq!(blamed(&scene, ada), (1, 1));
}

#[test]
fn throw_away_askers_cannot_spoil_a_name_by_asking_for_what_cannot_be_answered_in_time() {
    let mut scene = TestHub::default();
    let pat = scene.introduce("pat", &[("sum", "0")]);
    for number in 0..12 {
        let name = format!("ann-{number}");
        scene.introduce(&name, &[]);
        let question = scene.job_request("sum", RequestTarget::Agent(pat), None);
        let ask = JobRequest { timeout: seconds(1), ..question };
        scene.sign_and_run(&name, "r", Command::RequestJob(Box::new(ask))).unwrap();
        scene.read_inbox(pat);
        scene.advance(seconds(1));
    }
    assert_eq!((scene.score(pat), blamed(&scene, pat)), (Score::START, (0, 0)));
}

#[test]
fn free_work_of_a_stranger_moves_the_published_score_and_not_our_own() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0"), ("dig", "1")]);
    let stranger = scene.register_client("stranger", "newowner", "5");
    let free = |scene: &mut TestHub, requester: Requester| {
        let order = scene.job_order(stranger, "sum", "0");
        scene.open_job(OpenJob { requester, ..order }).id
    };
    let job = free(&mut scene, Requester::Guest("guest".to_owned()));
    scene.fail(job);
    let job = free(&mut scene, Requester::Agent(stranger));
    scene.succeed(job, "0");
    let agent_state = scene.agent_state(ada);
    assert_eq!((agent_state.standing.failures, agent_state.standing.successes), (1, 1));
    assert_eq!(
        (agent_state.ranking_standing().settled_jobs(), agent_state.ranking_standing().score),
        (0, Score::START)
    );
    assert_eq!(agent_state.customers.count(), 0);
    // An owner that has paid is no longer new, even when it requests free work.
    let order = scene.job_order(stranger, "dig", "1");
    let job = scene.open_job(order).id;
    scene.succeed(job, "1");
    let job = free(&mut scene, Requester::Agent(stranger));
    scene.fail(job);
    let weighed = scene.agent_state(ada).ranking_standing();
    assert_eq!((weighed.successes, weighed.failures), (1, 1));
    let rebuilt = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(
        rebuilt.agent_state(ada),
        scene.world.agent_state(ada),
        "and a restart loses nothing"
    );
}

fn sums(price: &str, change: impl Fn(&mut Skill)) -> Registration {
    let mut order = registration("ada", "acme", &[("sum", price)]);
    change(&mut order.skills[0]);
    order
}

/// Runs a job at 1.00 through `delay`, in which the worker lists the skill for 20.00 before it goes
/// on, and returns what the worker was paid.
fn paid_after(
    order: Registration,
    policy: Policy,
    delay: impl Fn(&mut TestHub, AgentId, JobId),
) -> String {
    let (mut scene, client) = market();
    let ada = scene.register(order).unwrap();
    let asked = scene.job_order(client, "sum", "50");
    let selection = Selection::Direct(ada);
    let job = scene.open_job(OpenJob { selection, policy, ..asked }).id;
    delay(&mut scene, ada, job);
    let rebuilt = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(rebuilt.job(job), scene.world.job(job), "a restart keeps the agreed price");
    assert_eq!(scene.state(job), State::Assigned);
    scene.succeed(job, "20");
    scene.balance_text("acme").0
}

#[test]
fn an_agreed_price_survives_a_worker_that_puts_the_job_off_and_raises_its_price() {
    let answers = Registration { terms: asked_first(), ..sums("1", |_| {}) };
    let raised = |terms| Registration { terms, ..sums("20", |_| {}) };
    let paid = paid_after(answers, Policy::default(), |scene, ada, job| {
        let until = scene.now.plus(seconds(5));
        scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
        scene.register(raised(asked_first())).unwrap();
        scene.advance(seconds(5));
    });
    assert_eq!(paid, "1.00");
    let paid = paid_after(sums("1", |_| {}), Policy::default(), |scene, by, job| {
        let until = scene.now.plus(seconds(5));
        scene.run(Command::Defer { job: JobRef::Id(job), by, until }).unwrap();
        scene.register(raised(Terms::default())).unwrap();
        scene.advance(seconds(5));
    });
    assert_eq!(paid, "1.00");
}

#[test]
fn an_agreed_price_survives_waiting_for_approval_and_for_a_worker_that_is_away() {
    let approves = |skill: &mut Skill| skill.needs_approval = true;
    let paid = paid_after(sums("1", approves), Policy::default(), |scene, ada, job| {
        scene.register(sums("20", approves)).unwrap();
        scene.approve(job, Approver::Agent(ada), true).unwrap();
    });
    assert_eq!(paid, "1.00");
    let (mut scene, client) = market();
    let ada = scene.register(sums("1", |_| {})).unwrap();
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let order = scene.job_order(client, "sum", "50");
    let policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), policy, ..order }).id;
    scene.register(sums("20", |_| {})).unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    scene.succeed(job, "20");
    assert_eq!(scene.balance_text("acme").0, "1.00");
}

#[test]
fn an_agreed_price_survives_a_worker_that_cannot_be_reached_and_comes_back_dearer() {
    let policy = Policy {
        queueing: Queueing { when_unmatched: true, ..Queueing::default() },
        reassignment: Reassignment { when_unreachable: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let endpoint = registration_with_endpoint("ada", "acme", &[("sum", "1")]);
    let paid = paid_after(endpoint, policy, |scene, _, job| {
        scene.unreachable(job);
        assert_eq!(scene.state(job), State::Queued);
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "20")])).unwrap();
    });
    assert_eq!(paid, "1.00");
}

#[test]
fn an_offer_that_was_taken_fixes_the_price_also_when_its_maker_puts_the_job_off() {
    let (mut scene, client) = market();
    let ada = scene.register(Registration { terms: asked_first(), ..sums("1", |_| {}) }).unwrap();
    let job = calls_for_offers(&mut scene, client);
    for price in ["3", "2"] {
        offers(&mut scene, job, ada, price).unwrap();
    }
    take(&mut scene, job, client, OfferRef::Index(1)).unwrap();
    let until = scene.now.plus(seconds(5));
    scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
    scene.advance(seconds(5));
    assert_eq!(scene.job(job).assignment.unwrap().price, credits("2"));
}

fn calls_for_offers(scene: &mut TestHub, client: AgentId) -> JobId {
    let order = scene.job_order(client, "sum", "50");
    scene.open_job(OpenJob { selection: Selection::Offers, ..order }).id
}

fn offers(scene: &mut TestHub, job: JobId, by: AgentId, price: &str) -> Result<(), Refusal> {
    let (price, valid_for) = (credits(price), Millis::minutes(1));
    scene
        .run(Command::Offer {
            job: JobRef::Id(job),
            by,
            price,
            terms: OfferTerms::Open { valid_for },
        })
        .map(|_| ())
}

fn take(scene: &mut TestHub, job: JobId, by: AgentId, offer: OfferRef) -> Result<String, Refusal> {
    let taken = scene.run(Command::accept_offer(JobRef::Id(job), by, offer))?;
    Ok(job_in(taken).assignment.map(|turn| turn.price.to_text(2)).unwrap_or_default())
}

#[test]
fn a_later_offer_of_one_worker_may_not_be_higher() {
    let (mut scene, client) = market();
    let [ada, bob] = ["ada", "bob"].map(|one| scene.register_worker(one, one, &[("sum", "1")]));
    let job = calls_for_offers(&mut scene, client);
    offers(&mut scene, job, ada, "2").unwrap();
    let raised = Refusal::OfferAbovePrevious { before: credits("2") };
    assert_eq!(offers(&mut scene, job, ada, "20"), Err(raised));
    for price in ["2", "1.50"] {
        offers(&mut scene, job, ada, price).unwrap();
    }
    offers(&mut scene, job, bob, "20").unwrap();
    assert_eq!(scene.job(job).candidates.offers.len(), 4);
}

#[test]
fn accepting_an_offer_costs_the_price_that_was_shown() {
    let (mut scene, client) = market();
    let [ada, bob] = ["ada", "bob"].map(|one| scene.register_worker(one, one, &[("sum", "1")]));
    let job = calls_for_offers(&mut scene, client);
    for (by, price) in [(ada, "3"), (bob, "4"), (ada, "2")] {
        offers(&mut scene, job, by, price).unwrap();
    }
    let price = |by, price| OfferRef::Price { by, price: credits(price) };
    for (offer, refusal) in [
        (OfferRef::Only { by: ada }, Refusal::OfferAmbiguous),
        (OfferRef::Index(3), Refusal::NoSuchOffer),
        (price(ada, "4"), Refusal::NoSuchOffer),
        (OfferRef::Only { by: client }, Refusal::NotFound),
    ] {
        assert_eq!(take(&mut scene, job, client, offer), Err(refusal), "{offer:?}");
    }
    for (offer, paid) in [
        (OfferRef::Index(0), "3.00"),
        (OfferRef::Index(2), "2.00"),
        (price(ada, "3"), "3.00"),
        (price(ada, "2"), "2.00"),
        (OfferRef::Only { by: bob }, "4.00"),
    ] {
        let mut scene = scene.clone();
        assert_eq!(take(&mut scene, job, client, offer).as_deref(), Ok(paid), "{offer:?}");
    }
}

#[test]
fn an_offer_stays_takable_until_it_expires_also_after_a_lower_one() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "ada", &[("sum", "1")]);
    let job = calls_for_offers(&mut scene, client);
    offers(&mut scene, job, ada, "3").unwrap();
    scene.advance(seconds(30));
    offers(&mut scene, job, ada, "2").unwrap();
    let mut later = scene.clone();
    assert_eq!(take(&mut scene, job, client, OfferRef::Index(0)).as_deref(), Ok("3.00"));
    later.advance(seconds(30));
    let expired = take(&mut later, job, client, OfferRef::Index(0));
    assert_eq!(expired, Err(Refusal::OfferExpired));
    assert_eq!(take(&mut later, job, client, OfferRef::Index(1)).as_deref(), Ok("2.00"));
}

#[test]
fn rows_from_before_turns_said_when_they_were_handed_over_are_read() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let id = rushed(&mut scene, client, ada, Millis::hours(1));
    let mut row = serde_json::to_value(&*scene.job(id)).expect("a row");
    let members = row.as_object_mut().expect("members");
    members.remove("agreed").expect("there was one");
    let turn = members["assignment"].as_object_mut().expect("an assignment");
    for name in ["told_at", "fair_time"] {
        turn.remove(name).expect(name);
    }
    let old: crate::job::Job = serde_json::from_value(row).expect("an old row");
    assert_eq!((old.payment.agreed_prices.len(), old.unread_notice()), (0, None));
}

/// A hub whose inboxes hold few notices, and a client with credits.
fn small_inboxes(inbox_messages_max: u64) -> (TestHub, AgentId) {
    let mut scene = TestHub::new(Rules { inbox_messages_max, ..Rules::default() });
    let client = scene.register_client("client", "rich", "1000.00");
    (scene, client)
}

#[test]
fn notices_of_work_count_against_the_limit_of_an_inbox() {
    let (mut scene, client) = small_inboxes(6);
    let [ada, bob] = ["ada", "bob"].map(|one| scene.register_worker(one, one, &[("sum", "0.10")]));
    for _ in 0..3 {
        rushed(&mut scene, client, ada, Millis(50));
        scene.advance(Millis(50));
    }
    assert_eq!(scene.world.inbox(ada).waiting_count(), 6, "assigned and withdrawn");
    let order = scene.job_order(client, "sum", "1.00");
    let direct = OpenJob { selection: Selection::Direct(ada), ..order };
    assert_eq!(scene.try_open_job(direct).unwrap_err(), Refusal::InboxFull);
    let order = scene.job_order(client, "sum", "1.00");
    assert_eq!(scene.open_job(order).worker(), Some(bob), "the selection skips it");
    scene.read_inbox(ada);
    rushed(&mut scene, client, ada, Millis(50));
}

#[test]
fn an_agent_that_fetches_work_by_other_means_stays_hirable() {
    for endpoint in [false, true] {
        let (mut scene, client) = small_inboxes(4);
        let order = if endpoint { registration_with_endpoint } else { registration }(
            "ada",
            "acme",
            &[("sum", "0.10")],
        );
        let ada = scene.register(order).unwrap();
        for _ in 0..4 {
            scene.run(Command::SendMessage(Box::new(message(client, ada, "hello")))).unwrap();
        }
        for _ in 0..10 {
            let order = scene.job_order(client, "sum", "1.00");
            let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), ..order }).id;
            if endpoint {
                let notice = scene.world.deliveries_due(scene.now).next().unwrap().notice;
                let ended = DeliveryResult::Delivered { reply: None };
                scene.run(Command::RecordDelivery { notice, result: ended, report: None }).unwrap();
            } else {
                scene.run(Command::HandOver { agent: ada, jobs: vec![job] }).unwrap();
            }
            scene.succeed(job, "0.10");
        }
        let order = message(client, ada, "one more");
        let full = scene.run(Command::SendMessage(Box::new(order)));
        assert_eq!(full.unwrap_err(), Refusal::InboxFull, "messages still have their limit");
    }
}

#[test]
fn news_of_its_own_jobs_always_reach_a_requester_and_leave_room_for_others() {
    let (mut scene, client) = small_inboxes(2);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for _ in 0..5 {
        let order = scene.job_order(client, "sum", "1.00");
        let job = scene.open_job(order).id;
        scene.succeed(job, "0.10");
        scene.read_inbox(ada);
    }
    let ended = scene
        .notices_to(client)
        .into_iter()
        .filter(|news| matches!(news, NoticeKind::Ended { .. }));
    assert_eq!(ended.count(), 5);
    scene.run(Command::SendMessage(Box::new(message(ada, client, "hello")))).unwrap();
}

#[test]
fn invitations_fill_at_most_half_of_an_inbox_and_offers_no_more_than_all_of_it() {
    let (mut scene, client) = small_inboxes(6);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(calls_for_offers(&mut scene, client));
    }
    let order = scene.job_order(client, "sum", "50");
    let order = OpenJob { selection: Selection::Offers, ..order };
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::Offline);
    rushed(&mut scene, client, ada, Millis::hours(1));
    for (price, job) in [("3", 0), ("2", 0), ("3", 1), ("2", 1), ("3", 2), ("2", 2)] {
        offers(&mut scene, jobs[job], ada, price).unwrap();
    }
    assert_eq!(offers(&mut scene, jobs[0], ada, "1"), Err(Refusal::InboxFull));
    scene.read_inbox(client);
    offers(&mut scene, jobs[0], ada, "1").unwrap();
}

#[test]
fn one_requester_can_only_ask_so_many_at_a_time() {
    let mut scene = TestHub::new(Rules { invitations_max: 3, ..Rules::default() });
    let client = scene.register_client("client", "rich", "100.00");
    let workers = ["a", "b"].map(|one| scene.register_worker(one, one, &[("sum", "0.10")]));
    assert_eq!(workers.len(), 2);
    let first = calls_for_offers(&mut scene, client);
    let second = calls_for_offers(&mut scene, client);
    let asked = [first, second].map(|job| scene.job(job).candidates.invited.len());
    assert_eq!(asked, [2, 1], "as many as are left");
    let order = scene.job_order(client, "sum", "50");
    let third = OpenJob { selection: Selection::Offers, ..order };
    assert_eq!(scene.try_open_job(third).unwrap_err(), Refusal::TooManyOpen);
    let other = scene.register_client("other", "richer", "100.00");
    let theirs = calls_for_offers(&mut scene, other);
    assert_eq!(scene.job(theirs).candidates.invited.len(), 2);
    scene.cancel(first, client).unwrap();
    calls_for_offers(&mut scene, client);
}

#[test]
fn one_requester_that_pays_nothing_takes_a_part_of_the_places_where_jobs_wait() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0"), ("dig", "1")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let [stranger, other] = ["stranger", "other"].map(|one| scene.register_client(one, one, "5"));
    let policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let mut open = |by, skill, budget| {
        let order = scene.job_order(by, skill, budget);
        let order = OpenJob { selection: Selection::Direct(ada), policy, ..order };
        scene.try_open_job(order).map(|_| ())
    };
    for _ in 0..FREE_WAITING_MAX {
        open(stranger, "sum", "0").unwrap();
    }
    assert_eq!(open(stranger, "sum", "0"), Err(Refusal::AtCapacity));
    open(stranger, "dig", "1").unwrap();
    open(other, "sum", "0").unwrap();
}

#[test]
fn asking_for_work_is_as_good_as_reading_of_it_also_when_there_is_none() {
    let (mut scene, client) = small_inboxes(4);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for _ in 0..5 {
        for _ in 0..2 {
            rushed(&mut scene, client, ada, Millis(50));
            scene.advance(Millis(50));
        }
        let order = scene.job_order(client, "sum", "1.00");
        let direct = OpenJob { selection: Selection::Direct(ada), ..order };
        assert_eq!(scene.try_open_job(direct).unwrap_err(), Refusal::InboxFull);
        scene.run(Command::MarkShown { agent: ada, jobs: Vec::new() }).unwrap();
        assert_eq!(scene.world.inbox(ada).waiting_count(), 0);
    }
    assert_eq!(scene.notices_to(ada).len(), 20, "all of it can still be read");
}

#[test]
fn an_agent_that_delivers_results_stays_hirable_without_reading_notices() {
    let (mut scene, client) = small_inboxes(4);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for _ in 0..20 {
        let order = scene.job_order(client, "sum", "1.00");
        let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), ..order }).id;
        scene.succeed(job, "0.10");
    }
}

#[test]
fn an_agent_that_lists_its_invitations_is_invited_even_with_a_full_inbox() {
    let (mut scene, client) = small_inboxes(4);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for round in 0..20 {
        let job = calls_for_offers(&mut scene, client);
        assert_eq!(scene.job(job).candidates.invited, [ada], "{round}");
        scene.run(Command::MarkShown { agent: ada, jobs: Vec::new() }).unwrap();
        scene.cancel(job, client).unwrap();
    }
}

/// What a new owner without credits tries: all of it is free, and all of it may be refused.
#[derive(Clone, Copy, Debug)]
enum Nuisance {
    Job,
    Cancelled,
    Expiring,
    Invitation,
    Message,
}

impl Nuisance {
    const ALL: [Self; 5] =
        [Self::Job, Self::Cancelled, Self::Expiring, Self::Invitation, Self::Message];

    fn attempt(self, scene: &mut TestHub, by: AgentId, victim: AgentId) {
        let order = scene.job_order(by, "sum", "0");
        let direct = OpenJob { selection: Selection::Direct(victim), ..order };
        let _ = match self {
            Self::Job => scene.try_open_job(direct).map(|_| ()),
            Self::Cancelled => scene.try_open_job(direct).map(|job| {
                scene.cancel(job.id, by).unwrap();
            }),
            Self::Expiring => {
                let deadline = scene.now.plus(Millis(50));
                let opened = scene.try_open_job(OpenJob { deadline, ..direct });
                scene.advance(Millis(50));
                opened.map(|_| ())
            }
            Self::Invitation => {
                let order = OpenJob { selection: Selection::Offers, ..direct };
                scene.try_open_job(order).map(|_| ())
            }
            Self::Message => {
                scene.run(Command::SendMessage(Box::new(message(by, victim, "hello")))).map(|_| ())
            }
        };
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// The worker never reads anything, and paying requesters are still served.
    #[test]
    fn strangers_take_a_bounded_part_of_an_inbox_and_who_pays_has_the_rest(
        max in 5_u64..40,
        tries in proptest::collection::vec((0..Nuisance::ALL.len(), 0_usize..3), 0..120),
        then_cancels in proptest::bool::ANY,
    ) {
        let (mut scene, client) = small_inboxes(max);
        let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
        let strangers = ["x", "y", "z"].map(|name| scene.register_client(name, name, "0"));
        for (what, who) in tries {
            Nuisance::ALL[what].attempt(&mut scene, strangers[who], ada);
        }
        if then_cancels {
            for by in strangers {
                let open: Vec<JobId> = scene.world.jobs_requested_by(by).map(|job| job.id).collect();
                for job in open {
                    scene.cancel(job, by).unwrap();
                }
            }
        }
        let taken = scene.world.inbox(ada).work_waiting;
        proptest::prop_assert!(taken <= 2 * strangers_room(max), "{taken} of {max}");
        let order = scene.job_order(client, "sum", "1.00");
        scene.open_job(OpenJob { selection: Selection::Direct(ada), ..order });
        proptest::prop_assert!(scene.notices_to(ada).len() as u64 <= 3 * max, "an inbox stays bounded");
    }
}

#[test]
fn a_requester_that_once_paid_has_room_for_free_work_too() {
    let (mut scene, client) = small_inboxes(16);
    let ada = scene.register_worker("ada", "acme", &[("sum", "0"), ("dig", "1")]);
    let order = scene.job_order(client, "dig", "1.00");
    let job = scene.open_job(order).id;
    scene.succeed(job, "1.00");
    let stranger = scene.register_client("stranger", "stranger", "0");
    let mut opened = |by| {
        let order = scene.job_order(by, "sum", "0");
        scene.try_open_job(OpenJob { selection: Selection::Direct(ada), ..order }).map(|_| ())
    };
    for _ in 0..strangers_room(16) {
        opened(stranger).unwrap();
    }
    assert_eq!(opened(stranger), Err(Refusal::InboxFull));
    opened(client).unwrap();
}
