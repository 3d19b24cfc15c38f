//! Status updates: required members, their effects, and unusual cases (R28–R37).

use rialto_protocols::openclaw::Kind;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, assert_violation, fresh_id, with};
use super::spoil::{example, examples, identity_example, put};
use crate::kit::{Reply, snapshot};

const STATUS: &str = "/openclaw/status";

/// Posts an update with these members; `at` is both its timestamp and its status timestamp.
async fn update(hub: &Hub, of: &Node, at: i64, more: Value) -> Reply {
    let told = with(&json!({"status_timestamp": hub.time(at)}), more);
    let body = json!({"agent_id": of.id, "status_update": told, "correlation_id": fresh_id(),
        "timestamp": hub.time(at)});
    hub.post(STATUS, Some(&of.key), &body).await
}

async fn shown(hub: &Hub, of: &Node) -> Value {
    hub.get(&format!("/openclaw/agents/{}/status", of.id), None).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_updates_of_the_spec_are_accepted_unchanged_and_shown() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    let all = examples(Kind::Status);
    assert_eq!(all.len(), 4);
    for (name, body) in all {
        let reply = hub.post(STATUS, Some(&node.key), &body).await.expect(200);
        assert_eq!(reply.str("/status"), "accepted", "{name}");
        assert_eq!(reply.at("/applied"), true, "{name}");
        assert_eq!(reply.at("/late"), false, "{name}");
        assert_eq!(reply.at("/agent_id"), body["agent_id"]);
        assert_eq!(reply.at("/correlation_id"), body["correlation_id"]);
        let told = shown(&hub, &node).await;
        for member in ["agent_id", "status_update", "correlation_id", "timestamp"] {
            assert_eq!(told[member], body[member], "{name} {member}");
        }
        assert_eq!(told["protocol_version"], "1.0.0");
        let entry = hub.entry(&node.id).await;
        assert_eq!(entry["effective_status"], body["status_update"]["current_status"], "{name}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_required_member_of_an_update_is_missed_by_its_name() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    let body = example(Kind::Status, "Busy");
    let before = snapshot(&hub).await;
    let needed = [
        "/agent_id",
        "/status_update",
        "/correlation_id",
        "/timestamp",
        "/status_update/current_status",
        "/status_update/status_timestamp",
    ];
    hub.needs_each(STATUS, Some(&node.key), &body, &needed).await;
    let text = |pointer, text: &str| (pointer, Some(json!(text)));
    let wrong = [
        text("/agent_id", "1"),
        text("/correlation_id", "abc"),
        text("/timestamp", "now"),
        text("/status_update/current_status", "asleep"),
        text("/status_update/previous_status", "asleep"),
        text("/status_update/status_timestamp", "2026-02-06"),
        ("/status_update/status_details/active_tasks", Some(json!(-1))),
        ("/status_update/status_details/active_tasks", Some(json!(1.5))),
        ("/status_update/status_details/error_type", Some(json!("fatal"))),
        ("/status_update/status_details/maintenance_until", Some(json!("tomorrow"))),
        ("/status_update/status_details/maintenance_reason", Some(json!(5))),
    ];
    hub.refuses_each(STATUS, Some(&node.key), &body, &wrong).await;
    let wrong = [("/status_update/status_details", Some(json!("none")))];
    hub.refuses_each(STATUS, Some(&node.key), &example(Kind::Status, "Idle"), &wrong).await;
    assert_eq!(snapshot(&hub).await, before);
    assert_eq!(shown(&hub, &node).await["status_update"]["current_status"], "idle");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_status_needs_its_details() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    let before = snapshot(&hub).await;
    for (end, names) in [
        ("Busy", vec!["active_tasks"]),
        ("Error", vec!["error_code", "error_message", "error_type"]),
        ("Maintenance", vec!["maintenance_until"]),
    ] {
        let body = example(Kind::Status, end);
        for name in &names {
            let pointer = format!("/status_update/status_details/{name}");
            let reply = hub.post(STATUS, Some(&node.key), &put(&body, &pointer, None)).await;
            let current = end.to_lowercase();
            let says = format!(
                "status_update.status_details.{name} is required when current_status is {current}"
            );
            assert_violation(&reply, &says);
        }
        let none = put(&body, "/status_update/status_details", None);
        let reply = hub.post(STATUS, Some(&node.key), &none).await;
        let told = reply.at("/error/details/validation_errors");
        assert_eq!(told.as_array().map(Vec::len), Some(names.len()), "{told}");
    }
    // The idle example changed to busy (section 6).
    let body =
        put(&example(Kind::Status, "Idle"), "/status_update/current_status", Some(json!("busy")));
    assert_error(&hub.post(STATUS, Some(&node.key), &body).await, 400, "VALIDATION_ERROR");
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_told_more_than_five_seconds_late_is_taken_and_marked() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    for (since, told, late) in [
        ("2026-02-06T16:30:00.000Z", "2026-02-06T16:30:05.000Z", false),
        ("2026-02-06T16:30:00.000Z", "2026-02-06T16:30:05.001Z", true),
        ("2026-02-06T16:30:01.000Z", "2026-02-06T16:30:00.000Z", false),
    ] {
        let update = json!({"current_status": "idle", "status_timestamp": since});
        let body = json!({"agent_id": node.id, "status_update": update,
            "correlation_id": fresh_id(), "timestamp": told});
        let reply = hub.post(STATUS, Some(&node.key), &body).await.expect(200);
        assert_eq!((reply.at("/late"), reply.at("/applied")), (json!(late), json!(true)), "{told}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_error_takes_no_work_and_any_other_status_restores_it_at_once() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let error =
        |kind: &str| json!({"error_code": "X", "error_message": "broke", "error_type": kind});
    for (status, details) in [("idle", json!({})), ("busy", json!({"active_tasks": 1}))] {
        for (kind, code) in
            [("transient", "resource_exhausted"), ("permanent", "capability_not_available")]
        {
            hub.report(&worker, "error", error(kind)).await.expect(200);
            let entry = hub.entry(&worker.id).await;
            assert_eq!(entry["status"]["status_details"], error(kind));
            assert_eq!(
                (&entry["effective_status"], &entry["stale"]),
                (&json!("error"), &json!(false))
            );
            assert_rejected(&hub.hire(&asker, &worker, json!({})).await, code);
            hub.report(&worker, status, details.clone()).await.expect(200);
            let work = hub.accepted(&asker, &worker, json!({})).await;
            hub.result(&work, json!({})).await.expect(200);
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_defers_until_its_end_and_idle_ends_it() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let until = hub.time(3_600_000);
    let details = json!({"maintenance_until": until, "maintenance_reason": "cleaning"});
    hub.report(&worker, "maintenance", details).await.expect(200);
    let reply = hub.hire(&asker, &worker, json!({})).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
    assert_eq!(reply.str("/deferred_until"), until);
    assert_eq!(hub.entry(&worker.id).await["effective_status"], "maintenance");
    let mut stream = hub.stream(&asker, "").await;
    hub.report(&worker, "idle", json!({})).await.expect(200);
    let told = stream.until("collaboration_response").await;
    assert_eq!(told.data["response_status"], "accepted", "{}", told.text);
    hub.accepted(&asker, &worker, json!({})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_previous_status_the_hub_does_not_hold_is_warned_about_and_taken() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let busy = json!({"current_status": "busy", "status_details": {"active_tasks": 1}});
    let idle = json!({"current_status": "idle"});
    for (told, previous, warnings) in
        [(&busy, "error", 1), (&idle, "busy", 0), (&busy, "maintenance", 1), (&idle, "busy", 0)]
    {
        let more = with(told, json!({"previous_status": previous}));
        let reply = update(&hub, &node, 0, more).await.expect(200);
        let told = reply.at("/warnings");
        assert_eq!(told.as_array().map(Vec::len), Some(warnings), "{previous}: {told}");
        assert_eq!(reply.at("/applied"), true);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_update_is_answered_and_changes_nothing() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let busy = json!({"current_status": "busy", "status_details": {"active_tasks": 2}});
    update(&hub, &node, 5_000, busy).await.expect(200);
    let (before, told) = (snapshot(&hub).await, shown(&hub, &node).await);
    let entry = hub.entry(&node.id).await["status"].clone();
    let reply = update(&hub, &node, -5_000, json!({"current_status": "idle"})).await.expect(200);
    assert_eq!((reply.str("/status"), reply.at("/applied")), ("accepted".to_owned(), json!(false)));
    // Equal except for the recorded activity.
    let after = snapshot(&hub).await;
    assert_eq!((after.shown, after.kept), (before.shown, before.kept));
    assert_eq!(
        (shown(&hub, &node).await, hub.entry(&node.id).await["status"].clone()),
        (told, entry)
    );
    // An equal timestamp is not older.
    let update_at = shown(&hub, &node).await["status_update"]["status_timestamp"].clone();
    let body = json!({"agent_id": node.id, "correlation_id": fresh_id(), "timestamp": hub.time(5_000),
        "status_update": {"current_status": "idle", "status_timestamp": update_at}});
    let reply = hub.post(STATUS, Some(&node.key), &body).await.expect(200);
    assert_eq!(reply.at("/applied"), true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_for_an_unknown_or_another_agent_is_refused() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let before = snapshot(&hub).await;
    let unknown = Node { id: fresh_id(), ..node.clone() };
    assert_error(&hub.report(&unknown, "idle", json!({})).await, 404, "NOT_FOUND");
    let borrowed = Node { key: other.key, ..node.clone() };
    assert_error(&hub.report(&borrowed, "idle", json!({})).await, 403, "FORBIDDEN");
    let operator = Node { key: hub.operator.clone(), ..node };
    assert_error(&hub.report(&operator, "idle", json!({})).await, 403, "FORBIDDEN");
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}
