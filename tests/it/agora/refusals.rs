//! Contents and recipients of refusals, and what they leave unchanged (R16, R59, R67, R68, D13,
//! D14, section 5).

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Hub, Key, assert_error, assert_signed};
use super::pen::{Pen, state};
use crate::kit::Reply;
use crate::relay::kit::{Peer, escaped, with};

const SEARCH: &str = "agora:search:v1";

/// The key the hub holds for an agent of another protocol.
async fn held_key(hub: &Hub, native: &str) -> String {
    let all = hub.get("/agora/agents?limit=200", None).await.expect(200).at("/agents");
    let found = all.as_array().expect("a list").iter().find(|one| one["native_id"] == native);
    found.expect("an entry")["id"].as_str().expect("a key").to_owned()
}

/// The relay's address for an agent of this protocol.
async fn address(hub: &Hub, key: &Key) -> String {
    let all = hub.get("/relay/agents", None).await.expect(200).at("/data");
    let found = all.as_array().expect("a list").iter().find(|one| one["native_id"] == key.did());
    found.expect("an address")["agent_id"].as_str().expect("text").to_owned()
}

/// A relay agent blocks a key.
async fn block(hub: &Hub, by: &Peer, whom: &Key) {
    let path = format!("/relay/agent/blocks/{}", escaped(&address(hub, whom).await));
    hub.call("PUT", &path, Some(&by.key), None).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_verified_is_still_told_why_and_only_there() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let alice_reads = hub.hello(&Key::of(1), json!({})).await;
    let bob_reads = hub.hello(&bob, json!({})).await;
    let draft = alice.note(bob.public());
    let forged = Pen::of(3).sign(&draft);
    let before = state(&hub).await;
    let reply = hub.post_envelope(&forged).await;
    assert_error(&reply, 401);
    assert_eq!(assert_signed(&reply.text), hub.hub_key().await);
    assert_eq!(reply.at("/payload/message_id"), draft["id"]);
    assert!(reply.json().get("recipient").is_none(), "the recipient is not proven");
    assert_eq!(state(&hub).await, before);
    // Neither the named sender nor the recipient is notified.
    for reads in [&alice_reads, &bob_reads] {
        assert_eq!(hub.letters(reads).await.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_the_hub_has_one_of_the_eight_codes_as_its_status() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.provider(&bob, SEARCH, Some(json!(5))).await;
    let request = |more: Value| alice.request(SEARCH, more);
    let expired = alice.sign(MessageType::Request, &json!({"resource": SEARCH, "params": 7}));
    for (said, code, request_id) in [
        (expired, 400, false),
        (alice.accept_id("no-such-offer"), 401, false),
        (alice.result("no-such-request"), 401, true),
        (request(json!({"budget": {"max": 1}})), 402, true),
        (request(json!({"budget": {"max": 9, "currency": "EUR"}})), 402, true),
        (alice.request("agora:none:v1", json!({})), 404, true),
    ] {
        let reply = hub.tell(&said).await;
        assert_error(&reply, code);
        let payload = reply.at("/payload");
        assert_eq!(payload["message_id"], said.id);
        assert_eq!(payload.get("request_id").is_some(), request_id, "{payload}");
        assert_eq!(payload["retryable"], false);
    }
    for (method, path, status) in [
        ("GET", "/agora/nothing", 404),
        ("DELETE", "/agora/agents", 405),
        ("GET", "/agora/ws", 426),
        ("GET", "/agora/envelopes", 405),
    ] {
        let reply = hub.call(method, path, None, None).await;
        assert_eq!(reply.status, status, "{}", reply.text);
        let code = reply.at("/payload/code").as_u64().expect("a number");
        assert!([400, 401, 402, 404, 408, 429, 500, 503].contains(&code), "{}", reply.text);
        assert_signed(&reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_error_is_passed_on_with_any_code_and_ends_the_request() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.hello(&alice, json!({})).await;
    hub.provider(&bob, SEARCH, None).await;
    for code in [418, 0, -1, 500, 999_999] {
        let request = alice.request(SEARCH, json!({}));
        hub.tell(&request).await.expect(202);
        let error = bob.error(&request.id, code);
        let taken = hub.tell(&error).await.expect(202);
        assert_eq!(taken.str("/payload/state"), "FAILED");
        assert_eq!(hub.newest(&reads).await, error.json());
        assert_eq!(hub.state_of(&reads, &request.id).await, "FAILED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_and_what_is_not_ones_own_are_one_answer() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, eve) = (Key::of(1), Key::of(2), Key::of(3));
    hub.provider(&bob, SEARCH, None).await;
    hub.hello(&eve, json!({})).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 5}}));
    hub.tell(&request).await.expect(202);
    let offer = bob.offer(&request.id, json!(1));
    hub.tell(&offer).await.expect(202);
    let before = state(&hub).await;
    let said = |request: &str, offer: &str| {
        [
            eve.offer(request, json!(1)),
            eve.result(request),
            eve.error(request, 500),
            eve.accept_id(offer),
        ]
    };
    let (there, not) = (said(&request.id, &offer.id), said("nothing", "nothing"));
    for (there, not) in there.iter().zip(&not) {
        let (there, not) = (hub.tell(there).await, hub.tell(not).await);
        for reply in [&there, &not] {
            assert_error(reply, 401);
        }
        // Equal except for the ids, which are the caller's own.
        let told = |reply: &Reply| {
            let payload = with(&reply.at("/payload"), "/message_id", None);
            with(&payload, "/request_id", None)
        };
        assert_eq!(told(&there), told(&not));
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_error_that_was_waited_for_is_a_success_of_the_hub() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.provider(&bob, SEARCH, None).await;
    let request = alice.request(SEARCH, json!({}));
    let error = bob.error(&request.id, 503);
    let asked = hub.call("POST", "/agora/envelopes?wait=30000", None, Some(&request.text));
    let answered = async {
        crate::kit::eventually(async || hub.letters(&reads).await.len() == 1).await;
        hub.tell(&error).await.expect(202)
    };
    let (heard, _) = tokio::join!(asked, answered);
    let heard = heard.expect(200);
    assert_eq!(heard.text, error.text, "forwarded as signed");
    assert!(heard.header("rialto-job").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_is_refused_and_nothing_reaches_the_one_who_blocked_it() {
    let hub = Hub::serve(&[]).await;
    let (alice, carol, ada) = (Key::of(1), Key::of(3), hub.join("ada").await);
    hub.hello(&alice, json!({})).await;
    hub.hello(&carol, json!({})).await;
    let to = held_key(&hub, &ada.id).await;
    hub.tell_to(&to, &alice.sign(MessageType::Status, &json!({"n": 1}))).await.expect(202);
    block(&hub, &ada, &alice).await;
    let before = state(&hub).await;
    let by_path = alice.sign(MessageType::Status, &json!({"n": 2}));
    let key = rialto_protocols::kit::ed25519::PublicKey::parse(&to).expect("a key");
    let by_member = alice.sign_for(MessageType::Hello, &json!({}), Some(key));
    let request = alice.request(SEARCH, json!({}));
    for reply in [
        hub.tell_to(&to, &by_path).await,
        hub.tell(&by_member).await,
        hub.tell_to(&to, &request).await,
    ] {
        assert_error(&reply, 401);
        assert_eq!(reply.at("/payload/retryable"), false);
    }
    assert_eq!(state(&hub).await, before);
    // The block applies to one sender, and the refused message is valid after the block is lifted.
    hub.tell_to(&to, &carol.sign(MessageType::Status, &json!({}))).await.expect(202);
    let path = format!("/relay/agent/blocks/{}", escaped(&address(&hub, &alice).await));
    hub.call("DELETE", &path, Some(&ada.key), None).await.expect(200);
    hub.tell_to(&to, &by_path).await.expect(202);
}

/// Sends messages until the rate limit refuses one.
async fn exhaust(hub: &Hub, key: &Key, to: &str) -> Reply {
    for n in 0..50 {
        let reply = hub.tell_to(to, &key.sign(MessageType::Status, &json!({"n": n}))).await;
        if reply.status != 202 {
            return reply;
        }
    }
    panic!("the rate limit never refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_too_much_is_told_when_to_come_back_and_may_repeat_itself() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "4")]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let first = alice.sign(MessageType::Status, &json!({"first": true}));
    let taken = hub.tell_to(bob.did(), &first).await.expect(202);
    let refused = exhaust(&hub, &alice, bob.did()).await;
    assert_error(&refused, 429);
    assert_eq!(refused.at("/payload/retryable"), true);
    let seconds = refused.at("/payload/retry_after_seconds").as_u64().expect("seconds");
    assert!(seconds > 0);
    assert_eq!(refused.header("retry-after"), Some(seconds.to_string().as_str()));
    let before = state(&hub).await;
    // A repeat gets its first answer, and another message with its id is refused.
    let again = hub.tell_to(bob.did(), &first).await.expect(202);
    assert_eq!(again.at("/payload"), taken.at("/payload"));
    assert_error(&hub.tell(&first).await, 400);
    assert_error(&hub.tell_to(bob.did(), &alice.sign(MessageType::Status, &json!({}))).await, 429);
    assert_eq!(state(&hub).await, before);
    // The limit counts the key in every spelling, and no other key.
    let pen = Pen::of(1);
    let draft = with(&pen.note(bob.public()), "/sender/id", Some(json!(pen.spellings()[1])));
    assert_error(&hub.post_envelope(&pen.sign(&draft)).await, 429);
    hub.tell_to(bob.did(), &Key::of(3).sign(MessageType::Status, &json!({}))).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_forged_in_somebodys_name_is_not_counted_against_it() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "4")]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    for _ in 0..20 {
        let forged = Pen::of(3).sign(&alice.note(bob.public()));
        assert_error(&hub.post_envelope(&forged).await, 401);
    }
    hub.post_envelope(&alice.sign(&alice.note(bob.public()))).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_and_a_used_id_are_told_before_too_much_and_that_before_an_address() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "4")]).await;
    let (alice, bob, ada) = (Key::of(1), Key::of(2), hub.join("ada").await);
    hub.hello(&bob, json!({})).await;
    hub.hello(&alice, json!({})).await;
    let to = held_key(&hub, &ada.id).await;
    block(&hub, &ada, &alice).await;
    let used = alice.sign(MessageType::Status, &json!({"used": true}));
    hub.tell_to(bob.did(), &used).await.expect(202);
    // A used id is checked before the block list,
    assert_error(&hub.tell_to(&to, &used).await, 400);
    assert_error(&exhaust(&hub, &alice, bob.did()).await, 429);
    // and before the rate limit, as is the block list;
    assert_error(&hub.tell_to(&to, &used).await, 400);
    assert_error(&hub.tell_to(Key::of(9).did(), &used).await, 400);
    assert_error(&hub.tell_to(&to, &alice.sign(MessageType::Status, &json!({}))).await, 401);
    // the rate limit before a wrong, unknown or missing address, and before unknown ids.
    let torn = alice.sign_for(MessageType::Status, &json!({}), Some(bob.public()));
    assert_error(&hub.tell_to(Key::of(9).did(), &torn).await, 429);
    assert_error(
        &hub.tell_to(Key::of(9).did(), &alice.sign(MessageType::Status, &json!({}))).await,
        429,
    );
    assert_error(&hub.tell(&alice.sign(MessageType::Welcome, &json!({}))).await, 429);
    assert_error(&hub.tell(&alice.accept_id("no-such-offer")).await, 429);
    assert_error(&hub.tell(&alice.request("agora:none:v1", json!({}))).await, 429);
    // An invalid or wrongly signed envelope is refused first of all.
    let pen = Pen::of(1);
    let draft = pen.note(bob.public());
    assert_error(&hub.post_envelope(&Pen::of(3).sign(&draft)).await, 401);
    let bad = with(&draft, "/type", Some(json!("NOTE")));
    assert_error(&hub.post_envelope(&pen.sign(&bad)).await, 400);
}
