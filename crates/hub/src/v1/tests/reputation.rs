//! Tests that both scores can be recomputed from what is shown.

use rialto_core::job::Selection;
use rialto_core::time::Millis;

use super::kit::{Agent, Hub};

async fn scene() -> (Hub, Agent, Agent, String) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    let path = format!("/v1/agents/{}/reputation", worker.id);
    (hub, client, worker, path)
}

#[tokio::test]
async fn a_new_agent_has_the_initial_score() {
    let (hub, _, worker, path) = scene().await;
    let got = hub.get(&path, "").await;
    let registry = r#"{"score":50.0,"successes":0,"failures":0,"last":null}"#;
    let begins =
        format!(r#"{{"agent":{},"registry":{registry},"openclaw":{{"score":null,"#, worker.id);
    assert!(got.text.starts_with(&begins), "{}", got.text);
    assert_eq!(got.body["openclaw"]["counted"], 0);
    hub.get("/v1/agents/99/reputation", "").await.is_problem(404, "not_found");
    let by_name = format!("/v1/agents/{}/reputation", worker.native);
    assert_eq!(hub.get(&by_name, "").await.text, got.text);
}

#[tokio::test]
async fn all_numbers_of_the_last_step_are_reported_without_agent_names() {
    let (hub, client, worker, path) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    hub.clock.advance(Millis(1_500));
    hub.succeed(&job).await;
    let got = hub.get(&path, "").await;
    let registry = r#""registry":{"score":51.0,"successes":1,"failures":0,"last":{"before":50.0,"hirer":50.0,"ok":true,"after":51.0,"formula":"old + 2.0 × contractor/100"}}"#;
    assert!(got.text.contains(registry), "{}", got.text);
    let scale = got.body["openclaw"]["response_scale_ms"].as_i64().expect("a scale");
    assert_eq!(scale, 10_000);
    let openclaw = r#""openclaw":{"score":0.985,"success_rate":1.0,"on_time_completion_rate":1.0,"average_response_time_ms":1500,"response_scale_ms":10000,"response_time_score":0.85,"counted":1,"#;
    assert!(got.text.contains(openclaw), "{}", got.text);

    let job = hub.open(&client, "sum", "0.50").await;
    hub.report(&job, false).await;
    let got = hub.get(&path, "").await;
    let last = r#""score":46.5,"successes":1,"failures":1,"last":{"before":51.0,"hirer":50.0,"ok":false,"after":46.5,"#;
    assert!(got.text.contains(last), "{}", got.text);

    // Work between agents of one owner does not count, and the last step does not change.
    hub.grant("globex", "1.00").await;
    let colleague = hub.enrol("colleague", "globex", None).await;
    for _ in 0..20 {
        let job = hub.hire(&colleague, "sum", "0.05", Selection::Direct(worker.id)).await;
        hub.succeed(&job).await;
    }
    let after = hub.get(&path, "").await;
    assert_eq!(after.body["registry"], got.body["registry"]);
    for secret in [&client.native, "rich", &job.uuid.to_string(), "0.05"] {
        assert!(!after.text.contains(secret), "{secret}: {}", after.text);
    }
}

#[tokio::test]
async fn scores_keep_all_their_digits() {
    let (hub, client, worker, path) = scene().await;
    // A requester with score 51.0 gives 1.02.
    let first = hub.enrol("first", "initech", Some(("add", "0.05"))).await;
    let job = hub.hire(&client, "add", "0.50", Selection::Direct(first.id)).await;
    hub.succeed(&job).await;
    hub.grant("initech", "1.00").await;
    for _ in 0..2 {
        let job = hub.hire(&first, "sum", "0.05", Selection::Direct(worker.id)).await;
        hub.succeed(&job).await;
    }
    let got = hub.get(&path, "").await;
    assert!(
        got.text.contains(r#""before":51.02,"hirer":51.0,"ok":true,"after":52.04,"#),
        "{}",
        got.text
    );
}
