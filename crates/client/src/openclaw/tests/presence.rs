//! An agent's reports to the hub, and the hub's webhooks to the agent.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use sha2::Sha256;

use super::hub::{Ask, Hub, accepted, eventually, hub, on_duty, refuse};
use crate::openclaw::webhook::{WebhookError, WebhookReceiver};
use crate::openclaw::{
    ErrorType, Event, FinishedCollaboration, Millis, PresenceOptions, Timestamp, Uuid, VerifyError,
    WebhookSecret, WorkHistory,
};

const SECRET: [u8; 24] = [7; 24];
const NOW: Timestamp = Timestamp(1_700_000_000_000);

#[tokio::test]
async fn an_online_agent_reports_every_change() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let presence = on_duty(&agent);
    let last = |name: &str| {
        let updates = hub.posted("/status");
        updates.last().is_some_and(|update| update["status_update"]["current_status"] == *name)
    };
    eventually("idle", || last("idle")).await;
    let one = presence.begin_work();
    let two = presence.begin_work();
    eventually("busy with two", || {
        let updates = hub.posted("/status");
        updates
            .last()
            .is_some_and(|update| update["status_update"]["status_details"]["active_tasks"] == 2)
    })
    .await;
    drop((one, two));
    eventually("idle again", || last("idle")).await;
    presence.set_error("BROKEN", "it broke", ErrorType::Transient);
    eventually("broken", || last("error")).await;
    presence.set_maintenance(Timestamp(9), Some("repairs"));
    eventually("away", || last("maintenance")).await;
    presence.set_healthy();
    assert!(presence.flush(Duration::from_secs(5)).await);
    let updates = hub.posted("/status");
    let update = &updates.last().expect("reported")["status_update"];
    assert_eq!(update["current_status"], "idle");
    assert_eq!(update["previous_status"], "maintenance");
    drop(presence);
    let then = hub.asks().len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(hub.asks().len(), then, "the agent is offline");
}

#[tokio::test]
async fn heartbeats_and_claims_are_repeated() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let often = Duration::from_millis(10);
    let options =
        PresenceOptions { heartbeat: often, reputation: often, ..PresenceOptions::default() };
    let _presence = agent.go_online(options, WorkHistory::default());
    eventually("three of each", || {
        hub.posted("/status").len() >= 3 && hub.posted("/reputation").len() >= 3
    })
    .await;
    let update = &hub.posted("/reputation")[2]["reputation_update"];
    assert_eq!(update["update_type"], "periodic_update");
    assert_eq!(update["metrics"]["total_collaborations"], 0);
}

#[tokio::test]
async fn reports_are_retried_until_the_hub_takes_them() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| match ask.number {
        0 => Some(refuse(503, "UNAVAILABLE", true)),
        1 => Some(refuse(404, "NOT_FOUND", false)),
        2 => Some(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>".to_vec()),
        _ => None,
    })
    .await;
    let presence = on_duty(&agent);
    assert!(presence.flush(Duration::from_secs(5)).await);
    assert_eq!(hub.posted("/status").len(), 4);
    let done = FinishedCollaboration {
        collaboration_id: Uuid::nil(),
        ok: false,
        on_time: true,
        took: Millis(5),
    };
    presence.record_finished(done);
    assert!(presence.flush(Duration::from_secs(5)).await);
    eventually("reported as failed", || {
        hub.posted("/reputation").iter().any(|update| {
            update["reputation_update"]["update_type"] == "collaboration_failed"
                && update["reputation_update"]["metrics"]["failed_collaborations"] == 1
        })
    })
    .await;
    assert_eq!(presence.history().metrics().failed_collaborations, Some(1));
}

fn headers(id: &str, event: &str, body: &str) -> HeaderMap {
    let mut mac = Hmac::<Sha256>::new_from_slice(&SECRET).expect("a key");
    mac.update(format!("{id}.1700000000.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", id),
        ("webhook-timestamp", "1700000000"),
        ("webhook-signature", &signature),
        ("rialto-event", event),
    ] {
        headers.insert(name, HeaderValue::from_str(value).expect("text"));
    }
    headers
}

fn receiver() -> WebhookReceiver {
    let secret = format!("whsec_{}", STANDARD.encode(SECRET));
    WebhookReceiver::new(WebhookSecret::read(&secret).expect("a secret"))
}

#[test]
fn a_webhook_is_read_by_its_header_and_returned_once() {
    let (receiver, body) = (receiver(), accepted(5, "echo").to_string());
    let webhook = headers("msg_1", "collaboration_request", &body);
    let first = receiver.receive(&webhook, body.as_bytes(), NOW).expect("trusted");
    assert!(matches!(first, Some(Event::Request(incoming)) if incoming.accepted));
    assert_eq!(receiver.receive(&webhook, body.as_bytes(), NOW), Ok(None));
    let other = headers("msg_2", "of another version", &body);
    assert_eq!(receiver.receive(&other, body.as_bytes(), NOW), Ok(None));
}

#[test]
fn a_webhook_that_is_not_signed_by_the_hub_is_not_read() {
    let (receiver, body) = (receiver(), accepted(5, "echo").to_string());
    let webhook = headers("msg_1", "collaboration_request", &body);
    let forged = receiver.receive(&webhook, b"{}", NOW);
    assert_eq!(forged, Err(WebhookError::NotVerified(VerifyError::BadSignature)));
    let mut nameless = webhook.clone();
    nameless.remove("rialto-event");
    let unnamed = receiver.receive(&nameless, body.as_bytes(), NOW);
    assert!(matches!(unnamed, Err(WebhookError::Unreadable(_))));
    assert!(matches!(receiver.receive(&webhook, body.as_bytes(), NOW), Ok(Some(_))));
}
