//! The spec's thirteen example documents are accepted unchanged.

use super::*;

use crate::openclaw::wire::{self, Message, MessageBody, ResponseAnswer, ResultOutcome, from_json};

#[test]
fn there_are_thirteen_and_each_fits_its_kind_and_no_other() {
    let all = examples();
    assert_eq!(all.len(), 13);
    for (name, kind, text) in all {
        for other in Kind::ALL {
            assert_eq!(
                wire::schema_of(*other).check(&text).is_ok(),
                *other == kind,
                "{name} {other}"
            );
            assert_eq!(read_as(*other, &text).is_ok(), *other == kind, "{name} {other}");
        }
    }
}

#[test]
fn each_is_told_apart_and_keeps_its_text() {
    for (name, kind, text) in examples() {
        let raw = match AnyMessage::read(text.as_bytes()).expect(&name) {
            AnyMessage::Identity(message) => (Kind::Identity, message.raw),
            AnyMessage::Status(message) => (Kind::Status, message.raw),
            AnyMessage::Reputation(message) => (Kind::Reputation, message.raw),
            AnyMessage::Request(message) => (Kind::Request, message.raw),
            AnyMessage::Response(message) => (Kind::Response, message.raw),
            AnyMessage::Result(message) => (Kind::Result, message.raw),
        };
        assert_eq!(raw, (kind, text.into_boxed_str()), "{name}");
    }
}

/// Writes a message and reads it again.
fn again<T: MessageBody + PartialEq + std::fmt::Debug>(message: &Message<T>, written: &str) {
    let back: Message<T> = wire::read(written.as_bytes()).expect(written);
    assert_eq!(back.body, message.body, "{written}");
    let json = ijson::read(written.as_bytes()).expect("JSON");
    assert_eq!(json.get("protocol_version").map(ijson::Json::raw), Some("\"1.0.0\""));
    let of_it: Message<T> = from_json(&json).expect("the same");
    assert_eq!(of_it, back);
}

#[test]
fn what_is_read_and_written_back_says_the_same() {
    for (name, _, text) in examples() {
        match AnyMessage::read(text.as_bytes()).expect(&name) {
            AnyMessage::Identity(message) => again(&message, &message.body.write()),
            AnyMessage::Status(message) => again(&message, &message.body.write()),
            AnyMessage::Reputation(message) => again(&message, &message.body.write()),
            AnyMessage::Request(message) => again(&message, &message.body.write()),
            AnyMessage::Response(message) => again(&message, &message.body.write()),
            AnyMessage::Result(message) => again(&message, &message.body.write()),
        }
    }
}

#[test]
fn the_identity_is_understood() {
    let AnyMessage::Identity(identity) =
        AnyMessage::read(example("identity: Example").to_string().as_bytes())
            .expect("the identity")
    else {
        panic!("another kind")
    };
    let said = &identity.body;
    assert_eq!(said.agent_name, "chimera-content-node-001");
    assert_eq!(said.limits.max_concurrent_tasks, Some(5));
    let trends = said.capability("consume_trends").expect("consume_trends");
    assert_eq!(trends.estimated_duration_ms, Some(5_000));
    // R26: the second capability has no schemas.
    let plan = said.capability("generate_content_plan").expect("generate_content_plan");
    assert!(plan.input.is_none() && plan.output.is_none());
    let request = example("collaboration_request: Example");
    let input = trends.input.as_ref().expect("an input schema");
    assert_eq!(input.check(&request["input_data"].to_string()), Ok(()));
    let off = with(request, "/input_data/trends/0/relevance_score", 1.5.into());
    let told = input.check(&off["input_data"].to_string()).expect_err("1.5");
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["trends[0].relevance_score must be between 0.0 and 1.0"]);
}

#[test]
fn answers_and_results_are_understood() {
    let response = |end: &str| match AnyMessage::read(example(end).to_string().as_bytes()) {
        Ok(AnyMessage::Response(message)) => message.body,
        other => panic!("{other:?}"),
    };
    assert!(matches!(response("Accepted").answer, ResponseAnswer::Accepted { .. }));
    assert!(matches!(response("Deferred").answer, ResponseAnswer::Deferred { .. }));
    let ResponseAnswer::Rejected(reason) = response("Rejected").answer else {
        panic!("not rejected")
    };
    assert!(reason.retryable, "a full agent may have room later");
    let Ok(AnyMessage::Result(failed)) = AnyMessage::read(example("Failed").to_string().as_bytes())
    else {
        panic!("no result")
    };
    let ResultOutcome::Failed(error) = failed.body.outcome else { panic!("not failed") };
    assert!(!error.retryable, "permanent");
}
