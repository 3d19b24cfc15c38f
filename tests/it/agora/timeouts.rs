//! `timeout` and `ttl`, by the hub's clock (R39, R53, R54, D16).

use rialto_core::time::Millis;
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::kit::{fresh_id, now};
use super::scene::{Pair, SEARCH, assert_hub_error, credits, kinds, offer};
use crate::kit::eventually;

/// Checks that the request failed for both parties, and that the hub notified both.
async fn assert_timed_out(pair: &Pair, request: &super::kit::Said) {
    pair.fails(request).await;
    let hub_key = pair.hub.hub_key().await;
    for reads in [&pair.alice_reads, &pair.bob_reads] {
        let letters = pair.hub.letters(reads).await;
        assert_hub_error(hub_key, letters.last().expect("it was told"), request, 408);
        let about = |letter: &&Value| letter["envelope"]["type"] == "ERROR";
        assert_eq!(letters.iter().filter(about).count(), 1, "once");
    }
    assert_eq!(pair.account().await, credits("10", "0"));
}

#[tokio::test]
async fn an_unanswered_request_fails_and_both_parties_are_notified() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({"budget": {"max": 6}, "timeout": 500})).await;
    assert_timed_out(&pair, &request).await;
}

#[tokio::test]
async fn an_offer_that_is_not_accepted_does_not_extend_the_deadline() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({"budget": {"max": 6}, "timeout": 2_500})).await;
    let offer = pair.offer(&request, json!(2)).await;
    assert_timed_out(&pair, &request).await;
    pair.hub.refuses(&pair.alice.accept(&offer), 408).await;
}

#[tokio::test]
async fn agreed_work_that_does_not_come_is_not_paid() {
    let pair = Pair::on(&[("reputation.fair_time", "1s")], None).await;
    let Pair { hub, bob, .. } = &pair;
    let request = pair.agree(json!(2), json!({"budget": {"max": 6}, "timeout": 4_000})).await;
    assert_eq!(pair.account().await, credits("8", "2"));
    // A partial result is not a result.
    hub.told(&bob.partial(&request.id, false)).await;
    assert_timed_out(&pair, &request).await;
    assert_eq!(hub.standing_of(bob.did()).failures, 1);
}

#[tokio::test]
async fn everything_after_a_timeout_is_too_late() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}, "timeout": 2_500})).await;
    let offer = pair.offer(&request, json!(2)).await;
    assert_timed_out(&pair, &request).await;
    for late in [
        bob.result(&request.id),
        bob.partial(&request.id, false),
        bob.offer(&request.id, json!(1)),
        bob.error(&request.id, 500),
        alice.accept(&offer),
        alice.error(&request.id, 500),
    ] {
        let refused = hub.refuses(&late, 408).await;
        assert_eq!(refused.at("/payload/retryable"), true);
    }
}

#[tokio::test]
async fn a_deadline_that_passes_while_the_hub_is_down_is_kept() {
    let pair = Pair::priced(json!(2)).await;
    let request = pair.ask(json!({"budget": {"max": 6}, "timeout": 3_000})).await;
    assert_eq!(pair.account().await, credits("8", "2"));
    let Pair { hub, alice, bob, alice_reads, bob_reads } = pair;
    let deadline = hub.standing(&alice_reads, &request.id).await["deadline"].clone();
    let deadline = moment(&deadline);
    let dir = hub.halt().await;
    // Its clock is the machine's, whether the hub runs or not.
    eventually(async || now() > deadline).await;
    let hub = super::kit::Hub::resume(dir, &[]).await;
    let pair = Pair { hub, alice, bob, alice_reads, bob_reads };
    assert_timed_out(&pair, &request).await;
    pair.hub.refuses(&pair.bob.result(&request.id), 408).await;
}

#[tokio::test]
async fn an_offer_can_be_accepted_until_its_ttl_is_over() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let brief = offer(bob, &request.id, json!(1), json!(1), json!(0));
    let longer = offer(bob, &request.id, json!(2), json!(60_000), json!(0));
    for one in [&brief, &longer] {
        hub.told(one).await;
    }
    let offers = hub.standing(alice_reads, &request.id).await["offers"].clone();
    hub.past(offers[0]["expires_at"].as_str().expect("text")).await;
    let refused = hub.refuses(&alice.accept(&brief), 408).await;
    assert!(refused.str("/payload/message").contains("expired"), "{}", refused.text);
    assert_eq!(pair.state(&request).await, "NEGOTIATING");
    // The other offer is still valid.
    assert_eq!(hub.told(&alice.accept(&longer)).await, "PROCESSING");
    assert_eq!(pair.account().await, credits("8", "2"));
}

#[tokio::test]
async fn the_clock_starts_when_the_hub_has_the_message_whatever_its_timestamp_says() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    for skew in [-50, 50] {
        let at = now().plus(Millis::seconds(skew));
        let payload = json!({"resource": SEARCH, "params": {}, "budget": {"max": 6},
            "timeout": 20_000});
        let request = alice.sign_at(&fresh_id("skewed"), at, MessageType::Request, &payload, None);
        hub.told(&request).await;
        let received = |letter: &Value| letter["receipt"]["payload"]["received_at"].clone();
        let letters = hub.letters(bob_reads).await;
        let received_at = moment(&received(letters.last().expect("it came")));
        let standing = hub.standing(bob_reads, &request.id).await;
        let started = moment(&standing["deadline"]).plus(Millis(-20_000));
        assert!(started.0.abs_diff(received_at.0) < 20_000, "{started:?}, not {received_at:?}");
        // The same for an offer.
        let terms = json!({"request_id": request.id, "cost": 1, "ttl": 10_000, "eta": 0});
        let offer = bob.sign_at(&fresh_id("skewed"), at, MessageType::Offer, &terms, None);
        hub.told(&offer).await;
        let letters = hub.letters(alice_reads).await;
        let received_at = moment(&received(letters.last().expect("it came")));
        let standing = hub.standing(alice_reads, &request.id).await;
        let expires_at = moment(&standing["offers"][0]["expires_at"]);
        let started = expires_at.plus(Millis(-10_000));
        assert!(started.0.abs_diff(received_at.0) < 20_000, "{started:?}, not {received_at:?}");
    }
}

fn moment(value: &Value) -> rialto_core::time::Timestamp {
    rfc3339::parse(value.as_str().expect("text")).expect("a moment")
}

#[tokio::test]
async fn a_request_that_names_no_time_gets_the_hubs() {
    for (flags, wanted) in [(vec![], 600_000), (vec![("agora.default_timeout", "45s")], 45_000)] {
        let pair = Pair::on(&flags, None).await;
        let request = pair.ask(json!({})).await;
        let letters = pair.hub.letters(&pair.bob_reads).await;
        let received_at = moment(&letters[0]["receipt"]["payload"]["received_at"]);
        let standing = pair.hub.standing(&pair.alice_reads, &request.id).await;
        let given = moment(&standing["deadline"]).since(received_at).0;
        assert!((wanted - 20_000..=wanted + 20_000).contains(&given), "{given}");
    }
    let pair = Pair::on(&[("agora.default_timeout", "500ms")], None).await;
    let request = pair.ask(json!({})).await;
    assert_timed_out(&pair, &request).await;
    let letters = pair.hub.letters(&pair.alice_reads).await;
    assert_eq!(kinds(&letters), ["ERROR"]);
}
