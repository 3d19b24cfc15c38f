//! A job's money: held at assignment, paid on success, released otherwise (R50).

use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, success};
use crate::kit::{Behaviour, TestHub, Worker, assert_refused, digits, snapshot};

/// The sum of all accounts, including the issuing one.
fn sum_of_all(hub: &TestHub) -> i64 {
    hub.engine.with_world(|world| {
        world.owners().map(|owner| owner.available.micros() + owner.held.micros()).sum()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_held_at_assignment_and_the_price_paid_on_success() {
    for market in Market::both(&[]).await {
        assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
        let job = market.pending().await;
        assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"]);
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
        assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
        assert_eq!(sum_of_all(&market.hub), 0);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_paid_what_it_reports_up_to_its_price_and_nothing_for_a_failure() {
    let cases: [(Option<&str>, [&str; 3]); 4] = [
        (Some("1.00"), ["99.90", "0.00", "0.10"]),
        (Some("0.04"), ["99.96", "0.00", "0.04"]),
        (Some("0"), ["100.00", "0.00", "0.00"]),
        (None, ["100.00", "0.00", "0.00"]),
    ];
    for (reported, left) in cases {
        let market = Market::keyed(&[]).await;
        let job = market.pending().await;
        let body = match reported {
            Some(cost) => success(&job, &market.working, cost),
            None => failure(&job, &market.working, None),
        };
        market.report(&body).await.expect(200);
        assert_eq!(market.accounts().await, left, "reported {reported:?}");
        assert_eq!(sum_of_all(&market.hub), 0);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_exactly_the_price_is_held_and_paid_whole() {
    let market = Market::keyed(&[]).await;
    let before = snapshot(&market.hub).await;
    let reply = market.ask(&market.working, json!({"budget": 0.09})).await;
    assert_refused(&reply, 402, "BUDGET_INSUFFICIENT");
    assert_eq!(snapshot(&market.hub).await, before);
    let job = market.ask(&market.working, json!({"budget": 0.10})).await.expect(202).str("/job_id");
    assert_eq!(market.accounts().await, ["99.90", "0.10", "0.00"]);
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_above_the_balance_is_refused_and_nothing_is_sent() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let agent = market.endpoint(&worker.url).await;
    let poor = market.hub.orchestrator("poor").await;
    market.hub.grant("poor", "0.12").await;
    let before = snapshot(&market.hub).await;
    let reply = market.hub.hire(&poor, &agent, SKILL, "0.15").await;
    assert_refused(&reply, 402, "TRANSFER_FAILED");
    assert_eq!(snapshot(&market.hub).await, before);
    assert!(worker.got().is_empty());
    market.hub.hire(&poor, &agent, SKILL, "0.12").await.expect(200);
    assert_eq!(market.hub.balance("poor").await, ("0.02".to_owned(), "0.00".to_owned()));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_cannot_be_spent() {
    let market = Market::keyed(&[]).await;
    let poor = market.hub.orchestrator("poor").await;
    market.hub.grant("poor", "0.20").await;
    let job =
        market.hub.hire(&poor, &market.working, SKILL, "0.15").await.expect(202).str("/job_id");
    let before = snapshot(&market.hub).await;
    let pay = |amount: f64| json!({"from_owner": "poor", "to_owner": "acme", "amount": amount});
    let reply = market.hub.post("/registry/transfer", Some(&poor.key), &pay(0.06)).await;
    assert_refused(&reply, 402, "TRANSFER_FAILED");
    let reply = market.hub.hire(&poor, &market.working, SKILL, "0.10").await;
    assert_refused(&reply, 402, "TRANSFER_FAILED");
    assert_eq!(snapshot(&market.hub).await, before);
    market.hub.post("/registry/transfer", Some(&poor.key), &pay(0.05)).await.expect(200);
    assert_eq!(market.hub.balance("poor").await, ("0.00".to_owned(), "0.15".to_owned()));
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    assert_eq!(market.hub.balance("poor").await, ("0.05".to_owned(), "0.00".to_owned()));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agreed_price_is_that_of_the_assignment_whatever_the_worker_asks_later() {
    for (later, reported, left) in [("0.50", "0.50", "99.90"), ("0.01", "0.10", "99.90")] {
        let market = Market::keyed(&[]).await;
        let job =
            market.ask(&market.working, json!({"budget": 0.60})).await.expect(202).str("/job_id");
        let later: Value = serde_json::from_str(later).expect("a number");
        let dearer = json!({"agent_id": market.working.id, "agent_name": "w", "owner_id": "acme",
            "skills": [{"skill_name": SKILL, "cost_per_call": later}]});
        market.hub.post("/registry/register", Some(&market.working.key), &dearer).await.expect(200);
        let reply = market.report(&success(&job, &market.working, reported)).await.expect(200);
        assert_eq!(digits(&reply.text, "paid"), "0.10");
        assert_eq!(market.accounts().await[0], left);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_money_score_and_news_are_there_together_when_the_report_is_answered() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    // One read, so that nothing can change in between.
    let (live, held, score, told) = market.hub.engine.with_world(|world| {
        let registry = rialto_core::alias::Protocol::new("registry");
        let id = |agent: &str| world.agent_by_alias(registry, agent).expect("an agent");
        let fixture = world.agent_state(id(&market.working.id)).expect("an agent state");
        let inbox = world.inbox(id(&market.asking.id));
        let held: i64 = world.owners().map(|owner| owner.held.micros()).sum();
        (world.live_jobs().count(), held, fixture.standing.score.millionths(), inbox.head)
    });
    assert_eq!((live, held, score, told), (0, 0, 51_000_000, 1));
    market.stop().await;
}
