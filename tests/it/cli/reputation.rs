//! `rialto rep`: scores, and how they are computed.

use serde_json::json;

use super::kit::{Cli, Stage};
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn a_score_is_explained_with_its_numbers_and_computed_again() {
    let hub = TestHub::serve(&[]).await;
    let (boss, worker) =
        (hub.orchestrator("boss").await, hub.agent("shop", "sum", "0.05", None).await);
    hub.grant("boss", "10").await;
    let cli = Cli::at(&hub.url, &worker.key).await;
    let fresh = cli.run(&["rep", "explain"]).await.ok();
    assert!(fresh.out.contains("no finished job yet: 50.0  matches the hub"), "{fresh:#?}");
    let job = hub.hire(&boss, &worker, "sum", "0.05").await.expect(202).str("/job_id");
    hub.report(&worker, &job, "SUCCESS", "0.05").await.expect(200);
    let shown = cli.json(&["rep", "show"]).await;
    assert_eq!(shown["registry"]["successes"], json!(1), "{shown}");
    let told = cli.run(&["rep", "explain"]).await.ok().out;
    assert!(told.contains("50.0 + 2.0 × 50.0/100 = 51.0  matches the hub"), "{told}");
    let all = cli.json(&["rep", "explain", &worker.id]).await;
    for sum in all["sums"].as_array().expect("a list") {
        assert_eq!(sum["agrees"], true, "{sum}");
    }
    cli.run(&["rep", "show", "nobody"]).await.expect(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_score_that_does_not_follow_is_marked() {
    let facts = r#"{"agent":7,"registry":{"score":52.0,"successes":1,"failures":0,"last":
        {"before":50.0,"hirer":50.0,"ok":true,"after":52.0,"formula":"old + 2.0 × contractor/100"}},
        "openclaw":{"score":null,"success_rate":null,"on_time_completion_rate":null,
        "average_response_time_ms":null,"response_scale_ms":10000,"counted":0,"formula":"f"}}"#;
    let stage = Stage::start(&[("/v1/agents/7/reputation", facts)]).await;
    let cli = Cli::new().with("RIALTO_HUB", &stage.url);
    let ran = cli.run(&["rep", "explain", "7"]).await.expect(1);
    assert!(ran.out.contains("= 51.0  MISMATCH: the hub shows 52.0"), "{ran:#?}");
    let ran = cli.run(&["rep", "explain", "7", "--json"]).await.expect(1);
    let sums = ran.json()["sums"].clone();
    assert_eq!((&sums[0]["agrees"], &sums[1]["agrees"]), (&json!(false), &json!(true)));
}
