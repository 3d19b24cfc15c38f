//! REQUEST answered directly by RESULT, for the listed price or for free (R33, R64, 2.7).

use serde_json::json;

use super::kit::Key;
use super::scene::{Pair, SEARCH, credits};

#[tokio::test]
async fn a_request_is_answered_at_once_and_nothing_is_paid_for_it() {
    // No listed price, or a price that the requester has not agreed to pay.
    for (price, more) in [
        (None, json!({})),
        (None, json!({"budget": {"max": 6}})),
        (Some(json!(2)), json!({})),
        (Some(json!(0)), json!({"budget": {"max": 6}})),
    ] {
        let pair = Pair::on(&[], price).await;
        let Pair { hub, bob, alice_reads, bob_reads, .. } = &pair;
        let request = pair.ask(more).await;
        assert_eq!(pair.account().await, credits("10", "0"));
        assert_eq!(hub.newest(bob_reads).await, request.json());
        let result = bob.result(&request.id);
        assert_eq!(hub.told(&result).await, "COMPLETED");
        assert_eq!(pair.state(&request).await, "COMPLETED");
        assert_eq!(hub.newest(alice_reads).await, result.json());
        assert_eq!(pair.account().await, credits("10", "0"));
        hub.refuses(&bob.result(&request.id), 400).await;
    }
}

#[tokio::test]
async fn the_listed_price_is_held_with_the_request_and_paid_with_the_result() {
    for max in [json!(2.5), json!(6), json!(2.500_000)] {
        let pair = Pair::priced(json!(2.5)).await;
        let request = pair.ask(json!({"budget": {"max": max}})).await;
        assert_eq!(pair.account().await, credits("7.5", "2.5"));
        assert_eq!(pair.hub.told(&pair.bob.result(&request.id)).await, "COMPLETED");
        assert_eq!(pair.account().await, credits("7.5", "0"));
        assert_eq!(pair.earned().await, "2.5");
    }
}

#[tokio::test]
async fn who_lists_a_price_and_names_another_gives_up_the_listed_one() {
    let pair = Pair::priced(json!(2.5)).await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    assert_eq!(pair.account().await, credits("7.5", "2.5"));
    let offer = pair.offer(&request, json!(3)).await;
    assert_eq!(pair.account().await, credits("10", "0"), "released");
    hub.refuses(&bob.result(&request.id), 400).await;
    hub.told(&alice.accept(&offer)).await;
    assert_eq!(pair.account().await, credits("7", "3"));
    hub.told(&bob.result(&request.id)).await;
    assert_eq!((pair.account().await, pair.earned().await), (credits("7", "0"), "3".to_owned()));
}

#[tokio::test]
async fn an_error_of_either_side_gives_the_listed_price_back() {
    for by_requester in [false, true] {
        for code in [400, 402, 500, 503] {
            let pair = Pair::priced(json!(2.5)).await;
            let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
            let request = pair.ask(json!({"budget": {"max": 6}})).await;
            let (by, reads) = if by_requester { (alice, bob_reads) } else { (bob, alice_reads) };
            let error = by.error(&request.id, code);
            assert_eq!(hub.told(&error).await, "FAILED");
            assert_eq!(hub.newest(reads).await, error.json());
            assert_eq!(pair.state(&request).await, "FAILED");
            assert_eq!(pair.account().await, credits("10", "0"));
            hub.refuses(&bob.result(&request.id), 400).await;
        }
    }
}

#[tokio::test]
async fn silence_gives_the_listed_price_back() {
    let pair = Pair::priced(json!(2.5)).await;
    let request = pair.ask(json!({"budget": {"max": 6}, "timeout": 2_000})).await;
    assert_eq!(pair.account().await.1, "2.5");
    pair.fails(&request).await;
    assert_eq!(pair.account().await, credits("10", "0"));
    pair.hub.refuses(&pair.bob.result(&request.id), 408).await;
}

#[tokio::test]
async fn parts_keep_the_price_held_until_the_last_one() {
    let pair = Pair::priced(json!(2.5)).await;
    let Pair { hub, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    for _ in 0..2 {
        assert_eq!(hub.told(&bob.partial(&request.id, false)).await, "PROCESSING");
        assert_eq!(pair.state(&request).await, "PROCESSING");
        assert_eq!(pair.account().await, credits("7.5", "2.5"));
    }
    // Work has begun, so an OFFER is too late.
    hub.refuses(&bob.offer(&request.id, json!(1)), 400).await;
    assert_eq!(hub.told(&bob.result(&request.id)).await, "COMPLETED");
    assert_eq!(pair.earned().await, "2.5");
}

#[tokio::test]
async fn a_budget_below_the_listed_price_of_the_only_provider_is_refused() {
    let pair = Pair::priced(json!(2.5)).await;
    let Pair { hub, alice, bob, .. } = &pair;
    let low = json!({"budget": {"max": 2.499_999}});
    let refused = hub.refuses(&alice.request(SEARCH, low.clone()), 402).await;
    assert!(refused.str("/payload/message").contains("2.5"), "{}", refused.text);
    let named = alice.request(SEARCH, low);
    let before = hub.held().await;
    super::kit::assert_error(&hub.tell_to(bob.did(), &named).await, 402);
    assert_eq!(hub.held().await, before);
}

#[tokio::test]
async fn a_price_that_cannot_be_paid_is_refused_and_can_be_asked_for_again() {
    let pair = Pair::priced(json!(20)).await;
    let Pair { hub, alice, bob, .. } = &pair;
    let to_bob = Some(bob.public());
    let request = alice.request_for(SEARCH, json!({"budget": {"max": 50}}), to_bob);
    hub.refuses(&request, 402).await;
    hub.fund(alice, "10").await;
    // A refused envelope is not recorded: the same one is valid now.
    assert_eq!(hub.told(&request).await, "PENDING");
    assert_eq!(pair.account().await, credits("0", "20"));
    hub.told(&bob.result(&request.id)).await;
    assert_eq!(pair.earned().await, "20");
}

#[tokio::test]
async fn the_price_is_the_one_listed_when_it_was_asked() {
    let pair = Pair::priced(json!(2)).await;
    let Pair { hub, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 9}})).await;
    hub.provider(bob, SEARCH, Some(json!(9))).await;
    assert_eq!(pair.account().await, credits("8", "2"));
    hub.told(&bob.result(&request.id)).await;
    assert_eq!(pair.earned().await, "2");
}

#[tokio::test]
async fn an_agent_without_listed_skills_may_be_asked_for_any_and_works_for_free() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    let carol = Key::of(3);
    hub.hello(&carol, json!({})).await;
    let request = alice.request("agora:anything:v7", json!({"budget": {"max": 6}}));
    hub.tell_to(carol.did(), &request).await.expect(202);
    assert_eq!(pair.account().await, credits("10", "0"));
    assert_eq!(hub.told(&carol.result(&request.id)).await, "COMPLETED");
    assert_eq!(pair.account().await, credits("10", "0"));
}
