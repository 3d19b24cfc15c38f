//! The eight error codes, each from a real situation, and forwarding of agents' ERRORs (R16, R50,
//! R55–R59, R68, section 5).

use rialto_core::time::Millis;
use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, assert_error, fresh_id, now};
use super::scene::{Pair, SEARCH, credits, offer};
use crate::kit::Reply;

/// A refusal names the message it answers, and when to retry if it is retryable.
#[track_caller]
fn assert_refusal(reply: &Reply, said: &Said, code: u16, retryable: bool) {
    assert_error(reply, code);
    assert_eq!(reply.str("/payload/message_id"), said.id);
    assert_eq!(reply.at("/payload/retryable"), retryable, "{}", reply.text);
    let body = reply.json();
    let seconds = body.pointer("/payload/retry_after_seconds").map(Value::to_string);
    assert_eq!(reply.header("retry-after").map(str::to_owned), seconds, "{}", reply.text);
}

#[tokio::test]
async fn a_message_that_makes_no_sense_or_comes_at_the_wrong_time_is_400() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let odd = alice.sign(MessageType::Request, &json!({"resource": SEARCH}));
    let reply = hub.refuses(&odd, 400).await;
    assert_refusal(&reply, &odd, 400, false);
    assert_eq!(reply.str("/payload/field"), "/payload/params");
    let request = pair.ask(json!({})).await;
    hub.told(&bob.result(&request.id)).await;
    let late = bob.result(&request.id);
    let reply = hub.refuses(&late, 400).await;
    assert_refusal(&reply, &late, 400, false);
    assert_eq!(reply.str("/payload/request_id"), request.id);
    let reply = hub.post_text("/agora/envelopes", None, "{").await;
    assert_error(&reply, 400);
}

#[tokio::test]
async fn a_message_that_is_not_the_senders_to_send_is_401() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    // Not a party.
    let stranger = Key::of(9).result(&request.id);
    assert_refusal(&hub.refuses(&stranger, 401).await, &stranger, 401, false);
    // Not signed by the named sender.
    let mut forged = bob.result(&request.id).json();
    forged["payload"]["data"] = json!({"n": 2});
    let forged = Said { id: forged["id"].as_str().expect("text").into(), text: forged.to_string() };
    assert_refusal(&hub.refuses(&forged, 401).await, &forged, 401, false);
    // Timestamp too old.
    let old = Timestamped(-61).of(alice);
    let reply = hub.refuses(&old, 401).await;
    assert_eq!(reply.str("/payload/message").split(':').next(), Some("stale timestamp"));
    assert_eq!(pair.state(&request).await, "PENDING");
}

/// Seconds from now.
struct Timestamped(i64);

impl Timestamped {
    fn of(&self, key: &Key) -> Said {
        let payload = json!({"resource": SEARCH, "params": {}});
        let at = now().plus(Millis::seconds(self.0));
        key.sign_at(&fresh_id("late"), at, MessageType::Request, &payload, None)
    }
}

#[tokio::test]
async fn what_cannot_be_paid_is_402() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 20}})).await;
    // Above the budget.
    let dear = bob.offer(&request.id, json!(20.000_001));
    assert_refusal(&hub.refuses(&dear, 402).await, &dear, 402, false);
    assert_eq!(pair.state(&request).await, "PENDING");
    // Above the available balance.
    let offer = pair.offer(&request, json!(20)).await;
    let accept = alice.accept(&offer);
    assert_refusal(&hub.refuses(&accept, 402).await, &accept, 402, false);
    assert_eq!(pair.state(&request).await, "NEGOTIATING");
    assert_eq!(pair.account().await, credits("10", "0"));
    // In another currency.
    let foreign = alice.request(SEARCH, json!({"budget": {"max": 1, "currency": "EUR"}}));
    assert_refusal(&hub.refuses(&foreign, 402).await, &foreign, 402, false);
}

#[tokio::test]
async fn an_unknown_skill_and_an_unknown_agent_are_404() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    for more in [json!({}), json!({"budget": {"max": 6}})] {
        let request = alice.request("agora:paint:v1", more.clone());
        assert_refusal(&hub.refuses(&request, 404).await, &request, 404, false);
        // Versions match exactly: another version is another resource.
        let request = alice.request("agora:search:v2", more);
        assert_refusal(&hub.refuses(&request, 404).await, &request, 404, false);
    }
    let before = hub.held().await;
    let request = alice.request("agora:paint:v1", json!({}));
    assert_refusal(&hub.tell_to(bob.did(), &request).await, &request, 404, false);
    let request = alice.request(SEARCH, json!({}));
    assert_error(&hub.tell_to(Key::of(9).did(), &request).await, 404);
    assert_eq!(hub.held().await, before);
    // An agent cannot request its own resource.
    hub.refuses(&bob.request(SEARCH, json!({})), 404).await;
}

#[tokio::test]
async fn what_comes_too_late_is_408() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let brief = offer(bob, &request.id, json!(1), json!(1), json!(0));
    hub.told(&brief).await;
    let offers = hub.standing(alice_reads, &request.id).await["offers"].clone();
    hub.past(offers[0]["expires_at"].as_str().expect("a moment")).await;
    let accept = alice.accept(&brief);
    assert_refusal(&hub.refuses(&accept, 408).await, &accept, 408, true);
    let request = pair.ask(json!({"timeout": 500})).await;
    pair.fails(&request).await;
    let result = bob.result(&request.id);
    assert_refusal(&hub.refuses(&result, 408).await, &result, 408, true);
}

#[tokio::test]
async fn above_the_rate_is_429_and_says_when_to_come_back() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "3")]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        let request = alice.request(SEARCH, json!({}));
        hub.told(&request).await;
        sent.push(request);
    }
    let request = alice.request(SEARCH, json!({}));
    let reply = hub.refuses(&request, 429).await;
    assert_refusal(&reply, &request, 429, true);
    let seconds: u64 = reply.header("retry-after").expect("a time").parse().expect("seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(hub.letters(&bob_reads).await.len(), 3);
    // The limit is per key, so Bob is not slowed down. A repeat is not counted.
    hub.told(&bob.result(&sent[0].id)).await;
    assert_eq!(hub.told(&sent[1]).await, "PENDING");
}

#[tokio::test]
async fn a_providers_failure_is_its_own_500_passed_on() {
    for agreed in [false, true] {
        let pair = Pair::meet().await;
        let Pair { hub, bob, alice_reads, .. } = &pair;
        let request = match agreed {
            true => pair.agree(json!(2), json!({"budget": {"max": 6}})).await,
            false => pair.ask(json!({})).await,
        };
        let error = bob.error(&request.id, 500);
        assert_eq!(hub.told(&error).await, "FAILED");
        assert_eq!(hub.newest(alice_reads).await, error.json());
        assert_eq!(pair.state(&request).await, "FAILED");
        assert_eq!(pair.account().await, credits("10", "0"));
    }
}

#[tokio::test]
async fn a_provider_that_is_busy_or_away_says_503_itself() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({})).await;
    let error = bob.error(&request.id, 503);
    assert_eq!(hub.told(&error).await, "FAILED");
    assert_eq!(hub.newest(alice_reads).await, error.json());
    assert_eq!(hub.standing_of(bob.did()).failures, 0);
    // An offline agent still receives requests: they wait.
    hub.tell(&bob.sign(MessageType::Status, &json!({"status": "offline"}))).await.expect(202);
    let request = pair.ask(json!({})).await;
    assert_eq!(hub.newest(&pair.bob_reads).await, request.json());
}

#[tokio::test]
async fn a_full_inbox_is_503_until_it_is_read() {
    let pair = Pair::on(&[("limits.inbox_pending", "2")], None).await;
    let Pair { hub, alice, bob, bob_reads, .. } = &pair;
    for _ in 0..2 {
        let request = alice.request(SEARCH, json!({}));
        hub.tell_to(bob.did(), &request).await.expect(202);
    }
    let request = alice.request(SEARCH, json!({}));
    let before = hub.held().await;
    let reply = hub.tell_to(bob.did(), &request).await;
    assert_refusal(&reply, &request, 503, true);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(hub.held().await, before);
    let greeting = alice.sign(MessageType::Hello, &json!({}));
    assert_refusal(&hub.tell_to(bob.did(), &greeting).await, &greeting, 503, true);
    hub.post("/agora/inbox/ack", Some(&bob_reads.0), &json!({"up_to": 2})).await.expect(200);
    // The same envelope is accepted once there is capacity.
    hub.tell_to(bob.did(), &request).await.expect(202);
}

#[tokio::test]
async fn the_answers_of_a_provider_find_a_full_inbox_too() {
    let pair = Pair::on(&[("limits.inbox_pending", "1")], None).await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    pair.offer(&request, json!(1)).await;
    let second = bob.offer(&request.id, json!(2));
    assert_refusal(&hub.refuses(&second, 503).await, &second, 503, true);
    hub.post("/agora/inbox/ack", Some(&alice_reads.0), &json!({"up_to": 1})).await.expect(200);
    assert_eq!(hub.told(&second).await, "NEGOTIATING");
}

#[tokio::test]
async fn the_end_of_a_request_is_told_however_full_an_inbox_is() {
    for fails in [false, true] {
        let pair = Pair::on(&[("limits.inbox_pending", "1")], None).await;
        let Pair { hub, bob, alice_reads, bob_reads, .. } = &pair;
        let request = pair.ask(json!({"budget": {"max": 6}})).await;
        let offer = pair.offer(&request, json!(1)).await;
        hub.post("/agora/inbox/ack", Some(&bob_reads.0), &json!({"up_to": 1})).await.expect(200);
        hub.told(&pair.alice.accept(&offer)).await;
        let part = bob.partial(&request.id, false);
        assert_refusal(&hub.refuses(&part, 503).await, &part, 503, true);
        // The final result of agreed work is accepted even when the inbox is full.
        let last = if fails { bob.error(&request.id, 500) } else { bob.result(&request.id) };
        let state = if fails { "FAILED" } else { "COMPLETED" };
        assert_eq!(hub.told(&last).await, state);
        assert_eq!(hub.newest(alice_reads).await, last.json());
        assert_eq!(pair.earned().await, if fails { "0" } else { "1" });
    }
}

#[tokio::test]
async fn codes_that_are_none_of_the_eight_are_passed_on_and_count_as_failures() {
    for code in [418, 0, -1, 9_007_199_254_740_991] {
        let pair = Pair::meet().await;
        let Pair { hub, bob, alice_reads, .. } = &pair;
        let request = pair.ask(json!({})).await;
        let error = bob.error(&request.id, code);
        assert_eq!(hub.told(&error).await, "FAILED");
        assert_eq!(hub.newest(alice_reads).await, error.json());
        assert_eq!(hub.standing_of(bob.did()).failures, 1, "{code} is read as 500");
    }
}

#[tokio::test]
async fn an_error_without_a_request_goes_to_its_named_receiver() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, bob_reads, .. } = &pair;
    let error = json!({"code": 500, "message": "I cannot read you"});
    let lost = alice.sign(MessageType::Error, &error);
    assert_eq!(hub.refuses(&lost, 400).await.str("/payload/field"), "/recipient");
    let named = alice.sign_for(MessageType::Error, &error, Some(bob.public()));
    hub.tell(&named).await.expect(202);
    assert_eq!(hub.newest(bob_reads).await, named.json());
}
