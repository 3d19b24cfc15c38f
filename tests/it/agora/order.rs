//! The order of checks: a message with two errors gets the earlier one (R73).
//!
//! Size, JSON, members, `sender.id`, time, signature, replay, block list, rate, address, party,
//! state, money. The pairs around the rate are in `refusals`, which can exhaust the limit.

use rialto_protocols::agora::{MessageType, SignatureForm};
use rialto_protocols::kit::base64url;
use serde_json::{Value, json};

use super::kit::{Hub, Key, assert_error};
use super::pen::{Pen, from_now, state};
use crate::kit::Reply;
use crate::relay::kit::with;

const SEARCH: &str = "agora:search:v1";

#[track_caller]
fn assert_says(reply: &Reply, code: u16, words: &str) {
    assert_error(reply, code);
    let message = reply.str("/payload/message");
    assert!(message.contains(words), "{message} does not say {words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn size_then_json_then_members_then_the_key_then_the_time_then_the_signature() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let before = state(&hub).await;
    // The first message has every error; each next one has one error less.
    let weak = base64url::encode(&[0; 32]);
    let worst = json!({
        "protocol": "agora/2.0", "id": "x", "timestamp": from_now(-90), "type": "STATUS",
        "sender": {"id": weak, "signature": "none"}, "payload": {"n": 1},
        "recipient": {"id": Key::of(9).did()},
    });
    let broken = worst.to_string().replacen("{\"n\":1}", "{\"n\":1,\"n\":2}", 1);
    let huge = broken.clone() + &" ".repeat(1 << 20);
    let close = [("connection", "close")];
    let reply = hub.send("POST", "/agora/envelopes", &close, huge.as_bytes()).await;
    assert_eq!(reply.status, 413, "{}", reply.text);
    assert_says(&hub.post_envelope(&broken).await, 400, "body is not valid JSON");
    let number = worst.to_string().replacen("{\"n\":1}", "{\"n\":9007199254740993}", 1);
    let reply = hub.post_envelope(&number).await;
    assert_says(&reply, 400, "payload.n");
    assert_says(&hub.post_envelope(&worst.to_string()).await, 400, "protocol");
    let member = with(&worst, "/protocol", Some(json!("agora/1.0")));
    for (pointer, name) in [("/type", "type"), ("/payload", "payload"), ("/timestamp", "timestamp")]
    {
        let wrong = with(&member, pointer, Some(json!(7)));
        assert_says(&hub.post_envelope(&wrong.to_string()).await, 400, name);
    }
    assert_says(&hub.post_envelope(&member.to_string()).await, 401, "weak");
    let key = with(&member, "/sender/id", Some(json!(alice.did())));
    assert_says(&hub.post_envelope(&key.to_string()).await, 401, "stale timestamp");
    let time = with(&key, "/timestamp", Some(json!(from_now(0))));
    assert_says(&hub.post_envelope(&time.to_string()).await, 401, "sender.signature");
    let unsigned = with(&time, "/sender/signature", Some(json!("")));
    let forged = Pen::of(3).sign_text(&unsigned.to_string(), SignatureForm::Empty);
    assert_says(&hub.post_envelope(&forged).await, 401, "the signature");
    // The last error is the address.
    assert_says(&hub.post_envelope(&alice.sign(&unsigned)).await, 404, "recipient");
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shape_of_a_payload_is_told_before_time_and_signature() {
    let hub = Hub::serve(&[]).await;
    let alice = Pen::of(1);
    let draft = alice.draft("REQUEST", json!({"resource": 7, "params": {}}));
    let old = with(&draft, "/timestamp", Some(json!(from_now(-90))));
    let before = state(&hub).await;
    for text in [alice.sign(&old), Pen::of(3).sign(&draft)] {
        assert_says(&hub.post_envelope(&text).await, 400, "payload.resource");
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_signature_come_before_what_was_said_before() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let draft = alice.note(bob.public());
    hub.post_envelope(&alice.sign(&draft)).await.expect(202);
    let before = state(&hub).await;
    let other = with(&draft, "/payload/status", Some(json!("idle")));
    let old = with(&other, "/timestamp", Some(json!(from_now(-90))));
    assert_says(&hub.post_envelope(&alice.sign(&old)).await, 401, "stale timestamp");
    assert_says(&hub.post_envelope(&Pen::of(3).sign(&other)).await, 401, "the signature");
    assert_says(&hub.post_envelope(&alice.sign(&other)).await, 400, "this id was used");
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_comes_before_address_party_state_and_money() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.provider(&bob, SEARCH, Some(json!(5))).await;
    let once = |draft: Value| with(&draft, "/id", Some(json!("once")));
    hub.post_envelope(&alice.sign(&once(alice.note(bob.public())))).await.expect(202);
    let before = state(&hub).await;
    let poor = json!({"resource": SEARCH, "params": {}, "budget": {"max": 1}});
    let none = json!({"resource": "agora:none:v1", "params": {}});
    for draft in [
        alice.note(Key::of(9).public()),
        alice.draft("WELCOME", json!({})),
        alice.draft("ACCEPT", json!({"offer_id": "no-such-offer"})),
        alice.draft("RESULT", json!({"request_id": "r", "status": "success", "data": {}})),
        alice.draft("REQUEST", none),
        alice.draft("REQUEST", poor),
        alice.draft("HELLO", json!({"endpoint": "http://192.168.1.1/in"})),
    ] {
        let reply = hub.post_envelope(&alice.sign(&once(draft))).await;
        assert_says(&reply, 400, "this id was used");
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_comes_before_the_party_and_that_before_state_and_money() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, eve) = (Key::of(1), Key::of(2), Key::of(3));
    hub.hello(&eve, json!({})).await;
    hub.provider(&bob, SEARCH, None).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 5}}));
    hub.tell(&request).await.expect(202);
    let (cheap, other) = (bob.offer(&request.id, json!(5)), bob.offer(&request.id, json!(4)));
    hub.tell(&cheap).await.expect(202);
    hub.tell(&other).await.expect(202);
    let before = state(&hub).await;
    // An unknown address, in a message of an agent that is not a party.
    assert_error(&hub.tell_to(Key::of(9).did(), &eve.accept_id(&cheap.id)).await, 404);
    assert_error(&hub.tell_to(Key::of(9).did(), &eve.result(&request.id)).await, 404);
    // An agent that is not a party learns nothing of state, price or balance.
    assert_error(&hub.tell(&eve.accept_id(&cheap.id)).await, 401);
    assert_error(&hub.tell(&eve.offer(&request.id, json!(500))).await, 401);
    // A party gets the state error before the money error.
    assert_error(&hub.tell(&bob.offer(&request.id, json!(500))).await, 402);
    assert_error(&hub.tell(&alice.accept(&cheap)).await, 402);
    assert_eq!(state(&hub).await, before);
    hub.fund(&alice, "5").await;
    hub.tell(&alice.accept(&cheap)).await.expect(202);
    let before = state(&hub).await;
    assert_error(&hub.tell(&bob.offer(&request.id, json!(500))).await, 400);
    assert_error(&hub.tell(&alice.accept(&other)).await, 400);
    assert_error(&hub.tell(&eve.accept(&other)).await, 401);
    assert_eq!(state(&hub).await, before);
    // A missing address is not reported for a message type that needs none.
    assert_error(&hub.tell(&eve.sign(MessageType::Welcome, &json!({}))).await, 400);
}
