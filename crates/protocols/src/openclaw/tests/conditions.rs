//! Tests of the conditions that the spec gives only in prose, one by one.

use super::*;
use serde_json::json;

#[test]
fn a_status_needs_its_details() {
    let cases: [(&str, Value, &[&str]); 4] = [
        ("idle", json!({}), &[]),
        ("busy", json!({"active_tasks": 0}), &["active_tasks"]),
        (
            "error",
            json!({"error_code": "E", "error_message": "m", "error_type": "transient"}),
            &["error_code", "error_message", "error_type"],
        ),
        (
            "maintenance",
            json!({"maintenance_until": "2026-02-06T17:00:00Z"}),
            &["maintenance_until"],
        ),
    ];
    for (kind, name, at) in [
        (Kind::Identity, "identity: Example", "status"),
        (Kind::Status, "Status: Idle", "status_update"),
    ] {
        for (status, details, needed) in &cases {
            let bare = with(example(name), &format!("/{at}/current_status"), (*status).into());
            let full = with(bare.clone(), &format!("/{at}/status_details"), details.clone());
            assert!(read_as(kind, &full.to_string()).is_ok(), "{status}");
            for member in *needed {
                let less = without(full.clone(), &format!("/{at}/status_details/{member}"));
                // D8: an identity need not have an error type.
                if kind == Kind::Identity && *member == "error_type" {
                    assert!(read_as(kind, &less.to_string()).is_ok());
                    continue;
                }
                let sentence = format!(
                    "{at}.status_details.{member} is required when current_status is {status}"
                );
                assert_eq!(wrong(kind, &less), [sentence]);
            }
            let told = read_as(kind, &bare.to_string());
            let expected = needed.len() - usize::from(kind == Kind::Identity && *status == "error");
            assert_eq!(told.map_or_else(|bad| bad.violations.len(), |_| 0), expected, "{status}");
        }
    }
}

#[test]
fn the_idle_example_made_busy_is_refused() {
    let busy = with(example("Status: Idle"), "/status_update/current_status", "busy".into());
    let told = wrong(Kind::Status, &busy);
    let sentence =
        "status_update.status_details.active_tasks is required when current_status is busy";
    assert_eq!(told, [sentence]);
}

#[test]
fn a_reputation_names_its_collaboration() {
    let body = without(example("Collaboration Completed"), "/reputation_update/collaboration_id");
    for word in ["collaboration_completed", "collaboration_failed"] {
        let body = with(body.clone(), "/reputation_update/update_type", word.into());
        let sentence =
            format!("reputation_update.collaboration_id is required when update_type is {word}");
        assert_eq!(wrong(Kind::Reputation, &body), [sentence]);
    }
    let body = with(body, "/reputation_update/update_type", "periodic_update".into());
    assert!(read_as(Kind::Reputation, &body.to_string()).is_ok());
}

#[test]
fn an_answer_has_what_its_status_needs() {
    for (name, status, member) in [
        ("Accepted", "accepted", "collaboration_id"),
        ("Rejected", "rejected", "rejection_reason"),
        ("Deferred", "deferred", "deferred_until"),
    ] {
        let told = wrong(Kind::Response, &without(example(name), &format!("/{member}")));
        assert_eq!(told, [format!("{member} is required when response_status is {status}")]);
    }
}

#[test]
fn a_result_has_what_its_status_needs() {
    for (name, status, member) in
        [("result: Completed", "completed", "output_data"), ("result: Failed", "failed", "error")]
    {
        let less = without(example(name), &format!("/{member}"));
        let told = wrong(Kind::Result, &less);
        assert_eq!(told, [format!("{member} is required when result_status is {status}")]);
        let cancelled = with(less, "/result_status", "cancelled".into());
        assert!(read_as(Kind::Result, &cancelled.to_string()).is_ok());
    }
}

#[test]
fn a_capability_stands_once() {
    let again = "/capabilities/advertised_capabilities/1/capability_id";
    let told =
        wrong(Kind::Identity, &with(example("identity: Example"), again, "consume_trends".into()));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("capabilities.advertised_capabilities[1].capability_id occurs twice")
    );
}

#[test]
fn every_schema_must_load_even_an_unused_one() {
    let mut deep = json!({});
    for _ in 0..32 {
        deep = json!({ "not": deep });
    }
    for (schema, part) in [
        (json!({"$ref": "http://169.254.169.254/"}), "must stay inside"),
        (json!({"$ref": "#"}), "would never end"),
        (json!({"pattern": "(?=x)"}), "look-around"),
        (json!({"type": "thing"}), "is not valid"),
        (json!({"title": "x".repeat(65_536)}), "longer than 65536 bytes"),
        (deep, "more than 32 levels"),
    ] {
        for map in ["input_schemas", "output_schemas"] {
            let pointer = format!("/capabilities/{map}/unused");
            let told = wrong(
                Kind::Identity,
                &with(example("identity: Example"), &pointer, schema.clone()),
            );
            assert_eq!(told.len(), 1, "{told:?}");
            let start = format!("capabilities.{map}.unused is not a supported schema: ");
            assert!(told[0].starts_with(&start) && told[0].contains(part), "{told:?}");
        }
    }
}

#[test]
fn a_status_is_late_after_five_seconds() {
    for (said, late) in [("16:05:05Z", false), ("16:05:05.001Z", true), ("16:04:00Z", false)] {
        let body = with(example("Status: Idle"), "/timestamp", format!("2026-02-06T{said}").into());
        let Ok(AnyMessage::Status(update)) = read_as(Kind::Status, &body.to_string()) else {
            panic!("{said}")
        };
        assert_eq!(update.body.is_late(), late, "{said}");
    }
}

#[test]
fn a_schema_is_written_as_it_came() {
    let seven = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
    let body = with(
        example("identity: Example"),
        "/capabilities/input_schemas/generate_content_plan",
        seven.clone(),
    );
    let Ok(AnyMessage::Identity(identity)) = read_as(Kind::Identity, &body.to_string()) else {
        panic!()
    };
    let written: Value = serde_json::from_str(&identity.body.write()).expect("JSON");
    assert_eq!(written["capabilities"]["input_schemas"]["generate_content_plan"], seven);
}
