//! Prices: required, held, paid and released (R88).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, able, assert_rejected, identity};
use super::scene::{COLLABORATIONS, credits};
use crate::kit::together;

/// A requester with ten credits, and a worker with a price of five.
async fn cast(hub: &Hub) -> (Node, Node) {
    let asker = hub.node("asker").await;
    hub.fund(&asker, "10").await;
    (asker, hub.able_node("worker", json!({"price": 5})).await)
}

async fn hired(hub: &Hub, asker: &Node, worker: &Node) -> Work {
    let work = hub.accepted(asker, worker, json!({"budget": 6})).await;
    assert_eq!(hub.account(asker).await, credits("4.00", "6.00"), "the whole budget is held");
    assert_eq!(hub.account(worker).await, credits("0.00", "0.00"));
    work
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_needs_a_budget_and_a_budget_needs_credits() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let before = hub.held().await;
    for low in [Value::Null, json!(0), json!(4.999_999)] {
        let reply = hub.hire(&asker, &worker, json!({"budget": low})).await;
        assert_rejected(&reply, "policy_violation");
    }
    let poor = hub.hire(&asker, &worker, json!({"budget": 10.000_001})).await;
    assert_rejected(&poor, "resource_exhausted");
    assert_eq!(poor.at("/rejection_reason/details"), json!({"reason": "insufficient_credits"}));
    let after = hub.held().await;
    assert_eq!((&after.0.kept, &after.1), (&before.0.kept, &before.1));
    assert_eq!(hub.account(&asker).await, credits("10.00", "0.00"));
    hub.accepted(&asker, &worker, json!({"budget": 5})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completed_work_is_paid_its_price_and_the_rest_comes_back() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let work = hired(&hub, &asker, &worker).await;
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.account(&asker).await, credits("5.00", "0.00"));
    assert_eq!(hub.account(&worker).await, credits("5.00", "0.00"));
    // A repeated result is paid once.
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.account(&worker).await, credits("5.00", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_else_becomes_of_it_everything_comes_back() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let failed = json!({"result_status": "failed", "output_data": null,
        "error": {"code": "E", "message": "it broke"}});
    for how in ["failed", "broken", "cancelled", "taken too long", "left"] {
        let work = hired(&hub, &asker, &worker).await;
        match how {
            "failed" => drop(hub.result(&work, failed.clone()).await.expect(200)),
            "broken" => drop(hub.result(&work, json!({"output_data": {}})).await.expect(200)),
            "cancelled" => drop(hub.cancel(&worker, &work.id, &json!({})).await.expect(200)),
            "taken too long" => {
                hub.pass(Millis::hours(1));
                hub.becomes(&asker, &work.id, "failed").await;
                hub.report(&worker, "idle", json!({})).await.expect(200);
            }
            _ => {
                let path = format!("/openclaw/agents/{}", worker.id);
                hub.call("DELETE", &path, Some(&worker.key), None).await.expect(200);
                assert_eq!(hub.state(&asker, &work.id).await, "failed");
            }
        }
        assert_eq!(hub.account(&asker).await, credits("10.00", "0.00"), "{how}");
        assert_eq!(hub.account(&worker).await, credits("0.00", "0.00"), "{how}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_price_is_the_one_at_acceptance_whatever_is_published_later() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let work = hired(&hub, &asker, &worker).await;
    hub.again(&worker, &able(&worker.identity, json!({"price": 6}))).await;
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.account(&worker).await, credits("5.00", "0.00"));
    assert_rejected(&hub.hire(&asker, &worker, json!({"budget": 5})).await, "policy_violation");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_millionth_is_a_price_and_nothing_is_rounded() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "0.01").await;
    let worker = hub.able_node("worker", json!({"price": 0.003_333})).await;
    for _ in 0..3 {
        let work = hub.accepted(&asker, &worker, json!({"budget": 0.003_333})).await;
        hub.result(&work, json!({})).await.expect(200);
    }
    let left = hub.hire(&asker, &worker, json!({"budget": 0.003_333})).await;
    assert_rejected(&left, "resource_exhausted");
    let penny = hub.able_node("penny", json!({"price": 0.000_001})).await;
    let work = hub.accepted(&asker, &penny, json!({"budget": 0.000_001})).await;
    hub.result(&work, json!({})).await.expect(200);
    let none = hub.hire(&asker, &penny, json!({"budget": 0.000_001})).await;
    assert_rejected(&none, "resource_exhausted");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_at_once_as_many_are_accepted_as_can_be_paid() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "17").await;
    let worker = hub.able_node("worker", json!({"price": 5})).await;
    let replies = together((0..20).map(|_| hub.hire(&asker, &worker, json!({"budget": 5})))).await;
    let accepted = replies.iter().filter(|one| one.at("/response_status") == "accepted");
    assert_eq!(accepted.count(), 3);
    assert_eq!(hub.account(&asker).await, credits("2.00", "15.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_itself_is_paid_for_and_its_no_and_its_silence_cost_nothing() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "10").await;
    let mut asks = able(&identity("worker", hub.now()), json!({"price": 5}));
    asks["response_mode"] = json!("ask");
    let worker = hub.publish(&asks).await;
    let named = json!({"responder_agent_id": worker.id, "budget": 6});
    let request = hub.request(&asker, named.clone());
    let silent = hub.meanwhile(&asker, &request, async || hub.pass(Millis::seconds(9))).await;
    assert_rejected(&silent, "resource_exhausted");
    assert_eq!(hub.account(&asker).await, credits("10.00", "0.00"));
    let request = hub.request(&asker, named);
    let yes = hub.meanwhile(&asker, &request, async || {
        hub.respond(&worker, &request, json!({})).await.expect(200);
    });
    let id = yes.await.str("/collaboration_id");
    assert_eq!(hub.account(&asker).await, credits("4.00", "6.00"));
    hub.result(&super::scene::work(&id, &request, &worker), json!({})).await.expect(200);
    assert_eq!(hub.account(&asker).await, credits("5.00", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_without_an_account_gets_only_free_work() {
    let hub = Hub::open(&[]).await;
    let worker = hub.able_node("worker", json!({"price": 5})).await;
    let guest = json!({"requester_agent_id": super::kit::fresh_id(), "budget": 5,
        "responder_agent_id": worker.id});
    let request = hub.request(&worker, guest);
    let reply = hub.post(COLLABORATIONS, None, &request).await;
    assert_rejected(&reply, "resource_exhausted");
    hub.0.stop().await;
}
