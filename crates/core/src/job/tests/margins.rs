//! Rules at their limits: just within, just beyond, and cases that are close to a rule but not
//! covered by it.

use super::market;
use crate::agent::JobIntake;
use crate::agent::Terms;
use crate::agent::presence::Availability;
use crate::command::{
    Canceller, Command, JobRef, OfferRef, OfferTerms, OpenJob, ProfileUpdate, Registration,
    RequestTarget, Timer,
};
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::RequesterOptions;
use crate::job::{Policy, Selection, State, request};
use crate::notice::NoticeKind;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{envelope_text, offer, partial_result, result};
use crate::testkit::{
    AWAY, HOME, TestHub, credits, message, registration, registration_with_endpoint, skill,
};
use crate::time::Millis;
use crate::world::Rules;

/// The number of agents invited to one auction.
const INVITED: usize = 1_024;

/// All events, oldest first.
fn history(scene: &TestHub) -> Vec<Event> {
    scene.store.rows.history_lines.iter().flat_map(|line| line.events.clone()).collect()
}

/// The URL to which an agent's notice is delivered.
fn pushed(scene: &TestHub, to: AgentId, news: &NoticeKind) -> Option<String> {
    let rows = &scene.store.rows;
    let told = rows.notices.iter().find(|one| one.to == Some(to) && one.news == *news);
    let push = rows.deliveries.get(&told.expect("there is a notice").id).cloned().flatten();
    push.map(|push| push.url.clone())
}

fn auction(scene: &mut TestHub, client: AgentId) -> OpenJob {
    let closes = scene.now.plus(Millis::seconds(2));
    OpenJob { selection: Selection::Auction { closes }, ..scene.job_order(client, "sum", "50") }
}

/// `many` agents of one owner that registered first, and two of two others.
fn crowd(scene: &mut TestHub, many: usize) -> (Vec<AgentId>, [AgentId; 2]) {
    scene.checks_invariants = false;
    let worker = |scene: &mut TestHub, name: &str, owner| {
        scene.register_worker(name, owner, &[("sum", "1")])
    };
    let crowd = (0..many).map(|place| worker(scene, &format!("w{place:04}"), "crowd")).collect();
    (crowd, ["one", "two"].map(|name| worker(scene, name, name)))
}

#[test]
fn as_many_as_fit_are_invited_in_their_order_and_of_more_owners_take_turns() {
    let (mut scene, client) = market();
    let (mut all, others) = crowd(&mut scene, INVITED - 2);
    let mut larger = scene.clone();
    let order = auction(&mut scene, client);
    let job = scene.open_job(order);
    all.extend(others);
    assert_eq!(job.candidates.invited, all, "all fit, in order of rank");

    larger.register_worker("w9999", "crowd", &[("sum", "1")]);
    let order = auction(&mut larger, client);
    let job = larger.open_job(order);
    assert_eq!(job.candidates.invited.len(), INVITED);
    assert_eq!(
        job.candidates.invited[..3],
        [all[0], others[0], others[1]],
        "the first of each owner"
    );
    assert_eq!(
        job.candidates.invited[3..],
        all[1..INVITED - 2],
        "then the others, without the last"
    );
}

#[test]
fn what_was_reported_at_its_price_is_not_above_it() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let above = |scene: &TestHub| {
        let events = history(scene).into_iter();
        events.filter(|event| matches!(event, Event::ReportedAbovePrice { .. })).count()
    };
    for (cost, noted) in [("0.10", 0), ("0.100001", 1)] {
        let order = scene.job_order(client, "sum", "0.50");
        let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), ..order }).id;
        scene.succeed(job, cost);
        assert_eq!(above(&scene), noted, "{cost}");
    }
    // A failed job is not paid, whatever cost is reported.
    let order = scene.job_order(client, "sum", "0.50");
    let job = scene.open_job(order).id;
    let word = scene.job_report(job, false, "3");
    scene.report_result(word).unwrap();
    assert_eq!(above(&scene), 1);
}

#[test]
fn without_a_limit_no_inbox_is_too_full_to_be_asked() {
    let mut scene = TestHub::new(Rules { inbox_messages_max: 0, ..Rules::default() });
    scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let writer = scene.register_worker("writer", "writer", &[]);
    scene.run(Command::SendMessage(Box::new(message(writer, pat, "hello")))).unwrap();
    scene.request_all("ann", "r", None);
    assert_eq!(scene.messages_to(pat).last(), Some(&envelope_text("ann", "r")));
}

#[test]
fn a_name_that_stands_for_another_is_asked_for_from_elsewhere_only() {
    let mut scene = TestHub::default();
    let ann = scene.introduce("ann", &[]);
    let mut sum = skill("sum", "0");
    sum.native_name = Some("addition".to_owned());
    let skills = Some(vec![skill("addition", "0"), sum]);
    let pat = scene.update_profile("pat", ProfileUpdate { skills, ..ProfileUpdate::default() });
    let bob = scene.register_worker("bob", "bob", &[]);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, None);
    let best = |by| request::best_candidates(&scene.world, by, &order);
    assert_eq!(
        (best(Some(ann)), best(None)),
        (vec![], vec![]),
        "in its home protocol it has its own id"
    );
    assert_eq!(best(Some(bob)), [pat]);
}

/// A job cancelled while an agent with an endpoint has it.
fn called_off(terms: Terms, origin: crate::alias::Protocol) -> (TestHub, AgentId, JobId) {
    let (mut scene, client) = market();
    let order = registration_with_endpoint("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { terms, ..order }).unwrap();
    let policy = Policy {
        requester: RequesterOptions { cancels_any_time: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let order = scene.job_order(client, "sum", "0.50");
    let job = scene.open_job(OpenJob { policy, origin, ..order }).id;
    let (by, reason) = (Canceller::Agent(client), None);
    scene.run(Command::Cancel { job: JobRef::Id(job), by, reason }).unwrap();
    assert_eq!(scene.state(job), State::Cancelled);
    (scene, ada, job)
}

#[test]
fn who_was_given_work_hears_at_its_endpoint_that_it_is_off_only_if_it_reads_by_urgency() {
    let urgent = Terms {
        intake: JobIntake { urgent_first: true, ..JobIntake::default() },
        ..Terms::default()
    };
    for (terms, origin, told) in [
        (Terms::default(), HOME, false),
        (Terms::default(), AWAY, false),
        (urgent, HOME, true),
        (urgent, AWAY, true),
    ] {
        let (scene, ada, job) = called_off(terms, origin);
        let url = pushed(&scene, ada, &NoticeKind::Unassigned { job, epoch: 1 });
        assert_eq!(url.is_some(), told, "{terms:?}, {origin:?}");
    }
}

#[test]
fn a_strict_agent_accepts_checked_input_and_input_of_its_own_protocol() {
    for (home, later) in [(AWAY, false), (HOME, true), (HOME, false)] {
        let (mut scene, client) = market();
        let mut strict = registration("far", "far", &[("sum", "1")]);
        (strict.home, strict.terms.intake.strict_input) = (home, true);
        let order = OpenJob { policy: super::PATIENT, ..scene.job_order(client, "sum", "5") };
        let (job, far) = if later {
            let job = scene.open_job(order).id;
            scene.advance(Millis(1));
            (job, scene.register(strict).unwrap())
        } else {
            let far = scene.register(strict).unwrap();
            (scene.open_job(order).id, far)
        };
        assert_eq!(scene.job(job).worker(), Some(far), "{home:?}, {later}");
        assert_eq!(scene.job(job).assignment.unwrap().price, credits("1"));
    }
}

#[test]
fn work_whose_first_sign_is_a_part_of_it_has_begun_in_the_history_once() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let job = scene.request("ann", "r", pat, None);
    for id in ["x1", "x2"] {
        scene.sign_and_run("pat", id, partial_result("r")).unwrap();
    }
    let started = |event: &&Event| **event == Event::JobStarted { job };
    assert_eq!(history(&scene).iter().filter(started).count(), 1);
}

#[test]
fn an_offer_is_also_an_acceptance_only_for_agents_that_confirm_jobs_themselves() {
    for answers_itself in [true, false] {
        let (mut scene, client) = market();
        let mut order = registration("pat", "pat", &[("sum", "0")]);
        (order.home, order.terms.intake.confirms_jobs) = (AWAY, answers_itself);
        order.skills[0].by_offer = true;
        let pat = scene.register(order).unwrap();
        let order = scene.job_order(client, "sum", "5");
        let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
        assert_eq!(job.acceptance.accepted_at.is_none(), answers_itself);
        scene.sign_and_run("pat", "o", offer(&job.uuid.to_string(), "3")).unwrap();
        assert!(scene.job(job.id).acceptance.accepted_at.is_some());
        let accepted = NoticeKind::Accepted { job: job.id };
        assert_eq!(scene.notices_to(client).contains(&accepted), answers_itself);
    }
}

#[test]
fn only_a_named_agent_is_waited_for_while_it_is_offline() {
    let mut scene = TestHub::default();
    scene.grant("ann", super::AWAY_CREDITS);
    scene.introduce("ann", &[]);
    let bob = scene.register_worker("bob", "bob", &[("sum", "0")]);
    super::stand(&mut scene, bob, Availability::Maintenance, Some(60));
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, None);
    let order = scene.sign_order("ann", "all", Command::RequestJob(Box::new(order)));
    assert_eq!(scene.run_signed(order), Err(Refusal::Offline));
    let job = scene.request("ann", "one", bob, None);
    assert!(matches!(scene.state(job), State::Deferred { .. }));
}

#[test]
fn a_price_cannot_be_named_by_an_absent_agent() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "1")]);
    let order = auction(&mut scene, client);
    let job = scene.open_job(order).id;
    let gone = scene.register_worker("gone", "gone", &[("sum", "1")]);
    scene.remove(gone);
    let (price, valid_for) = (credits("1"), Millis::minutes(1));
    for by in [AgentId(999), gone] {
        let bid = Command::Offer {
            job: JobRef::Id(job),
            by,
            price,
            terms: OfferTerms::Open { valid_for },
        };
        assert_eq!(scene.run(bid).unwrap_err(), Refusal::NotFound);
    }
    let bid = Command::Offer {
        job: JobRef::Id(job),
        by: ada,
        price,
        terms: OfferTerms::Open { valid_for },
    };
    scene.run(bid).unwrap();
}

#[test]
fn a_requester_that_was_told_to_wait_gets_its_callback_also_after_an_offer() {
    let (mut scene, client) = market();
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let (selection, callback) = (Selection::Direct(pat), Some("https://back.example".to_owned()));
    let order =
        OpenJob { selection, callback: callback.clone(), ..scene.job_order(client, "sum", "5") };
    let job = scene.open_job(order);
    let uuid = job.uuid.to_string();
    scene.sign_and_run("pat", "o", offer(&uuid, "4")).unwrap();
    scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
    assert_eq!(pushed(&scene, client, &NoticeKind::Ended { job: job.id }), callback);
}

#[test]
fn a_signers_price_is_one_of_the_offers_its_requester_chooses_among() {
    let (mut scene, client) = market();
    let mut sum = skill("sum", "0");
    sum.by_offer = true;
    let pat = scene.update_profile(
        "pat",
        ProfileUpdate { skills: Some(vec![sum]), ..ProfileUpdate::default() },
    );
    let order = OpenJob { selection: Selection::Offers, ..scene.job_order(client, "sum", "5") };
    let job = scene.open_job(order);
    let named = scene.sign_and_run("pat", "o", offer(&job.uuid.to_string(), "4"));
    assert_eq!(named, Ok(State::Negotiating));
    assert_eq!(scene.notices_to(client), [NoticeKind::OfferReceived { job: job.id, place: 0 }]);
    let offer = OfferRef::Only { by: pat };
    let take = Command::accept_offer(JobRef::Id(job.id), client, offer);
    scene.run(take).unwrap();
    assert_eq!(scene.job(job.id).assignment.unwrap().price, credits("4"));
}

#[test]
fn a_timer_that_comes_early_or_after_the_end_changes_nothing() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "1")]);
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(order).id;
    let tick = |scene: &mut TestHub| {
        scene.run_with_changes(Command::FireTimer(Timer::Job(job))).unwrap().0
    };
    assert!(tick(&mut scene).is_empty(), "nothing is due yet");
    scene.succeed(job, "1");
    scene.advance_without_timers(Millis::hours(48));
    assert!(tick(&mut scene).is_empty(), "it is over");
}

#[test]
fn who_is_given_the_same_job_once_more_keeps_the_price_that_was_agreed_on() {
    let whole = PriceStep { decimals: 0, ..PriceStep::FINEST };
    for (price_step, price, cost, paid) in
        [(PriceStep::FINEST, "0.2", "0.15", "0.15"), (whole, "0.2", "0.15", "1.00")]
    {
        for (unreachable, later) in [(true, "0.1"), (true, "0.3"), (false, "0.1"), (false, "0.3")] {
            let (mut scene, client) = market();
            let ada = scene.register_worker("ada", "acme", &[("sum", price)]);
            let (selection, policy) = (Selection::Direct(ada), super::PATIENT);
            let order =
                OpenJob { selection, policy, price_step, ..scene.job_order(client, "sum", "5") };
            let job = scene.open_job(order).id;
            let agreed = scene.job(job).assignment.unwrap();
            scene.register_worker("ada", "acme", &[("sum", later)]);
            if unreachable {
                scene.unreachable(job);
            } else {
                let until = scene.now.plus(Millis::seconds(1));
                scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
                scene.advance(Millis::seconds(1));
            }
            let again = scene.job(job).assignment.unwrap();
            assert_eq!((again.price, again.own), (agreed.price, agreed.own), "{later}");
            assert_eq!(scene.job(job).epoch, 2);
            // Its price was 0.2 at assignment, and it reports a cost of 0.15.
            scene.succeed(job, cost);
            assert_eq!(scene.balance_text("acme").0, paid, "{unreachable} {later}");
        }
    }
}
