//! Offers and their acceptance.

use super::AWAY_PURSE;
use crate::command::{Command, JobRef, OfferRef};
use crate::id::{AgentId, JobId};
use crate::job::State;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::signed_order::{Ask, Binding, Deed, MakeOffer, Profile, TakeOffer, Whom};
use crate::testkit::signed_orders::{accept, failure, offer, part, refusal, result, words};
use crate::testkit::{LIFE, Scene, credits};
use crate::time::Millis;

/// A requester that can pay, and three agents it invited under the id `r`.
fn asked(budget: Option<&str>) -> (Scene, AgentId, [AgentId; 3], JobId) {
    let mut scene = Scene::default();
    scene.grant("ann", AWAY_PURSE);
    let ann = scene.hello("ann", &[]);
    let all = ["pat", "sue", "tim"].map(|name| scene.hello(name, &[("sum", "1")]));
    let job = scene.request_all("ann", "r", budget);
    (scene, ann, all, job)
}

fn valid_for(deed: Deed, valid_for: Millis) -> Deed {
    let Deed::Offer(order) = deed else { panic!("{deed:?}") };
    Deed::Offer(MakeOffer { valid_for, ..order })
}

fn purse(scene: &Scene, owner: &str) -> (String, String) {
    scene.purse(owner)
}

#[test]
fn request_offer_accept_result() {
    let (mut scene, ann, [pat, ..], job) = asked(Some("8"));
    assert_eq!(scene.state(job), State::Open);
    assert_eq!(scene.sign("pat", "o", offer("r", "5.25")), Ok(State::Negotiating));
    assert_eq!(purse(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    let proof = Some("receipt 7".to_owned());
    let Deed::Accept(order) = accept("o") else { unreachable!() };
    let taken = Deed::Accept(TakeOffer { payment_proof: proof.clone(), ..order });
    assert_eq!(scene.sign("ann", "a", taken), Ok(State::Assigned));
    assert_eq!(purse(&scene, "ann"), ("4.75".to_owned(), "5.25".to_owned()));
    assert_eq!(scene.job(job).payment_proof, proof);
    assert_eq!(scene.job(job).worker(), Some(pat));
    assert_eq!(scene.sign("pat", "x", result("r")), Ok(State::Completed));
    assert_eq!(purse(&scene, "ann"), ("4.75".to_owned(), "0.00".to_owned()));
    assert_eq!(purse(&scene, "pat"), ("5.25".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.heard(ann), [words("pat", "o"), words("pat", "x")]);
    assert_eq!(scene.heard(pat), [words("ann", "r"), words("ann", "a")]);
    assert_eq!(scene.told(ann).len() + scene.told(pat).len(), 4, "and nothing else");
}

#[test]
fn when_time_runs_out_the_price_goes_back() {
    let (mut scene, _, [pat, ..], job) = asked(None);
    scene.sign("pat", "o", offer("r", "5.25")).unwrap();
    scene.sign("ann", "a", accept("o")).unwrap();
    scene.read(pat);
    scene.wait(LIFE);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(purse(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.desk(pat).standing.failures, 1);
}

#[test]
fn of_several_offers_one_is_taken_and_every_other_offerer_is_told_once() {
    let (mut scene, _, [pat, sue, tim], job) = asked(Some("8"));
    scene.sign("pat", "p1", offer("r", "5")).unwrap();
    scene.sign("sue", "s1", offer("r", "4")).unwrap();
    scene.sign("sue", "s2", offer("r", "3")).unwrap();
    scene.sign("pat", "p2", offer("r", "2")).unwrap();
    // The older of its two prices, which is still valid.
    assert_eq!(scene.sign("ann", "a", accept("p1")), Ok(State::Assigned));
    assert_eq!(
        scene.job(job).assignment.map(|turn| (turn.worker, turn.price)),
        Some((pat, credits("5")))
    );
    let closed = News::OfferClosed { job, place: 1 };
    let hub = |agent| -> Vec<News> {
        let plain = |news: &News| !matches!(news, News::Message { .. });
        scene.told(agent).into_iter().filter(plain).collect()
    };
    assert_eq!((hub(sue), hub(tim), hub(pat)), (vec![closed], vec![], vec![]));
    let assigned = Refusal::WrongState { is: State::Assigned };
    assert_eq!(scene.sign("ann", "a2", accept("s2")), Err(assigned.clone()), "only one");
    assert_eq!(scene.sign("tim", "t1", offer("r", "1")), Err(assigned.clone()));
    assert_eq!(scene.sign("sue", "x1", result("r")), Err(assigned));
    assert_eq!(scene.sign("pat", "x2", result("r")), Ok(State::Completed));
    let done = Refusal::WrongState { is: State::Completed };
    assert_eq!(scene.sign("ann", "a3", accept("p2")), Err(done.clone()));
    for (id, deed) in
        [("1", offer("r", "1")), ("2", result("r")), ("3", part("r")), ("4", failure("r"))]
    {
        assert_eq!(scene.sign("pat", id, deed), Err(done.clone()), "{id}");
    }
}

#[test]
fn one_provider_names_at_most_four_prices() {
    let (mut scene, ..) = asked(None);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(scene.sign("pat", id, offer("r", "1")), Ok(State::Negotiating));
    }
    assert_eq!(scene.sign("pat", "5", offer("r", "1")), Err(Refusal::TooManyOffers { max: 4 }));
    assert_eq!(scene.sign("sue", "1", offer("r", "1")), Ok(State::Negotiating));
}

#[test]
fn an_offer_stands_until_its_time_is_up_and_not_a_moment_longer() {
    let (mut scene, _, _, job) = asked(None);
    scene.sign("pat", "o", valid_for(offer("r", "1"), Millis(1_000))).unwrap();
    let mut late = scene.clone();
    scene.wait(Millis(999));
    assert_eq!(scene.sign("ann", "a", accept("o")), Ok(State::Assigned));
    late.wait(Millis(1_000));
    assert_eq!(late.sign("ann", "a", accept("o")), Err(Refusal::OfferExpired));
    assert_eq!((late.state(job), late.purse("ann").1), (State::Negotiating, "0.00".to_owned()));
    // Another may be made and accepted, also under the id of the refused order.
    late.sign("pat", "o2", offer("r", "1")).unwrap();
    assert_eq!(late.sign("ann", "a", accept("o2")), Ok(State::Assigned));
}

#[test]
fn a_price_above_the_budget_is_refused_and_one_above_the_purse_not_taken() {
    let (mut scene, ann, _, job) = asked(Some("20"));
    let price = credits("20.000001");
    let high = scene.sign("pat", "o1", offer("r", "20.000001"));
    assert_eq!(high, Err(Refusal::BudgetTooLow { price }));
    assert_eq!((scene.state(job), scene.told(ann)), (State::Open, vec![]));
    scene.sign("pat", "o1", offer("r", "20")).unwrap();
    let before = scene.job(job);
    assert_eq!(scene.sign("ann", "a", accept("o1")), Err(Refusal::TooFewCredits));
    assert_eq!(scene.job(job), before, "as it was");
    scene.grant("ann", "10");
    assert_eq!(scene.sign("ann", "a", accept("o1")), Ok(State::Assigned), "the same order");
}

#[test]
fn without_a_budget_any_price_may_be_named() {
    let (mut scene, ..) = asked(None);
    let dear = Credits::from_micros(i64::MAX);
    let Deed::Offer(order) = offer("r", "1") else { unreachable!() };
    let order = MakeOffer { price: dear, ..order };
    assert_eq!(scene.sign("pat", "o", Deed::Offer(order)), Ok(State::Negotiating));
    assert_eq!(scene.sign("ann", "a", accept("o")), Err(Refusal::TooFewCredits));
    scene.sign("pat", "free", offer("r", "0")).unwrap();
    assert_eq!(scene.sign("ann", "a", accept("free")), Ok(State::Assigned));
    assert_eq!(scene.sign("pat", "x", result("r")), Ok(State::Completed));
}

#[test]
fn nothing_is_accepted_that_nobody_offered() {
    let (mut scene, ..) = asked(None);
    assert_eq!(scene.sign("ann", "a1", accept("o")), Err(Refusal::NotYours));
    scene.sign("pat", "o", offer("r", "1")).unwrap();
    // Neither by its maker nor by another agent, which learns nothing.
    assert_eq!(scene.sign("pat", "a2", accept("o")), Err(Refusal::NotYours));
    assert_eq!(scene.sign("zoe", "a3", accept("o")), Err(Refusal::NotYours));
    assert_eq!(scene.sign("ann", "a4", accept("r")), Err(Refusal::NotYours));
}

#[test]
fn the_offers_of_who_has_said_no_or_left_are_gone() {
    let (mut scene, _, [_, sue, _], job) = asked(None);
    scene.sign("pat", "p", offer("r", "1")).unwrap();
    scene.sign("sue", "s", offer("r", "1")).unwrap();
    scene.sign("tim", "t", offer("r", "1")).unwrap();
    assert_eq!(scene.sign("pat", "e", refusal("r")), Ok(State::Negotiating));
    assert_eq!(scene.sign("ann", "a1", accept("p")), Err(Refusal::OfferExpired));
    scene.remove(sue);
    assert_eq!(scene.sign("ann", "a2", accept("s")), Err(Refusal::OfferExpired));
    assert_eq!(scene.purse("ann").1, "0.00");
    // A returning agent is still bound by its offer.
    scene.amend("sue", Profile::default());
    assert_eq!(scene.sign("ann", "a2", accept("s")), Ok(State::Assigned));
    assert_eq!(scene.job(job).worker(), Some(sue));
    let closed = |agent: &str| {
        let agent = scene.world.agent_named(crate::testkit::AWAY, agent).unwrap();
        scene.told(agent).contains(&News::OfferClosed { job, place: 2 })
    };
    assert!(closed("tim") && !closed("pat"), "a declining agent gets no notice");
}

#[test]
fn a_blocked_provider_names_no_price() {
    let (mut scene, ann, [pat, ..], _) = asked(None);
    scene.run(Command::Block { agent: ann, whom: pat, blocked: true }).unwrap();
    assert_eq!(scene.sign("pat", "o", offer("r", "1")), Err(Refusal::Blocked));
}

#[test]
fn nobody_else_bids_and_whoever_takes_an_offer_by_job_pays_like_anybody() {
    let (mut scene, ann, [pat, ..], job) = asked(None);
    let stranger = scene.worker("stranger", "stranger", &[("sum", "1")]);
    scene.sign("pat", "o", offer("r", "4")).unwrap();
    for by in [stranger, pat] {
        let (price, valid_for) = (credits("1"), Millis::hours(1));
        let bid = Command::Offer { job: JobRef::Id(job), by, price, valid_for };
        assert_eq!(scene.run(bid).unwrap_err(), Refusal::NotYours);
    }
    let only = |by| OfferRef::Only { by };
    let pick = |from| Command::AcceptOffer { job: JobRef::Id(job), by: ann, offer: only(from) };
    assert_eq!(scene.run(pick(stranger)).unwrap_err(), Refusal::NotYours);
    scene.run(pick(pat)).unwrap();
    assert_eq!(purse(&scene, "ann"), ("6.00".to_owned(), "4.00".to_owned()));
    assert!(
        scene.told(pat).contains(&News::Assigned { job, epoch: 1 }),
        "there is no original text"
    );
}

/// An ACCEPT that names neither the hub nor the payee, by a signer that has read up to `read_to`.
fn unbound(offer: &str, read_to: u64) -> Deed {
    let Deed::Accept(order) = accept(offer) else { unreachable!() };
    Deed::Accept(TakeOffer { binding: Binding::ReadTo(read_to), ..order })
}

#[test]
fn an_order_to_pay_that_names_nobody_takes_only_an_offer_that_was_read() {
    let (mut scene, ann, ..) = asked(Some("8"));
    for (by, name) in [("pat", "o1"), ("sue", "o2")] {
        scene.sign(by, name, offer("r", "5")).unwrap();
    }
    for (id, read) in [("a1", 0), ("a2", 1)] {
        assert_eq!(scene.sign("ann", id, unbound("o2", read)), Err(Refusal::UnreadOffer));
        assert_eq!(purse(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    }
    assert_eq!(scene.world.mailbox(ann).head, 2);
    assert_eq!(scene.sign("ann", "a3", unbound("o2", 2)), Ok(State::Assigned));
    assert_eq!(purse(&scene, "ann"), ("5.00".to_owned(), "5.00".to_owned()));
}

#[test]
fn what_costs_nothing_may_be_taken_unread() {
    let (mut scene, ..) = asked(Some("8"));
    scene.sign("pat", "o", offer("r", "0")).unwrap();
    assert_eq!(scene.sign("ann", "a", unbound("o", 0)), Ok(State::Assigned));
}

#[test]
fn a_request_that_names_neither_hub_nor_worker_holds_nothing_and_wants_an_offer() {
    let mut scene = Scene::default();
    scene.grant("ann", AWAY_PURSE);
    scene.hello("ann", &[]);
    let pat = scene.hello("pat", &[("sum", "2")]);
    for (id, to) in [("r1", Whom::Best { max: 8 }), ("r2", Whom::Agent(pat))] {
        let order = scene.question("sum", to, Some("5"));
        let order = Deed::Ask(Box::new(Ask { is_bound: false, ..order }));
        assert_eq!(scene.sign("ann", id, order), Ok(State::Open));
        assert_eq!(purse(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
        let done = scene.sign("pat", &format!("x-{id}"), result(id));
        assert_eq!(done, Err(Refusal::WrongState { is: State::Open }));
        let offered = scene.sign("pat", &format!("o-{id}"), offer(id, "2"));
        assert_eq!(offered, Ok(State::Negotiating));
    }
    // A free job needs no binding.
    scene.hello("pat", &[("sum", "0")]);
    let order = scene.question("sum", Whom::Best { max: 8 }, Some("5"));
    scene.sign("ann", "r3", Deed::Ask(Box::new(Ask { is_bound: false, ..order }))).unwrap();
    assert_eq!(scene.sign("pat", "x3", result("r3")), Ok(State::Completed));
}
