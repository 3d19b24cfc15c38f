//! Agreements: a price, a promise, an approval. Later events revoke none of them.

use super::responding::{ASKS, YES, seconds};
use super::{PATIENT, keeps, market, sums};
use crate::agent::JobIntake;
use crate::agent::Terms;
use crate::command::{
    Approver, Command, JobRef, OfferRef, OfferTerms, OpenJob, ProfileUpdate, WorkerResponse,
};
use crate::id::AgentId;
use crate::job::{Policy, Selection, State};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{offer, partial_result, result};
use crate::testkit::{AWAY, TestHub, credits, registration, skill};
use crate::time::Millis;

/// A price step of whole credits, with nothing free.
const WHOLE: PriceStep = PriceStep { decimals: 0, minimum: Credits::from_micros(1_000_000) };

/// A signer that names its price for each job.
fn haggler(scene: &mut TestHub) -> AgentId {
    let mut sum = skill("sum", "0");
    sum.by_offer = true;
    scene.update_profile(
        "pat",
        ProfileUpdate { skills: Some(vec![sum]), ..ProfileUpdate::default() },
    )
}

#[test]
fn the_winner_of_an_auction_cannot_raise_its_price() {
    for by_hand in [true, false] {
        let (mut scene, client) = market();
        let pat = haggler(&mut scene);
        let closes = scene.now.plus(seconds(2));
        let selection = if by_hand { Selection::Offers } else { Selection::Auction { closes } };
        let job = scene.job_order(client, "sum", "50");
        let job = scene.open_job(OpenJob { selection, ..job });
        let uuid = job.uuid.to_string();
        scene.register_worker("slow", "slow", &[("sum", "60")]);
        scene.sign_and_run("pat", "o1", offer(&uuid, "3")).unwrap();
        scene.advance(seconds(3));
        if by_hand {
            let offer = OfferRef::Only { by: pat };
            let take = Command::accept_offer(JobRef::Id(job.id), client, offer);
            scene.run(take).unwrap();
        }
        assert_eq!(scene.job(job.id).assignment.unwrap().price, credits("3"));
        let more = scene.sign_and_run("pat", "o2", offer(&uuid, "40"));
        assert_eq!(more, Err(Refusal::WrongState { state: State::Assigned }));
        scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
        assert_eq!(scene.balance_text("pat").0, "3.00");
    }
}

#[test]
fn an_agent_that_defers_after_its_offer_cannot_change_the_price() {
    let (mut scene, client) = market();
    let pat = haggler(&mut scene);
    let order = scene.job_order(client, "sum", "6");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
    let uuid = job.uuid.to_string();
    scene.sign_and_run("pat", "o1", offer(&uuid, "3")).unwrap();
    let until = scene.now.plus(seconds(5));
    scene.run(Command::Defer { job: JobRef::Id(job.id), by: pat, until }).unwrap();
    scene.advance(seconds(5));
    assert_eq!(scene.state(job.id), State::Assigned);
    let more = scene.sign_and_run("pat", "o2", offer(&uuid, "6"));
    assert_eq!(more, Err(Refusal::WrongState { state: State::Assigned }));
    assert_eq!(scene.job(job.id).assignment.unwrap().price, credits("3"));
}

#[test]
fn another_workers_price_does_not_keep_the_next_from_naming_its_own() {
    let (mut scene, client) = market();
    let pat = haggler(&mut scene);
    let order = scene.job_order(client, "sum", "6");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order });
    let uuid = job.uuid.to_string();
    scene.sign_and_run("pat", "o1", offer(&uuid, "3")).unwrap();
    let mut sum = skill("sum", "0");
    sum.by_offer = true;
    scene.update_profile(
        "sue",
        ProfileUpdate { skills: Some(vec![sum]), ..ProfileUpdate::default() },
    );
    assert_eq!(scene.job(job.id).worker(), Some(pat));
    scene.fail(job.id);
    assert_eq!(scene.sign_and_run("sue", "o2", offer(&uuid, "5")), Ok(State::Running));
}

#[test]
fn who_lists_the_work_no_more_still_names_a_price_within_the_bid() {
    let (mut scene, client) = market();
    let pat = haggler(&mut scene);
    let order = scene.job_order(client, "sum", "6");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), ..order });
    scene.update_profile(
        "pat",
        ProfileUpdate { skills: Some(Vec::new()), ..ProfileUpdate::default() },
    );
    let named = scene.sign_and_run("pat", "o", offer(&job.uuid.to_string(), "3"));
    assert_eq!(named, Ok(State::Running));
}

#[test]
fn what_was_rounded_up_for_its_requester_is_paid_so_also_when_it_cost_what_was_named() {
    let (mut scene, client) = market();
    let pat = haggler(&mut scene);
    let order = scene.job_order(client, "sum", "6");
    let job =
        scene.open_job(OpenJob { selection: Selection::Direct(pat), price_step: WHOLE, ..order });
    scene.sign_and_run("pat", "o", offer(&job.uuid.to_string(), "0")).unwrap();
    scene.succeed(job.id, "0");
    assert_eq!(scene.balance_text("pat").0, "1.00");
}

#[test]
fn a_promise_holds_while_the_work_is_put_off() {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.expected_duration = Some(seconds(30)));
    let job = super::hire(&mut scene, client, ada).unwrap().id;
    let promised = scene.job(job).acceptance.promised;
    assert_eq!(promised, Some(scene.now.plus(seconds(30))));
    let until = scene.now.plus(seconds(60));
    scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
    scene.advance(seconds(60));
    assert_eq!((scene.state(job), scene.job(job).acceptance.promised), (State::Assigned, promised));
}

#[test]
fn who_has_said_yes_is_not_asked_again_and_who_has_not_still_is() {
    for says_yes in [true, false] {
        let (mut scene, client) = market();
        let ada = keeps(&mut scene, "ada", ASKS);
        let job = super::hire(&mut scene, client, ada).unwrap().id;
        if says_yes {
            scene.respond(job, ada, YES).unwrap();
        }
        let until = scene.now.plus(seconds(5));
        scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
        scene.advance(seconds(5));
        let again = scene.job(job);
        assert_eq!(again.state, State::Assigned);
        assert_eq!(again.acceptance.accepted_at.is_some(), says_yes);
        // The job is accepted, so it cannot be cancelled any more.
        assert_eq!(scene.cancel(job, client).is_err(), says_yes);
    }
}

#[test]
fn a_yes_that_was_given_holds_when_the_worker_puts_the_job_off() {
    let (mut scene, client) = market();
    let mut order = registration("ada", "acme", &[("sum", "0.10")]);
    order.skills[0].needs_approval = true;
    order.terms = ASKS;
    let ada = scene.register(order).unwrap();
    let job = super::hire(&mut scene, client, ada).unwrap().id;
    scene.approve(job, Approver::Operator, true).unwrap();
    let until = scene.now.plus(seconds(5));
    scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
    scene.advance(seconds(5));
    assert_eq!(scene.state(job), State::Assigned, "approval is not requested again");
}

#[test]
fn who_wins_with_the_lower_of_its_two_prices_gets_that_one_after_the_yes() {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.needs_approval = true);
    let closes = scene.now.plus(seconds(2));
    let order = scene.job_order(client, "sum", "50");
    let job = scene.open_job(OpenJob { selection: Selection::Auction { closes }, ..order }).id;
    for price in ["40", "37"] {
        let (price, valid_for) = (credits(price), Millis::hours(2));
        scene
            .run(Command::Offer {
                job: JobRef::Id(job),
                by: ada,
                price,
                terms: OfferTerms::Open { valid_for },
            })
            .unwrap();
    }
    scene.advance(seconds(2));
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    assert_eq!(scene.job(job).assignment.unwrap().price, credits("37"));
}

#[test]
fn who_does_not_fit_any_more_once_the_yes_is_there_is_not_asked_a_second_time() {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.needs_approval = true);
    let order = scene.job_order(client, "sum", "0.50");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    sums(&mut scene, "ada", |skill| {
        skill.needs_approval = true;
        skill.name = "dig".to_owned();
    });
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    assert_eq!(
        (scene.state(job), &scene.job(job).candidates.declined[..]),
        (State::Queued, &[ada][..])
    );
}

#[test]
fn handing_over_a_part_is_a_yes_too() {
    let (mut scene, client) = market();
    let mut order = registration("pat", "pat", &[("sum", "1")]);
    (order.home, order.terms) = (
        AWAY,
        Terms {
            intake: JobIntake { confirms_jobs: true, ..JobIntake::default() },
            ..Terms::default()
        },
    );
    let pat = scene.register(order).unwrap();
    let policy = Policy::default();
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), policy, ..order });
    assert_eq!(job.acceptance.accepted_at, None);
    scene.sign_and_run("pat", "x", partial_result(&job.uuid.to_string())).unwrap();
    assert_eq!(scene.job(job.id).acceptance.accepted_at, Some(scene.now));
}
