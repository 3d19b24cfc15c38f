//! Edge cases of a job: exactly at a deadline, exactly at a bid, and agents that almost match.

use super::{PATIENT, market, stand};
use crate::agent::JobIntake;
use crate::agent::presence::Availability;
use crate::agent::{Liveness, Terms};
use crate::command::{
    Command, JobRef, JobRequest, OfferRef, OfferTerms, OpenJob, Registration, RequestTarget,
    UnfitAgent,
};
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::RequesterOptions;
use crate::job::readiness::WAITING_MAX;
use crate::job::{Policy, Selection, State};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{offer, partial_result, refusal, result, with_counterparty};
use crate::testkit::{
    AWAY, HOME, JOB_LIFETIME, TestHub, credits, registration, registration_with_endpoint,
};
use crate::time::Millis;

fn has_happened(scene: &TestHub, wanted: &Event) -> usize {
    let events = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    events.filter(|event| *event == wanted).count()
}

/// Whether the end of a job was delivered to its callback.
fn called_back(scene: &TestHub, job: JobId) -> bool {
    let rows = &scene.store.rows;
    let told = rows.notices.iter().find(|notice| notice.news == NoticeKind::Ended { job });
    rows.deliveries.contains_key(&told.expect("there is an end notice").id)
}

fn with_callback(scene: &mut TestHub, client: AgentId, selection: Selection) -> OpenJob {
    let callback = Some("https://back.example".to_owned());
    OpenJob { selection, callback, ..scene.job_order(client, "sum", "5") }
}

#[test]
fn who_waits_for_offers_or_in_the_queue_is_called_back_at_the_end() {
    let (mut scene, client) = market();
    let order = with_callback(&mut scene, client, Selection::BestReputation);
    let queued = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    assert_eq!(scene.state(queued), State::Queued);
    let closes = scene.now.plus(Millis::seconds(2));
    scene.register_worker("bob", "bob", &[("dig", "1")]);
    let order = with_callback(&mut scene, client, Selection::Auction { closes });
    let auction = scene.open_job(OpenJob { skill: "dig".to_owned(), ..order }).id;
    scene.advance(JOB_LIFETIME);
    for job in [queued, auction] {
        assert!(called_back(&scene, job), "{:?}", scene.state(job));
    }
}

#[test]
fn a_price_of_exactly_the_bid_is_invited() {
    let (mut scene, client) = market();
    let pat = scene.introduce("pat", &[("sum", "50")]);
    scene.introduce("sue", &[("sum", "50.000001")]);
    let closes = scene.now.plus(Millis::seconds(2));
    let order = scene.job_order(client, "sum", "50");
    let job = scene.open_job(OpenJob { selection: Selection::Auction { closes }, ..order });
    assert_eq!(job.candidates.invited, [pat]);
}

#[test]
fn who_came_by_itself_and_named_a_price_can_be_chosen() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "1")]);
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { selection: Selection::Offers, ..order }).id;
    let late = scene.register_worker("late", "late", &[("sum", "1")]);
    for price in ["4", "3"] {
        let (price, valid_for) = (credits(price), Millis::minutes(1));
        scene
            .run(Command::Offer {
                job: JobRef::Id(job),
                by: late,
                price,
                terms: OfferTerms::Open { valid_for },
            })
            .unwrap();
    }
    let asked = scene.job(job).candidates.invited.iter().filter(|one| **one == late).count();
    assert_eq!(asked, 1);
    let offer = OfferRef::Price { by: late, price: credits("3") };
    scene.run(Command::accept_offer(JobRef::Id(job), client, offer)).unwrap();
    assert_eq!(scene.job(job).worker(), Some(late));
}

#[test]
fn input_and_what_only_its_protocol_understands_count_together() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "1")]);
    scene.world.rules.open_bytes_max = 100;
    for (input, meta, fits) in [(2, 98, true), (98, 2, true), (51, 50, false), (2, 99, false)] {
        let mut scene = scene.clone();
        let order = scene.job_order(client, "sum", "5");
        let (input, meta) = ("i".repeat(input), "m".repeat(meta));
        let opened = scene.try_open_job(OpenJob { input, meta, ..order });
        assert_eq!(opened.is_ok(), fits, "{opened:?}");
    }
}

#[test]
fn nothing_is_given_out_at_its_very_deadline() {
    let (mut scene, client) = market();
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    scene.advance_without_timers(JOB_LIFETIME);
    scene.register_worker("ada", "acme", &[("sum", "1")]);
    assert_eq!(scene.state(job), State::Queued);

    let (mut scene, client) = market();
    for name in ["ada", "bob"] {
        scene.register_worker(name, name, &[("sum", "1")]);
    }
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    scene.advance_without_timers(JOB_LIFETIME);
    assert_eq!(scene.decline(job).state, State::Failed);
}

#[test]
fn each_part_of_the_work_and_each_no_are_in_the_history() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let [pat, _] = ["pat", "sue"].map(|name| scene.introduce(name, &[("sum", "0")]));
    let job = scene.request_all("ann", "r", None);
    scene.sign_and_run("sue", "no", refusal("r")).unwrap();
    let sue = scene.job(job).candidates.declined[0];
    assert_eq!(has_happened(&scene, &Event::JobDeclined { job, worker: sue }), 1);
    let alone = scene.request("ann", "r2", pat, None);
    for id in ["x1", "x2"] {
        scene.sign_and_run("pat", id, partial_result("r2")).unwrap();
    }
    assert_eq!(has_happened(&scene, &Event::JobProgressed { job: alone }), 2);
}

#[test]
fn what_the_operator_takes_away_is_in_the_history() {
    let (mut scene, client) = market();
    scene.register_worker("ada", "acme", &[("sum", "1")]);
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
    assert_eq!(has_happened(&scene, &Event::JobRequeued { job }), 1);
}

#[test]
fn a_bidder_that_was_not_chosen_has_no_penalty() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let job = scene.request("ann", "r", pat, None);
    let head = scene.world.inbox(pat).head;
    scene.run(Command::Ack { agent: pat, up_to: head }).unwrap();
    scene.sign_and_run("pat", "o", offer("r", "3")).unwrap();
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.agent_state(pat).standing.outcomes, 0);
}

#[test]
fn who_has_said_no_is_told_how_the_job_stands_and_not_that_there_is_none() {
    let mut scene = TestHub::default();
    let ann = scene.introduce("ann", &[]);
    for name in ["pat", "sue"] {
        scene.introduce(name, &[("sum", "0")]);
    }
    scene.request_all("ann", "r", None);
    scene.sign_and_run("sue", "no", refusal("r")).unwrap();
    let again = scene.sign_and_run("sue", "o", with_counterparty(ann, offer("r", "1")));
    assert_eq!(again, Err(Refusal::WrongState { state: State::Open }));
}

#[test]
fn the_hubs_id_of_a_job_has_one_spelling() {
    let (mut scene, client) = market();
    let pat = scene.introduce("pat", &[("sum", "1")]);
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
    let other = job.uuid.simple().to_string();
    assert_eq!(scene.sign_and_run("pat", "x1", result(&other)), Err(Refusal::NotFound));
    // A signer's own jobs are known by the signer's ids, not by the hub's.
    scene.introduce("ann", &[]);
    let own = scene.request("ann", "r", pat, None);
    let by_uuid = scene.job(own).uuid.to_string();
    assert_eq!(scene.sign_and_run("pat", "x2", result(&by_uuid)), Err(Refusal::NotFound));
    let uuid = job.uuid.to_string();
    assert_eq!(scene.sign_and_run("pat", "x3", result(&uuid)), Ok(State::Completed));
}

#[test]
fn work_from_elsewhere_is_not_taken_for_a_job_of_some_name() {
    let (mut scene, client) = market();
    for name in ["ann", "bea"] {
        scene.introduce(name, &[]);
    }
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let order = scene.job_order(client, "sum", "5");
    scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
    let job = scene.request("ann", "r", pat, None);
    scene.sign_and_run("pat", "x1", partial_result("r")).unwrap();
    scene.request("bea", "r", pat, None);
    assert_eq!(scene.sign_and_run("pat", "x2", result("r")), Ok(State::Completed));
    assert_eq!(scene.state(job), State::Completed, "the one it is working on");
}

#[test]
fn only_agents_whose_schema_rejects_the_input_are_skipped() {
    let mut scene = TestHub::default();
    scene.grant("ann", super::AWAY_CREDITS);
    scene.introduce("ann", &[]);
    let [bob, eve] = ["bob", "eve"].map(|name| scene.register_worker(name, name, &[("sum", "1")]));
    for (agent, suits) in [(eve, true), (bob, false)] {
        let unfit = vec![UnfitAgent { agent, reason: "a number is missing".to_owned() }];
        let order = scene.job_request("sum", RequestTarget::Agent(bob), Some("5"));
        let order = JobRequest { unfit_agents: unfit, ..order };
        let order =
            scene.sign_order("ann", &format!("r{agent}"), Command::RequestJob(Box::new(order)));
        let heard = scene.run_signed(order).map(|_| ());
        let why = "a number is missing".to_owned();
        assert_eq!(heard, if suits { Ok(()) } else { Err(Refusal::InputRejected { reason: why }) });
    }
}

#[test]
fn an_agent_that_blocked_the_requester_is_not_selected() {
    let (mut scene, client) = market();
    let [ada, bob] = ["ada", "bob"].map(|name| scene.register_worker(name, name, &[("sum", "1")]));
    scene.run(Command::SetBlocked { agent: ada, other: client, blocked: true }).unwrap();
    let order = scene.job_order(client, "sum", "5");
    assert_eq!(scene.open_job(order).worker(), Some(bob));
}

#[test]
fn within_an_owners_turn_its_agents_follow_each_other_as_they_came() {
    let (mut scene, client) = market();
    let [first, second] =
        ["a1", "a2"].map(|name| scene.register_worker(name, "acme", &[("sum", "1")]));
    // The second ranks before the first.
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(second), ..order }).id;
    scene.succeed(job, "1");
    let next = |scene: &mut TestHub| {
        let order = scene.job_order(client, "sum", "5");
        scene.open_job(OpenJob { selection: Selection::RoundRobin, ..order }).worker()
    };
    assert_eq!([next(&mut scene), next(&mut scene)], [Some(first), Some(second)]);
}

#[test]
fn who_begins_before_it_reads_is_not_told_again_when_it_does() {
    let (mut scene, client) = market();
    let terms = Terms {
        intake: JobIntake { urgent_first: true, ..JobIntake::default() },
        ..Terms::default()
    };
    let order = Registration { terms, ..registration("ada", "acme", &[("sum", "1")]) };
    let ada = scene.register(order).unwrap();
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(order).id;
    scene.run(Command::Start { job: JobRef::Id(job), by: ada }).unwrap();
    scene.run(Command::HandOver { agent: ada, jobs: vec![job] }).unwrap();
    assert_eq!(scene.notices_to(ada), []);
}

#[test]
fn so_many_wait_for_who_is_away_and_not_one_more_and_all_of_them_stay() {
    let mut scene = TestHub::default();
    scene.checks_invariants = false;
    let client = scene.register_client("client", "rich", "100");
    let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let ask = |scene: &mut TestHub| {
        let order = scene.job_order(client, "sum", "0.10");
        let selection = Selection::Direct(ada);
        scene.try_open_job(OpenJob { selection, policy, ..order }).map(|job| job.id)
    };
    let jobs: Vec<JobId> = (0..WAITING_MAX).map(|_| ask(&mut scene).unwrap()).collect();
    assert_eq!(ask(&mut scene), Err(Refusal::AtCapacity));
    // It stays away for longer: jobs that wait already keep waiting, though there is no capacity
    // left.
    scene.advance_without_timers(Millis::seconds(59));
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    scene.advance(Millis::seconds(2));
    let deferred = |job: &JobId| matches!(scene.state(*job), State::Deferred { .. });
    assert!(jobs.iter().all(deferred));
}

#[test]
fn a_job_that_cannot_be_delivered_waits_if_allowed_and_is_taken_back_otherwise() {
    for (policy, state) in [(PATIENT, State::Queued), (Policy::default(), State::Withdrawn)] {
        let (mut scene, client) = market();
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "1")])).unwrap();
        let order = scene.job_order(client, "sum", "5");
        let job = scene.open_job(OpenJob { policy, ..order }).id;
        assert_eq!(scene.unreachable(job).state, state);
    }
}

#[test]
fn a_bidder_is_relied_on_and_its_requester_only_while_present() {
    for (home, wins) in [(HOME, true), (AWAY, false)] {
        let (mut scene, client) = market();
        let order = Registration { home, ..registration("ada", "acme", &[("sum", "1")]) };
        let ada = scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap();
        let closes = scene.now.plus(Millis::minutes(30));
        let order = scene.job_order(client, "sum", "5");
        let job = scene.open_job(OpenJob { selection: Selection::Auction { closes }, ..order }).id;
        if home == HOME {
            let (price, valid_for) = (credits("1"), Millis::hours(1));
            scene
                .run(Command::Offer {
                    job: JobRef::Id(job),
                    by: ada,
                    price,
                    terms: OfferTerms::Open { valid_for },
                })
                .unwrap();
        }
        assert_eq!(scene.job(job).candidates.offers.len(), 1);
        scene.advance(Millis::minutes(30));
        assert!(!scene.is_online(ada));
        assert_eq!(scene.job(job).worker(), wins.then_some(ada), "{home:?}");
    }
}

#[test]
fn who_bids_too_little_is_told_the_lowest_price() {
    let (mut scene, client) = market();
    for (name, price) in [("ada", "9"), ("bob", "8"), ("cid", "8.5")] {
        scene.register_worker(name, name, &[("sum", price)]);
    }
    let order = scene.job_order(client, "sum", "5");
    let price = credits("8");
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::BudgetTooLow { price });
}
