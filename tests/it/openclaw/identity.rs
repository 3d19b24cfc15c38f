//! Publishing an identity: required members, optional members, and how it is shown (R6–R26).

use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::kit::{Hub, assert_violation, capability, identity};
use super::spoil::{Spoilt, identity_example, put};
use crate::kit::snapshot;

const IDENTITY: &str = "/openclaw/identity";

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_the_spec_is_published_unchanged_and_shown_as_published() {
    let hub = Hub::serve(&[]).await;
    let body = identity_example();
    let reply = hub.post(IDENTITY, None, &body).await.expect(201);
    assert_eq!(reply.str("/status"), "published");
    assert_eq!(reply.at("/agent_id"), body["agent_id"]);
    assert!(reply.str("/api_key").starts_with("rk_"), "{}", reply.text);
    assert!(reply.json().get("webhook_secret").is_none(), "there is no endpoint to sign for");
    let told = reply.str("/published_at");
    let shown = hub.entry(body["agent_id"].as_str().expect("an id")).await;
    for name in [
        "agent_id",
        "agent_name",
        "agent_type",
        "version",
        "spec_version",
        "capabilities",
        "resource_limits",
        "published_at",
    ] {
        assert_eq!(shown[name], body[name], "{name}");
    }
    let status = json!({"current_status": "idle", "status_timestamp": "2026-02-06T16:00:00.000Z"});
    assert_eq!(
        (&shown["status"], &shown["effective_status"]),
        (&status, &status["current_status"])
    );
    assert_eq!(shown["registered_at"], told.as_str(), "the hub's own time, beside it");
    assert_eq!(shown["claimed_trust_signals"], body["trust_signals"]);
    assert_eq!(shown["trust_signals"]["reputation_score"], Value::Null);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_required_member_is_missed_by_its_name_and_nothing_is_stored() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let needed = [
        "/agent_id",
        "/agent_name",
        "/agent_type",
        "/version",
        "/capabilities",
        "/status",
        "/capabilities/advertised_capabilities",
        "/capabilities/input_schemas",
        "/capabilities/output_schemas",
        "/capabilities/advertised_capabilities/1/capability_id",
        "/capabilities/advertised_capabilities/1/capability_name",
        "/capabilities/advertised_capabilities/1/description",
        "/capabilities/advertised_capabilities/1/category",
        "/status/current_status",
        "/status/status_timestamp",
    ];
    hub.needs_each(IDENTITY, None, &identity_example(), &needed).await;
    assert_eq!(snapshot(&hub).await, before);
    hub.post(IDENTITY, None, &identity_example()).await.expect(201);
    hub.0.stop().await;
}

/// Invalid values of text members.
fn wrong_texts() -> Vec<Spoilt<'static>> {
    let texts = |pointer: &'static str, all: &[&str]| -> Vec<Spoilt<'static>> {
        all.iter().map(|text| (pointer, Some(json!(text)))).collect()
    };
    [
        texts(
            "/agent_id",
            &[
                "1",
                "550e8400e29b41d4a716446655440000",
                "",
                "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
            ],
        ),
        texts(
            "/agent_name",
            &["Chimera-1", "chimera-", "chimera-A", "chimera-a_b", "x-chimera-a", ""],
        ),
        texts("/agent_type", &["human", "Autonomous_Content_Node", ""]),
        texts("/version", &["1.0", "v1.0.0", "1.0.0-rc", "1.0.0.0", ""]),
        texts("/spec_version", &["1.0", "v1.0.0", "latest"]),
        texts(
            "/capabilities/advertised_capabilities/0/category",
            &["cooking", "", "TREND_ANALYSIS"],
        ),
        texts("/status/current_status", &["asleep", "", "Idle"]),
        texts(
            "/status/status_timestamp",
            &["yesterday", "2026-02-06", "2026-02-06T16:00:00", "2026-13-06T16:00:00Z"],
        ),
        texts("/published_at", &["yesterday", "2026-02-30T16:00:00Z"]),
        texts("/response_mode", &["never", ""]),
    ]
    .concat()
}

/// Invalid values of numbers, flags, lists and objects.
fn wrong_values() -> Vec<Spoilt<'static>> {
    let all = |pointer: &'static str, all: Value| -> Vec<Spoilt<'static>> {
        all.as_array().expect("a list").iter().map(|one| (pointer, Some(one.clone()))).collect()
    };
    [
        all("/capabilities/advertised_capabilities", json!([[]])),
        all("/capabilities/advertised_capabilities/0/description", json!(["x".repeat(1_001)])),
        all("/capabilities/advertised_capabilities/0/input_schema_ref", json!([1])),
        all("/capabilities/advertised_capabilities/0/output_schema_ref", json!([{}])),
        all("/capabilities/advertised_capabilities/0/estimated_duration_ms", json!([-1, 1.5, "5"])),
        all("/capabilities/advertised_capabilities/0/requires_approval", json!(["no", 1])),
        all("/capabilities/advertised_capabilities/0/price", json!([-1, "1", 1e10])),
        all("/capabilities/input_schemas/consume_trends", json!([true, "x", []])),
        all("/capabilities/output_schemas/somebody", json!([true, 5])),
        all("/trust_signals/reputation_score", json!([1.01, -0.01, "1"])),
        all("/trust_signals/success_rate", json!([2, -1])),
        all("/trust_signals/total_collaborations", json!([-1, 0.5])),
        all("/trust_signals/average_response_time_ms", json!([-1, 0.5])),
        all("/resource_limits/max_concurrent_tasks", json!([0, 1.5, "5"])),
        all("/resource_limits/current_task_count", json!([-1])),
        all("/resource_limits/rate_limit_per_minute", json!([0, -20])),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_member_has_its_pattern_its_type_and_its_range() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let wrong = [wrong_texts(), wrong_values()].concat();
    hub.refuses_each(IDENTITY, None, &identity_example(), &wrong).await;
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_just_within_its_range_is_published() {
    let hub = Hub::serve(&[]).await;
    for (pointer, value) in [
        ("/agent_name", json!("chimera--")),
        ("/version", json!("0.0.0")),
        ("/capabilities/advertised_capabilities/0/description", json!("é".repeat(1_000))),
        ("/capabilities/advertised_capabilities/0/estimated_duration_ms", json!(0)),
        ("/capabilities/advertised_capabilities/0/category", json!("trend_analysis")),
        ("/trust_signals", json!({"reputation_score": 0, "success_rate": 1})),
        ("/resource_limits", json!({"max_concurrent_tasks": 1, "rate_limit_per_minute": 1})),
        ("/status/status_timestamp", json!("2026-02-06T17:00:00.123+01:00")),
        ("/nobody_knows", json!({"this": ["is", 1.50]})),
    ] {
        let id = super::kit::fresh_id();
        let body =
            put(&put(&identity_example(), pointer, Some(value)), "/agent_id", Some(json!(id)));
        hub.post(IDENTITY, None, &body).await.expect(201);
        let kept = |shown: &Value| shown.pointer(pointer).cloned();
        let shown = hub.entry(&id).await;
        let same = match pointer {
            "/trust_signals" => shown["claimed_trust_signals"] == body["trust_signals"],
            "/status/status_timestamp" => {
                shown["status"]["status_timestamp"] == "2026-02-06T16:00:00.123Z"
            }
            _ => kept(&shown) == kept(&body),
        };
        assert!(same, "{pointer}: {shown}");
    }
    // All optional members can be left out at once.
    let bare = identity("bare", hub.now());
    hub.post(IDENTITY, None, &bare).await.expect(201);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_needs_details_has_them() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let status = |more: Value| {
        let status = super::kit::with(&json!({"status_timestamp": "2026-02-06T16:00:00Z"}), more);
        put(&identity_example(), "/status", Some(status))
    };
    for (current, details, missing) in [
        ("busy", json!({}), vec!["active_tasks"]),
        ("busy", json!(null), vec!["active_tasks"]),
        ("error", json!({"error_code": "X"}), vec!["error_message"]),
        ("error", json!({}), vec!["error_code", "error_message"]),
        ("maintenance", json!({"active_tasks": 1}), vec!["maintenance_until"]),
    ] {
        let body = status(json!({"current_status": current, "status_details": details}));
        let reply = hub.post(IDENTITY, None, &body).await;
        for name in missing {
            let says = format!(
                "status.status_details.{name} is required when current_status is {current}"
            );
            assert_violation(&reply, &says);
        }
    }
    for (details, pointer) in [
        (json!({"active_tasks": -1}), "/status/status_details/active_tasks"),
        (json!({"active_tasks": "1"}), "/status/status_details/active_tasks"),
    ] {
        let body = status(json!({"current_status": "busy", "status_details": details}));
        super::spoil::assert_only(&hub.post(IDENTITY, None, &body).await, pointer, "");
    }
    assert_eq!(snapshot(&hub).await, before);
    // An identity may omit the type of its error (D8).
    let details = json!({"error_code": "X", "error_message": "broke"});
    let body = status(json!({"current_status": "error", "status_details": details}));
    hub.post(IDENTITY, None, &body).await.expect(201);
    let id = body["agent_id"].as_str().expect("an id");
    let shown = hub.entry(id).await;
    assert_eq!(shown["effective_status"], "error");
    // The hub's own update includes it (R30, R74): the error counts as transient.
    let told = hub.get(&format!("/openclaw/agents/{id}/status"), None).await.expect(200);
    for shown in [&shown["status"], &told.at("/status_update")] {
        let told = super::kit::with(&details, json!({"error_type": "transient"}));
        assert_eq!(shown["status_details"], told);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_stands_once_and_needs_no_schema() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let twice = json!([capability("sum", json!({})), capability("sum", json!({"price": 1}))]);
    let body =
        put(&identity("twice", hub.now()), "/capabilities/advertised_capabilities", Some(twice));
    let reply = hub.post(IDENTITY, None, &body).await;
    let pointer = "/capabilities/advertised_capabilities/1/capability_id";
    super::spoil::assert_only(&reply, pointer, "occurs twice");
    assert_eq!(snapshot(&hub).await, before);
    // The example's second capability is in neither schema map: any object is valid (R26).
    let asker = hub.node("asker").await;
    let worker = hub.publish(&identity_example()).await;
    let more =
        json!({"capability_id": "generate_content_plan", "input_data": {"any": [{"thing": null}]}});
    let work = hub.accepted(&asker, &worker, more).await;
    let reply = hub.result(&work, json!({"output_data": {"whatever": 1.50}})).await.expect(200);
    assert_eq!(reply.at("/output_valid"), true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_published_is_kept_to_the_last_digit() {
    let hub = Hub::serve(&[]).await;
    let text = identity("exact", hub.now()).to_string();
    let extra = r#"{"x_weight":1.500,"x_big":12345678901234567890,"#;
    let text = text.replacen('{', extra, 1);
    let reply = hub.post_text(IDENTITY, None, &text).await.expect(201);
    let path = format!("/openclaw/agents/{}", reply.str("/agent_id"));
    let shown = hub.get(&path, None).await.expect(200).text;
    assert!(shown.contains(r#""x_weight":1.500"#), "{shown}");
    assert!(shown.contains(r#""x_big":12345678901234567890"#), "{shown}");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_checked_when_it_is_given_and_comes_with_a_secret() {
    let hub = Hub::serve(&[("egress.allow", "")]).await;
    let before = snapshot(&hub).await;
    let body = identity("pushed", hub.now());
    let wrong: Vec<Spoilt<'_>> = [
        "http://127.0.0.1:1/x",
        "https://10.0.0.1/",
        "ftp://a.example",
        "nonsense",
        "https://u:p@a.example/",
    ]
    .map(|url| ("/endpoint", Some(json!(url))))
    .into();
    for (pointer, value) in wrong {
        let reply = hub.post(IDENTITY, None, &put(&body, pointer, value)).await;
        super::kit::assert_error(&reply, 400, "VALIDATION_ERROR");
        assert!(reply.str("/error/message").starts_with("endpoint "), "{}", reply.text);
    }
    assert_eq!(snapshot(&hub).await, before);
    let at = json!("https://agent.example/openclaw");
    let reply = hub.post(IDENTITY, None, &put(&body, "/endpoint", Some(at))).await.expect(201);
    assert!(reply.str("/webhook_secret").starts_with("whsec_"), "{}", reply.text);
    let shown = hub.get(&format!("/openclaw/agents/{}", reply.str("/agent_id")), None).await;
    assert!(!shown.expect(200).text.contains("agent.example"), "the endpoint is private");
    assert!(rfc3339::parse(&reply.str("/published_at")).is_ok());
    hub.0.stop().await;
}
