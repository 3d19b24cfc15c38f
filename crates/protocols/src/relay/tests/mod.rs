//! Tests: the spec's printed examples, read and written whole, and our own examples.

mod address;

use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::wire::discovery::{Paths, ServerDocument};
use super::wire::envelope::read_receive_body;
use super::wire::error::{ENVELOPE_EXAMPLE, MESSAGE_EXAMPLE, REGISTRATION_EXAMPLE, example_for};
use super::wire::registration::{RegisterBody, RegisteredBy};
use super::wire::reply::{Reply, ReplyStatus};
use super::wire::response::{success_response, success_response_with};
use super::wire::send::SendRequest;
use super::{Address, Code, DeliveryOutcome, DeliveryReport, Failure};
use crate::kit::ijson::{self, Json};

const AT: Timestamp = Timestamp(1_774_000_800_000);

fn read(text: &str) -> Json<'_> {
    ijson::read(text.as_bytes()).expect(text)
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn the_specs_registrations_are_read() {
    for (text, name) in [
        (include_str!("../fixtures/register.json"), "my-agent@chorus"),
        (include_str!("../fixtures/skill-register.json"), "your-agent-name@chorus"),
    ] {
        let json = read(text);
        let register =
            RegisterBody::read(&json, RegisteredBy::Agent, "chorus").expect("a registration");
        assert_eq!(register.address.canonical(), name);
        let card = register.card.expect("a card");
        assert_eq!((card.culture(), card.languages()), ("en", ["en"].as_slice()));
    }
    let json = read(include_str!("../fixtures/register-operator.json"));
    let register =
        RegisterBody::read(&json, RegisteredBy::Operator, "chorus").expect("a registration");
    assert_eq!(register.endpoint, Some("https://alice.example/receive"));
    assert_eq!(register.card.expect("a card").languages(), ["zh-CN", "en"]);
}

#[test]
fn the_specs_messages_are_read() {
    for (text, receiver, said) in [
        (
            include_str!("../fixtures/send.json"),
            "other-agent@chorus",
            "Hello, let's collaborate on this project.",
        ),
        (include_str!("../fixtures/skill-send.json"), "other-agent@chorus", "Hello!"),
        (include_str!("../fixtures/send-context.json"), "bob@chorus.example", "下午一起喝杯咖啡?"),
    ] {
        let json = read(text);
        let send = SendRequest::read(&json, "chorus").expect("a message");
        assert_eq!((send.receiver.canonical(), send.envelope.original_text), (receiver, said));
        assert!(text.contains(send.envelope.raw()), "not a byte of it is changed");
        let context = send.envelope.cultural_context.map(|context| context.chars().count());
        assert_eq!(context, said.starts_with('下').then_some(40));
    }
}

#[test]
fn the_specs_envelope_is_received() {
    let json = read(include_str!("../fixtures/receive.json"));
    let envelope = read_receive_body(&json).expect("an envelope");
    assert_eq!(envelope.sender.canonical(), "alice@chorus.example");
    assert_eq!(envelope.sender_culture, "zh-CN");
}

#[test]
fn the_specs_replies_are_understood() {
    let ok = Reply::read(include_bytes!("../fixtures/reply-ok.json")).expect("a reply");
    assert_eq!((ok.raw(), ok.status()), (r#"{ "status": "ok" }"#, &ReplyStatus::Ok));
    let error = Reply::read(include_bytes!("../fixtures/reply-error.json")).expect("a reply");
    let said = ReplyStatus::Error {
        code: "INVALID_ENVELOPE".to_owned(),
        detail: "missing sender_culture".to_owned(),
    };
    assert_eq!(error.status(), &said);
}

#[test]
fn answers_have_the_specs_form() {
    let success = value(include_bytes!("../fixtures/success.json"));
    assert_eq!(value(&success_response("{}", AT)), success);
    let mut failure = value(include_bytes!("../fixtures/failure.json"));
    failure["error"]["retryable"] = json!(false);
    let ours = Failure::new(Code::Validation, "sender_id is required");
    assert_eq!(value(&ours.write(AT)), failure);
}

#[test]
fn deliveries_have_the_specs_form() {
    let detail = "Receiver did not respond within timeout";
    for (text, outcome) in [
        (
            include_str!("../fixtures/delivered.json"),
            DeliveryOutcome::Delivered { reply: r#"{ "status": "ok" }"# },
        ),
        (
            include_str!("../fixtures/failed.json"),
            DeliveryOutcome::Failed { code: Code::AgentUnreachable, detail },
        ),
    ] {
        let delivery = DeliveryReport { outcome, trace_id: "t", loop_guard: false };
        let body = success_response_with(AT, delivery.size_hint(), |out| delivery.write(out));
        let mut wanted = value(text.as_bytes());
        wanted["data"]["trace_id"] = json!("t");
        wanted["metadata"]["timestamp"] = json!("2026-03-20T10:00:00.000Z");
        assert_eq!(value(&body), wanted);
    }
}

#[test]
fn the_specs_discovery_document_is_read() {
    let server = ServerDocument::read(&read(include_str!("../fixtures/discovery.json")));
    assert_eq!(server.server_name.as_deref(), Some("Example Chorus Hub"));
    assert_eq!(server.chorus_version.as_deref(), Some("0.4"));
    assert_eq!(server.paths, Paths::default());
}

#[test]
fn the_examples_we_show_are_right() {
    let json = read(REGISTRATION_EXAMPLE);
    assert!(RegisterBody::read(&json, RegisteredBy::Agent, "chorus").is_ok());
    assert!(SendRequest::read(&read(MESSAGE_EXAMPLE), "chorus").is_ok());
    assert!(read_receive_body(&read(ENVELOPE_EXAMPLE)).is_ok());
    for field in [
        "/agent_id",
        "/agent_card",
        "/endpoint",
        "/envelope_format",
        "/rotate_key",
        "/receiver_id",
        "/stream",
        "/envelope",
        "/envelope/chorus_version",
        "/envelope/sender_id",
        "/envelope/original_text",
        "/envelope/original_semantic",
        "/envelope/sender_culture",
        "/envelope/cultural_context",
        "/envelope/conversation_id",
        "/envelope/turn_number",
        "/envelope/parts",
        "/agent_card/card_version",
        "/agent_card/user_culture",
        "/agent_card/supported_languages",
        "/agent_card/supported_languages/3",
        "/up_to",
        "",
        "?after",
        "?since",
        "?limit",
        "?culture",
        "?language",
        "?online",
        "?protocol",
        "?ack",
        "?cursor",
        "Idempotency-Key",
        "Last-Event-ID",
    ] {
        read(example_for(field));
    }
}

#[test]
fn an_example_repairs_the_field_it_is_shown_for() {
    // Members of a registration and of an envelope, laid over those of an invalid one.
    let mut register = json!({"agent_id": "a b", "endpoint": "x", "rotate_key": 1,
        "envelope_format": "x", "agent_card": {"card_version": "0.2"}});
    let mut envelope = json!({"chorus_version": "0.3", "sender_id": "a", "original_text": "",
        "sender_culture": "e", "cultural_context": "x", "conversation_id": 1, "turn_number": 0});
    let patch = |body: &mut Value, field: &str| {
        let Value::Object(example) = value(example_for(field).as_bytes()) else {
            panic!("{field}")
        };
        body.as_object_mut().expect("an object").extend(example);
    };
    for field in ["/agent_id", "/endpoint", "/rotate_key", "/envelope_format", "/agent_card"] {
        patch(&mut register, field);
    }
    let text = register.to_string();
    assert!(RegisterBody::read(&read(&text), RegisteredBy::Operator, "chorus").is_ok(), "{text}");
    for name in [
        "sender_id",
        "original_text",
        "sender_culture",
        "cultural_context",
        "conversation_id",
        "turn_number",
        "chorus_version",
    ] {
        patch(&mut envelope, &format!("/envelope/{name}"));
    }
    let text = json!({ "envelope": envelope }).to_string();
    assert!(read_receive_body(&read(&text)).is_ok(), "{text}");
    assert!(Address::read("bob", "chorus").is_ok());
}
