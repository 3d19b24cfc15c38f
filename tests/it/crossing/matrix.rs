//! Every pair: hire, work, result, money, scores, names, repeats (B1, B8, B9, B10, B13, B18).

use super::books::{Balances, Counted, Names, micros, shown, total};
use super::cells::{Cell, FLAGS, Meeting, Placed, STARTING_CREDITS, received, walk};
use super::notes::assert_told;
use super::party::{End, Given, Order, Terms, Ticket};
use crate::kit::TestHub;
use rialto_hub::config::Profile;

/// A job with numbers and texts that are easily damaged in translation.
pub fn order() -> Order {
    let input = r#"{"n":1.50,"text":"naïve “quotes” ☃","deep":{"list":[0.10,null,true,-0.0,1e2]}}"#;
    Order { input: input.to_owned(), budget: "3".to_owned(), aside: None }
}

pub async fn works(hub: &TestHub, cell: Cell) {
    let meeting = cell.meet(hub, Terms::at(cell.to.price())).await;
    let (worker, requester) = (meeting.worker.as_ref(), meeting.requester.as_ref());
    let names = Names::of(hub, worker).await;
    let found = cell.from.find(hub, worker).await;
    let price = shown(cell.to.price(), cell.from.price_step());
    if cell.from.id() != "relay" {
        assert_eq!(micros(&found.price), price, "the price it is shown");
    }

    let ticket = requester.hire(hub, &found, &order()).await.expect("it is hired");
    let given = meeting.received(hub).await;
    assert_eq!(given.input, order().input, "texts and digits cross unchanged (B11)");
    if cell.crosses() {
        assert_eq!(given.id, ticket.uuid, "the hub's own id, and not the requester's (B10)");
    }

    // A repeat returns the same job (B13).
    let again = requester.repeat(hub, &ticket).await;
    assert_eq!(again.id, ticket.id);
    assert!(again.uuid.is_none_or(|uuid| uuid == ticket.uuid));
    assert_eq!(worker.waiting(hub).await.len(), 1, "the worker sees one job");

    let sent = worker.deliver(hub, &given).await;
    assert!(sent.taken, "{}", sent.answer);
    let ended = requester.ended(hub, &ticket).await;
    assert_eq!(ended.words, cell.from.words(End::Done, true), "{}", ended.bytes);
    assert_eq!(ended.id, ticket.id, "the requester's own id (B10): {}", ended.bytes);
    assert_eq!(ended.output.as_deref(), Some(worker.output()), "{}", ended.bytes);

    assert_eq!(
        Balances::of(hub, &requester.owner()),
        Balances::with(micros(STARTING_CREDITS) - price)
    );
    assert_eq!(Balances::of(hub, &worker.owner()), Balances::with(price), "the whole price (B9)");
    assert_eq!(Counted::of(hub, &names).await, Counted::GOOD, "counted once in both formulas");

    assert_told(hub, (cell, &meeting), &ticket, Some(&sent)).await;

    // A repeat after the end has no effect.
    requester.repeat(hub, &ticket).await;
    assert!(worker.waiting(hub).await.is_empty());
    worker.deliver(hub, &given).await;
    assert_eq!(Balances::of(hub, &worker.owner()), Balances::with(price), "paid once");
    assert_eq!(
        Balances::of(hub, &requester.owner()),
        Balances::with(micros(STARTING_CREDITS) - price)
    );
    assert_eq!(Counted::of(hub, &names).await, Counted::GOOD);
}

/// A job that its worker has received.
struct UnderWay {
    cell: Cell,
    meeting: Meeting,
    ticket: Ticket,
    given: Given,
}

impl Placed for UnderWay {
    fn cell(&self) -> Cell {
        self.cell
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_after_the_hub_was_stopped_and_started_in_the_middle() {
    let hub = TestHub::serve(FLAGS).await;
    let under_way = walk(&hub, Cell::all(), async |hub, cell| {
        let meeting = cell.meet(hub, Terms::at(cell.to.price())).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let ticket = meeting.requester.hire(hub, &found, &order()).await.expect("it is hired");
        let given = meeting.received(hub).await;
        UnderWay { cell, meeting, ticket, given }
    });
    let under_way = under_way.await;
    let hub = hub.restart(Profile::Serve, FLAGS).await;
    walk(&hub, under_way, async |hub, UnderWay { cell, meeting, ticket, given }| {
        let Meeting { worker, requester } = &meeting;
        let again = requester.repeat(hub, &ticket).await;
        assert_eq!(again.id, ticket.id);
        let seen = meeting.received(hub).await;
        assert_eq!((&seen.id, &seen.input), (&given.id, &given.input));
        assert!(worker.deliver(hub, &given).await.taken);
        let ended = requester.ended(hub, &ticket).await;
        assert_eq!(ended.output.as_deref(), Some(worker.output()), "{}", ended.bytes);
        let price = shown(cell.to.price(), cell.from.price_step());
        assert_eq!(
            Balances::of(hub, &requester.owner()),
            Balances::with(micros(STARTING_CREDITS) - price)
        );
        assert_eq!(Balances::of(hub, &worker.owner()), Balances::with(price));
    })
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_inside_one_owner_moves_no_score_and_no_money() {
    let hub = TestHub::serve(FLAGS).await;
    let own = Cell::all().into_iter().filter(|cell| !cell.crosses()).collect();
    let tested = walk(&hub, own, async |hub, cell| {
        let worker = cell.meet(hub, Terms::at(cell.to.price())).await.worker;
        let requester = worker.colleague(hub).await?;
        hub.grant(&worker.owner(), STARTING_CREDITS).await;
        let names = Names::of(hub, worker.as_ref()).await;
        let found = cell.from.find(hub, worker.as_ref()).await;
        let ticket = requester.hire(hub, &found, &order()).await.expect("it is hired");
        let given = received(hub, worker.as_ref()).await;
        assert!(worker.deliver(hub, &given).await.taken);
        let ended = requester.ended(hub, &ticket).await;
        assert_eq!(ended.output.as_deref(), Some(worker.output()), "{}", ended.bytes);
        assert_eq!(Balances::of(hub, &worker.owner()), Balances::with(micros(STARTING_CREDITS)));
        assert_eq!(Counted::of(hub, &names).await, Counted::NOTHING);
        Some(cell.from.id())
    });
    let tested: Vec<_> = tested.await.into_iter().flatten().collect();
    assert_eq!(tested, ["registry", "clara"], "elsewhere an owner is one agent");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_all_protocols_are_hired_from_all_protocols_and_paid() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, Cell::all(), works).await;
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}
