//! Credits: held by an ACCEPT, paid by a RESULT, released otherwise (R52, R55, R63, R65, D8,
//! section 6).

use serde_json::{Value, json};

use super::kit::{Key, Said, fresh_id};
use super::scene::{Pair, SEARCH, credits, offer};
use crate::crash::assert_audit_is_clean;
use crate::kit::together;

#[tokio::test]
async fn the_worked_values_of_the_book() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let request = pair.agree(json!(5.25), json!({"budget": {"max": 6}})).await;
    assert_eq!(pair.account().await, credits("4.75", "5.25"));
    hub.told(&bob.result(&request.id)).await;
    assert_eq!((pair.account().await, pair.earned().await), (credits("4.75", "0"), "5.25".into()));

    let pair = Pair::meet().await;
    let request = pair.agree(json!(5.25), json!({"timeout": 4_000, "budget": {"max": 6}})).await;
    assert_eq!(pair.account().await, credits("4.75", "5.25"));
    pair.fails(&request).await;
    assert_eq!(pair.account().await, credits("10", "0"));

    let pair = Pair::meet().await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let dust = offer(&pair.bob, &request.id, json!(0.000_000_1), json!(1_000), json!(0));
    pair.hub.refuses(&dust, 400).await;
    let dir = pair.hub.halt().await;
    assert_audit_is_clean(dir.path());
}

#[tokio::test]
async fn an_error_after_the_agreement_gives_all_of_it_back() {
    let pair = Pair::meet().await;
    let request = pair.agree(json!(5.25), json!({})).await;
    assert_eq!(pair.account().await, credits("4.75", "5.25"));
    assert_eq!(pair.hub.told(&pair.bob.error(&request.id, 500)).await, "FAILED");
    assert_eq!((pair.account().await, pair.earned().await), (credits("10", "0"), "0".to_owned()));
}

/// An OFFER whose `cost` is spelled this way.
fn written(by: &Key, request: &Said, cost: &str) -> Said {
    use rialto_protocols::agora::{MessageType, UnsignedEnvelope};
    let id = fresh_id("offer");
    let payload = format!(r#"{{"request_id":"{}","cost":{cost},"ttl":60000,"eta":0}}"#, request.id);
    let draft = UnsignedEnvelope {
        id: &id,
        timestamp: super::kit::now(),
        kind: MessageType::Offer,
        payload: &payload,
        recipient: None,
        hub: None,
        bridge: None,
    };
    let text = by.composer.sign(&draft).expect("a payload").text;
    Said { id, text }
}

#[tokio::test]
async fn a_cost_is_what_its_canonical_number_says_however_it_is_written() {
    for (cost, held, left) in [
        ("5.250", "5.25", "4.75"),
        ("525e-2", "5.25", "4.75"),
        ("0.525E1", "5.25", "4.75"),
        ("1.0", "1", "9"),
        ("1e1", "10", "0"),
        ("0", "0", "10"),
        ("-0", "0", "10"),
        ("0.0", "0", "10"),
        ("10.0000000000000000001", "10", "0"),
        ("5.2500000000000009", "5.25", "4.75"),
    ] {
        let pair = Pair::meet().await;
        let request = pair.ask(json!({"budget": {"max": 10}})).await;
        let offer = written(&pair.bob, &request, cost);
        pair.hub.told(&offer).await;
        pair.hub.told(&pair.alice.accept(&offer)).await;
        assert_eq!(pair.account().await, credits(left, held), "{cost}");
        pair.hub.told(&pair.bob.result(&request.id)).await;
        assert_eq!(pair.earned().await, held, "{cost}");
    }
}

#[tokio::test]
async fn a_millionth_is_held_and_paid_and_less_than_that_is_no_amount() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 10}})).await;
    for cost in ["1e-7", "0.0000001", "1.0000001", "9.9999999", "-0.000001", "1e300", "1e9999"] {
        let said = match cost {
            // Not a double, so it cannot be signed.
            "1e9999" => continue,
            cost => written(bob, &request, cost),
        };
        let refused = hub.refuses(&said, 400).await;
        assert_eq!(refused.str("/payload/field"), "/payload/cost", "{cost}");
    }
    let offer = written(bob, &request, "0.000001");
    hub.told(&offer).await;
    let path = format!("/agora/requests/{}", request.id);
    let shown = hub.get(&path, Some(&alice_reads.0)).await.expect(200).text;
    assert!(shown.contains(r#""cost":0.000001,"#), "{shown}");
    hub.told(&alice.accept(&offer)).await;
    let held = async |key: &Key| {
        let owner = key.owner();
        hub.engine.with_world(|world| {
            let account = world.owners().find(|one| one.name == owner).expect("an owner");
            (account.available.micros(), account.held.micros())
        })
    };
    assert_eq!(held(alice).await, (9_999_999, 1));
    hub.told(&bob.result(&request.id)).await;
    assert_eq!((held(alice).await, held(bob).await), ((9_999_999, 0), (1, 0)));
}

#[tokio::test]
async fn no_offer_is_above_the_budget_and_no_budget_is_no_limit() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    for budget in
        [json!({"max": 5.25}), json!({"max_cost": 5.25}), json!({"max": 5.250, "max_cost": 5.25})]
    {
        let request = pair.ask(json!({"budget": budget})).await;
        let refused = hub.refuses(&bob.offer(&request.id, json!(5.250_001)), 402).await;
        assert_eq!(refused.str("/payload/request_id"), request.id);
        assert_eq!(pair.state(&request).await, "PENDING");
        pair.offer(&request, json!(5.25)).await;
    }
    for free in [json!({}), json!({"budget": {}})] {
        let request = pair.ask(free).await;
        pair.offer(&request, json!(1_000_000)).await;
    }
    // A budget of zero is a budget.
    let request = pair.ask(json!({"budget": {"max": 0}})).await;
    hub.refuses(&bob.offer(&request.id, json!(0.000_001)), 402).await;
    pair.offer(&request, json!(0)).await;
}

#[tokio::test]
async fn budgets_are_amounts_in_credits() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    for currency in ["EUR", "CREDITS", "", "credit"] {
        let budget = json!({"max": 1, "currency": currency});
        let refused = hub.refuses(&alice.request(SEARCH, json!({"budget": budget})), 402).await;
        assert!(refused.str("/payload/hint").contains("credits"), "{}", refused.text);
    }
    pair.ask(json!({"budget": {"max": 1, "currency": "credits"}})).await;
    for (member, value) in [
        ("max", json!(-1)),
        ("max", json!("1")),
        ("max", json!(0.000_000_1)),
        ("max_cost", json!([1])),
        ("currency", json!(1)),
    ] {
        let mut budget = json!({});
        budget[member] = value;
        let refused = hub.refuses(&alice.request(SEARCH, json!({"budget": budget})), 400).await;
        assert_eq!(refused.str("/payload/field"), format!("/payload/budget/{member}"));
    }
    let both = json!({"budget": {"max": 1, "max_cost": 2}});
    hub.refuses(&alice.request(SEARCH, both), 400).await;
}

#[tokio::test]
async fn who_has_too_little_may_accept_later() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let first = pair.agree(json!(6), json!({})).await;
    let second = pair.ask(json!({})).await;
    let offer = pair.offer(&second, json!(5)).await;
    let accept = alice.accept(&offer);
    // Ten credits, of which six are held.
    hub.refuses(&accept, 402).await;
    assert_eq!(pair.state(&second).await, "NEGOTIATING");
    assert_eq!(pair.account().await, credits("4", "6"));
    assert_eq!(hub.told(&bob.error(&first.id, 500)).await, "FAILED");
    assert_eq!(hub.told(&accept).await, "PROCESSING");
    assert_eq!(pair.account().await, credits("5", "5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_accepts_at_once_never_spend_a_credit_twice() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let mut accepts = Vec::new();
    for _ in 0..12 {
        let request = pair.ask(json!({})).await;
        let offer = pair.offer(&request, json!(3)).await;
        accepts.push((request, alice.accept(&offer)));
    }
    let replies = together(accepts.iter().map(|(_, accept)| hub.tell(accept))).await;
    let taken = replies.iter().filter(|reply| reply.status == 202).count();
    assert_eq!(taken, 3, "ten credits pay three times three");
    assert!(replies.iter().all(|reply| matches!(reply.status, 202 | 402)));
    assert_eq!(pair.account().await, credits("1", "9"));
    for ((request, _), reply) in accepts.iter().zip(&replies) {
        if reply.status == 202 {
            hub.told(&bob.result(&request.id)).await;
        }
    }
    assert_eq!((pair.account().await, pair.earned().await), (credits("1", "0"), "9".to_owned()));
    assert_balanced(&pair);
}

/// Credits come from grants only.
fn assert_balanced(pair: &Pair) {
    let sum: i64 = pair.hub.engine.with_world(|world| {
        world.owners().map(|owner| owner.available.micros() + owner.held.micros()).sum()
    });
    assert_eq!(sum, 0, "the issue account owes what the others have");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_accepts_at_once_wins_and_one_price_is_held() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    let request = pair.ask(json!({})).await;
    let mut accepts = Vec::new();
    for cost in [1, 2, 3, 4] {
        let offer = pair.offer(&request, json!(cost)).await;
        accepts.push(alice.accept(&offer));
    }
    let replies = together(accepts.iter().map(|accept| hub.tell(accept))).await;
    let won: Vec<usize> = (0..4).filter(|n| replies[*n].status == 202).collect();
    assert_eq!(won.len(), 1, "{replies:?}");
    let cost = won[0] + 1;
    assert_eq!(pair.account().await, credits(&(10 - cost).to_string(), &cost.to_string()));
    let shown: Value = hub.standing(&pair.alice_reads, &request.id).await;
    assert_eq!(shown["state"], "PROCESSING");
}
