//! Polling for work: oldest first, at once or as soon as there is some (section 2.4).

use serde_json::json;

use super::market::{Market, success};
use crate::kit::{assert_malformed, counted};

fn path(market: &Market, query: &str) -> String {
    format!("/registry/agents/{}/jobs{query}", market.working.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_fetched_with_its_eight_fields_until_it_is_reported() {
    for market in Market::both(&[]).await {
        let more = json!({"timestamp_utc": "2026-02-11T14:15:09Z"});
        let job = market.ask(&market.working, more).await.expect(202).str("/job_id");
        let work = market.fetch(&market.working).await;
        let fields: Vec<&String> = work[0].as_object().expect("an object").keys().collect();
        let printed = [
            "budget",
            "callback_url",
            "currency",
            "input_data",
            "job_id",
            "orchestrator_id",
            "skill_name",
            "timestamp_utc",
        ];
        assert_eq!(fields, printed);
        assert_eq!(work[0]["job_id"], job);
        assert_eq!(work[0]["orchestrator_id"], market.asking.id);
        assert_eq!(work[0]["budget"], 0.15);
        assert_eq!(work[0]["timestamp_utc"], "2026-02-11T14:15:09Z");
        let address = work[0]["callback_url"].as_str().expect("an address");
        assert!(
            address.starts_with(&format!("{}/registry/callbacks/", market.hub.url)),
            "{address}"
        );
        assert_eq!(
            market.fetch(&market.working).await,
            work,
            "work is shown again until it is done"
        );
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
        assert!(market.fetch(&market.working).await.is_empty());
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_fifty_come_first() {
    let market = Market::keyed(&[]).await;
    let mut jobs = Vec::new();
    for _ in 0..53 {
        jobs.push(market.pending().await);
    }
    let ids = async || {
        let work = market.fetch(&market.working).await;
        work.iter().map(|one| one["job_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, jobs[..50]);
    for job in &jobs[..4] {
        market.report(&success(job, &market.working, "0.10")).await.expect(200);
    }
    assert_eq!(ids().await, jobs[4..]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_waits_gets_the_job_when_it_comes() {
    for market in Market::both(&[]).await {
        let path = path(&market, "?status=PENDING&wait=30");
        let poll = market.hub.get(&path, market.key(&market.working));
        let (work, job) = tokio::join!(poll, market.pending());
        assert_eq!(work.expect(200).str("/jobs/0/job_id"), job);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_without_work_ends_empty() {
    let market = Market::keyed(&[]).await;
    for query in ["", "?wait=0", "?wait=1", "?status=PENDING"] {
        let reply =
            market.hub.get(&path(&market, query), Some(&market.working.key)).await.expect(200);
        assert_eq!(reply.json(), json!({"jobs": []}));
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_waits_for_ever_or_for_something_else_is_refused() {
    let market = Market::keyed(&[]).await;
    let before = counted(&market.hub);
    for (query, field) in [
        ("?wait=31", "?wait"),
        ("?wait=-1", "?wait"),
        ("?wait=soon", "?wait"),
        ("?wait=1.5", "?wait"),
        ("?status=DONE", "?status"),
        ("?status=pending", "?status"),
    ] {
        let reply = market.hub.get(&path(&market, query), Some(&market.working.key)).await;
        assert_malformed(&reply, field);
    }
    assert_eq!(counted(&market.hub), before);
    market.stop().await;
}
