//! What a requester cannot do to a worker for free: spoil its score, or fill its inbox.

use rialto_core::time::Millis;
use rialto_engine::clock::Clock;
use rialto_protocols::kit::stamp;
use serde_json::{Value, json};

use crate::kit::{Agent, TestHub, eventually};

/// Posts a job for one worker with a deadline so many milliseconds ahead.
async fn rush(hub: &TestHub, by: &Agent, worker: &Agent, ahead: i64) -> String {
    let deadline = stamp::millis(hub.clock.now().plus(Millis(ahead)));
    let body =
        json!({"skill": "sum", "input": {}, "budget": 1, "to": worker.id, "deadline": deadline});
    hub.post("/v1/jobs", Some(&by.key), &body).await.expect(201).str("/id")
}

async fn state(hub: &TestHub, by: &Agent, job: &str) -> String {
    hub.get(&format!("/v1/jobs/{job}"), Some(&by.key)).await.expect(200).str("/state")
}

async fn expires(hub: &TestHub, by: &Agent, job: &str) {
    eventually(async || state(hub, by, job).await == "expired").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dozen_deadlines_that_pass_unseen_leave_a_workers_score_as_it_was() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let path = format!("/v1/agents/{}", worker.id);
    let before = hub.get(&path, None).await.expect(200).json();
    for _ in 0..12 {
        let job = rush(&hub, &client, &worker, 5_000).await;
        hub.pass(Millis(5_000));
        expires(&hub, &client, &job).await;
    }
    assert_eq!(hub.score(&worker).await, "50.0");
    let after = hub.get(&path, None).await.expect(200).json();
    let figures = |shown: &Value| {
        ["score", "rank_score", "jobs_settled", "owner_failures"].map(|name| shown[name].clone())
    };
    assert_eq!(figures(&after), figures(&before), "nor does it rank lower");
    assert_eq!(hub.balance("rich").await, ("10.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_counts_once_a_worker_has_had_the_job_for_half_a_minute_also_over_a_restart() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let job = rush(&hub, &client, &worker, 40_000).await;
    let work = hub.get("/v1/work", Some(&worker.key)).await.expect(200);
    assert!(work.text.contains(&job), "{}", work.text);
    let hub = hub.restart(rialto_hub::config::Posture::Serve, &[]).await;
    hub.pass(Millis(41_000));
    expires(&hub, &client, &job).await;
    assert_eq!(hub.score(&worker).await, "45.5");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_come_and_go_fill_an_inbox_only_to_its_limit() {
    const LIMIT: usize = 10;
    let hub = TestHub::serve(&[("limits.inbox_pending", "10")]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let mut refused = 0;
    for _ in 0..3 * LIMIT {
        let deadline = stamp::millis(hub.clock.now().plus(Millis(5_000)));
        let body = json!({"skill": "sum", "input": {}, "budget": 1, "to": worker.id, "deadline": deadline});
        let reply = hub.post("/v1/jobs", Some(&client.key), &body).await;
        if reply.status == 201 {
            hub.pass(Millis(5_000));
            expires(&hub, &client, &reply.str("/id")).await;
            continue;
        }
        assert_eq!((reply.status, reply.str("/code").as_str()), (429, "inbox_full"));
        refused += 1;
    }
    let unread = hub.get("/v1/inbox?limit=100", Some(&worker.key)).await.expect(200).json();
    let unread = unread["items"].as_array().expect("a list").len();
    assert_eq!(
        (unread, refused),
        (LIMIT, 3 * LIMIT - LIMIT / 2),
        "each job is given and taken back"
    );
    // In the registry's own words, and to a choice that has nobody else.
    let reply = hub.hire(&client, &worker, "sum", "1").await.expect(429);
    assert_eq!(reply.str("/error_code"), "RATE_LIMITED");
    // Nothing was lost, and reading makes room.
    let body = json!({"up_to": unread});
    hub.post("/v1/inbox/ack", Some(&worker.key), &body).await.expect(200);
    rush(&hub, &client, &worker, 5_000).await;
    hub.stop().await;
}
