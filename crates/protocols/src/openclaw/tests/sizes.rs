//! Tests of unknown members and of size limits.

use super::*;
use serde_json::json;

use crate::openclaw::TEXT_MAX;

#[test]
fn unknown_members_are_kept_everywhere() {
    for (name, kind, text) in examples() {
        let text = text.replace('{', r#"{"x-more" : [1.50, "\u0041"], "#);
        // Inside the schema maps it would be a schema, which must be an object.
        if kind == Kind::Identity {
            continue;
        }
        let raw = match read_as(kind, &text).expect(&name) {
            AnyMessage::Identity(message) => message.raw,
            AnyMessage::Status(message) => message.raw,
            AnyMessage::Reputation(message) => message.raw,
            AnyMessage::Request(message) => message.raw,
            AnyMessage::Response(message) => message.raw,
            AnyMessage::Result(message) => message.raw,
        };
        assert_eq!(*raw, *text, "{name}");
    }
    let mut body = example("identity: Example");
    for pointer in
        ["/x", "/status/x", "/capabilities/x", "/capabilities/advertised_capabilities/0/x"]
    {
        body = with(body, pointer, json!({"y": [1]}));
    }
    assert!(read_as(Kind::Identity, &body.to_string()).is_ok());
}

#[test]
fn texts_of_agents_are_bounded() {
    let long = "x".repeat(TEXT_MAX + 1);
    for (kind, name, pointer) in [
        (Kind::Status, "Status: Error", "/status_update/status_details/error_message"),
        (Kind::Response, "Rejected", "/rejection_reason/message"),
        (Kind::Result, "result: Failed", "/error/message"),
        (Kind::Result, "result: Failed", "/error/code"),
    ] {
        let told = wrong(kind, &with(example(name), pointer, long.clone().into()));
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("must be a string of at most 10000 characters"), "{told:?}");
        let fits = with(example(name), pointer, long[1..].into());
        assert!(read_as(kind, &fits.to_string()).is_ok());
    }
    let name = format!("chimera-{}", "a".repeat(249));
    let told =
        wrong(Kind::Identity, &with(example("identity: Example"), "/agent_name", name.into()));
    assert_eq!(told, ["agent_name has more than 256 characters"]);
    let key =
        with(example("collaboration_request: Example"), "/idempotency_key", "é".repeat(256).into());
    assert!(read_as(Kind::Request, &key.to_string()).is_ok());
}

#[test]
fn large_inputs_are_read_and_too_many_parts_are_not() {
    let list = |count: usize| json!(vec![0; count]);
    let body = with(example("collaboration_request: Example"), "/input_data/list", list(9_000));
    assert!(read_as(Kind::Request, &body.to_string()).is_ok());
    let body = with(body, "/input_data/list", list(10_000));
    assert!(wrong(Kind::Request, &body)[0].contains("more than 10000 members and items"));
    let long = with(
        example("collaboration_request: Example"),
        "/input_data/text",
        "x".repeat(1_000_000).into(),
    );
    assert!(read_as(Kind::Request, &long.to_string()).is_ok());
}

#[test]
fn an_identity_with_many_errors_tells_a_bounded_number() {
    let bad = json!({"category": 1});
    let body = with(
        example("identity: Example"),
        "/capabilities/advertised_capabilities",
        json!(vec![bad; 2_000]),
    );
    let told = wrong(Kind::Identity, &body);
    assert_eq!(told.len(), 500);
}

#[test]
fn all_schemas_of_an_agent_share_a_limit_of_patterns() {
    let mut body = example("identity: Example");
    let many: serde_json::Map<_, _> = (0..60).map(|n| (format!("^x{n}"), json!({}))).collect();
    for (n, map) in ["input_schemas", "output_schemas", "input_schemas"].iter().enumerate() {
        let told = read_as(Kind::Identity, &body.to_string());
        assert!(told.is_ok(), "{n}");
        body = with(body, &format!("/capabilities/{map}/s{n}"), json!({"patternProperties": many}));
    }
    let told = wrong(Kind::Identity, &body);
    assert_eq!(told.len(), 1);
    assert!(told[0].ends_with("brings the schemas to more than 128 patterns"), "{told:?}");
}
