use std::time::Duration;

use super::hub::{Ask, Hub, eventually, hub, on_duty, refuse};
use crate::openclaw::{
    ErrorType, FinishedCollaboration, Millis, PresenceOptions, Timestamp, Uuid, WorkHistory,
};

#[tokio::test]
async fn an_agent_on_duty_tells_every_change() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let duty = on_duty(&agent);
    let last = |name: &str| {
        let told = hub.posted("/status");
        told.last().is_some_and(|told| told["status_update"]["current_status"] == *name)
    };
    eventually("idle", || last("idle")).await;
    let one = duty.begin_work();
    let two = duty.begin_work();
    eventually("busy with two", || {
        let told = hub.posted("/status");
        told.last().is_some_and(|told| told["status_update"]["status_details"]["active_tasks"] == 2)
    })
    .await;
    drop((one, two));
    eventually("idle again", || last("idle")).await;
    duty.set_error("BROKEN", "it broke", ErrorType::Transient);
    eventually("broken", || last("error")).await;
    duty.set_maintenance(Timestamp(9), Some("repairs"));
    eventually("away", || last("maintenance")).await;
    duty.set_healthy();
    assert!(duty.flush(Duration::from_secs(5)).await);
    let told = hub.posted("/status");
    let update = &told.last().expect("reported")["status_update"];
    assert_eq!(update["current_status"], "idle");
    assert_eq!(update["previous_status"], "maintenance");
    drop(duty);
    let then = hub.asks().len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(hub.asks().len(), then, "the agent is offline");
}

#[tokio::test]
async fn a_heartbeat_and_a_reputation_come_again_and_again() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let often = Duration::from_millis(10);
    let rhythm =
        PresenceOptions { heartbeat: often, reputation: often, ..PresenceOptions::default() };
    let _duty = agent.go_online(rhythm, WorkHistory::default());
    eventually("three of each", || {
        hub.posted("/status").len() >= 3 && hub.posted("/reputation").len() >= 3
    })
    .await;
    let update = &hub.posted("/reputation")[2]["reputation_update"];
    assert_eq!(update["update_type"], "periodic_update");
    assert_eq!(update["metrics"]["total_collaborations"], 0);
}

#[tokio::test]
async fn trouble_with_the_hub_is_waited_out() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| match ask.number {
        0 => Some(refuse(503, "UNAVAILABLE", true)),
        1 => Some(refuse(404, "NOT_FOUND", false)),
        2 => Some(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>".to_vec()),
        _ => None,
    })
    .await;
    let duty = on_duty(&agent);
    assert!(duty.flush(Duration::from_secs(5)).await);
    assert_eq!(hub.posted("/status").len(), 4);
    let done = FinishedCollaboration {
        collaboration_id: Uuid::nil(),
        ok: false,
        on_time: true,
        took: Millis(5),
    };
    duty.record_finished(done);
    assert!(duty.flush(Duration::from_secs(5)).await);
    eventually("reported as failed", || {
        hub.posted("/reputation").iter().any(|told| {
            told["reputation_update"]["update_type"] == "collaboration_failed"
                && told["reputation_update"]["metrics"]["failed_collaborations"] == 1
        })
    })
    .await;
    assert_eq!(duty.history().metrics().failed_collaborations, Some(1));
}
