//! Envelopes: which are valid, and that valid ones are forwarded unchanged (R50–R54).

use serde_json::{Value, json};

use super::kit::{assert_bad, assert_rejected, envelope, state, with};
use crate::kit::{Behaviour, TestHub, Worker};

const RECEIVE: &str = include_str!("../../../crates/protocols/src/relay/fixtures/receive.json");

/// The worked envelope of the requirements.
fn good() -> Value {
    json!({"chorus_version": "0.4", "sender_id": "alice@chorus.example",
        "original_text": "下午一起喝杯咖啡?", "sender_culture": "zh-CN"})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_fields_are_required_and_checked() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus.example").await, hub.join("bob").await);
    let before = state(&hub).await;
    let mut fine = Vec::new();
    for (field, wrong) in [
        ("chorus_version", None),
        ("chorus_version", Some(json!("0.3"))),
        ("chorus_version", Some(json!("0.2"))),
        ("chorus_version", Some(json!(0.4))),
        ("chorus_version", Some(json!(null))),
        ("chorus_version", Some(json!("0.4 "))),
        ("sender_id", None),
        ("sender_id", Some(json!("alice"))),
        ("sender_id", Some(json!("@chorus"))),
        ("sender_id", Some(json!("alice@"))),
        ("sender_id", Some(json!("a@b@c"))),
        ("original_text", None),
        ("original_text", Some(json!(""))),
        ("original_text", Some(json!(7))),
        ("original_text", Some(json!(["hi"]))),
        ("sender_culture", None),
        ("sender_culture", Some(json!("english"))),
        ("sender_culture", Some(json!("e"))),
        ("sender_culture", Some(json!("en_US"))),
    ] {
        let pointer = format!("/{field}");
        let bad = with(&good(), &pointer, wrong);
        let reply = hub.mail(&alice, &bob, &bad).await;
        assert_bad(&reply, &format!("/envelope/{field}"));
        assert_rejected(&reply, 400, "ERR_VALIDATION");
        if field == "chorus_version" {
            assert!(reply.str("/error/message").contains("0.4"), "{}", reply.text);
        }
        // The example has the form of the field, and corrects it.
        let mut repaired = bad;
        let shown = reply.at("/error/example");
        repaired
            .as_object_mut()
            .expect("an object")
            .extend(shown.as_object().expect(field).clone());
        assert!(repaired.get(field).is_some(), "{repaired}");
        if field != "sender_id" {
            let fresh =
                with(&repaired, "/original_text", Some(json!(format!("repaired {}", fine.len()))));
            fine.push(fresh);
        }
    }
    assert_eq!(state(&hub).await, before);
    for envelope in fine {
        hub.mail(&alice, &bob, &envelope).await.expect(202);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_of_old_is_told_the_version_spoken_here() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus.example").await, hub.join("bob").await);
    let before = state(&hub).await;
    let old = json!({"chorus_version": "0.3", "sender_id": alice.id, "original_semantic": "an invitation", "sender_culture": "zh-CN"});
    let both = with(&good(), "/original_semantic", Some(json!("an invitation")));
    for (envelope, field) in
        [(old, "/envelope/chorus_version"), (both, "/envelope/original_semantic")]
    {
        let reply = hub.mail(&alice, &bob, &envelope).await;
        assert_bad(&reply, field);
        assert!(reply.str("/error/message").contains("0.4"), "{}", reply.text);
        assert!(reply.str("/error/hint").contains("original_text"), "{}", reply.text);
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_optional_fields_have_limits_that_count_characters() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus.example").await, hub.join("bob").await);
    let before = state(&hub).await;
    for (field, wrong) in [
        ("cultural_context", json!("界".repeat(9))),
        ("cultural_context", json!("界".repeat(501))),
        ("cultural_context", json!(7)),
        ("conversation_id", json!("界".repeat(65))),
        ("conversation_id", json!(7)),
        ("turn_number", json!(0)),
        ("turn_number", json!(-1)),
        ("turn_number", json!(1.5)),
        ("turn_number", json!("1")),
    ] {
        let reply = hub.mail(&alice, &bob, &with(&good(), &format!("/{field}"), Some(wrong))).await;
        assert_bad(&reply, &format!("/envelope/{field}"));
    }
    assert_eq!(state(&hub).await, before);
    let mut inbox = hub.inbox(&bob).await;
    for (n, (field, right)) in [
        ("cultural_context", json!("界".repeat(10))),
        ("cultural_context", json!("😀".repeat(500))),
        ("conversation_id", json!("界".repeat(64))),
        ("conversation_id", json!("c")),
        ("turn_number", json!(1)),
        ("turn_number", json!(1_000_000_007)),
        ("x_extra", json!({"a": [1]})),
    ]
    .into_iter()
    .enumerate()
    {
        let envelope = with(&good(), &format!("/{field}"), Some(right));
        let envelope = with(&envelope, "/original_text", Some(json!(format!("no. {n}"))));
        hub.mail(&alice, &bob, &envelope).await.expect(200);
        assert_eq!(inbox.message().await.data["envelope"], envelope);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_culture_of_the_book_is_taken_and_keeps_its_case() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus.example").await, hub.join("bob").await);
    let mut inbox = hub.inbox(&bob).await;
    for tag in ["en", "zh-CN", "zh-Hant-TW", "es-419", "en-us", "en-GB-oxendict", "yue"] {
        let envelope = with(&good(), "/sender_culture", Some(json!(tag)));
        let envelope = with(&envelope, "/original_text", Some(json!(tag)));
        hub.mail(&alice, &bob, &envelope).await.expect(200);
        assert_eq!(inbox.message().await.data["envelope"]["sender_culture"], tag);
    }
    hub.stop().await;
}

/// An envelope in a body, with everything that a re-serialization would change.
const STRANGE: &str = r#"{ "original_text" : "Hello,\u0020\"friend\"\t\u00e9 下午 😀 <b>&amp;</b> \/",
  "x_extra":{"a":[1, 1.0, 1e2, -0, 123456789012345678901234567890],"":null}, "sender_culture":"en-us",
  "style":"rude", "personality":{"x":true}, "cultural_context":"  Ten or more, \u4e0d\u4e00\u5b9a.  ",
  "chorus_version":"0.4","sender_id":"ALICE@chorus.example" }"#;

/// Line breaks cannot occur in an event, and mean nothing between JSON tokens.
fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_relayed_byte_for_byte_with_all_it_has() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let (alice, bob) = (hub.join("alice@chorus.example").await, hub.join("bob").await);
    let hooked = hub.join_at("hooked", &worker.url).await;
    let mut inbox = hub.inbox(&bob).await;
    for to in [&bob, &hooked] {
        let body = format!(r#"{{"receiver_id":"{}","envelope":{STRANGE}}}"#, to.id);
        hub.post_text("/messages", Some(&alice.key), &body).await.expect(200);
    }
    let event = inbox.message().await;
    assert!(
        event.text.contains(&format!("\"envelope\":{}", on_one_line(STRANGE))),
        "{}",
        event.text
    );
    let got = worker.got();
    assert_eq!(got.len(), 1);
    assert!(got[0].body.contains(STRANGE), "{}", got[0].body);
    let history = hub.get("/agent/messages", Some(&bob.key)).await.expect(200);
    assert!(history.text.contains(STRANGE), "{}", history.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_differ_in_case_only_are_other_members() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob, eve) = (hub.join("ada").await, hub.join("bob").await, hub.join("eve").await);
    let mut inbox = hub.inbox(&bob).await;
    let said = envelope(&ada.id, "hi");
    for (member, value) in
        [("Sender_Id", &*eve.id), ("SENDER_ID", &eve.id), ("Original_Text", "no")]
    {
        let said = with(&said, &format!("/{member}"), Some(json!(value)));
        hub.mail(&ada, &bob, &said).await.expect(200);
        let event = inbox.message().await;
        assert_eq!((&event.data["sender_id"], event.said()), (&json!(ada.id), "hi"), "{member}");
        assert_eq!(event.data["envelope"][member], value);
    }
    let renamed = with(&with(&said, "/sender_id", None), "/Sender_Id", Some(json!(ada.id)));
    assert_bad(&hub.mail(&ada, &bob, &renamed).await, "/envelope/sender_id");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_adds_nothing_for_readers_of_any_culture() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus.example").await;
    for (n, culture) in ["zh-CN", "en", "de"].into_iter().enumerate() {
        let card = json!({"card_version": "0.3", "user_culture": culture, "supported_languages": [culture]});
        let reader =
            hub.join_with(&json!({"agent_id": format!("reader{n}x"), "agent_card": card})).await;
        hub.mail(&alice, &reader, &good()).await.expect(202);
        let mut inbox = hub.inbox(&reader).await;
        assert_eq!(inbox.message().await.data["envelope"], good(), "{culture}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiving_hub_checks_first_and_answers_in_the_receivers_words() {
    let hub = TestHub::open(&[]).await;
    let bob = hub.join("bob").await;
    let before = state(&hub).await;
    let body = json!({"envelope": with(&good(), "/sender_culture", None)});
    let reply = hub.post("/relay/receive/bob", None, &body).await.expect(400);
    assert_eq!(
        (reply.str("/status"), reply.str("/error_code")),
        ("error".to_owned(), "INVALID_ENVELOPE".to_owned())
    );
    assert!(reply.str("/detail").contains("sender_culture"), "{}", reply.text);
    let body = json!({"envelope": with(&good(), "/chorus_version", Some(json!("0.3")))});
    let reply = hub.post("/relay/receive/bob", None, &body).await.expect(400);
    assert_eq!(reply.str("/error_code"), "UNSUPPORTED_VERSION");
    assert_eq!(state(&hub).await, before);
    let reply = hub.post_text("/relay/receive/bob", None, RECEIVE).await.expect(200);
    assert_eq!(reply.json(), json!({"status": "ok"}));
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.message().await.data["envelope"], good());
    hub.stop().await;
}
