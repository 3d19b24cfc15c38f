//! Tests with each member missing, of the wrong type, or out of range.

use super::*;
use serde_json::json;

/// Every required member of every kind, with the example that has it.
const REQUIRED: [(&str, Kind, &[&str]); 8] = [
    (
        "identity: Example",
        Kind::Identity,
        &[
            "/agent_id",
            "/agent_name",
            "/agent_type",
            "/version",
            "/capabilities",
            "/capabilities/advertised_capabilities",
            "/capabilities/input_schemas",
            "/capabilities/output_schemas",
            "/capabilities/advertised_capabilities/0/capability_id",
            "/capabilities/advertised_capabilities/0/capability_name",
            "/capabilities/advertised_capabilities/1/description",
            "/capabilities/advertised_capabilities/1/category",
            "/status",
            "/status/current_status",
            "/status/status_timestamp",
        ],
    ),
    (
        "Status: Busy",
        Kind::Status,
        &[
            "/agent_id",
            "/status_update",
            "/status_update/current_status",
            "/status_update/status_timestamp",
            "/correlation_id",
            "/timestamp",
        ],
    ),
    (
        "Periodic Update",
        Kind::Reputation,
        &[
            "/agent_id",
            "/reputation_update",
            "/reputation_update/update_type",
            "/reputation_update/reputation_score",
            "/reputation_update/update_timestamp",
            "/correlation_id",
            "/timestamp",
        ],
    ),
    (
        "collaboration_request: Example",
        Kind::Request,
        &[
            "/request_id",
            "/requester_agent_id",
            "/capability_id",
            "/input_data",
            "/correlation_id",
            "/timestamp",
        ],
    ),
    (
        "Accepted",
        Kind::Response,
        &[
            "/request_id",
            "/responder_agent_id",
            "/response_status",
            "/correlation_id",
            "/timestamp",
        ],
    ),
    ("Rejected", Kind::Response, &["/rejection_reason/code", "/rejection_reason/message"]),
    (
        "collaboration_result: Completed",
        Kind::Result,
        &[
            "/collaboration_id",
            "/request_id",
            "/responder_agent_id",
            "/result_status",
            "/correlation_id",
            "/timestamp",
        ],
    ),
    ("collaboration_result: Failed", Kind::Result, &["/error/code", "/error/message"]),
];

/// `/a/0/b` as `a[0].b`.
fn readable(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(part),
            Err(_) => path.push_str(&format!(".{part}")),
        }
    }
    path
}

#[test]
fn each_required_member_is_missed_by_its_name() {
    for (name, kind, pointers) in REQUIRED {
        for pointer in pointers {
            let told = wrong(kind, &without(example(name), pointer));
            assert_eq!(told, [format!("{} is required", readable(pointer))], "{name} {pointer}");
        }
    }
}

#[test]
fn each_required_member_has_its_type_and_is_not_null() {
    for (name, kind, pointers) in REQUIRED {
        for pointer in pointers {
            for value in [json!(null), json!(7.5), json!([7])] {
                let told = wrong(kind, &with(example(name), pointer, value.clone()));
                let about = readable(pointer);
                let first = told.first().expect("something");
                if value.is_array() && about.ends_with("advertised_capabilities") {
                    assert!(
                        first.starts_with(&format!("{about}[0] must be an object")),
                        "{told:?}"
                    );
                } else {
                    assert!(first.starts_with(&format!("{about} must be ")), "{pointer}: {told:?}");
                }
            }
        }
    }
}

/// Changes one value and expects the given sentence.
fn spoilt(kind: Kind, name: &str, pointer: &str, value: Value) -> String {
    let told = wrong(kind, &with(example(name), pointer, value.clone()));
    assert_eq!(told.len(), 1, "{pointer} {value}: {told:?}");
    let about = format!("{} ", readable(pointer));
    told[0].strip_prefix(&about).unwrap_or_else(|| panic!("{told:?}")).to_owned()
}

#[test]
fn identities_have_their_patterns_and_ranges() {
    let says =
        |pointer: &str, value: Value| spoilt(Kind::Identity, "identity: Example", pointer, value);
    for name in ["Chimera-1", "chimera-", "chimera-A", "chimera-a_b", "x-chimera-a", ""] {
        assert_eq!(says("/agent_name", name.into()), "must match the pattern ^chimera-[a-z0-9-]+$");
    }
    for version in ["1.0", "v1.0.0", "1.0.0-rc", "1.0.0.0", ""] {
        assert!(says("/version", version.into()).starts_with("must match the pattern"));
        assert!(says("/spec_version", version.into()).starts_with("must match the pattern"));
    }
    assert_eq!(says("/agent_type", "human".into()), "must be \"autonomous_content_node\"");
    for id in ["1", "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-44665544000g"] {
        assert!(says("/agent_id", id.into()).starts_with("must be a UUID like"), "{id}");
    }
    let first = "/capabilities/advertised_capabilities/0";
    let of = |name: &str| format!("{first}/{name}");
    assert_eq!(
        says(&of("description"), "x".repeat(1_001).into()),
        "must have at most 1000 characters"
    );
    assert!(
        says(&of("category"), "cooking".into()).starts_with("must be one of \"trend_consumption\"")
    );
    assert_eq!(says(&of("estimated_duration_ms"), json!(-1)), "must be ≥ 0");
    assert_eq!(says(&of("estimated_duration_ms"), json!(1.5)), "must be an integer");
    assert_eq!(says(&of("requires_approval"), json!("no")), "must be true or false");
    assert_eq!(says(&of("input_schema_ref"), json!(1)), "must be a string");
    assert_eq!(says(&of("output_schema_ref"), json!(1)), "must be a string");
    assert_eq!(says(&of("price"), json!(-1)), "must not be negative");
    assert_eq!(says(&of("price"), json!("1")), "must be a number");
    assert_eq!(says(&of("price"), json!(0.000_000_1)), "has more than 6 decimals");
    assert_eq!(says(&of("price"), json!(1e10)), "is above 1000000000");
    assert_eq!(
        says(&of("capability_id"), "a\u{202e}b".into()),
        "contains a control, bidi or zero-width character"
    );
    assert_eq!(
        says("/capabilities/advertised_capabilities", json!([])),
        "must have at least 1 item"
    );
    assert_eq!(
        says("/capabilities/input_schemas/consume_trends", json!(true)),
        "must be an object"
    );
    assert_eq!(says("/capabilities/output_schemas/other", json!("x")), "must be an object");
    for (member, high) in
        [("reputation_score", 1.01), ("success_rate", 2.0), ("success_rate", -0.1)]
    {
        let told = says(&format!("/trust_signals/{member}"), json!(high));
        assert_eq!(told, "must be between 0.0 and 1.0");
    }
    assert_eq!(says("/trust_signals/total_collaborations", json!(-1)), "must be ≥ 0");
    assert_eq!(says("/trust_signals/average_response_time_ms", json!(-1)), "must be ≥ 0");
    assert_eq!(says("/resource_limits/max_concurrent_tasks", json!(0)), "must be ≥ 1");
    assert_eq!(says("/resource_limits/current_task_count", json!(-1)), "must be ≥ 0");
    assert_eq!(says("/resource_limits/rate_limit_per_minute", json!(0)), "must be ≥ 1");
    assert_eq!(
        says("/published_at", "yesterday".into()),
        "must be an RFC 3339 time like 2026-02-11T14:15:09Z"
    );
    assert_eq!(says("/response_mode", "never".into()), "must be \"auto\" or \"ask\"");
    assert_eq!(says("/endpoint", json!(5)), "must be a string of at most 2048 characters");
    assert!(says("/status/current_status", "asleep".into()).starts_with("must be one of \"idle\""));
}

#[test]
fn requests_have_their_ranges() {
    let says = |pointer: &str, value: Value| {
        spoilt(Kind::Request, "collaboration_request: Example", pointer, value)
    };
    for (value, sentence) in [
        (json!(0), "must be between 1 and 10"),
        (json!(11), "must be between 1 and 10"),
        (json!(2.5), "must be an integer"),
        (json!("3"), "must be an integer"),
    ] {
        assert_eq!(says("/priority", value), sentence);
    }
    assert_eq!(
        says("/deadline", "2026-02-06".into()),
        "must be an RFC 3339 time like 2026-02-11T14:15:09Z"
    );
    assert_eq!(
        says("/idempotency_key", "k".repeat(257).into()),
        "must be a string of at most 256 characters"
    );
    assert_eq!(says("/input_data", json!([])), "must be an object");
    assert_eq!(says("/budget", json!(-0.5)), "must not be negative");
    assert_eq!(says("/budget", json!("5")), "must be a number");
    assert!(says("/responder_agent_id", json!("x")).starts_with("must be a UUID"));
    assert_eq!(says("/capability_id", json!("")), "must not be empty");
}

#[test]
fn the_other_messages_have_their_words_and_ranges() {
    let says = spoilt;
    let words = "must be one of \"accepted\", \"rejected\", \"deferred\"";
    assert_eq!(says(Kind::Response, "Accepted", "/response_status", "maybe".into()), words);
    let told = says(Kind::Response, "Rejected", "/rejection_reason/code", "bored".into());
    assert!(told.starts_with("must be one of \"capability_not_available\""));
    assert_eq!(
        says(Kind::Response, "Rejected", "/rejection_reason/details", json!(1)),
        "must be an object"
    );
    assert_eq!(
        says(Kind::Response, "Rejected", "/rejection_reason/retryable", json!(1)),
        "must be true or false"
    );
    let completed = "collaboration_result: Completed";
    assert_eq!(says(Kind::Result, completed, "/output_data", json!([])), "must be an object");
    assert_eq!(says(Kind::Result, completed, "/execution_duration_ms", json!(-1)), "must be ≥ 0");
    let failed = "collaboration_result: Failed";
    assert!(
        says(Kind::Result, failed, "/error/error_type", "odd".into())
            .starts_with("must be one of \"transient\"")
    );
    let completed = "Collaboration Completed";
    for rate in ["success_rate", "on_time_completion_rate"] {
        let told = says(
            Kind::Reputation,
            completed,
            &format!("/reputation_update/metrics/{rate}"),
            json!(1.1),
        );
        assert_eq!(told, "must be between 0.0 and 1.0");
    }
    for count in [
        "total_collaborations",
        "successful_collaborations",
        "failed_collaborations",
        "average_response_time_ms",
    ] {
        let told = says(
            Kind::Reputation,
            completed,
            &format!("/reputation_update/metrics/{count}"),
            json!(-1),
        );
        assert_eq!(told, "must be ≥ 0");
    }
    assert_eq!(
        says(Kind::Reputation, completed, "/reputation_update/reputation_score", json!(1.5)),
        "must be between 0.0 and 1.0"
    );
    assert!(
        says(Kind::Reputation, completed, "/reputation_update/update_type", "x".into())
            .starts_with("must be one of")
    );
    assert!(
        says(Kind::Status, "Status: Idle", "/status_update/previous_status", "x".into())
            .starts_with("must be one of")
    );
    assert!(
        says(Kind::Status, "Status: Idle", "/timestamp", "2016-12-31T23:59:60Z".into())
            .contains("leap second")
    );
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    let body = with(example("collaboration_request: Example"), "/priority", json!(3.0));
    let Ok(AnyMessage::Request(request)) = AnyMessage::read(body.to_string().as_bytes()) else {
        panic!("3.0")
    };
    assert_eq!(request.body.priority(), 3);
    let none = without(body, "/priority");
    let Ok(AnyMessage::Request(request)) = AnyMessage::read(none.to_string().as_bytes()) else {
        panic!("none")
    };
    assert_eq!(request.body.priority(), 5);
}

#[test]
fn amounts_are_exact() {
    let text = example("collaboration_request: Example").to_string();
    let text = text.replacen('{', r#"{"budget":0.100000,"#, 1);
    let Ok(AnyMessage::Request(request)) = AnyMessage::read(text.as_bytes()) else {
        panic!("a budget")
    };
    assert_eq!(request.body.budget.expect("a budget").micros(), 100_000);
    assert!(request.body.write().contains(r#""budget":0.1,"#));
    let fine = text.replace("0.100000", "0.1000001");
    assert_eq!(
        AnyMessage::read(fine.as_bytes()).expect_err("fine").violations,
        ["budget has more than 6 decimals"]
    );
}

#[test]
fn everything_wrong_is_told_at_once() {
    let mut body = example("identity: Example");
    body = with(body, "/agent_name", "Chimera".into());
    body = with(body, "/version", "1".into());
    body = with(body, "/status/current_status", "busy".into());
    body = with(body, "/trust_signals/success_rate", json!(3));
    body = with(body, "/response_mode", "x".into());
    body = with(body, "/capabilities/advertised_capabilities/1/price", json!(-1));
    body = with(body, "/capabilities/input_schemas/x", json!({"$ref": "https://example.com/s"}));
    let body = without(body, "/agent_type");
    let told = wrong(Kind::Identity, &body);
    for part in [
        "agent_name must match",
        "version must match",
        "status.status_details.active_tasks is required when current_status is busy",
        "trust_signals.success_rate must be between",
        "response_mode must be",
        "capabilities.advertised_capabilities[1].price must not be negative",
        "capabilities.input_schemas.x is not a supported schema: #/$ref must stay inside",
        "agent_type is required",
    ] {
        assert!(told.iter().any(|sentence| sentence.starts_with(part)), "{part}: {told:?}");
    }
    assert_eq!(told.len(), 8, "{told:?}");
}
