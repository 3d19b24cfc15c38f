//! Silence: an agent that is silent for ninety seconds gets no work, and the hub publishes this for
//! agents it hosts (R32, R33).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_rejected, fresh_id};
use crate::kit::eventually;
use crate::relay::kit::Inbox;

async fn is_stale(hub: &Hub, of: &Node) -> bool {
    let status = hub.get(&format!("/openclaw/agents/{}/status", of.id), None).await.expect(200);
    let entry = hub.entry(&of.id).await;
    assert_eq!(status.at("/stale"), entry["stale"]);
    entry["stale"].as_bool().expect("a flag")
}

/// Advances the clock while the requester stays active, so that only the other agent is silent.
async fn pass(hub: &Hub, asker: &Node, seconds: i64) {
    hub.pass(Millis::seconds(seconds));
    hub.report(asker, "idle", json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_for_more_than_a_minute_and_a_half_takes_no_work_until_it_is_heard() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    for (status, details) in [("idle", json!({})), ("busy", json!({"active_tasks": 1}))] {
        let worker = hub.node("worker").await;
        hub.report(&worker, status, details.clone()).await.expect(200);
        // The spec allows a minute, and half a minute is grace.
        pass(&hub, &asker, 61).await;
        assert!(!is_stale(&hub, &worker).await, "{status}");
        let work = hub.accepted(&asker, &worker, json!({})).await;
        pass(&hub, &asker, 30).await;
        assert!(is_stale(&hub, &worker).await, "{status}");
        let reply = hub.hire(&asker, &worker, json!({})).await;
        assert_rejected(&reply, "resource_exhausted");
        assert_eq!(reply.at("/rejection_reason/retry_after_seconds"), 60);
        // A result counts as activity, too.
        hub.result(&work, json!({})).await.expect(200);
        assert!(!is_stale(&hub, &worker).await, "{status}");
        hub.accepted(&asker, &worker, json!({})).await;
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_an_endpoint_goes_stale_like_any_other() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let more = json!({"endpoint": crate::kit::ClosedPort::take().url});
    let worker = hub.node_with("worker", more).await;
    assert!(!is_stale(&hub, &worker).await);
    pass(&hub, &asker, 91).await;
    assert!(is_stale(&hub, &worker).await);
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "resource_exhausted");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    assert!(!is_stale(&hub, &worker).await);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_error_or_maintenance_does_not_become_stale() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let (broken, away) = (hub.node("broken").await, hub.node("away").await);
    let error = json!({"error_code": "X", "error_message": "broke", "error_type": "permanent"});
    hub.report(&broken, "error", error).await.expect(200);
    let details = json!({"maintenance_until": hub.time(3_600_000)});
    hub.report(&away, "maintenance", details).await.expect(200);
    pass(&hub, &asker, 600).await;
    for (node, status) in [(&broken, "error"), (&away, "maintenance")] {
        assert!(!is_stale(&hub, node).await);
        assert_eq!(hub.entry(&node.id).await["effective_status"], status);
    }
    assert_rejected(&hub.hire(&asker, &broken, json!({})).await, "capability_not_available");
    let reply = hub.hire(&asker, &away, json!({})).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_its_stream_is_heard() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    pass(&hub, &asker, 91).await;
    assert!(is_stale(&hub, &worker).await);
    let _stream = hub.stream(&worker, "").await;
    eventually(async || hub.entry(&worker.id).await["stale"] == false).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_update_is_a_sign_of_life_all_the_same() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    pass(&hub, &asker, 91).await;
    let update = json!({"current_status": "idle", "status_timestamp": hub.time(-3_600_000)});
    let body = json!({"agent_id": worker.id, "status_update": update,
        "correlation_id": fresh_id(), "timestamp": hub.time(0)});
    hub.post("/openclaw/status", Some(&worker.key), &body).await.expect(200);
    assert!(!is_stale(&hub, &worker).await);
    hub.0.stop().await;
}

/// The next status update of an agent.
async fn status_of(stream: &mut Inbox, id: &str) -> Value {
    loop {
        let event = stream.until("status_update").await;
        if event.data["agent_id"] == id {
            return event.data;
        }
    }
}

fn own_tasks(told: &Value) -> &Value {
    &told["status_update"]["status_details"]["active_tasks"]
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_the_hub_hosts_are_told_of_every_half_minute() {
    let hub = Hub::serve(&[]).await;
    let watcher = hub.node("watcher").await;
    let hosted = hub.agent("acme", "sum", "0", None).await;
    let listed = hub.get("/openclaw/agents", None).await.expect(200).at("/agents");
    let mut listed = listed.as_array().expect("a list").iter();
    let found = listed.find(|one| one["native_id"] == hosted.id.as_str()).expect("an alias");
    let id = found["agent_id"].as_str().expect("an id").to_owned();
    let mut stream = hub.stream(&watcher, &format!("?watch={id}")).await;
    for round in 1..=3 {
        hub.pass(Millis::seconds(30));
        let beat = json!({"agent_id": hosted.id});
        hub.post("/registry/heartbeat", Some(&hosted.key), &beat).await.expect(200);
        // The first wakes the stream, which otherwise polls at an interval; due updates come before
        // the second.
        let mut told = Vec::new();
        for tasks in [round * 10, round * 10 + 1] {
            hub.report(&watcher, "busy", json!({"active_tasks": tasks})).await.expect(200);
            while told.last().is_none_or(|last| own_tasks(last) != tasks) {
                told.push(stream.until("status_update").await.data);
            }
        }
        let beats = told.iter().filter(|one| one["agent_id"] == id.as_str()).collect::<Vec<_>>();
        assert_eq!(beats.len(), 1, "{told:?}");
        assert_eq!(beats[0]["status_update"]["current_status"], "idle");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hub_says_of_an_agent_is_told_as_it_happens() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut stream = hub.stream(&asker, &format!("?watch={}", worker.id)).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let busy = loop {
        // A stream may begin with an event from just before it was opened.
        let told = status_of(&mut stream, &worker.id).await;
        if told["status_update"]["current_status"] == "busy" {
            break told;
        }
    };
    hub.result(&work, json!({})).await.expect(200);
    let idle = status_of(&mut stream, &worker.id).await;
    for (told, status, previous) in [(busy, "busy", "idle"), (idle, "idle", "busy")] {
        assert_eq!(told["status_update"]["current_status"], status);
        assert_eq!(told["status_update"]["previous_status"], previous);
        // Published at the moment of the change, not later (R32).
        assert_eq!(told["status_update"]["status_timestamp"], told["timestamp"]);
    }
    hub.0.stop().await;
}
