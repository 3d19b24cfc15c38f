//! `rialto job post --wait`: the outcome of a job.

use serde_json::json;

use super::kit::CliFixture;
use crate::kit::{Behaviour, Worker};

async fn shop(fixture: &CliFixture, behaviour: Behaviour) -> Worker {
    let worker = Worker::start(behaviour).await;
    fixture.agent("shop", "shout", "0.05", Some(&worker.url)).await;
    worker
}

fn line(more: &[&'static str]) -> Vec<&'static str> {
    let line = ["job", "post", "--skill", "shout", "--input", r#"{"text":"hello"}"#];
    [&line[..], &["--budget", "0.10", "--wait"], more].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_is_all_that_is_printed_and_the_summary_is_beside_it() {
    let fixture = CliFixture::start().await;
    let output = serde_json::from_str(r#"{"text":"HELLO","none":[]}"#).expect("JSON");
    let _worker = shop(&fixture, Behaviour::Succeed(output, "0.05")).await;
    let ran = fixture.run(&line(&[])).await.ok();
    assert_eq!(ran.json(), json!({"text": "HELLO", "none": []}));
    assert_eq!(ran.out.lines().count(), 4, "a line for each member: {ran:#?}");
    assert!(ran.err.starts_with("done by shop's agent in "), "{ran:#?}");
    assert!(ran.err.ends_with(" s, paid 0.05\n") && ran.err.lines().count() == 1, "{ran:#?}");
    let ran = fixture.run(&line(&["--json"])).await.ok();
    assert_eq!(ran.err, "");
    assert_eq!(ran.str("/state"), "completed");
    assert_eq!(ran.json()["result"]["output"], json!({"text": "HELLO", "none": []}));
    let shown = fixture.get(&format!("/v1/jobs/{}", ran.str("/id")), Some(&fixture.boss.key)).await;
    assert_eq!(ran.json(), shown.expect(200).json(), "the document is the hub's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_fails_with_the_workers_words() {
    let fixture = CliFixture::start().await;
    let _worker = shop(&fixture, Behaviour::Fail(Some("EXECUTION_ERROR"))).await;
    let ran = fixture.run(&line(&[])).await.failed(1, "failed by shop's agent: it broke");
    assert!(ran.err.contains("rialto job show "), "{ran:#?}");
    let ran = fixture.run(&line(&["--json"])).await.expect(1);
    assert_eq!((ran.str("/state"), ran.str("/result/text")), ("failed".into(), "it broke".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_is_over_the_job_goes_on() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let ran = fixture.run(&line(&["--timeout", "2s"])).await.failed(8, "it is still running");
    assert!(ran.err.contains("rialto job show "), "{ran:#?}");
    let ran = fixture.run(&line(&["--timeout", "2s", "--json"])).await.expect(8);
    let id = ran.str("/id");
    assert!(ran.str("/next").contains(&format!("rialto job watch {id}")), "{ran:#?}");
    fixture.work(&worker, &id, json!({"text": "HELLO"})).await;
    let ran = fixture.run(&["job", "show", &id, "--json"]).await.ok();
    assert_eq!(ran.str("/state"), "completed");
}
