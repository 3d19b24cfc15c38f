//! One job from end to end, in each of the three ways a worker can be reached.

use serde_json::json;

use crate::kit::{Behaviour, TestHub, Worker};

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_job_runs_at_an_endpoint_and_settles() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({"entities": []}), "0.10")).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", Some(&worker.url)).await;
    hub.grant("o1", "100.00").await;
    let reply = hub.hire(&asking, &working, "analyze_text", "0.15").await.expect(200);
    assert_eq!(reply.str("/status"), "SUCCESS");
    assert_eq!(hub.balance("o1").await, ("99.90".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("acme").await.0, "0.10");
    assert_eq!(hub.score(&working).await, "51.0");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_job_is_fetched_by_polling_and_settles() {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", None).await;
    hub.grant("o1", "1.00").await;
    let reply = hub.hire(&asking, &working, "analyze_text", "0.15").await.expect(202);
    assert_eq!(hub.balance("o1").await, ("0.85".to_owned(), "0.15".to_owned()));
    let path = format!("/registry/agents/{}/jobs?status=PENDING", working.id);
    let work = hub.get(&path, Some(&working.key)).await.expect(200);
    assert_eq!(work.str("/jobs/0/job_id"), reply.str("/job_id"));
    hub.report(&working, &reply.str("/job_id"), "SUCCESS", "0.10").await.expect(200);
    assert_eq!(hub.balance("o1").await, ("0.90".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}
