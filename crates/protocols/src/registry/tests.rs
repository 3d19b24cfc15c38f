//! Tests that need no hub: the spec's examples are read, and our own examples are valid.

use super::errors::REGISTRATION_EXAMPLE;
use super::wire::{JobPost, JobStatus, RegisterBody, ResultPost, TransferPost};
use crate::kit::fields::Malformed;

const UUID: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";

/// A printed example with its placeholder ids filled in.
fn filled(example: &str) -> Vec<u8> {
    example.replace("\"uuid\"", &format!("\"{UUID}\"")).into_bytes()
}

#[test]
fn the_specs_registration_is_read_field_by_field() {
    let read =
        RegisterBody::read(&filled(include_str!("fixtures/register.json"))).expect("it is good");
    assert_eq!(read.agent_id.map(|id| id.to_string()).as_deref(), Some(UUID));
    assert_eq!(read.agent_name, "Human-readable name");
    assert_eq!(read.owner_id, "Owner identifier");
    assert_eq!(read.api_endpoint.as_deref(), Some("https://agent-host:port/jobs"));
    assert_eq!(read.version, "0.1");
    assert_eq!(
        read.timestamp_utc.map(crate::kit::rfc3339::format_seconds).as_deref(),
        Some("2026-02-11T14:15:09Z")
    );
    let [skill] = read.skills.as_slice() else { panic!("one skill") };
    assert_eq!(skill.skill_name, "analyze_text");
    assert_eq!(skill.description, "Extracts structured data from unstructured text");
    assert_eq!(skill.cost_per_call.to_text(2), "0.10");
    assert_eq!(skill.input_schema, r#"{"text": "string"}"#);
    assert_eq!(skill.output_schema, r#"{"entities": "list"}"#);
}

#[test]
fn the_specs_job_is_read_field_by_field() {
    let read = JobPost::read(&filled(include_str!("fixtures/job.json"))).expect("it is good");
    assert_eq!(read.job_id.map(|id| id.to_string()).as_deref(), Some(UUID));
    assert_eq!(read.orchestrator_id.as_deref(), Some(UUID));
    assert_eq!(read.skill_name, "analyze_text");
    assert!(read.input_data.contains("\"Revenue for Q3 was $42,000...\""));
    assert_eq!(read.budget.to_text(2), "0.15");
    assert_eq!(read.callback_url.as_deref(), Some("https://orchestrator/results"));
    assert_eq!(read.passthrough.timestamp_utc.as_deref(), Some("2026-02-11T14:15:09Z"));
    assert!(read.passthrough.more.is_empty());
}

#[test]
fn the_specs_result_and_transfer_are_read_field_by_field() {
    let read = ResultPost::read(&filled(include_str!("fixtures/result.json"))).expect("it is good");
    assert_eq!(read.status, JobStatus::Success);
    assert_eq!(read.execution_cost.map(|cost| cost.to_text(2)).as_deref(), Some("0.10"));
    assert_eq!(read.execution_time_ms, 1250);
    assert!(read.output_data.is_some_and(|output| output.contains("\"value\": 42000")));
    assert_eq!(read.error_message, None);
    let read =
        TransferPost::read(&filled(include_str!("fixtures/transfer.json"))).expect("it is good");
    assert_eq!(
        (read.from_owner.as_str(), read.to_owner.as_str()),
        ("orchestrator_owner_id", "agent_owner_id")
    );
    assert_eq!(read.amount.to_text(2), "0.10");
    assert_eq!(read.job_id.map(|id| id.to_string()).as_deref(), Some(UUID));
}

#[test]
fn the_whole_registration_we_show_is_one_we_take() {
    let read = RegisterBody::read(REGISTRATION_EXAMPLE.as_bytes()).expect("it is good");
    assert_eq!(read.skills.len(), 1);
}

#[test]
fn a_field_of_a_list_item_is_named_by_its_place() {
    let body = br#"{"agent_name":"n","owner_id":"o","skills":[{"skill_name":"a","cost_per_call":1},{"skill_name":"b"}]}"#;
    let Malformed { field, message } = RegisterBody::read(body).expect_err("no price");
    assert_eq!(field, "/skills/1/cost_per_call");
    assert_eq!(message, "cost_per_call is required");
}
