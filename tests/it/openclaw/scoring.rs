//! The hub's own score: its formula, when it is published, and what does not count (R43–R46, R87).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, Work};
use crate::kit::{digits, together};

/// A failed result: a `null` member is not sent.
fn failed() -> Value {
    json!({"result_status": "failed", "output_data": null, "error": {"code": "X", "message": "broke"}})
}

/// The score that the spec's formula gives for the shown metrics, in millionths.
fn by_formula(metrics: &Value, scale: u64) -> u64 {
    let millionths = |name: &str| (metrics[name].as_f64().expect(name) * 1e6).round() as u64;
    let average = metrics["average_response_time_ms"].as_u64().expect("a whole number");
    let swift = 1_000_000_u64.saturating_sub(average * 1_000_000 / scale);
    (millionths("success_rate") * 6 + millionths("on_time_completion_rate") * 3 + swift) / 10
}

/// Sends this many requests at once.
async fn many(hub: &Hub, by: &Node, of: &Node, more: Value, count: usize) -> Vec<Work> {
    together((0..count).map(|_| hub.accepted(by, of, more.clone()))).await
}

/// Ends all of them.
async fn end(hub: &Hub, all: &[Work], more: Value) {
    for reply in together(all.iter().map(|work| hub.result(work, more.clone()))).await {
        reply.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_end_there_is_no_score() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    hub.accepted(&asker, &worker, json!({})).await;
    let shown = hub.entry(&worker.id).await;
    assert_eq!(shown["trust_signals"], json!({"total_collaborations": 0}));
    let figures = hub.figures(&worker).await;
    assert_eq!(figures.get("reputation_update"), None, "an update has a score: {figures}");
    assert_eq!(figures["agent_id"], worker.id);
    assert_eq!(figures["claimed"], Value::Null);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_score_is_six_three_and_one_tenths() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", json!({"estimated_duration_ms": 1_000})).await;
    // Eight in time, one after the agent's own estimate, and one failure.
    let promised = many(&hub, &asker, &worker, json!({"deadline": hub.time(60_000)}), 9).await;
    let guessed = many(&hub, &asker, &worker, json!({}), 1).await;
    hub.pass(Millis(2_500));
    end(&hub, &promised[..8], json!({})).await;
    end(&hub, &guessed, json!({})).await;
    end(&hub, &promised[8..], failed()).await;
    let figures = hub.figures(&worker).await;
    let update = &figures["reputation_update"];
    let metrics = &update["metrics"];
    assert_eq!(
        (&metrics["success_rate"], &metrics["on_time_completion_rate"]),
        (&json!(0.9), &json!(0.8))
    );
    assert!(metrics["average_response_time_ms"].as_u64() >= Some(2_500), "{metrics}");
    let counts = ["total_collaborations", "successful_collaborations", "failed_collaborations"];
    assert_eq!(counts.map(|name| metrics[name].as_u64()), [Some(10), Some(9), Some(1)]);
    let score = (update["reputation_score"].as_f64().expect("a score") * 1e6).round() as u64;
    assert_eq!(score, by_formula(metrics, 10_000), "{update}");
    // (0.9, 0.8, 2500) is 0.855, and every further millisecond takes a hundred-thousandth.
    assert!(score <= 855_000, "{score}");
    let shown = hub.entry(&worker.id).await["trust_signals"].clone();
    assert_eq!(shown["reputation_score"], update["reputation_score"]);
    assert_eq!((&shown["success_rate"], &shown["total_collaborations"]), (&json!(0.9), &json!(10)));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slower_than_the_scale_is_worth_nothing_and_the_scale_is_the_operators() {
    for (flags, scale, exact) in
        [(&[][..], 10_000, Some("0.9")), (&[("openclaw.response_scale", "24s")][..], 24_000, None)]
    {
        let hub = Hub::serve(flags).await;
        let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
        let work = many(&hub, &asker, &worker, json!({}), 1).await;
        hub.pass(Millis::seconds(12));
        end(&hub, &work, json!({})).await;
        let path = format!("/openclaw/agents/{}/reputation", worker.id);
        let reply = hub.get(&path, None).await.expect(200);
        let shown = digits(&reply.text, "reputation_score");
        assert!(exact.is_none_or(|exact| shown == exact), "{shown}");
        let score = (shown.parse::<f64>().expect("a number") * 1e6).round() as u64;
        assert_eq!(score, by_formula(&reply.at("/reputation_update/metrics"), scale));
        assert!(score >= 900_000, "{shown}");
        hub.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_in_vain_and_slow_is_zero() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = many(&hub, &asker, &worker, json!({}), 3).await;
    hub.pass(Millis::seconds(12));
    end(&hub, &work, failed()).await;
    let figures = hub.figures(&worker).await;
    assert_eq!(figures["reputation_update"]["reputation_score"], 0.0);
    assert_eq!(figures["reputation_update"]["update_type"], "collaboration_failed");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_are_of_the_last_hundred_and_counts_of_a_life() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    for (count, more) in [(50, failed()), (50, json!({})), (49, json!({}))] {
        let work = many(&hub, &asker, &worker, json!({}), count).await;
        end(&hub, &work, more).await;
    }
    // One of the fifty failures is left among the last hundred.
    assert_eq!(hub.metrics(&worker).await["success_rate"], 0.99);
    let last = many(&hub, &asker, &worker, json!({}), 1).await;
    end(&hub, &last, json!({})).await;
    let metrics = hub.metrics(&worker).await;
    assert_eq!(metrics["success_rate"], 1.0);
    let counts = ["total_collaborations", "successful_collaborations", "failed_collaborations"];
    assert_eq!(counts.map(|name| metrics[name].as_u64()), [Some(150), Some(100), Some(50)]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_is_told_to_the_agent_and_to_who_watches() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let watcher = hub.node("watcher").await;
    let own = hub.stream(&worker, "").await;
    let named = hub.stream(&asker, &format!("?watch={}", worker.id)).await;
    let all = hub.stream(&watcher, "?watch=all").await;
    let mut streams = [own, named, all];
    for (more, kind) in [(json!({}), "collaboration_completed"), (failed(), "collaboration_failed")]
    {
        let work = many(&hub, &asker, &worker, json!({}), 1).await;
        end(&hub, &work, more).await;
        for stream in &mut streams {
            let told = stream.until("reputation_update").await.data;
            assert_eq!(told["agent_id"], worker.id.as_str());
            let update = &told["reputation_update"];
            assert_eq!(update["update_type"], kind);
            assert_eq!(update["collaboration_id"], work[0].id.as_str());
            let score =
                (update["reputation_score"].as_f64().expect("a score") * 1e6).round() as u64;
            assert_eq!(score, by_formula(&update["metrics"], 10_000));
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reputation_is_told_again_every_day() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = many(&hub, &asker, &worker, json!({}), 1).await;
    end(&hub, &work, json!({})).await;
    let mut stream = hub.stream(&worker, "").await;
    for _ in 0..2 {
        hub.pass(Millis::hours(24));
        // A change that wakes the stream, which otherwise polls at an interval.
        hub.report(&worker, "idle", json!({})).await.expect(200);
        let told = loop {
            // A stream may begin with an event from just before it was opened.
            let told = stream.until("reputation_update").await.data;
            if told["reputation_update"]["update_type"] == "periodic_update" {
                break told;
            }
        };
        assert!(told["reputation_update"].get("collaboration_id").is_none());
        let figures = hub.figures(&worker).await;
        assert_eq!(figures["reputation_update"]["update_type"], "periodic_update");
        assert_eq!(figures["reputation_update"]["metrics"], told["reputation_update"]["metrics"]);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_called_off_counts_nowhere() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = many(&hub, &asker, &worker, json!({}), 2).await;
    hub.cancel(&asker, &work[0].id, &json!({})).await.expect(200);
    hub.result(&work[1], json!({"result_status": "cancelled", "output_data": null}))
        .await
        .expect(200);
    assert_eq!(hub.entry(&worker.id).await["trust_signals"]["total_collaborations"], 0);
    assert_eq!(hub.figures(&worker).await["reputation_update"]["reputation_score"], Value::Null);
    let work = many(&hub, &asker, &worker, json!({}), 1).await;
    end(&hub, &work, json!({})).await;
    let metrics = hub.metrics(&worker).await;
    assert_eq!(
        (&metrics["total_collaborations"], &metrics["success_rate"]),
        (&json!(1), &json!(1.0))
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_that_pass_before_the_work_was_read_leave_an_agent_that_accepts_by_itself_unscored()
 {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    for _ in 0..12 {
        let work = hub.accepted(&asker, &worker, json!({"deadline": hub.time(5_000)})).await;
        hub.pass(Millis(5_000));
        hub.becomes(&asker, &work.id, "failed").await;
    }
    let shown = hub.entry(&worker.id).await;
    assert_eq!(shown["trust_signals"], json!({"total_collaborations": 0}));
    hub.0.stop().await;
}
