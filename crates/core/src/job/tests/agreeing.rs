//! Offers and their acceptance.

use super::AWAY_CREDITS;
use crate::command::{
    AcceptOffer, Command, JobRef, JobRequest, OfferRef, OfferTerms, PaymentBinding, ProfileUpdate,
    RequestTarget,
};
use crate::id::{AgentId, JobId};
use crate::job::State;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{
    accept, envelope_text, failure, offer, partial_result, refusal, result,
};
use crate::testkit::{JOB_LIFETIME, TestHub, credits};
use crate::time::Millis;

/// A requester that can pay, and three agents it invited under the id `r`.
fn asked(budget: Option<&str>) -> (TestHub, AgentId, [AgentId; 3], JobId) {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    let ann = scene.introduce("ann", &[]);
    let all = ["pat", "sue", "tim"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let job = scene.request_all("ann", "r", budget);
    (scene, ann, all, job)
}

fn valid_for(mut command: Command, span: Millis) -> Command {
    let Command::Offer { terms: OfferTerms::Invited { valid_for, .. }, .. } = &mut command else {
        panic!("{command:?}")
    };
    *valid_for = span;
    command
}

fn account(scene: &TestHub, owner: &str) -> (String, String) {
    scene.balance_text(owner)
}

#[test]
fn request_offer_accept_result() {
    let (mut scene, ann, [pat, ..], job) = asked(Some("8"));
    assert_eq!(scene.state(job), State::Open);
    assert_eq!(scene.sign_and_run("pat", "o", offer("r", "5.25")), Ok(State::Negotiating));
    assert_eq!(account(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    let proof = Some("receipt 7".to_owned());
    let Command::AcceptOffer(order) = accept("o") else { unreachable!() };
    let taken = AcceptOffer { payment_proof: proof.clone(), ..*order };
    let taken = Command::AcceptOffer(Box::new(taken));
    assert_eq!(scene.sign_and_run("ann", "a", taken), Ok(State::Assigned));
    assert_eq!(account(&scene, "ann"), ("4.75".to_owned(), "5.25".to_owned()));
    assert_eq!(scene.job(job).payment.proof, proof);
    assert_eq!(scene.job(job).worker(), Some(pat));
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
    assert_eq!(account(&scene, "ann"), ("4.75".to_owned(), "0.00".to_owned()));
    assert_eq!(account(&scene, "pat"), ("5.25".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.messages_to(ann), [envelope_text("pat", "o"), envelope_text("pat", "x")]);
    assert_eq!(scene.messages_to(pat), [envelope_text("ann", "r"), envelope_text("ann", "a")]);
    assert_eq!(scene.notices_to(ann).len() + scene.notices_to(pat).len(), 4, "and nothing else");
}

#[test]
fn when_time_runs_out_the_price_goes_back() {
    let (mut scene, _, [pat, ..], job) = asked(None);
    scene.sign_and_run("pat", "o", offer("r", "5.25")).unwrap();
    scene.sign_and_run("ann", "a", accept("o")).unwrap();
    scene.read_inbox(pat);
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(account(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(pat).standing.failures, 1);
}

#[test]
fn of_several_offers_one_is_taken_and_every_other_offerer_is_told_once() {
    let (mut scene, _, [pat, sue, tim], job) = asked(Some("8"));
    scene.sign_and_run("pat", "p1", offer("r", "5")).unwrap();
    scene.sign_and_run("sue", "s1", offer("r", "4")).unwrap();
    scene.sign_and_run("sue", "s2", offer("r", "3")).unwrap();
    scene.sign_and_run("pat", "p2", offer("r", "2")).unwrap();
    // The older of its two prices, which is still valid.
    assert_eq!(scene.sign_and_run("ann", "a", accept("p1")), Ok(State::Assigned));
    assert_eq!(
        scene.job(job).assignment.map(|turn| (turn.worker, turn.price)),
        Some((pat, credits("5")))
    );
    let closed = NoticeKind::OfferLost { job, place: 1 };
    let hub = |agent| -> Vec<NoticeKind> {
        let plain = |news: &NoticeKind| !matches!(news, NoticeKind::Message { .. });
        scene.notices_to(agent).into_iter().filter(plain).collect()
    };
    assert_eq!((hub(sue), hub(tim), hub(pat)), (vec![closed], vec![], vec![]));
    let assigned = Refusal::WrongState { state: State::Assigned };
    assert_eq!(scene.sign_and_run("ann", "a2", accept("s2")), Err(assigned.clone()), "only one");
    assert_eq!(scene.sign_and_run("tim", "t1", offer("r", "1")), Err(assigned.clone()));
    assert_eq!(scene.sign_and_run("sue", "x1", result("r")), Err(assigned));
    assert_eq!(scene.sign_and_run("pat", "x2", result("r")), Ok(State::Completed));
    let done = Refusal::WrongState { state: State::Completed };
    assert_eq!(scene.sign_and_run("ann", "a3", accept("p2")), Err(done.clone()));
    for (id, signed_order) in [
        ("1", offer("r", "1")),
        ("2", result("r")),
        ("3", partial_result("r")),
        ("4", failure("r")),
    ] {
        assert_eq!(scene.sign_and_run("pat", id, signed_order), Err(done.clone()), "{id}");
    }
}

#[test]
fn one_provider_names_at_most_four_prices() {
    let (mut scene, ..) = asked(None);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(scene.sign_and_run("pat", id, offer("r", "1")), Ok(State::Negotiating));
    }
    assert_eq!(
        scene.sign_and_run("pat", "5", offer("r", "1")),
        Err(Refusal::TooManyOffers { max: 4 })
    );
    assert_eq!(scene.sign_and_run("sue", "1", offer("r", "1")), Ok(State::Negotiating));
}

#[test]
fn an_offer_stands_until_its_time_is_up_and_not_a_moment_longer() {
    let (mut scene, _, _, job) = asked(None);
    scene.sign_and_run("pat", "o", valid_for(offer("r", "1"), Millis(1_000))).unwrap();
    let mut late = scene.clone();
    scene.advance(Millis(999));
    assert_eq!(scene.sign_and_run("ann", "a", accept("o")), Ok(State::Assigned));
    late.advance(Millis(1_000));
    assert_eq!(late.sign_and_run("ann", "a", accept("o")), Err(Refusal::OfferExpired));
    assert_eq!(
        (late.state(job), late.balance_text("ann").1),
        (State::Negotiating, "0.00".to_owned())
    );
    // Another may be made and accepted, also under the id of the refused order.
    late.sign_and_run("pat", "o2", offer("r", "1")).unwrap();
    assert_eq!(late.sign_and_run("ann", "a", accept("o2")), Ok(State::Assigned));
}

#[test]
fn a_price_above_the_budget_is_refused_and_one_above_the_purse_not_taken() {
    let (mut scene, ann, _, job) = asked(Some("20"));
    let price = credits("20.000001");
    let high = scene.sign_and_run("pat", "o1", offer("r", "20.000001"));
    assert_eq!(high, Err(Refusal::BudgetTooLow { price }));
    assert_eq!((scene.state(job), scene.notices_to(ann)), (State::Open, vec![]));
    scene.sign_and_run("pat", "o1", offer("r", "20")).unwrap();
    let before = scene.job(job);
    assert_eq!(scene.sign_and_run("ann", "a", accept("o1")), Err(Refusal::TooFewCredits));
    assert_eq!(scene.job(job), before, "as it was");
    scene.grant("ann", "10");
    assert_eq!(scene.sign_and_run("ann", "a", accept("o1")), Ok(State::Assigned), "the same order");
}

#[test]
fn without_a_budget_any_price_may_be_named() {
    let (mut scene, ..) = asked(None);
    let dear = Credits::from_micros(i64::MAX);
    let mut order = offer("r", "1");
    let Command::Offer { price, .. } = &mut order else { unreachable!() };
    *price = dear;
    assert_eq!(scene.sign_and_run("pat", "o", order), Ok(State::Negotiating));
    assert_eq!(scene.sign_and_run("ann", "a", accept("o")), Err(Refusal::TooFewCredits));
    scene.sign_and_run("pat", "free", offer("r", "0")).unwrap();
    assert_eq!(scene.sign_and_run("ann", "a", accept("free")), Ok(State::Assigned));
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
}

#[test]
fn an_offer_that_was_not_made_cannot_be_accepted() {
    let (mut scene, ..) = asked(None);
    assert_eq!(scene.sign_and_run("ann", "a1", accept("o")), Err(Refusal::NotFound));
    scene.sign_and_run("pat", "o", offer("r", "1")).unwrap();
    // Neither by its maker nor by another agent, which learns nothing.
    assert_eq!(scene.sign_and_run("pat", "a2", accept("o")), Err(Refusal::NotFound));
    assert_eq!(scene.sign_and_run("zoe", "a3", accept("o")), Err(Refusal::NotFound));
    assert_eq!(scene.sign_and_run("ann", "a4", accept("r")), Err(Refusal::NotFound));
}

#[test]
fn the_offers_of_who_has_said_no_or_left_are_gone() {
    let (mut scene, _, [_, sue, _], job) = asked(None);
    scene.sign_and_run("pat", "p", offer("r", "1")).unwrap();
    scene.sign_and_run("sue", "s", offer("r", "1")).unwrap();
    scene.sign_and_run("tim", "t", offer("r", "1")).unwrap();
    assert_eq!(scene.sign_and_run("pat", "e", refusal("r")), Ok(State::Negotiating));
    assert_eq!(scene.sign_and_run("ann", "a1", accept("p")), Err(Refusal::OfferExpired));
    scene.remove(sue);
    assert_eq!(scene.sign_and_run("ann", "a2", accept("s")), Err(Refusal::OfferExpired));
    assert_eq!(scene.balance_text("ann").1, "0.00");
    // A returning agent is still bound by its offer.
    scene.update_profile("sue", ProfileUpdate::default());
    assert_eq!(scene.sign_and_run("ann", "a2", accept("s")), Ok(State::Assigned));
    assert_eq!(scene.job(job).worker(), Some(sue));
    let closed = |agent: &str| {
        let agent = scene.world.agent_by_alias(crate::testkit::AWAY, agent).unwrap();
        scene.notices_to(agent).contains(&NoticeKind::OfferLost { job, place: 2 })
    };
    assert!(closed("tim") && !closed("pat"), "a declining agent gets no notice");
}

#[test]
fn a_blocked_provider_names_no_price() {
    let (mut scene, ann, [pat, ..], _) = asked(None);
    scene.run(Command::SetBlocked { agent: ann, other: pat, blocked: true }).unwrap();
    assert_eq!(scene.sign_and_run("pat", "o", offer("r", "1")), Err(Refusal::Blocked));
}

#[test]
fn only_invited_agents_bid_and_accepting_an_offer_by_job_pays_the_same() {
    let (mut scene, ann, [pat, ..], job) = asked(None);
    let stranger = scene.register_worker("stranger", "stranger", &[("sum", "1")]);
    scene.sign_and_run("pat", "o", offer("r", "4")).unwrap();
    for by in [stranger, pat] {
        let (price, valid_for) = (credits("1"), Millis::hours(1));
        let bid = Command::Offer {
            job: JobRef::Id(job),
            by,
            price,
            terms: OfferTerms::Open { valid_for },
        };
        assert_eq!(scene.run(bid).unwrap_err(), Refusal::NotFound);
    }
    let only = |by| OfferRef::Only { by };
    let pick = |from| Command::accept_offer(JobRef::Id(job), ann, only(from));
    assert_eq!(scene.run(pick(stranger)).unwrap_err(), Refusal::NotFound);
    scene.run(pick(pat)).unwrap();
    assert_eq!(account(&scene, "ann"), ("6.00".to_owned(), "4.00".to_owned()));
    assert!(
        scene.notices_to(pat).contains(&NoticeKind::Assigned { job, epoch: 1 }),
        "there is no original text"
    );
}

/// An ACCEPT that names neither the hub nor the payee, by a signer that has read up to `read_to`.
fn unbound(offer: &str, read_to: u64) -> Command {
    let Command::AcceptOffer(order) = accept(offer) else { unreachable!() };
    let binding = PaymentBinding::ReadUpTo(read_to);
    Command::AcceptOffer(Box::new(AcceptOffer { binding, ..*order }))
}

#[test]
fn an_acceptance_without_a_payee_takes_only_an_offer_that_was_read() {
    let (mut scene, ann, ..) = asked(Some("8"));
    for (by, name) in [("pat", "o1"), ("sue", "o2")] {
        scene.sign_and_run(by, name, offer("r", "5")).unwrap();
    }
    for (id, read) in [("a1", 0), ("a2", 1)] {
        assert_eq!(scene.sign_and_run("ann", id, unbound("o2", read)), Err(Refusal::OfferNotRead));
        assert_eq!(account(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
    }
    assert_eq!(scene.world.inbox(ann).head, 2);
    assert_eq!(scene.sign_and_run("ann", "a3", unbound("o2", 2)), Ok(State::Assigned));
    assert_eq!(account(&scene, "ann"), ("5.00".to_owned(), "5.00".to_owned()));
}

#[test]
fn what_costs_nothing_may_be_taken_unread() {
    let (mut scene, ..) = asked(Some("8"));
    scene.sign_and_run("pat", "o", offer("r", "0")).unwrap();
    assert_eq!(scene.sign_and_run("ann", "a", unbound("o", 0)), Ok(State::Assigned));
}

#[test]
fn a_request_that_names_neither_hub_nor_worker_holds_nothing_and_wants_an_offer() {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "2")]);
    for (id, to) in [("r1", RequestTarget::Best { max: 8 }), ("r2", RequestTarget::Agent(pat))] {
        let order = scene.job_request("sum", to, Some("5"));
        let order = Command::RequestJob(Box::new(JobRequest { is_bound: false, ..order }));
        assert_eq!(scene.sign_and_run("ann", id, order), Ok(State::Open));
        assert_eq!(account(&scene, "ann"), ("10.00".to_owned(), "0.00".to_owned()));
        let done = scene.sign_and_run("pat", &format!("x-{id}"), result(id));
        assert_eq!(done, Err(Refusal::WrongState { state: State::Open }));
        let offered = scene.sign_and_run("pat", &format!("o-{id}"), offer(id, "2"));
        assert_eq!(offered, Ok(State::Negotiating));
    }
    // A free job needs no binding.
    scene.introduce("pat", &[("sum", "0")]);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, Some("5"));
    scene
        .sign_and_run(
            "ann",
            "r3",
            Command::RequestJob(Box::new(JobRequest { is_bound: false, ..order })),
        )
        .unwrap();
    assert_eq!(scene.sign_and_run("pat", "x3", result("r3")), Ok(State::Completed));
}
