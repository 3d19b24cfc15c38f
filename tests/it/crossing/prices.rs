//! What is paid when a worker reports a lower cost (B15), and which prices requesters see (B9,
//! sections 7 and 9).

use serde_json::json;

use super::books::{Balances, Counted, Names, micros, shown, total};
use super::cells::{Cell, FLAGS, STARTING_CREDITS, walk};
use super::failures::dear;
use super::matrix::order;
use super::party::{Order, Terms};
use crate::kit::TestHub;
use crate::openclaw::kit::fresh_id;

/// A worker's own price.
const PRICE: &str = "2.50";

/// Every other protocol hires a registry worker, which reports this cost.
async fn reported(cost: &str, paid: impl Fn(Cell) -> i64) {
    let hub = TestHub::serve(FLAGS).await;
    let has_a_say = |cell: &Cell| cell.crosses() && cell.to.id() == "registry";
    let cells = Cell::all().into_iter().filter(has_a_say).collect();
    let tested = walk(&hub, cells, async |hub, cell| {
        let meeting = cell.meet(hub, Terms::at(PRICE)).await;
        let names = Names::of(hub, meeting.worker.as_ref()).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let ticket = meeting.requester.hire(hub, &found, &order()).await.expect("it is hired");
        let given = meeting.received(hub).await;
        let sent = meeting
            .worker
            .deliver_for(hub, &given, cost)
            .await
            .expect("a worker that reports costs");
        assert!(sent.taken, "{}", sent.answer);
        meeting.requester.ended(hub, &ticket).await;
        let paid = paid(cell);
        assert_eq!(
            Balances::of(hub, &meeting.requester.owner()),
            Balances::with(micros(STARTING_CREDITS) - paid)
        );
        assert_eq!(Balances::of(hub, &meeting.worker.owner()), Balances::with(paid));
        assert_eq!(Counted::of(hub, &names).await, Counted::GOOD);
        cell.from.id()
    });
    assert_eq!(tested.await, ["relay", "openclaw", "clara", "agora", "a2a"]);
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn less_than_its_own_price_is_paid_rounded_up_to_the_requesters_step() {
    reported("1.10", |cell| shown("1.10", cell.from.price_step())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_nothing_in_everybodys_steps() {
    reported("0", |_| 0).await;
}

/// A reported cost at or above the worker's own price changes nothing: the shown price is paid.
#[tokio::test(flavor = "multi_thread")]
async fn its_own_price_or_more_is_paid_as_it_was_shown() {
    for cost in [PRICE, "2.70", "9"] {
        reported(cost, |cell| shown(PRICE, cell.from.price_step())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_worker_of_the_registry_says_what_it_cost() {
    let hub = TestHub::serve(FLAGS).await;
    let own = Cell::square().into_iter().filter(|cell| !cell.crosses()).collect();
    let says = walk(&hub, own, async |hub, cell| {
        let worker = cell.meet(hub, Terms::at(cell.to.price())).await.worker;
        let nothing = super::party::Given {
            id: fresh_id(),
            also: Vec::new(),
            input: "{}".to_owned(),
            price: None,
            bytes: String::new(),
        };
        worker.deliver_for(hub, &nothing, "1").await.map(|_| cell.to.id())
    });
    assert_eq!(says.await.into_iter().flatten().collect::<Vec<_>>(), ["registry"]);
    hub.stop().await;
}

/// The relay lists no prices: a message without a budget is answered with the price.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_agent_is_told_the_price_in_the_answer_and_can_pay_it_then() {
    let hub = TestHub::serve(FLAGS).await;
    let from_relay = dear().into_iter().filter(|cell| cell.from.id() == "relay").collect();
    let costs = walk(&hub, from_relay, async |hub, cell| {
        let price = if cell.to.id() == "registry" { "0.10" } else { cell.to.price() };
        let meeting = cell.meet(hub, Terms::at(price)).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let poor = Order { budget: "0".to_owned(), ..order() };
        let refused = meeting.requester.hire(hub, &found, &poor).await.expect_err("a refusal");
        let detail = |price: &str| {
            let detail = format!(r#"costs {price} credits: add "budget": {price} to the envelope"#);
            json!({"detail": detail}).to_string().trim_matches(['{', '}']).to_owned()
        };
        let told = match cell.to.id() {
            "clara" => "2.00",
            _ => price,
        };
        assert!(refused.bytes.contains(&detail(told)), "{}", refused.bytes);
        assert_eq!(
            Balances::of(hub, &meeting.requester.owner()),
            Balances::with(micros(STARTING_CREDITS))
        );
        let enough = Order { budget: told.to_owned(), ..order() };
        meeting.requester.hire(hub, &found, &enough).await.expect("it is enough");
        meeting.received(hub).await;
        told
    });
    assert_eq!(costs.await, ["0.10", "0.123457", "2.00", "0.000001", "0.987654"]);
    hub.stop().await;
}

/// With a coarser price step a bid is rounded down and a price up (section 9).
#[tokio::test(flavor = "multi_thread")]
async fn a_bid_below_a_whole_credit_buys_nothing_from_clara() {
    let hub = TestHub::serve(FLAGS).await;
    let cells = Cell::all().into_iter();
    let cells = cells.filter(|cell| cell.crosses() && cell.to.id() == "clara").collect();
    walk(&hub, cells, async |hub, cell| {
        let meeting = cell.meet(hub, Terms::at("1")).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let poor = Order { budget: "0.15".to_owned(), ..order() };
        let refused = meeting.requester.hire(hub, &found, &poor).await.expect_err("a refusal");
        let words = cell.from.words(super::party::End::BudgetTooLow, false);
        assert_eq!(refused.words, words, "{}", refused.bytes);
    })
    .await;
    hub.stop().await;
}
