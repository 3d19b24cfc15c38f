//! Cancelling a job (R68).

use serde_json::{Value, json};

use super::market::{Market, SKILL, fresh_id, success};
use crate::kit::{Behaviour, Worker, assert_refused, digits, snapshot};

fn path(job: &str) -> String {
    format!("/registry/jobs/{job}/cancel")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_not_fetched_is_cancelled_with_refund_and_without_penalty() {
    for market in Market::both(&[]).await {
        for base in ["/registry", ""] {
            let job = market.pending().await;
            assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"]);
            let path = format!("{base}/jobs/{job}/cancel");
            let reply =
                market.hub.post(&path, market.key(&market.asking), &json!({})).await.expect(200);
            assert_eq!(reply.str("/job_id"), job);
            assert_eq!(reply.str("/status"), "FAILURE");
            assert_eq!(reply.str("/error_message"), "cancelled by requester");
            assert_eq!(reply.at("/error_code"), Value::Null);
            assert_eq!(reply.at("/output_data"), Value::Null);
            assert_eq!(digits(&reply.text, "execution_cost"), "0.00");
            assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
            assert_eq!(market.hub.score(&market.working).await, "50.0");
            assert_eq!(market.shown(&job).await.expect(200).text, reply.text);
            assert!(market.fetch(&market.working).await.is_empty());
        }
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_needs_no_body() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    market.hub.call("POST", &path(&job), Some(&market.asking.key), None).await.expect(200);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_fetched_sent_or_finished_can_no_longer_be_called_off() {
    for market in Market::both(&[]).await {
        let worker = Worker::start(Behaviour::Pending).await;
        let agent = market.endpoint(&worker.url).await;
        let sent = market.ask(&agent, json!({})).await.expect(202).str("/job_id");
        let (cancelled, finished) = (market.pending().await, market.pending().await);
        market
            .hub
            .post(&path(&cancelled), market.key(&market.asking), &json!({}))
            .await
            .expect(200);
        market.report(&success(&finished, &market.working, "0.10")).await.expect(200);
        let fetched = market.pending().await;
        assert_eq!(market.fetch(&market.working).await[0]["job_id"], fetched);
        let before = snapshot(&market.hub).await;
        for job in [&sent, &cancelled, &finished, &fetched] {
            let reply = market.hub.post(&path(job), market.key(&market.asking), &json!({})).await;
            assert_refused(&reply, 409, "CONFLICT");
        }
        assert_eq!(snapshot(&market.hub).await, before);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_requester_calls_a_job_off() {
    let market = Market::keyed(&[]).await;
    let other = market.hub.orchestrator("globex").await;
    let job = market.pending().await;
    let before = snapshot(&market.hub).await;
    let unknown = market.hub.post(&path(&fresh_id()), Some(&other.key), &json!({})).await;
    assert_refused(&unknown, 404, "NOT_FOUND");
    for key in [&other.key, &market.working.key, &market.hub.operator] {
        let reply = market.hub.post(&path(&job), Some(key), &json!({})).await;
        assert_eq!((reply.status, &reply.text), (404, &unknown.text));
    }
    assert_refused(&market.hub.post(&path(&job), None, &json!({})).await, 401, "UNAUTHORIZED");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_for_a_job_that_was_called_off_changes_nothing() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    market.hub.post(&path(&job), Some(&market.asking.key), &json!({})).await.expect(200);
    let before = snapshot(&market.hub).await;
    let reply = market.report(&success(&job, &market.working, "0.10")).await;
    assert_refused(&reply, 409, "CONFLICT");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_job_that_was_called_off_still_stands_for_it() {
    let market = Market::keyed(&[]).await;
    let id = fresh_id();
    market.ask(&market.working, json!({"job_id": id})).await.expect(202);
    let cancelled =
        market.hub.post(&path(&id), Some(&market.asking.key), &json!({})).await.expect(200);
    let again = market.ask(&market.working, json!({"job_id": id})).await.expect(200);
    assert_eq!(again.text, cancelled.text);
    assert_eq!(market.hub.balance("o1").await, ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(market.hub.hire(&market.asking, &market.working, SKILL, "0.10").await.status, 202);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guests_job_can_be_called_off_where_everybodys_word_is_taken() {
    let market = Market::open(&[]).await;
    market.hub.agent("free", "echo", "0", None).await;
    let body = json!({"orchestrator_id": "demo_orchestrator", "skill_name": "echo", "input_data": {}, "budget": 0});
    let job = market.hub.post("/jobs", None, &body).await.expect(202).str("/job_id");
    let reply = market.hub.post(&path(&job), None, &json!({})).await.expect(200);
    assert_eq!(reply.str("/status"), "FAILURE");
    assert_eq!(reply.str("/error_message"), "cancelled by requester");
    assert_eq!(reply.at("/error_code"), Value::Null);
    market.stop().await;
}
