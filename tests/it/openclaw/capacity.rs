//! Capacity of an agent: its limits of concurrent jobs and of starts per minute, and what the hub
//! publishes about it (R68, R71).

use rialto_core::time::Millis;
use serde_json::json;

use super::kit::{Hub, assert_rejected};
use super::scene::{limits, status};
use crate::kit::{Reply, together};

const HALF: Millis = Millis::seconds(30);

fn accepted(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.at("/response_status") == "accepted").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_at_once_exactly_as_many_are_accepted_as_there_is_room_for() {
    let hub = Hub::serve(&[]).await;
    let (one, two) = (hub.node("one").await, hub.node("two").await);
    let worker = hub.node_with("worker", limits(5, 1_000)).await;
    let both = [&one, &two];
    let replies = together((0..200).map(|n| hub.hire(both[n % 2], &worker, json!({})))).await;
    assert_eq!(accepted(&replies), 5);
    for reply in replies.iter().filter(|reply| reply.at("/response_status") != "accepted") {
        assert_rejected(reply, "resource_exhausted");
        let details = reply.at("/rejection_reason/details");
        assert_eq!(details, json!({"current_tasks": 5, "max_tasks": 5}));
    }
    assert_eq!(hub.entry(&worker.id).await["active_collaborations"], 5);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_makes_room_for_as_much_and_not_for_more() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(2, 1_000)).await;
    let first = hub.accepted(&asker, &worker, json!({})).await;
    let second = hub.accepted(&asker, &worker, json!({})).await;
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "resource_exhausted");
    hub.result(&first, json!({})).await.expect(200);
    let third = hub.accepted(&asker, &worker, json!({})).await;
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "resource_exhausted");
    hub.cancel(&asker, &second.id, &json!({})).await.expect(200);
    hub.cancel(&worker, &third.id, &json!({})).await.expect(200);
    let replies = together((0..20).map(|_| hub.hire(&asker, &worker, json!({})))).await;
    assert_eq!(accepted(&replies), 2);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_itself_is_not_asked_for_more_than_it_takes() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let mut terms = limits(3, 1_000);
    terms["response_mode"] = json!("ask");
    let worker = hub.node_with("worker", terms).await;
    let mut works = hub.stream(&worker, "").await;
    let all = together((0..40).map(|_| hub.hire(&asker, &worker, json!({}))));
    let answers = async {
        for _ in 0..3 {
            let told = works.until("collaboration_request").await.data;
            hub.respond(&worker, &told, json!({})).await.expect(200);
        }
    };
    let (replies, ()) = tokio::join!(all, answers);
    assert_eq!(accepted(&replies), 3);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_twenty_first_within_a_minute_is_refused_and_the_minute_slides() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(100, 20)).await;
    for _ in 0..10 {
        hub.accepted(&asker, &worker, json!({})).await;
    }
    hub.pass(HALF);
    for _ in 0..10 {
        hub.accepted(&asker, &worker, json!({})).await;
    }
    let before = hub.held().await;
    let fast = hub.hire(&asker, &worker, json!({})).await;
    assert_rejected(&fast, "resource_exhausted");
    let wait = fast.at("/rejection_reason/retry_after_seconds").as_u64().expect("seconds");
    assert!((1..=30).contains(&wait), "the first of them began half a minute ago: {wait}");
    assert_eq!(hub.held().await, before);
    // Half a minute later the first ten are a minute old, and the others are not.
    hub.pass(HALF);
    let replies = together((0..30).map(|_| hub.hire(&asker, &worker, json!({})))).await;
    assert_eq!(accepted(&replies), 10);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_finished_counts_within_its_minute_too() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(100, 2)).await;
    for _ in 0..2 {
        let work = hub.accepted(&asker, &worker, json!({})).await;
        hub.result(&work, json!({})).await.expect(200);
    }
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "resource_exhausted");
    hub.pass(Millis::minutes(1));
    hub.accepted(&asker, &worker, json!({})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_busy_with_its_first_and_idle_after_its_last_and_both_are_published() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut watches = hub.stream(&asker, &format!("?watch={}", worker.id)).await;
    let mut works = hub.stream(&worker, "").await;
    assert_eq!(hub.entry(&worker.id).await["effective_status"], "idle");
    let first = hub.accepted(&asker, &worker, json!({})).await;
    for stream in [&mut watches, &mut works] {
        let told = status(stream, "busy").await;
        assert_eq!(told["agent_id"], worker.id);
        assert_eq!(told["status_update"]["previous_status"], "idle");
        assert_eq!(told["status_update"]["status_details"]["active_tasks"], 1);
    }
    let second = hub.accepted(&asker, &worker, json!({})).await;
    hub.result(&first, json!({})).await.expect(200);
    let shown = hub.entry(&worker.id).await;
    assert_eq!(
        (&shown["effective_status"], &shown["active_collaborations"]),
        (&json!("busy"), &json!(1))
    );
    hub.result(&second, json!({})).await.expect(200);
    for stream in [&mut watches, &mut works] {
        let told = status(stream, "idle").await;
        assert_eq!(told["agent_id"], worker.id);
        assert_eq!(told["status_update"]["previous_status"], "busy");
    }
    assert_eq!(hub.entry(&worker.id).await["effective_status"], "idle");
    hub.0.stop().await;
}
