//! Jobs that take longer: PENDING, and the end of jobs without a result (R45, R48).

use std::time::Duration;

use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, fresh_id, success};
use crate::kit::{
    Behaviour, Reply, Worker, assert_malformed, assert_refused, digits, eventually, snapshot,
};

#[track_caller]
fn assert_pending(reply: &Reply) {
    assert_eq!(reply.status, 202, "{}", reply.text);
    assert_eq!(reply.str("/status"), "PENDING");
    for field in ["/output_data", "/error_message", "/error_code"] {
        assert_eq!(reply.at(field), Value::Null, "{field}");
    }
    assert_eq!(digits(&reply.text, "execution_cost"), "0.00");
    assert_eq!(reply.at("/execution_time_ms"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_pending_when_the_agent_says_so_or_has_no_endpoint() {
    for market in Market::both(&[]).await {
        let worker = Worker::start(Behaviour::Pending).await;
        let agent = market.endpoint(&worker.url).await;
        for assigned in [&agent, &market.working] {
            let reply = market.ask(assigned, json!({})).await;
            assert_pending(&reply);
            assert_eq!(reply.str("/agent_id"), assigned.id);
            assert_pending(&market.shown(&reply.str("/job_id")).await);
        }
        assert_eq!(market.hub.balance("o1").await, ("99.70".to_owned(), "0.30".to_owned()));
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_pending_when_the_agent_takes_longer_than_the_hub_waits() {
    let market = Market::keyed(&[("registry.sync_wait", "100ms")]).await;
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_millis(1500))).await;
    let agent = market.endpoint(&worker.url).await;
    let reply = market.ask(&agent, json!({})).await;
    assert_pending(&reply);
    let job = reply.str("/job_id");
    // Its late result still counts.
    eventually(async || market.shown(&job).await.status == 200).await;
    let shown = market.shown(&job).await;
    assert_eq!(shown.str("/status"), "SUCCESS");
    assert_eq!(shown.at("/output_data"), json!({"late": true}));
    assert_eq!(market.hub.balance("o1").await, ("99.90".to_owned(), "0.00".to_owned()));
    assert_eq!(market.hub.balance("globex").await.0, "0.10");
    assert_eq!(worker.got().len(), 1);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_within_the_wait_is_final_at_once() {
    let market = Market::keyed(&[("registry.sync_wait", "20s")]).await;
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_millis(300))).await;
    let agent = market.endpoint(&worker.url).await;
    let reply = market.ask(&agent, json!({})).await.expect(200);
    assert_eq!(reply.str("/status"), "SUCCESS");
    market.stop().await;
}

/// A job as a Python client posts it.
fn literal(market: &Market) -> String {
    include_str!("../../../crates/protocols/src/registry/fixtures/python-job.json")
        .replace("\"job_id\": \"uuid\"", &format!("\"job_id\": \"{}\"", fresh_id()))
        .replace("\"uuid\"", &format!("\"{}\"", market.asking.id))
}

/// The polling worker takes the next job and reports success.
async fn work_once(market: &Market) {
    let path = format!("/registry/agents/{}/jobs?wait=30", market.working.id);
    let work = market.hub.get(&path, market.key(&market.working)).await.expect(200);
    let job = work.str("/jobs/0/job_id");
    // A PENDING report does not end the job.
    let started = json!({"job_id": job, "agent_id": market.working.id, "status": "PENDING"});
    market.report(&started).await.expect(200);
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_waits_gets_a_polling_workers_result_in_its_answer() {
    for market in Market::both(&[]).await {
        let named = format!("/registry/agents/{}/jobs?wait=30", market.working.id);
        for path in ["/jobs?wait=30", "/registry/jobs?wait=30", &named] {
            let body = literal(&market);
            let post = market.hub.post_text(path, market.key(&market.asking), &body);
            let (reply, ()) = tokio::join!(post, work_once(&market));
            let reply = reply.expect(200);
            assert_eq!(reply.str("/status"), "SUCCESS", "{path}");
            assert_eq!(reply.at("/output_data"), json!({"entities": []}));
        }
        assert_eq!(market.accounts().await, ["99.70", "0.00", "0.30"]);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_waited_for_the_end_is_not_called_and_one_that_waited_in_vain_is() {
    let market = Market::keyed(&[]).await;
    let called = Worker::start(Behaviour::Say(200, String::new())).await;
    let with_callback = |url: &str| {
        let callback = format!("\"callback_url\": \"{url}/results\"");
        literal(&market).replace("\"callback_url\": \"\"", &callback)
    };
    let (key, body) = (market.key(&market.asking), with_callback(&called.url));
    let post = market.hub.post_text("/jobs?wait=30", key, &body);
    let (reply, ()) = tokio::join!(post, work_once(&market));
    reply.expect(200);
    market.quiet().await;
    assert_eq!(called.got().len(), 0, "it has its answer, so there is no callback");
    for path in ["/jobs?wait=0", "/jobs?wait=1", "/jobs?wait=1.0"] {
        let body = with_callback(&called.url);
        let before = called.got().len();
        assert_pending(&market.hub.post_text(path, key, &body).await);
        work_once(&market).await;
        let told = called.heard(before + 1).await;
        assert_eq!(told[before].json()["status"], "SUCCESS", "{path}");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_job_that_makes_no_sense_is_refused_and_opens_nothing() {
    let market = Market::keyed(&[]).await;
    let before = snapshot(&market.hub).await;
    for wait in ["31", "-1", "soon", "1.5", ""] {
        let path = format!("/jobs?wait={wait}");
        let reply = market.hub.post_text(&path, Some(&market.asking.key), &literal(&market)).await;
        assert_malformed(&reply, "?wait");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_loses_the_job_and_its_late_word_changes_nothing() {
    // This test is about the formula, so the grace period is zero.
    let flags = [("jobs.lease", "1500ms"), ("reputation.fair_time", "0s")];
    for market in Market::both(&flags).await {
        let (silent, slow) = (market.pending().await, market.pending().await);
        let callback = market.callback(&market.working, &silent).await;
        // A PENDING report is not a final result.
        let started = json!({"job_id": slow, "agent_id": market.working.id, "status": "PENDING"});
        market.report(&started).await;
        for job in [&silent, &slow] {
            eventually(async || market.shown(job).await.status == 200).await;
            let shown = market.shown(job).await;
            assert_eq!(shown.str("/status"), "FAILURE");
            assert_eq!(shown.str("/error_code"), "EXECUTION_ERROR");
            assert!(!shown.str("/error_message").is_empty());
            assert_eq!(shown.at("/output_data"), Value::Null);
            assert_eq!(digits(&shown.text, "execution_cost"), "0.00");
        }
        assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
        assert_eq!(market.hub.score(&market.working).await, "41.0");

        let before = snapshot(&market.hub).await;
        let late =
            [success(&silent, &market.working, "0.10"), failure(&silent, &market.working, None)];
        for body in late {
            assert_refused(&market.report(&body).await, 409, "CONFLICT");
            assert_refused(&market.hub.post(&callback, None, &body).await, 409, "CONFLICT");
        }
        assert_eq!(snapshot(&market.hub).await, before);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_never_answers_its_endpoint_loses_the_job_too() {
    // The call ends without an answer before the lease does: the worker has received the job.
    let flags = [
        ("jobs.lease", "1500ms"),
        ("registry.sync_wait", "50ms"),
        ("egress.timeout", "500ms"),
        ("reputation.fair_time", "0s"),
    ];
    let market = Market::keyed(&flags).await;
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_secs(60))).await;
    let agent = market.endpoint(&worker.url).await;
    let job =
        market.hub.hire(&market.asking, &agent, SKILL, "0.15").await.expect(202).str("/job_id");
    eventually(async || market.shown(&job).await.status == 200).await;
    assert_eq!(market.shown(&job).await.str("/error_code"), "EXECUTION_ERROR");
    assert_eq!(market.hub.balance("o1").await, ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(market.hub.score(&agent).await, "45.5");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_runs_on_while_the_hub_is_down() {
    let flags = [("jobs.lease", "300ms")];
    let Market { hub, asking, working, .. } = Market::keyed(&flags).await;
    let job = hub.hire(&asking, &working, SKILL, "0.15").await.expect(202).str("/job_id");
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &flags).await;
    let path = format!("/registry/jobs/{job}");
    eventually(async || hub.get(&path, Some(&asking.key)).await.status == 200).await;
    assert_eq!(hub.get(&path, Some(&asking.key)).await.str("/status"), "FAILURE");
    assert_eq!(hub.balance("o1").await, ("100.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}
