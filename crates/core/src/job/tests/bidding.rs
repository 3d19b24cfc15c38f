use super::{PATIENT, market};
use crate::command::{Command, JobRef, OfferRef, OfferTerms, OpenJob};
use crate::id::{AgentId, JobId};
use crate::job::{Requester, Selection, State};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, credits, job_in, registration};
use crate::time::Millis;

const WINDOW: Millis = Millis::seconds(2);

fn auction(scene: &mut TestHub, client: AgentId, budget: &str) -> OpenJob {
    let closes = scene.now.plus(WINDOW);
    OpenJob { selection: Selection::Auction { closes }, ..scene.job_order(client, "sum", budget) }
}

fn bid(scene: &mut TestHub, job: JobId, by: AgentId, price: &str) -> Result<(), Refusal> {
    let valid_for = Millis::hours(1);
    let command = Command::Offer {
        job: JobRef::Id(job),
        by,
        price: credits(price),
        terms: OfferTerms::Open { valid_for },
    };
    scene.run(command).map(|_| ())
}

/// Three bidders with three owners, in order of registration.
fn bidders(scene: &mut TestHub) -> [AgentId; 3] {
    ["a", "b", "c"]
        .map(|name| scene.register_worker(name, &format!("owner-{name}"), &[("sum", "70")]))
}

#[test]
fn the_lowest_sealed_offer_wins_at_its_own_price() {
    let (mut scene, client) = market();
    let [a, b, c] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let Selection::Auction { closes } = order.selection else { unreachable!() };
    let job = scene.open_job(order);
    assert_eq!((job.state, job.worker()), (State::Negotiating, None));
    assert_eq!(scene.balance_text("rich"), ("50.00".to_owned(), "50.00".to_owned()));
    let wanted = NoticeKind::OfferRequested { job: job.id, closes };
    for bidder in [a, b, c] {
        // Listed at 70, above the budget: in an auction every agent names its own price.
        assert_eq!(scene.notices_to(bidder), std::slice::from_ref(&wanted));
    }
    bid(&mut scene, job.id, a, "40").unwrap();
    bid(&mut scene, job.id, c, "30").unwrap();
    bid(&mut scene, job.id, b, "30").unwrap();
    scene.advance(Millis(1_999));
    assert_eq!(scene.state(job.id), State::Negotiating);
    scene.advance(Millis(1));
    let won = scene.job(job.id);
    assert_eq!(won.worker(), Some(b), "equal offers: the first registered wins");
    assert_eq!(won.assignment.unwrap().price, credits("30"));
    scene.succeed(job.id, "30");
    assert_eq!(scene.balance_text("rich"), ("70.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn what_cannot_be_offered() {
    let (mut scene, client) = market();
    let [a, b, _] = bidders(&mut scene);
    let unable = scene.register_worker("unable", "o", &[("other", "1")]);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    let price = credits("50.000001");
    assert_eq!(bid(&mut scene, job, a, "50.000001"), Err(Refusal::BudgetTooLow { price }));
    assert_eq!(bid(&mut scene, job, unable, "1"), Err(Refusal::NotFound));
    assert_eq!(bid(&mut scene, job, client, "1"), Err(Refusal::NotFound));
    assert_eq!(bid(&mut scene, JobId(99), a, "1"), Err(Refusal::NotFound));
    assert_eq!(bid(&mut scene, job, a, "50"), Ok(()));
    // A sealed offer cannot be accepted directly.
    let offer = OfferRef::Index(0);
    let pick = Command::accept_offer(JobRef::Id(job), client, offer);
    let wrong = Refusal::WrongState { state: State::Negotiating };
    assert_eq!(scene.run(pick).unwrap_err(), wrong);
    // The clock closes it, whether or not its timer has fired yet.
    scene.advance_without_timers(WINDOW);
    assert_eq!(bid(&mut scene, job, b, "1"), Err(wrong));
    scene.advance(Millis(0));
    assert_eq!(scene.job(job).worker(), Some(a));
    let assigned = Refusal::WrongState { state: State::Assigned };
    assert_eq!(bid(&mut scene, job, b, "1"), Err(assigned));
}

#[test]
fn offers_of_one_bidder_are_limited() {
    let (mut scene, client) = market();
    let [a, ..] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    for price in ["40", "39", "38", "37"] {
        assert_eq!(bid(&mut scene, job, a, price), Ok(()));
    }
    assert_eq!(bid(&mut scene, job, a, "36"), Err(Refusal::TooManyOffers { max: 4 }));
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).assignment.unwrap().price, credits("37"));
}

#[test]
fn without_offers_the_hold_is_released() {
    let (mut scene, client) = market();
    let order = auction(&mut scene, client, "50");
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::NoSuchSkill);
    bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    scene.advance(WINDOW);
    assert_eq!(scene.state(job), State::Failed);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_bidder_that_left_has_withdrawn() {
    let (mut scene, client) = market();
    let [a, b, _] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    bid(&mut scene, job, a, "10").unwrap();
    bid(&mut scene, job, b, "20").unwrap();
    scene.remove(a);
    assert_eq!(bid(&mut scene, job, a, "5"), Err(Refusal::NotFound));
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(b));
}

#[test]
fn an_offer_binds_only_as_long_as_it_says() {
    let (mut scene, client) = market();
    let [a, b, _] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    let short = |by, valid_for| {
        let price = credits("10");
        Command::Offer { job: JobRef::Id(job), by, price, terms: OfferTerms::Open { valid_for } }
    };
    scene.run(short(a, WINDOW)).unwrap();
    scene.run(short(b, Millis(WINDOW.0 + 1))).unwrap();
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(b));
}

#[test]
fn a_winner_that_declines_is_followed_by_the_next_lowest_offer() {
    let (mut scene, client) = market();
    let [a, b, c] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(OpenJob { policy: PATIENT, ..order }).id;
    for (bidder, price) in [(a, "30"), (b, "10"), (c, "20")] {
        bid(&mut scene, job, bidder, price).unwrap();
    }
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(b));
    let next = scene.decline(job);
    assert_eq!(next.assignment.map(|turn| (turn.worker, turn.price)), Some((c, credits("20"))));
    scene.decline(job);
    assert_eq!(scene.job(job).worker(), Some(a));
    assert_eq!(scene.decline(job).state, State::Queued);
    // From the queue it is auctioned again, never among agents that declined.
    scene.register(registration("b", "owner-b", &[("sum", "1")])).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    let fresh = scene.register_worker("d", "owner-d", &[("sum", "45")]);
    assert_eq!(scene.state(job), State::Negotiating);
    let closes = scene.now.plus(WINDOW);
    assert_eq!(scene.notices_to(fresh), [NoticeKind::OfferRequested { job, closes }]);
    bid(&mut scene, job, fresh, "40").unwrap();
    scene.advance(WINDOW);
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price), (fresh, credits("40")));
}

#[test]
fn an_auction_that_was_suspended_past_its_deadline_penalizes_no_agent() {
    let (mut scene, client) = market();
    let [a, ..] = bidders(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    bid(&mut scene, job, a, "10").unwrap();
    scene.advance_without_timers(Millis::hours(25));
    scene.advance(Millis(0));
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.agent_state(a).standing.outcomes, 0);
    assert_eq!(scene.balance_text("rich").1, "0.00");
}

#[test]
fn a_guest_is_only_offered_what_is_free() {
    let mut scene = TestHub::default();
    let [a, b, _] = bidders(&mut scene);
    let order = auction(&mut scene, AgentId(0), "50");
    let requester = Requester::Guest("guest".to_owned());
    let job = scene.open_job(OpenJob { requester, ..order }).id;
    let price = credits("1");
    assert_eq!(bid(&mut scene, job, a, "1"), Err(Refusal::BudgetTooLow { price }));
    assert_eq!(bid(&mut scene, job, b, "0"), Ok(()));
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(b));
}

#[test]
fn offers_wait_for_the_requester_who_takes_the_one_it_names() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let order = OpenJob { selection: Selection::Offers, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(
        (scene.state(job), scene.balance_text("rich").1),
        (State::Negotiating, "1.00".to_owned())
    );
    let wanted = || JobRef::Id(job);
    let mut offer = |by, price| {
        let valid_for = Millis::minutes(1);
        scene.run(Command::Offer {
            job: wanted(),
            by,
            price: credits(price),
            terms: OfferTerms::Open { valid_for },
        })
    };
    for (by, price) in [(a, "0.40"), (b, "0.20"), (a, "0.30")] {
        offer(by, price).unwrap();
    }
    assert_eq!(offer(client, "0.10").unwrap_err(), Refusal::NotFound);
    assert_eq!(scene.state(job), State::Negotiating, "only the requester chooses");
    let take = |by, offer| Command::accept_offer(wanted(), by, offer);
    assert_eq!(scene.run(take(a, OfferRef::Index(1))).unwrap_err(), Refusal::NotFound);
    let taken = job_in(scene.run(take(client, OfferRef::Index(0))).unwrap());
    assert_eq!(taken.assignment.map(|turn| turn.price), Some(credits("0.40")));
    let second = scene.run(take(client, OfferRef::Index(1)));
    assert!(matches!(second, Err(Refusal::WrongState { .. })));
    scene.succeed(job, "0.40");
    assert_eq!(scene.balance_text("o1").0, "0.40");
    assert_eq!(scene.balance_text("rich"), ("99.60".to_owned(), "0.00".to_owned()));
}
