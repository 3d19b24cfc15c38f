//! Jobs for which the hub chooses the worker (R40).

use serde_json::{Value, json};

use super::forms::{both_modes, with};
use crate::kit::{
    Agent, Behaviour, ClosedPort, TestHub, Worker, assert_later, assert_refused, eventually,
    snapshot,
};

fn ask(skill: &str, budget: f64) -> Value {
    json!({"skill_name": skill, "budget": budget})
}

/// The owner of the worker that the hub chose.
async fn picked(hub: &TestHub, by: &Agent, budget: f64) -> String {
    let reply = hub.post("/jobs", Some(&by.key), &ask("s", budget)).await;
    assert!([200, 202].contains(&reply.status), "{}", reply.text);
    let agent = hub.get(&format!("/registry/agents/{}", reply.str("/agent_id")), None).await;
    agent.str("/owner_id")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_picks_the_first_in_discovery_order_within_budget() {
    for hub in both_modes().await {
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
        let asking = hub.orchestrator("o1").await;
        hub.grant("o1", "100").await;
        for (owner, price) in [("dear", "0.30"), ("middle", "0.20"), ("cheap", "0.10")] {
            hub.agent(owner, "s", price, Some(&worker.url)).await;
        }
        let best = hub.agent("best", "s", "0.25", Some(&worker.url)).await;
        hub.hire(&asking, &best, "s", "0.25").await.expect(200);
        assert_eq!(picked(&hub, &asking, 0.30).await, "best", "its score is the highest");
        assert_eq!(picked(&hub, &asking, 0.25).await, "best", "equal is within");
        assert_eq!(picked(&hub, &asking, 0.24).await, "cheap", "then the lowest price");
        assert_eq!(picked(&hub, &asking, 0.10).await, "cheap");
        for path in ["/registry/jobs", "/jobs"] {
            let reply = hub.post(path, Some(&asking.key), &ask("s", 0.5)).await.expect(200);
            assert_eq!(reply.str("/agent_id"), best.id, "{path}");
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_never_picks_the_one_who_asks() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let asking = hub.agent("o1", "s", "0", Some(&worker.url)).await;
    let before = snapshot(&hub).await;
    for path in ["/registry/jobs", "/jobs"] {
        let reply = hub.post(path, Some(&asking.key), &ask("s", 0.0)).await;
        assert_refused(&reply, 422, "SKILL_MISMATCH");
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.agent("late", "s", "0", Some(&worker.url)).await;
    assert_eq!(picked(&hub, &asking, 0.0).await, "late");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_no_agent_can_be_selected_the_reason_is_skill_then_budget_then_presence() {
    let hub = TestHub::serve(&[("registry.heartbeat_ttl", "200ms")]).await;
    let asking = hub.orchestrator("o1").await;
    hub.grant("o1", "100").await;
    let gone = hub.agent("gone", "s", "0.10", None).await;
    hub.agent("other", "t", "0.10", Some("https://agent.example")).await;
    let silent = format!("/registry/agents/{}", gone.id);
    eventually(async || hub.get(&silent, None).await.str("/status") == "offline").await;
    let before = snapshot(&hub).await;
    for path in ["/registry/jobs", "/jobs"] {
        let post =
            async |skill, budget| hub.post(path, Some(&asking.key), &ask(skill, budget)).await;
        assert_refused(&post("unknown", 0.0).await, 422, "SKILL_MISMATCH");
        assert_refused(&post("s", 0.09).await, 402, "BUDGET_INSUFFICIENT");
        assert_refused(&post("t", 0.09).await, 402, "BUDGET_INSUFFICIENT");
        assert_later(&post("s", 0.10).await, 503, "AGENT_OFFLINE", 30);
    }
    assert_eq!(snapshot(&hub).await.lasting(), before.lasting());
    // One agent is online but too expensive; another is affordable but offline.
    hub.agent("dear", "s", "5", Some("https://agent.example")).await;
    let reply = hub.post("/jobs", Some(&asking.key), &ask("s", 0.10)).await;
    assert_later(&reply, 503, "AGENT_OFFLINE", 30);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_connected_to_is_passed_over_for_the_next() {
    for hub in both_modes().await {
        let (first, second) = (ClosedPort::take(), ClosedPort::take());
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0.12")).await;
        let asking = hub.orchestrator("o1").await;
        hub.grant("o1", "1.00").await;
        let money = hub.balance("o1").await.0;
        let lost = hub.agent("lost", "s", "0.10", Some(&first.url)).await;
        hub.agent("lost too", "s", "0.11", Some(&second.url)).await;
        let there = hub.agent("there", "s", "0.12", Some(&worker.url)).await;
        let job = with(&ask("s", 0.15), "/input_data", Some(json!({"x": 1})));
        let reply = hub.post("/jobs", Some(&asking.key), &job).await.expect(200);
        assert_eq!(reply.str("/agent_id"), there.id);
        assert_eq!(reply.str("/status"), "SUCCESS");
        assert_eq!(worker.got().len(), 1);
        let paid = format!("{:.2}", money.parse::<f64>().expect("a number") - 0.12);
        assert_eq!(hub.balance("o1").await, (paid, "0.00".to_owned()));
        assert_eq!(hub.score(&lost).await, "50.0", "being offline is not a failure");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_last_one_cannot_be_connected_to_either_the_job_never_was() {
    let hub = TestHub::serve(&[]).await;
    let (first, second) = (ClosedPort::take(), ClosedPort::take());
    let asking = hub.orchestrator("o1").await;
    hub.grant("o1", "1.00").await;
    hub.agent("a", "s", "0.10", Some(&first.url)).await;
    hub.agent("b", "s", "0.10", Some(&second.url)).await;
    let job = with(&ask("s", 0.15), "/job_id", Some(json!(super::forms::JOB_ID)));
    assert_later(&hub.post("/jobs", Some(&asking.key), &job).await, 503, "AGENT_OFFLINE", 30);
    assert_eq!(hub.balance("o1").await, ("1.00".to_owned(), "0.00".to_owned()));
    hub.get(&format!("/jobs/{}", super::forms::JOB_ID), Some(&asking.key)).await.expect(404);
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    hub.agent("c", "s", "0.10", Some(&worker.url)).await;
    hub.post("/jobs", Some(&asking.key), &job).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_is_not_replaced() {
    let hub = TestHub::serve(&[]).await;
    let (failing, working) =
        (Worker::start(Behaviour::Fail(None)).await, Worker::start(Behaviour::Pending).await);
    let asking = hub.orchestrator("o1").await;
    hub.agent("first", "s", "0", Some(&failing.url)).await;
    hub.agent("second", "s", "0", Some(&working.url)).await;
    let reply = hub.post("/jobs", Some(&asking.key), &ask("s", 0.0)).await.expect(200);
    assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
    assert_eq!((failing.got().len(), working.got().len()), (1, 0));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_refused_a_connection_stays_offline_until_it_is_heard_of() {
    let hub = TestHub::serve(&[]).await;
    let nobody = ClosedPort::take();
    let asking = hub.orchestrator("o1").await;
    let lost = hub.agent("lost", "s", "0", Some(&nobody.url)).await;
    assert_later(&hub.hire(&asking, &lost, "s", "0").await, 503, "AGENT_OFFLINE", 30);
    let _settled = snapshot(&hub).await; // Waits until the delivery is recorded.
    let shown = hub.get(&format!("/registry/agents/{}", lost.id), None).await;
    assert_eq!(shown.str("/status"), "offline");
    assert_eq!(hub.get("/discover?skill=s", None).await.at("/total"), 0);
    hub.stop().await;
}
