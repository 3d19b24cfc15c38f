//! Requests to agents of another protocol, and jobs from one.

use super::{AWAY_CREDITS, PATIENT};
use crate::agent::presence::Availability;
use crate::command::{Command, JobRef, OpenJob, ProfileUpdate, RequestTarget};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Requester, Selection, State};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{
    accept, envelope_text, failure, offer, partial_result, refusal, result, with_counterparty,
};
use crate::testkit::{TestHub, credits, registration_with_endpoint, skill};
use crate::time::Millis;

/// A signer that can pay.
fn ann() -> (TestHub, AgentId) {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    let ann = scene.introduce("ann", &[]);
    (scene, ann)
}

fn offered(scene: &TestHub, job: JobId, place: usize) -> String {
    scene.job(job).candidates.offers[place].name.clone()
}

/// A job from the other protocol, assigned to a signer.
fn given(scene: &mut TestHub, client: AgentId, worker: AgentId) -> JobId {
    let order = scene.job_order(client, "sum", "5");
    scene.open_job(OpenJob { selection: Selection::Direct(worker), ..order }).id
}

#[test]
fn what_is_free_elsewhere_is_begun_at_once() {
    let (mut scene, ann) = ann();
    let bob = scene.register_worker("bob", "bob", &[("sum", "0")]);
    let job = scene.request("ann", "r", bob, Some("3"));
    assert_eq!((scene.state(job), scene.job(job).worker()), (State::Assigned, Some(bob)));
    assert_eq!(
        scene.notices_to(bob),
        [NoticeKind::Assigned { job, epoch: 1 }],
        "without her original text"
    );
    scene.succeed(job, "0");
    assert_eq!(scene.notices_to(ann), [NoticeKind::Ended { job }]);
    assert_eq!(
        scene.sign_and_run("ann", "e", failure("r")),
        Err(Refusal::WrongState { state: State::Completed })
    );
}

#[test]
fn a_listed_price_elsewhere_is_an_offer_that_stands_for_a_minute() {
    let (mut scene, ann) = ann();
    let bob = scene.register_worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, Some("4"));
    assert_eq!(
        (scene.state(job), scene.balance_text("ann").1),
        (State::Negotiating, "0.00".to_owned())
    );
    assert_eq!(
        scene.notices_to(ann),
        [NoticeKind::OfferReceived { job, place: 0 }],
        "she is notified"
    );
    assert_eq!(scene.notices_to(bob), [], "and he is not invited");
    let name = offered(&scene, job, 0);
    let mut late = scene.clone();
    scene.advance(Millis(59_999));
    assert_eq!(scene.sign_and_run("ann", "a", accept(&name)), Ok(State::Assigned));
    assert_eq!(scene.balance_text("ann").1, "4.00");
    assert_eq!(scene.notices_to(bob), [NoticeKind::Assigned { job, epoch: 1 }]);
    scene.succeed(job, "4");
    assert_eq!((scene.balance_text("bob").0, scene.notices_to(ann).len()), ("4.00".to_owned(), 2));
    late.advance(Millis(60_000));
    assert_eq!(late.sign_and_run("ann", "a", accept(&name)), Err(Refusal::OfferExpired));
}

#[test]
fn who_is_offline_elsewhere_or_too_dear_is_not_asked() {
    let (mut scene, _) = ann();
    let order = registration_with_endpoint("bob", "bob", &[("sum", "4")]);
    let bob = scene.register(order).unwrap();
    let price = credits("4");
    let dear = scene.try_request("ann", "r", bob, Some("3"));
    assert_eq!(dear, Err(Refusal::BudgetTooLow { price }));
    let client = scene.register_client("client", "client", "9");
    let lost = scene.job_order(client, "sum", "4");
    let lost = scene.open_job(lost).id;
    scene.unreachable(lost);
    assert!(!scene.is_online(bob));
    assert_eq!(scene.try_request("ann", "r", bob, Some("4")), Err(Refusal::Offline));
    let blank = scene.register_worker("blank", "blank", &[]);
    assert_eq!(scene.try_request("ann", "r", blank, None), Err(Refusal::SkillNotOffered));
}

#[test]
fn a_fan_out_goes_to_both_sides() {
    let (mut scene, ann) = ann();
    let pat = scene.introduce("pat", &[("sum", "3")]);
    let bob = scene.register_worker("bob", "bob", &[("sum", "2")]);
    let free = scene.register_worker("free", "free", &[("sum", "0")]);
    let dear = scene.register_worker("dear", "dear", &[("sum", "6")]);
    let job = scene.request_all("ann", "r", Some("5"));
    assert_eq!(
        scene.job(job).candidates.invited,
        [pat, bob, free],
        "not {dear}, whose price is above the budget"
    );
    let told = [0, 1].map(|place| NoticeKind::OfferReceived { job, place });
    assert_eq!(
        (scene.notices_to(ann), scene.messages_to(pat)),
        (told.to_vec(), vec![envelope_text("ann", "r")])
    );
    scene.sign_and_run("pat", "o", offer("r", "1")).unwrap();
    let name = offered(&scene, job, 1);
    assert_eq!(
        scene.sign_and_run("ann", "a", with_counterparty(free, accept(&name))),
        Ok(State::Assigned)
    );
    assert_eq!(scene.notices_to(bob), [NoticeKind::OfferLost { job, place: 0 }]);
    assert_eq!(scene.notices_to(pat)[1..], [NoticeKind::OfferLost { job, place: 2 }]);
    assert_eq!(scene.notices_to(free), [NoticeKind::Assigned { job, epoch: 1 }]);
}

#[test]
fn the_only_capable_agent_left_is_asked_directly() {
    let (mut scene, _) = ann();
    let pat = scene.introduce("pat", &[("sum", "3")]);
    scene.register_worker("dear", "dear", &[("sum", "6")]);
    let job = scene.request_all("ann", "r", Some("5"));
    assert_eq!(
        (&scene.job(job).candidates.invited[..], scene.job(job).payment.held),
        (&[pat][..], credits("3"))
    );
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
    assert_eq!(scene.balance_text("pat").0, "3.00");
}

#[test]
fn a_withdrawal_is_plain_news_to_who_speaks_otherwise() {
    let (mut scene, _) = ann();
    let bob = scene.register_worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, None);
    assert_eq!(scene.sign_and_run("ann", "e", failure("r")), Ok(State::Cancelled));
    assert_eq!(scene.notices_to(bob), [NoticeKind::Unassigned { job, epoch: 0 }]);
}

#[test]
fn work_from_elsewhere_is_answered_by_the_hubs_own_id() {
    let (mut scene, ann) = ann();
    let client = scene.register_client("client", "client", "20");
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let job = given(&mut scene, client, pat);
    assert_eq!(scene.notices_to(pat), [NoticeKind::Assigned { job, epoch: 1 }]);
    let uuid = scene.job(job).uuid.to_string();
    let foreign = scene.job(job).request.foreign_id.clone();
    assert_eq!(scene.sign_and_run("pat", "x0", result(&foreign)), Err(Refusal::NotFound));
    assert_eq!(
        scene.sign_and_run("pat", "x1", with_counterparty(ann, result(&uuid))),
        Err(Refusal::WrongParty)
    );
    assert_eq!(scene.sign_and_run("pat", "x2", partial_result(&uuid)), Ok(State::Running));
    let news = scene.notices_to(client);
    let [NoticeKind::Progress { report, .. }] = &news[..] else { panic!("{news:?}") };
    let part = report.update.part.as_ref().map(|part| part.content.as_str());
    assert_eq!((report.number, part), (1, Some("{}")), "a part crosses protocols");
    assert_eq!(
        scene.sign_and_run("pat", "x3", with_counterparty(client, result(&uuid))),
        Ok(State::Completed)
    );
    assert_eq!(
        (scene.balance_text("pat").0, scene.notices_to(client).pop()),
        ("5.00".to_owned(), Some(NoticeKind::Ended { job }))
    );
    let done = Refusal::WrongState { state: State::Completed };
    assert_eq!(scene.sign_and_run("pat", "x4", result(&uuid)), Err(done));
}

#[test]
fn a_guests_job_can_be_answered_in_parts_too() {
    let (mut scene, _) = ann();
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let order = scene.job_order(AgentId(0), "sum", "0");
    let requester = Requester::Guest("guest".to_owned());
    let job = scene.open_job(OpenJob { requester, selection: Selection::Direct(pat), ..order });
    let uuid = job.uuid.to_string();
    assert_eq!(scene.sign_and_run("pat", "x1", partial_result(&uuid)), Ok(State::Running));
    assert_eq!(scene.sign_and_run("pat", "x2", result(&uuid)), Ok(State::Completed));
}

#[test]
fn work_from_elsewhere_may_be_refused_without_blame_and_failed_with_it() {
    let (mut scene, _) = ann();
    let client = scene.register_client("client", "client", "20");
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let refused = given(&mut scene, client, pat);
    let uuid = scene.job(refused).uuid.to_string();
    assert_eq!(scene.sign_and_run("pat", "e1", refusal(&uuid)), Ok(State::Failed));
    assert_eq!(scene.job(refused).result.as_ref().unwrap().cause, Some(Cause::Offline));
    assert_eq!(scene.agent_state(pat).standing.settled_jobs(), 0);
    let failed = given(&mut scene, client, pat);
    let uuid = scene.job(failed).uuid.to_string();
    assert_eq!(scene.sign_and_run("pat", "e2", failure(&uuid)), Ok(State::Failed));
    assert_eq!(scene.agent_state(pat).standing.failures, 1);
    assert_eq!(scene.balance_text("client"), ("20.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.notices_to(client).len(), 2);
    let over = Refusal::WrongState { state: State::Failed };
    assert_eq!(scene.sign_and_run("pat", "e3", failure(&uuid)), Err(over));
}

#[test]
fn work_from_elsewhere_goes_on_as_its_own_policy_says_and_the_next_is_told_plainly() {
    for signed_order in [refusal, failure] {
        let (mut scene, _) = ann();
        let client = scene.register_client("client", "client", "20");
        let pat = scene.introduce("pat", &[("sum", "5")]);
        let sue = scene.introduce("sue", &[("sum", "5")]);
        let order = scene.job_order(client, "sum", "5");
        let job = scene.open_job(OpenJob { policy: PATIENT, ..order });
        assert_eq!(job.worker(), Some(pat));
        let uuid = job.uuid.to_string();
        assert_eq!(scene.sign_and_run("pat", "e", signed_order(&uuid)), Ok(State::Assigned));
        assert_eq!(scene.job(job.id).worker(), Some(sue));
        assert_eq!(
            scene.notices_to(sue),
            [NoticeKind::Assigned { job: job.id, epoch: 2 }],
            "not pat's text"
        );
        assert_eq!(scene.sign_and_run("pat", "x", result(&uuid)), Err(Refusal::NotFound));
        assert_eq!(scene.sign_and_run("sue", "x", result(&uuid)), Ok(State::Completed));
    }
}

#[test]
fn who_introduces_itself_takes_what_waits_and_is_told() {
    let (mut scene, _) = ann();
    let client = scene.register_client("client", "client", "20");
    let waiting = |scene: &mut TestHub| {
        let order = scene.job_order(client, "sum", "5");
        scene.open_job(OpenJob { policy: PATIENT, ..order }).id
    };
    let job = waiting(&mut scene);
    assert_eq!(scene.state(job), State::Queued);
    let pat = scene.introduce("pat", &[("sum", "5")]);
    assert_eq!(scene.notices_to(pat), [NoticeKind::Assigned { job, epoch: 1 }]);
    scene.remove(pat);
    let again = waiting(&mut scene);
    let skills = Some(vec![skill("sum", "5")]);
    scene.update_profile("sue", ProfileUpdate { skills, ..ProfileUpdate::default() });
    let sue = scene.job(again).worker().unwrap();
    assert!(scene.notices_to(sue).contains(&NoticeKind::Assigned { job: again, epoch: 1 }));
}

#[test]
fn an_introduction_is_no_message_to_who_gets_its_signers_waiting_job() {
    let (mut scene, ann) = ann();
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let availability = |availability| ProfileUpdate {
        availability: Some(availability),
        ..ProfileUpdate::default()
    };
    scene.update_profile("pat", availability(Availability::Offline));
    let order = scene.job_order(ann, "sum", "5");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    assert_eq!(scene.state(job), State::Queued);
    scene.update_profile("pat", availability(Availability::Idle));
    scene.update_profile(
        "ann",
        ProfileUpdate { name: Some("Ann".to_owned()), ..ProfileUpdate::default() },
    );
    assert_eq!(scene.notices_to(pat), [NoticeKind::Assigned { job, epoch: 1 }]);
}

#[test]
fn an_offer_reaches_a_requester_at_its_endpoint() {
    let mut scene = TestHub::default();
    let endpoint = Some("https://ann.example".to_owned());
    let ann = scene.update_profile("ann", ProfileUpdate { endpoint, ..ProfileUpdate::default() });
    let bob = scene.register_worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, None);
    let push = scene.world.deliveries().next().unwrap();
    assert_eq!((push.to, &push.kind), (Some(ann), &NoticeKind::OfferReceived { job, place: 0 }));
    assert_eq!(push.url, "https://ann.example");
}

#[test]
fn one_who_is_asked_elsewhere_declines_in_its_own_way() {
    let (mut scene, ann) = ann();
    let bob = scene.register_worker("bob", "bob", &[("sum", "0")]);
    let order = scene.job_request("sum", RequestTarget::Agent(bob), None);
    let order = scene.sign_order("ann", "r", Command::RequestJob(Box::new(order)));
    let job = scene.run_signed(order).unwrap().job.unwrap();
    scene
        .run(Command::Decline { job: JobRef::Id(job), by: bob, epoch: None, reason: None })
        .unwrap();
    assert_eq!(
        (scene.state(job), scene.notices_to(ann)),
        (State::Failed, vec![NoticeKind::Ended { job }])
    );
    assert_eq!(scene.agent_state(bob).standing.settled_jobs(), 0);
}
