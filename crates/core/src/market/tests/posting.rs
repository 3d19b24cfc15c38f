use super::*;
use crate::answer::Answer;
use crate::testkit::market::{PlainRecorder, market_order};
use std::sync::Arc;

fn enrols(native: &str) -> Command {
    Command::Register(Box::new(registration(native, native, &[("sum", "20")])))
}

#[test]
fn an_order_is_carried_out_once_for_ever() {
    let (mut scene, _) = market();
    let (first, repeated) = scene.submit("x", enrols("a"));
    assert_eq!((first, repeated), (PostingId(1), false));
    for _ in 0..2 {
        let (next, agents) = (scene.world.next, scene.world.agents().count());
        // Anything under the same id is the same order.
        for signed_order in [enrols("a"), enrols("b"), Command::DispatchQueue, Command::RecordOnly]
        {
            assert_eq!(scene.submit("x", signed_order), (first, true));
        }
        assert_eq!((scene.world.next, scene.world.agents().count()), (next, agents));
        restart(&mut scene);
    }
    assert_eq!(scene.submit("y", enrols("b")), (PostingId(2), false));
    assert_eq!(scene.store.rows.market_records.len(), 2);
}

#[test]
fn a_refused_order_is_not_tried_again_either() {
    let (mut scene, client) = market();
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let said = scene.submit_and_read("x", opening(order.clone()));
    assert_eq!((said.outcome.as_str(), said.messages()), ("refused NoSuchSkill", 0));
    let worker = scene.register_worker("a", "acme", &[("sum", "20")]);
    for _ in 0..2 {
        assert_eq!(scene.submit("x", opening(order.clone())), (PostingId(1), true));
        assert_eq!(scene.world.live_jobs().count(), 0);
        restart(&mut scene);
    }
    // Nothing of it stays: under another id the same task is opened.
    let said = scene.submit_and_read("y", opening(order));
    assert_eq!(heard(&said).first().map(|(to, _)| *to), Some(worker));
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
}

#[test]
fn what_is_refused_half_way_has_changed_nothing() {
    let (mut scene, client) = market();
    for (name, price) in [("a", "60"), ("b", "60")] {
        scene.register_worker(name, name, &[("sum", price)]);
    }
    let before = (scene.world.next, scene.owner("rich").clone(), scene.agent_state(client).clone());
    // The first copy can be paid and the second cannot.
    let order = task(&mut scene, client, "60", Selection::BroadcastToProtocol);
    let said = scene.submit_and_read("x", opening(order));
    assert_eq!(said.outcome, "refused TooFewCredits");
    let crate::changes::Counters {
        market_record: posting, market_orders: posts, claim, at, ..
    } = scene.world.next;
    let moved = crate::changes::Counters {
        market_record: posting,
        market_orders: posts,
        claim,
        at,
        ..before.0
    };
    assert_eq!(scene.world.next, moved);
    assert_eq!((scene.owner("rich"), scene.agent_state(client)), (&before.1, &before.2));
    assert_eq!((posting, posts, claim), (PostingId(2), 1, before.0.claim.next()));
    assert!(scene.store.rows.jobs.is_empty());
}

#[test]
fn postings_orders_and_messages_are_numbered_without_gap() {
    let (mut scene, client) = market();
    let said = scene.submit_and_read("1", enrols("a"));
    assert_eq!((said.posts, said.first_message, said.messages()), (0, 0, 1));
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let said = scene.submit_and_read("2", opening(order));
    assert_eq!((said.posts, said.first_message, said.messages()), (1, 1, 2));
    // Not an order, but published: it has messages and is not counted.
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    scene.open_job(order);
    let said = scene.read_record(PostingId(3));
    assert_eq!((said.of.as_ref(), said.posts, said.first_message), (None, 2, 3));
    let late = Command::Offer {
        job: JobRef::Id(JobId(99)),
        by: client,
        price: credits("1"),
        terms: OfferTerms::Bid,
    };
    let said = scene.submit_and_read("3", late);
    assert_eq!((said.posts, said.first_message, said.messages()), (2, 4, 0));
    let said = scene.submit_and_read("4", Command::RecordOnly);
    assert_eq!((said.posts, said.first_message, said.messages()), (3, 4, 1));
    let next = scene.world.next;
    assert_eq!(
        (next.market_record, next.market_orders, next.market_messages),
        (PostingId(6), 4, 5)
    );
    restart(&mut scene);
    assert_eq!(scene.world.next, next);
}

#[test]
fn a_posting_says_what_it_came_of_and_when() {
    let (mut scene, _) = market();
    scene.advance_without_timers(Millis(77));
    let (id, _) = scene.submit("x", Command::RecordOnly);
    let row = scene.store.rows.market_records[0].clone();
    assert_eq!(
        (row.id, row.at, row.order_id.as_deref(), row.is_public),
        (id, scene.now, Some("x"), true)
    );
    let refused = Command::AckUnread { agent: AgentId(1), up_to: 0 };
    scene.submit("y", refused);
    assert!(!scene.store.rows.market_records[1].is_public, "the recorder decides who may read it");
    for row in &scene.store.rows.market_records {
        let text = serde_json::to_string(&**row).unwrap();
        assert_eq!(serde_json::from_str::<crate::market::MarketRecord>(&text).unwrap(), **row);
    }
}

#[test]
fn two_markets_may_use_one_id() {
    let (mut scene, _) = market();
    // The invariants support only one market.
    scene.checks_invariants = false;
    scene.world.markets.insert(AWAY, Arc::new(PlainRecorder));
    let mut post =
        |market| scene.run(market_order(market, "x", None, Command::RecordOnly)).unwrap();
    for (market, place, known) in
        [(HOME, 1, false), (AWAY, 2, false), (HOME, 1, true), (AWAY, 2, true)]
    {
        let answer = post(market);
        let Answer::MarketOrder { record: posting, repeated } = answer else {
            panic!("{answer:?}")
        };
        assert_eq!((posting, repeated), (PostingId(place), known));
    }
}

#[test]
fn a_job_knows_how_many_orders_came_before_it_and_before_its_end() {
    let (mut scene, client) = market();
    scene.submit_and_read("1", enrols("a"));
    scene.submit_and_read("2", Command::RecordOnly);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    assert_eq!(
        (scene.job(job).links.market_orders_before, scene.job(job).links.market_orders_at_end),
        (2, 0)
    );
    scene.submit_and_read("4", Command::RecordOnly);
    let word = scene.job_report(job, true, "20");
    assert_eq!(scene.submit_and_read("5", Command::ReportResult(Box::new(word))).outcome, "done");
    assert_eq!(
        (scene.job(job).links.market_orders_before, scene.job(job).links.market_orders_at_end),
        (2, 4)
    );
    // Steps without orders are counted between the orders.
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = scene.open_job(order).id;
    scene.succeed(job, "1");
    assert_eq!(
        (scene.job(job).links.market_orders_before, scene.job(job).links.market_orders_at_end),
        (5, 5)
    );
}
