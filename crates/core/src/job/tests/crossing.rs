//! Requests to agents of another protocol, and jobs from one.

use super::{AWAY_PURSE, PATIENT};
use crate::agent::presence::Stance;
use crate::command::{Command, JobRef, OpenJob};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Requester, Selection, State};
use crate::notice::News;
use crate::refusal::Refusal;
use crate::signed_order::{Profile, Whom};
use crate::testkit::signed_orders::{accept, failure, offer, part, refusal, result, with, words};
use crate::testkit::{Scene, credits, reached, skill};
use crate::time::Millis;

/// A signer that can pay.
fn ann() -> (Scene, AgentId) {
    let mut scene = Scene::default();
    scene.grant("ann", AWAY_PURSE);
    let ann = scene.hello("ann", &[]);
    (scene, ann)
}

fn offered(scene: &Scene, job: JobId, place: usize) -> String {
    scene.job(job).offers[place].name.clone()
}

/// A job from the other protocol, assigned to a signer.
fn given(scene: &mut Scene, client: AgentId, worker: AgentId) -> JobId {
    let order = scene.ask(client, "sum", "5");
    scene.open(OpenJob { selection: Selection::Direct(worker), ..order }).id
}

#[test]
fn what_is_free_elsewhere_is_begun_at_once() {
    let (mut scene, ann) = ann();
    let bob = scene.worker("bob", "bob", &[("sum", "0")]);
    let job = scene.request("ann", "r", bob, Some("3"));
    assert_eq!((scene.state(job), scene.job(job).worker()), (State::Assigned, Some(bob)));
    assert_eq!(scene.told(bob), [News::Assigned { job, epoch: 1 }], "without her original text");
    scene.succeed(job, "0");
    assert_eq!(scene.told(ann), [News::Ended { job }]);
    assert_eq!(
        scene.sign("ann", "e", failure("r")),
        Err(Refusal::WrongState { is: State::Completed })
    );
}

#[test]
fn a_listed_price_elsewhere_is_an_offer_that_stands_for_a_minute() {
    let (mut scene, ann) = ann();
    let bob = scene.worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, Some("4"));
    assert_eq!((scene.state(job), scene.purse("ann").1), (State::Negotiating, "0.00".to_owned()));
    assert_eq!(scene.told(ann), [News::Offered { job, place: 0 }], "she is notified");
    assert_eq!(scene.told(bob), [], "and he is not invited");
    let name = offered(&scene, job, 0);
    let mut late = scene.clone();
    scene.wait(Millis(59_999));
    assert_eq!(scene.sign("ann", "a", accept(&name)), Ok(State::Assigned));
    assert_eq!(scene.purse("ann").1, "4.00");
    assert_eq!(scene.told(bob), [News::Assigned { job, epoch: 1 }]);
    scene.succeed(job, "4");
    assert_eq!((scene.purse("bob").0, scene.told(ann).len()), ("4.00".to_owned(), 2));
    late.wait(Millis(60_000));
    assert_eq!(late.sign("ann", "a", accept(&name)), Err(Refusal::OfferExpired));
}

#[test]
fn who_is_offline_elsewhere_or_too_dear_is_not_asked() {
    let (mut scene, _) = ann();
    let order = reached("bob", "bob", &[("sum", "4")]);
    let bob = scene.enrol(order).unwrap();
    let price = credits("4");
    let dear = scene.try_request("ann", "r", bob, Some("3"));
    assert_eq!(dear, Err(Refusal::BudgetTooLow { price }));
    let client = scene.client("client", "client", "9");
    let lost = scene.ask(client, "sum", "4");
    let lost = scene.open(lost).id;
    scene.unreachable(lost);
    assert!(!scene.online(bob));
    assert_eq!(scene.try_request("ann", "r", bob, Some("4")), Err(Refusal::Offline));
    let blank = scene.worker("blank", "blank", &[]);
    assert_eq!(scene.try_request("ann", "r", blank, None), Err(Refusal::SkillNotOffered));
}

#[test]
fn a_fan_out_goes_to_both_sides() {
    let (mut scene, ann) = ann();
    let pat = scene.hello("pat", &[("sum", "3")]);
    let bob = scene.worker("bob", "bob", &[("sum", "2")]);
    let free = scene.worker("free", "free", &[("sum", "0")]);
    let dear = scene.worker("dear", "dear", &[("sum", "6")]);
    let job = scene.request_all("ann", "r", Some("5"));
    assert_eq!(
        scene.job(job).asked,
        [pat, bob, free],
        "not {dear}, whose price is above the budget"
    );
    let told = [0, 1].map(|place| News::Offered { job, place });
    assert_eq!((scene.told(ann), scene.heard(pat)), (told.to_vec(), vec![words("ann", "r")]));
    scene.sign("pat", "o", offer("r", "1")).unwrap();
    let name = offered(&scene, job, 1);
    assert_eq!(scene.sign("ann", "a", with(free, accept(&name))), Ok(State::Assigned));
    assert_eq!(scene.told(bob), [News::OfferClosed { job, place: 0 }]);
    assert_eq!(scene.told(pat)[1..], [News::OfferClosed { job, place: 2 }]);
    assert_eq!(scene.told(free), [News::Assigned { job, epoch: 1 }]);
}

#[test]
fn whoever_is_left_alone_by_those_who_cannot_is_asked_alone() {
    let (mut scene, _) = ann();
    let pat = scene.hello("pat", &[("sum", "3")]);
    scene.worker("dear", "dear", &[("sum", "6")]);
    let job = scene.request_all("ann", "r", Some("5"));
    assert_eq!((&scene.job(job).asked[..], scene.job(job).held), (&[pat][..], credits("3")));
    assert_eq!(scene.sign("pat", "x", result("r")), Ok(State::Completed));
    assert_eq!(scene.purse("pat").0, "3.00");
}

#[test]
fn a_withdrawal_is_plain_news_to_who_speaks_otherwise() {
    let (mut scene, _) = ann();
    let bob = scene.worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, None);
    assert_eq!(scene.sign("ann", "e", failure("r")), Ok(State::Cancelled));
    assert_eq!(scene.told(bob), [News::TakenBack { job, epoch: 0 }]);
}

#[test]
fn work_from_elsewhere_is_answered_by_the_hubs_own_id() {
    let (mut scene, ann) = ann();
    let client = scene.client("client", "client", "20");
    let pat = scene.hello("pat", &[("sum", "5")]);
    let job = given(&mut scene, client, pat);
    assert_eq!(scene.told(pat), [News::Assigned { job, epoch: 1 }]);
    let uuid = scene.job(job).uuid.to_string();
    let foreign = scene.job(job).foreign.clone();
    assert_eq!(scene.sign("pat", "x0", result(&foreign)), Err(Refusal::NotYours));
    assert_eq!(scene.sign("pat", "x1", with(ann, result(&uuid))), Err(Refusal::WrongParty));
    assert_eq!(scene.sign("pat", "x2", part(&uuid)), Ok(State::Running));
    assert_eq!(scene.told(client), [], "a part in another protocol's format");
    assert_eq!(scene.sign("pat", "x3", with(client, result(&uuid))), Ok(State::Completed));
    assert_eq!(
        (scene.purse("pat").0, scene.told(client)),
        ("5.00".to_owned(), vec![News::Ended { job }])
    );
    let done = Refusal::WrongState { is: State::Completed };
    assert_eq!(scene.sign("pat", "x4", result(&uuid)), Err(done));
}

#[test]
fn a_guests_job_can_be_answered_in_parts_too() {
    let (mut scene, _) = ann();
    let pat = scene.hello("pat", &[("sum", "0")]);
    let order = scene.ask(AgentId(0), "sum", "0");
    let requester = Requester::Guest("guest".to_owned());
    let job = scene.open(OpenJob { requester, selection: Selection::Direct(pat), ..order });
    let uuid = job.uuid.to_string();
    assert_eq!(scene.sign("pat", "x1", part(&uuid)), Ok(State::Running));
    assert_eq!(scene.sign("pat", "x2", result(&uuid)), Ok(State::Completed));
}

#[test]
fn work_from_elsewhere_may_be_refused_without_blame_and_failed_with_it() {
    let (mut scene, _) = ann();
    let client = scene.client("client", "client", "20");
    let pat = scene.hello("pat", &[("sum", "5")]);
    let refused = given(&mut scene, client, pat);
    let uuid = scene.job(refused).uuid.to_string();
    assert_eq!(scene.sign("pat", "e1", refusal(&uuid)), Ok(State::Failed));
    assert_eq!(scene.job(refused).report.as_ref().unwrap().cause, Some(Cause::Offline));
    assert_eq!(scene.desk(pat).standing.settled(), 0);
    let failed = given(&mut scene, client, pat);
    let uuid = scene.job(failed).uuid.to_string();
    assert_eq!(scene.sign("pat", "e2", failure(&uuid)), Ok(State::Failed));
    assert_eq!(scene.desk(pat).standing.failures, 1);
    assert_eq!(scene.purse("client"), ("20.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.told(client).len(), 2);
    let over = Refusal::WrongState { is: State::Failed };
    assert_eq!(scene.sign("pat", "e3", failure(&uuid)), Err(over));
}

#[test]
fn work_from_elsewhere_goes_on_as_its_own_policy_says_and_the_next_is_told_plainly() {
    for deed in [refusal, failure] {
        let (mut scene, _) = ann();
        let client = scene.client("client", "client", "20");
        let pat = scene.hello("pat", &[("sum", "5")]);
        let sue = scene.hello("sue", &[("sum", "5")]);
        let order = scene.ask(client, "sum", "5");
        let job = scene.open(OpenJob { policy: PATIENT, ..order });
        assert_eq!(job.worker(), Some(pat));
        let uuid = job.uuid.to_string();
        assert_eq!(scene.sign("pat", "e", deed(&uuid)), Ok(State::Assigned));
        assert_eq!(scene.job(job.id).worker(), Some(sue));
        assert_eq!(scene.told(sue), [News::Assigned { job: job.id, epoch: 2 }], "not pat's text");
        assert_eq!(scene.sign("pat", "x", result(&uuid)), Err(Refusal::NotYours));
        assert_eq!(scene.sign("sue", "x", result(&uuid)), Ok(State::Completed));
    }
}

#[test]
fn who_introduces_itself_takes_what_waits_and_is_told() {
    let (mut scene, _) = ann();
    let client = scene.client("client", "client", "20");
    let waiting = |scene: &mut Scene| {
        let order = scene.ask(client, "sum", "5");
        scene.open(OpenJob { policy: PATIENT, ..order }).id
    };
    let job = waiting(&mut scene);
    assert_eq!(scene.state(job), State::Queued);
    let pat = scene.hello("pat", &[("sum", "5")]);
    assert_eq!(scene.told(pat), [News::Assigned { job, epoch: 1 }]);
    scene.remove(pat);
    let again = waiting(&mut scene);
    let skills = Some(vec![skill("sum", "5")]);
    scene.amend("sue", Profile { skills, ..Profile::default() });
    let sue = scene.job(again).worker().unwrap();
    assert!(scene.told(sue).contains(&News::Assigned { job: again, epoch: 1 }));
}

#[test]
fn an_introduction_is_no_message_to_who_gets_its_signers_waiting_job() {
    let (mut scene, ann) = ann();
    let pat = scene.hello("pat", &[("sum", "5")]);
    let stance = |stance| Profile { stance: Some(stance), ..Profile::default() };
    scene.amend("pat", stance(Stance::Offline));
    let order = scene.ask(ann, "sum", "5");
    let job = scene.open(OpenJob { policy: PATIENT, ..order }).id;
    assert_eq!(scene.state(job), State::Queued);
    scene.amend("pat", stance(Stance::Idle));
    scene.amend("ann", Profile { name: Some("Ann".to_owned()), ..Profile::default() });
    assert_eq!(scene.told(pat), [News::Assigned { job, epoch: 1 }]);
}

#[test]
fn an_offer_reaches_a_requester_at_its_endpoint() {
    let mut scene = Scene::default();
    let endpoint = Some("https://ann.example".to_owned());
    let ann = scene.amend("ann", Profile { endpoint, ..Profile::default() });
    let bob = scene.worker("bob", "bob", &[("sum", "4")]);
    let job = scene.request("ann", "r", bob, None);
    let push = scene.world.pushes().next().unwrap();
    assert_eq!((push.to, &push.news), (Some(ann), &News::Offered { job, place: 0 }));
    assert_eq!(push.url, "https://ann.example");
}

#[test]
fn one_who_is_asked_elsewhere_declines_in_its_own_way() {
    let (mut scene, ann) = ann();
    let bob = scene.worker("bob", "bob", &[("sum", "0")]);
    let order = scene.question("sum", Whom::Agent(bob), None);
    let order = scene.signed("ann", "r", crate::signed_order::Deed::Ask(Box::new(order)));
    let job = scene.hear(order).unwrap().job.unwrap();
    scene
        .run(Command::Decline { job: JobRef::Id(job), by: bob, epoch: None, reason: None })
        .unwrap();
    assert_eq!((scene.state(job), scene.told(ann)), (State::Failed, vec![News::Ended { job }]));
    assert_eq!(scene.desk(bob).standing.settled(), 0);
}
