//! Prices across protocols: named by workers, rounded for requesters, and offered by the hub for
//! agents with a fixed price.

use crate::command::{Command, JobRef, OfferTerms, OpenJob, ProfileUpdate, UnfitAgent};
use crate::id::{AgentId, JobId};
use crate::job::{Selection, State};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{failure, offer, refusal, result};
use crate::testkit::{TestHub, credits, skill};
use crate::time::Millis;

/// A price step of whole credits, with nothing free.
const WHOLE: PriceStep = PriceStep { decimals: 0, minimum: Credits::from_micros(1_000_000) };
const CENTS: PriceStep = PriceStep { decimals: 2, minimum: Credits::ZERO };

/// A client with 100 credits, and a signer that names its price for each job.
fn haggler() -> (TestHub, AgentId, AgentId) {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let mut sum = skill("sum", "0");
    sum.by_offer = true;
    let pat = scene.update_profile(
        "pat",
        ProfileUpdate { skills: Some(vec![sum]), ..ProfileUpdate::default() },
    );
    (scene, client, pat)
}

fn hire(
    scene: &mut TestHub,
    by: AgentId,
    of: AgentId,
    budget: &str,
    price_step: PriceStep,
) -> (JobId, String) {
    let order = scene.job_order(by, "sum", budget);
    let job = scene.open_job(OpenJob { selection: Selection::Direct(of), price_step, ..order });
    (job.id, job.uuid.to_string())
}

#[test]
fn the_books_hire_across() {
    let (mut scene, client, pat) = haggler();
    let (job, uuid) = hire(&mut scene, client, pat, "6", CENTS);
    assert_eq!(scene.balance_text("client"), ("94.00".to_owned(), "6.00".to_owned()));
    assert_eq!(scene.sign_and_run("pat", "o", offer(&uuid, "5.25")), Ok(State::Running));
    assert_eq!(scene.notices_to(pat).last(), Some(&NoticeKind::PriceAgreed { job, place: 0 }));
    assert_eq!(scene.sign_and_run("pat", "r", result(&uuid)), Ok(State::Completed));
    assert_eq!(scene.balance_text("client"), ("94.75".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.balance_text("pat").0, "5.25");
}

#[test]
fn the_first_price_within_the_bid_is_taken_and_no_other() {
    let (mut scene, client, pat) = haggler();
    let (job, uuid) = hire(&mut scene, client, pat, "6", CENTS);
    let price = credits("6.01");
    let dear = Err(Refusal::BudgetTooLow { price });
    assert_eq!(scene.sign_and_run("pat", "o1", offer(&uuid, "6.01")), dear);
    // A price that exceeds the bid by rounding is above it.
    let price = credits("6.000001");
    let dear = Err(Refusal::BudgetTooLow { price });
    assert_eq!(scene.sign_and_run("pat", "o2", offer(&uuid, "6.000001")), dear);
    assert_eq!(scene.sign_and_run("pat", "o3", offer(&uuid, "5.991")), Ok(State::Running));
    assert_eq!(scene.job(job).assignment.unwrap().price, credits("6"));
    let again = Err(Refusal::WrongState { state: State::Running });
    assert_eq!(scene.sign_and_run("pat", "o4", offer(&uuid, "1")), again);
    scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
    assert_eq!(scene.balance_text("pat").0, "6.00");
}

#[test]
fn who_names_no_price_works_for_nothing() {
    let (mut scene, client, pat) = haggler();
    let (_, uuid) = hire(&mut scene, client, pat, "6", CENTS);
    assert_eq!(scene.sign_and_run("pat", "r", result(&uuid)), Ok(State::Completed));
    assert_eq!(
        (scene.balance_text("client").0, scene.balance_text("pat").0),
        ("100.00".into(), "0.00".into())
    );
}

#[test]
fn who_lists_a_price_may_ask_for_less_and_not_for_more() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let (_, uuid) = hire(&mut scene, client, pat, "9", CENTS);
    let price = credits("6");
    assert_eq!(
        scene.sign_and_run("pat", "o1", offer(&uuid, "6")),
        Err(Refusal::BudgetTooLow { price })
    );
    assert_eq!(scene.sign_and_run("pat", "o2", offer(&uuid, "4.5")), Ok(State::Running));
    scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
    assert_eq!(scene.balance_text("pat").0, "4.50");
}

#[test]
fn a_price_that_was_listed_when_the_work_was_given_is_not_raised_by_listing_none_afterwards() {
    let mut by_offer = skill("sum", "0");
    by_offer.by_offer = true;
    let later = [vec![by_offer], Vec::new(), vec![skill("other", "1")]];
    for skills in later {
        let mut scene = TestHub::default();
        let client = scene.register_client("client", "client", "100");
        let pat = scene.introduce("pat", &[("sum", "1")]);
        let (job, uuid) = hire(&mut scene, client, pat, "30", CENTS);
        scene.update_profile(
            "pat",
            ProfileUpdate { skills: Some(skills), ..ProfileUpdate::default() },
        );
        let dear = Err(Refusal::BudgetTooLow { price: credits("20") });
        assert_eq!(scene.sign_and_run("pat", "o", offer(&uuid, "20")), dear);
        assert_eq!(scene.job(job).assignment.unwrap().price, credits("1"));
        scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
        assert_eq!(scene.balance_text("client").0, "99.00");
    }
}

#[test]
fn a_stranger_cannot_name_a_price_for_anothers_work() {
    let (mut scene, client, pat) = haggler();
    scene.introduce("eve", &[("sum", "1")]);
    let (_, uuid) = hire(&mut scene, client, pat, "6", CENTS);
    assert_eq!(scene.sign_and_run("eve", "o", offer(&uuid, "1")), Err(Refusal::NotFound));
}

#[test]
fn prices_are_rounded_up_to_what_the_requester_is_shown_and_paid_so() {
    for (price, price_step, paid) in [
        ("0.1", WHOLE, "1.00"),
        ("0", WHOLE, "1.00"),
        ("1.2", WHOLE, "2.00"),
        ("0.101", CENTS, "0.11"),
    ] {
        let mut scene = TestHub::default();
        let client = scene.register_client("client", "client", "100");
        let bob = scene.register_worker("bob", "bob", &[("sum", price)]);
        let (job, _) = hire(&mut scene, client, bob, "5", price_step);
        assert_eq!(scene.job(job).assignment.unwrap().price, credits(paid));
        // For its own price or more, it always gets the same.
        scene.succeed(job, price);
        assert_eq!(scene.balance_text("bob").0, paid, "{price}");
    }
}

#[test]
fn work_that_was_cheaper_than_its_own_price_is_paid_as_reported_rounded_up() {
    for (cost, price_step, paid) in [
        ("0.05", WHOLE, "1.00"),
        ("0", WHOLE, "0.00"),
        ("0.0501", CENTS, "0.06"),
        ("0.101", CENTS, "0.11"),
    ] {
        let mut scene = TestHub::default();
        let client = scene.register_client("client", "client", "100");
        let bob = scene.register_worker("bob", "bob", &[("sum", "0.101")]);
        let (job, _) = hire(&mut scene, client, bob, "5", price_step);
        scene.succeed(job, cost);
        assert_eq!(scene.balance_text("bob").0, paid, "{cost}");
    }
}

#[test]
fn a_budget_below_the_rounded_price_is_too_low() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let bob = scene.register_worker("bob", "bob", &[("sum", "0.1")]);
    let order = scene.job_order(client, "sum", "0.5");
    let price = credits("1");
    for selection in [Selection::Direct(bob), Selection::Cheapest] {
        let order = OpenJob { selection, price_step: WHOLE, ..order.clone() };
        assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::BudgetTooLow { price });
    }
}

#[test]
fn what_is_wanted_may_have_several_names_and_each_agent_does_it_as_its_own() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let dear = scene.register_worker("dear", "dear", &[("sum", "3")]);
    let cheap = scene.register_worker("cheap", "cheap", &[("add", "1"), ("sub", "0.5")]);
    let both = scene.register_worker("both", "both", &[("add", "0.5"), ("sum", "2")]);
    let also = vec!["add".to_owned()];
    let order = scene.job_order(client, "sum", "5");
    let order = OpenJob { alternative_skills: also, selection: Selection::Cheapest, ..order };
    let job = scene.open_job(order.clone());
    assert_eq!(job.worker(), Some(cheap));
    assert_eq!(job.assignment.unwrap().price, credits("1"));
    let known = |id| scene.world.agent(id).unwrap().skill_for(&job).unwrap().name.clone();
    assert_eq!(
        (known(dear), known(cheap), known(both)),
        ("sum".into(), "add".into(), "sum".into())
    );
    // The first skill name counts, so its price applies.
    scene.decline(job.id);
    let mut plain = scene.job_order(client, "other", "5");
    plain.alternative_skills = order.alternative_skills;
    assert_eq!(scene.open_job(plain).worker(), Some(both), "by either name");
}

#[test]
fn who_could_not_use_the_input_is_not_given_it() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let strict = scene.register_worker("strict", "strict", &[("sum", "1")]);
    let lax = scene.register_worker("lax", "lax", &[("sum", "2")]);
    let unfit = |agent| vec![UnfitAgent { agent, reason: "text must be a string".to_owned() }];
    let order = scene.job_order(client, "sum", "5");
    let order = OpenJob { selection: Selection::Cheapest, unfit_agents: unfit(strict), ..order };
    assert_eq!(scene.open_job(order).worker(), Some(lax));
    let order = scene.job_order(client, "sum", "5");
    let named =
        OpenJob { selection: Selection::Direct(strict), unfit_agents: unfit(strict), ..order };
    let why = "text must be a string".to_owned();
    assert_eq!(scene.try_open_job(named).unwrap_err(), Refusal::InputRejected { reason: why });
    assert_eq!(scene.balance_text("client").1, "5.00", "nothing more is held");
}

/// An auction in which agents of two protocols could bid.
fn auction(scene: &mut TestHub, by: AgentId, budget: &str) -> JobId {
    let closes = scene.now.plus(Millis::seconds(2));
    let order = scene.job_order(by, "sum", budget);
    let selection = Selection::Auction { closes };
    scene.open_job(OpenJob { selection, price_step: WHOLE, ..order }).id
}

#[test]
fn in_an_auction_those_who_always_ask_the_same_have_their_offer_made() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let own = scene.register_worker("own", "own", &[("sum", "9")]);
    let far = scene.introduce("far", &[("sum", "3.2")]);
    let dear = scene.introduce("dear", &[("sum", "50.5")]);
    let job = auction(&mut scene, client, "50");
    assert_eq!(scene.notices_to(far), [], "it is not invited");
    assert_eq!(scene.notices_to(dear), [], "nor one whose price is too high");
    assert_eq!(scene.notices_to(own).len(), 1);
    assert_eq!(scene.job(job).candidates.invited, [far, own]);
    scene.advance(Millis::seconds(2));
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price, turn.own), (far, credits("4"), Some(credits("3.2"))));
}

#[test]
fn in_an_auction_an_agent_that_sets_its_own_prices_is_invited_and_may_close_it() {
    let (mut scene, client, pat) = haggler();
    let own = scene.register_worker("own", "own", &[("sum", "9")]);
    let job = auction(&mut scene, client, "50");
    let uuid = scene.job(job).uuid.to_string();
    let closes = scene.now.plus(Millis::seconds(2));
    assert_eq!(scene.notices_to(pat), [NoticeKind::OfferRequested { job, closes }]);
    let bid = Command::Offer {
        job: JobRef::Id(job),
        by: own,
        price: credits("8"),
        terms: OfferTerms::Open { valid_for: Millis::hours(1) },
    };
    scene.run(bid).unwrap();
    assert_eq!(
        scene.sign_and_run("pat", "o", offer(&uuid, "6.5")),
        Ok(State::Assigned),
        "the last answer"
    );
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price), (pat, credits("7")));
    scene.sign_and_run("pat", "r", result(&uuid)).unwrap();
    assert_eq!(scene.balance_text("pat").0, "7.00");
}

#[test]
fn who_lost_an_auction_cannot_give_up_the_job_of_who_won_it() {
    let (mut scene, client, pat) = haggler();
    let own = scene.register_worker("own", "own", &[("sum", "1")]);
    let job = auction(&mut scene, client, "50");
    let uuid = scene.job(job).uuid.to_string();
    let (price, valid_for) = (credits("1"), Millis::hours(1));
    scene
        .run(Command::Offer {
            job: JobRef::Id(job),
            by: own,
            price,
            terms: OfferTerms::Open { valid_for },
        })
        .unwrap();
    scene.sign_and_run("pat", "o", offer(&uuid, "6")).unwrap();
    assert_eq!(scene.job(job).worker(), Some(own));
    assert!(scene.job(job).candidates.invited.contains(&pat), "so it can still name the job");
    let before = scene.job(job);
    let wrong = Err(Refusal::WrongState { state: State::Assigned });
    assert_eq!(scene.sign_and_run("pat", "f", failure(&uuid)), wrong.clone());
    assert_eq!(scene.sign_and_run("pat", "n", refusal(&uuid)), wrong);
    assert_eq!(scene.job(job), before);
    assert_eq!(scene.agent_state(own).standing.failures, 0, "only its worker may act");
}

#[test]
fn who_had_its_offer_made_and_is_gone_does_not_win() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let own = scene.register_worker("own", "own", &[("sum", "9")]);
    let far = scene.introduce("far", &[("sum", "3")]);
    let job = auction(&mut scene, client, "50");
    let bid = Command::Offer {
        job: JobRef::Id(job),
        by: own,
        price: credits("8"),
        terms: OfferTerms::Open { valid_for: Millis::hours(1) },
    };
    scene.run(bid).unwrap();
    scene.remove(far);
    scene.advance(Millis::seconds(2));
    assert_eq!(scene.job(job).worker(), Some(own));
}

#[test]
fn who_names_its_price_is_not_taken_for_the_cheapest() {
    let (mut scene, client, pat) = haggler();
    let bob = scene.register_worker("bob", "bob", &[("sum", "2")]);
    let order = scene.job_order(client, "sum", "50");
    let order = OpenJob { selection: Selection::Cheapest, ..order };
    assert_eq!(scene.open_job(order.clone()).worker(), Some(bob));
    scene.remove(bob);
    let again = scene.job_order(client, "sum", "50");
    let again = OpenJob { selection: Selection::Cheapest, ..again };
    assert_eq!(scene.open_job(again).worker(), Some(pat), "without another agent it is");
}

#[test]
fn unchecked_input_is_not_given_to_a_strict_agent_that_came_later() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "client", "100");
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { policy: super::PATIENT, ..order }).id;
    scene.advance(Millis(1));
    let mut order = crate::testkit::registration("far", "far", &[("sum", "1")]);
    (order.home, order.terms.intake.strict_input) = (crate::testkit::AWAY, true);
    scene.register(order).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    let bob = scene.register_worker("bob", "bob", &[("sum", "1")]);
    assert_eq!(scene.job(job).worker(), Some(bob));
}

#[test]
fn only_so_much_waits_for_one_agent_that_is_away() {
    let mut scene = TestHub::default();
    scene.checks_invariants = false;
    let client = scene.register_client("client", "client", "100");
    let order = crate::testkit::registration("far", "far", &[("sum", "0")]);
    let order =
        crate::command::Registration { liveness: crate::agent::Liveness::ByPolling, ..order };
    let far = scene.register(order).unwrap();
    scene.advance(Millis::hours(1));
    let ask = |scene: &mut TestHub| {
        let order = scene.job_order(client, "sum", "0.10");
        let (selection, policy) = (Selection::Direct(far), super::PATIENT);
        scene.try_open_job(OpenJob { selection, policy, ..order }).map(|job| job.state)
    };
    for _ in 0..crate::job::readiness::WAITING_MAX {
        assert_eq!(ask(&mut scene), Ok(State::Queued));
    }
    assert_eq!(ask(&mut scene), Err(Refusal::AtCapacity));
    scene.run(Command::RecordActivity { agent: far }).unwrap();
    assert_eq!(ask(&mut scene), Ok(State::Assigned), "it is back, and has all of it");
}
