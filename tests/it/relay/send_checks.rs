//! Checks before a message is accepted, and that a refused one leaves nothing (R31–R38, R43, R80).

use serde_json::{Value, json};

use super::kit::{
    BOTH, assert_bad, assert_rejected, assert_wrapped, envelope, message, registration, state, with,
};
use crate::kit::{Behaviour, TestHub, Worker};

const QUICK_START: &str = include_str!("../../../crates/protocols/src/relay/fixtures/send.json");
const SKILL: &str = include_str!("../../../crates/protocols/src/relay/fixtures/skill-send.json");
const CONTEXT: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/send-context.json");

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_messages_are_sent_as_they_are_printed() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        for (body, from, to) in [
            (QUICK_START, "my-agent@chorus", "other-agent@chorus"),
            (SKILL, "your-agent-name@chorus", "another@chorus"),
            (CONTEXT, "alice@chorus.example", "bob@chorus.example"),
        ] {
            let body = body.replace("other-agent@chorus", to);
            let (from, to) = (hub.join(from).await, hub.join(to).await);
            let mut inbox = hub.inbox(&to).await;
            let path = format!("{prefix}/messages");
            let reply = hub.post_text(&path, Some(&from.key), &body).await.expect(200);
            assert_wrapped(&reply, true);
            let trace = reply.str("/data/trace_id");
            assert_eq!(reply.at("/data"), json!({"delivery": "delivered_sse", "trace_id": trace}));
            let event = inbox.message().await;
            let sent: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(event.data["envelope"], sent["envelope"]);
            assert_eq!(
                (&event.data["trace_id"], &event.data["sender_id"]),
                (&json!(trace), &json!(from.id))
            );
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_needs_a_key() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let before = state(&hub).await;
    let made_up = "ca_0123456789abcdef0123456789abcdef012345674195f880";
    for prefix in BOTH {
        for key in [None, Some("x"), Some("ca_x"), Some(made_up)] {
            // The key is checked before the body.
            for body in [message(&ada.id, &bob.id, "hi"), json!([])] {
                let reply = hub.post(&format!("{prefix}/messages"), key, &body).await;
                assert_rejected(&reply, 401, "ERR_UNAUTHORIZED");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            }
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_and_envelope_are_both_needed() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let before = state(&hub).await;
    let good = message(&ada.id, &bob.id, "hi");
    for (field, wrong) in [
        ("/receiver_id", None),
        ("/receiver_id", Some(json!(null))),
        ("/receiver_id", Some(json!(7))),
        ("/receiver_id", Some(json!(""))),
        ("/envelope", None),
        ("/envelope", Some(json!(null))),
        ("/envelope", Some(json!("hi"))),
        ("/envelope", Some(json!([]))),
        ("/stream", Some(json!("yes"))),
    ] {
        for prefix in BOTH {
            let body = with(&good, field, wrong.clone());
            let reply = hub.post(&format!("{prefix}/messages"), Some(&ada.key), &body).await;
            assert_bad(&reply, field);
            assert_rejected(&reply, 400, "ERR_VALIDATION");
        }
    }
    let neither = hub.post("/messages", Some(&ada.key), &json!({})).await;
    assert_bad(&neither, "/receiver_id");
    assert!(neither.str("/error/message").contains("; /envelope: "), "{}", neither.text);
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flat_body_is_shown_how_it_should_have_been_wrapped() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let before = state(&hub).await;
    let mut flat = envelope(&ada.id, "flat 界");
    flat["receiver_id"] = json!(bob.id);
    flat["x_extra"] = json!({"a": [1]});
    let reply = hub.post("/messages", Some(&ada.key), &flat).await;
    assert_bad(&reply, "/envelope");
    assert_rejected(&reply, 400, "ERR_VALIDATION");
    assert!(reply.str("/error/hint").contains("\"envelope\""), "{}", reply.text);
    assert_eq!(state(&hub).await, before);
    // The example is the corrected body: it can be sent as it is.
    let shown = reply.at("/error/example");
    let inner = with(&flat, "/receiver_id", None);
    assert_eq!(shown, json!({"receiver_id": bob.id, "envelope": inner}));
    hub.post("/messages", Some(&ada.key), &shown).await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_is_the_envelopes_and_no_other_field_is_read() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let mut body = message(&ada.id, &bob.id, "hi");
    for field in ["sender_id", "sender", "from", "agent_id"] {
        body[field] = json!("bob@chorus");
    }
    hub.post("/messages", Some(&ada.key), &body).await.expect(202);
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.message().await.data["sender_id"], ada.id);
    // It does not replace the envelope's own member.
    let body = with(&body, "/envelope/sender_id", None);
    assert_bad(&hub.post("/messages", Some(&ada.key), &body).await, "/envelope/sender_id");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_cannot_name_another_agent_as_its_sender() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let eve = hub.join("eve").await;
    let other = hub.orchestrator("other").await;
    hub.join_at("hooked", &worker.url).await;
    let before = state(&hub).await;
    for key in [&eve.key, &other.key] {
        for to in [&bob.id, "hooked@chorus"] {
            for prefix in BOTH {
                let path = format!("{prefix}/messages");
                let reply = hub.post(&path, Some(key), &message(&ada.id, to, "trust me")).await;
                assert_rejected(&reply, 403, "ERR_SENDER_MISMATCH");
                assert_eq!(reply.str("/error/field"), "/envelope/sender_id");
            }
        }
    }
    assert_eq!(state(&hub).await, before);
    assert!(worker.got().is_empty());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_registered_neither_sends_nor_receives() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let before = state(&hub).await;
    for prefix in BOTH {
        let path = format!("{prefix}/messages");
        for from in ["carol@chorus", "ada@chorus.example"] {
            let reply = hub.post(&path, Some(&ada.key), &message(from, &bob.id, "hi")).await;
            assert_rejected(&reply, 400, "ERR_SENDER_NOT_REGISTERED");
            assert_eq!(reply.str("/error/field"), "/envelope/sender_id");
            assert_eq!(reply.at("/error/example"), registration("my-agent@chorus"));
        }
        for to in ["carol@chorus", "carol", "bob@chorus.example"] {
            let reply = hub.post(&path, Some(&ada.key), &message(&ada.id, to, "hi")).await;
            assert_rejected(&reply, 404, "ERR_AGENT_NOT_FOUND");
            assert_eq!(reply.str("/error/field"), "/receiver_id");
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_field_of_an_envelope_is_listed() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    hub.join_at("hooked", &worker.url).await;
    let before = state(&hub).await;
    let bad = json!({"chorus_version": "0.3", "sender_id": "ada", "original_text": "",
        "sender_culture": "english", "cultural_context": "short", "turn_number": 0});
    for to in [bob.id.as_str(), "hooked"] {
        let body = json!({"receiver_id": to, "envelope": bad});
        let reply = hub.post("/messages", Some(&ada.key), &body).await;
        assert_bad(&reply, "/envelope/chorus_version");
        assert_rejected(&reply, 400, "ERR_VALIDATION");
        let message = reply.str("/error/message");
        let fields: Vec<&str> =
            message.split("; ").map(|fault| fault.split(": ").next().expect("a path")).collect();
        let wanted = [
            "chorus_version",
            "sender_id",
            "original_text",
            "sender_culture",
            "cultural_context",
            "turn_number",
        ]
        .map(|name| format!("/envelope/{name}"));
        assert_eq!(fields, wanted, "{message}");
    }
    assert_eq!(state(&hub).await, before);
    assert!(worker.got().is_empty(), "no delivery was attempted");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_envelope_stands_beside_its_receiver_like_any_other() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let part = json!({"data": envelope(&ada.id, "wrapped"), "mediaType": "application/vnd.chorus.envelope+json"});
    let document = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [part]});
    let before = state(&hub).await;
    let without = hub.post("/messages", Some(&ada.key), &json!({"envelope": document})).await;
    assert_bad(&without, "/receiver_id");
    let flat = with(&document, "/receiver_id", Some(json!(bob.id)));
    assert_bad(&hub.post("/messages", Some(&ada.key), &flat).await, "/envelope");
    assert_eq!(state(&hub).await, before);
    let body = json!({"receiver_id": bob.id, "envelope": document});
    hub.post("/messages", Some(&ada.key), &body).await.expect(202);
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.message().await.data["envelope"], envelope(&ada.id, "wrapped"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_twice_with_one_idempotency_key_is_one_message() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    for (path, key) in [("/messages", "k1"), ("/relay/messages", "k2")] {
        let body = message(&ada.id, &bob.id, path);
        let first = hub.post_once(path, Some(&ada.key), key, &body).await.expect(202);
        let before = state(&hub).await;
        let again = hub.post_once(path, Some(&ada.key), key, &body).await.expect(202);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.text, first.text);
        let other = message(&ada.id, &bob.id, "another");
        let refused = hub.post_once(path, Some(&ada.key), key, &other).await;
        super::kit::assert_error(&refused, 422, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(state(&hub).await, before);
        // The same idempotency key of another agent is another key.
        let theirs = message(&bob.id, &ada.id, path);
        hub.post_once(path, Some(&bob.key), key, &theirs).await.expect(202);
    }
    hub.stop().await;
}
