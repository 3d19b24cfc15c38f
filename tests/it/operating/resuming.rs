//! The hub's own streams and pages resume where they stopped, also over a restart.

use rialto_hub::config::Profile;
use serde_json::Value;

use crate::kit::{TestHub, newest_event};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_events_and_inbox_resume_before_anything_is_written() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    for n in 1..=3 {
        hub.say(&alice, &bob, &format!("message {n}")).await.expect(202);
    }
    let operator = hub.operator.clone();
    let readers = [bob.key.as_str(), operator.as_str()];
    let count = [3, usize::try_from(newest_event(&hub)).expect("few")];
    let mut read = Vec::new();
    for (key, count) in readers.into_iter().zip(count) {
        let mut stream = hub.inbox_from("/v1/events", key, Some("0")).await;
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(stream.next().await);
        }
        read.push(events);
    }
    let items = |page: Value| page["items"].as_array().expect("a list").clone();
    let inbox = items(hub.get("/v1/inbox?after=1", Some(&bob.key)).await.expect(200).json());
    assert_eq!(inbox.len(), 2);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let newest = newest_event(&hub);
    for (key, events) in readers.into_iter().zip(&read) {
        assert!(events.len() >= 3, "{events:?}");
        let mut stream = hub.inbox_from("/v1/events", key, events[0].id.as_deref()).await;
        for wanted in &events[1..] {
            assert_eq!(stream.next().await, *wanted);
        }
    }
    let page = hub.get("/v1/inbox?after=1", Some(&bob.key)).await.expect(200);
    assert_eq!(items(page.json()), inbox);
    assert_eq!(newest_event(&hub), newest, "nothing was written meanwhile");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_registry_worker_polls_its_jobs_before_anything_is_written() {
    let hub = TestHub::serve(&[("registry.sync_wait", "1ms")]).await;
    let (boss, worker) = (hub.orchestrator("acme").await, hub.agent("bob", "sum", "0", None).await);
    for _ in 0..3 {
        hub.hire(&boss, &worker, "sum", "0").await.expect(202);
    }
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let jobs = hub.get(&path, Some(&worker.key)).await.expect(200).at("/jobs");
    assert_eq!(jobs.as_array().map(Vec::len), Some(3));
    let hub = hub.restart(Profile::Serve, &[]).await;
    let newest = newest_event(&hub);
    let again = hub.get(&path, Some(&worker.key)).await.expect(200).at("/jobs");
    let ids = |jobs: &Value| {
        let all = jobs.as_array().expect("a list").iter();
        all.map(|job| job["job_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&again), ids(&jobs));
    assert_eq!(newest_event(&hub), newest, "nothing was written meanwhile");
    hub.stop().await;
}
