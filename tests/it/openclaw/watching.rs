//! Watching other agents: their status and reputation, and nothing of their work (section 2.3, R68,
//! R70, R91).

use serde_json::json;

use super::kit::{Hub, Node, assert_error, assert_violation, fresh_id};
use crate::relay::kit::{Event, Inbox};

async fn says(hub: &Hub, node: &Node, tasks: u32) {
    hub.report(node, "busy", json!({"active_tasks": tasks})).await.expect(200);
}

/// Every event up to the update with this number of tasks.
async fn up_to(stream: &mut Inbox, tasks: u32) -> Vec<Event> {
    let mut all = Vec::new();
    loop {
        let event = stream.next().await;
        let told = &event.data["status_update"]["status_details"]["active_tasks"];
        let last = *told == json!(tasks);
        all.push(event);
        if last {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_reports_its_own_agent_named_agents_or_all_agents() {
    let hub = Hub::serve(&[]).await;
    let (one, two, three) = (hub.node("one").await, hub.node("two").await, hub.node("three").await);
    let mut own = hub.stream(&one, "").await;
    let mut named = hub.stream(&one, &format!("?watch={}", two.id)).await;
    let mut both = hub.stream(&one, &format!("?watch={},{}", two.id, three.id)).await;
    let mut all = hub.stream(&one, "?watch=all").await;
    says(&hub, &three, 31).await;
    says(&hub, &two, 21).await;
    says(&hub, &one, 99).await;
    let told = async |stream: &mut Inbox| {
        let events = up_to(stream, 99).await;
        // An update from just before the stream was opened may come, too.
        let news = |event: &&Event| event.data["status_update"]["current_status"] == "busy";
        let news: Vec<_> = events
            .iter()
            .filter(news)
            .map(|event| {
                event.data["status_update"]["status_details"]["active_tasks"]
                    .as_u64()
                    .expect("a number")
            })
            .collect();
        news
    };
    assert_eq!(told(&mut own).await, [99]);
    assert_eq!(told(&mut named).await, [21, 99]);
    assert_eq!(told(&mut both).await, [31, 21, 99]);
    assert_eq!(told(&mut all).await, [31, 21, 99]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_all_agents_includes_agents_that_register_later() {
    let hub = Hub::serve(&[]).await;
    let watcher = hub.node("watcher").await;
    let mut all = hub.stream(&watcher, "?watch=all").await;
    let late = hub.node("late").await;
    says(&hub, &late, 7).await;
    let told = up_to(&mut all, 7).await;
    assert_eq!(told.last().expect("one").data["agent_id"], late.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_does_not_see_jobs_of_others() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let watcher = hub.node("watcher").await;
    let mut all = hub.stream(&watcher, "?watch=all").await;
    let secret = json!({"input_data": {"a": 0.123_456_789}});
    let work = hub.accepted(&asker, &worker, secret).await;
    hub.result(&work, json!({"output_data": {"r": "hushhush"}})).await.expect(200);
    let off = hub.accepted(&asker, &worker, json!({})).await;
    hub.cancel(&asker, &off.id, &json!({"reason": "hushhush"})).await.expect(200);
    says(&hub, &watcher, 99).await;
    let told = up_to(&mut all, 99).await;
    assert!(told.iter().any(|event| event.event == "reputation_update"));
    for event in &told {
        let public = ["status_update", "reputation_update"].contains(&event.event.as_str());
        assert!(public, "{event:?}");
    }
    assert!(!all.raw.contains("hushhush") && !all.raw.contains("0.123456789"), "{}", all.raw);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_known_agent_can_be_watched() {
    let hub = Hub::serve(&[]).await;
    let watcher = hub.node("watcher").await;
    let path = |watch: &str| format!("/openclaw/stream?watch={watch}");
    let nobody = fresh_id();
    let reply = hub.get(&path(&nobody), Some(&watcher.key)).await;
    assert_violation(&reply, &format!("watch names {nobody}, which is not a known agent"));
    let reply = hub.get(&path("chimera-one"), Some(&watcher.key)).await;
    assert_error(&reply, 400, "VALIDATION_ERROR");
    let many = vec![watcher.id.as_str(); 101].join(",");
    assert_violation(
        &hub.get(&path(&many), Some(&watcher.key)).await,
        "watch lists more than 100 agents; use watch=all",
    );
    hub.0.stop().await;
}
