//! `--watch` and `rialto job watch`: the progress of a job to its end.

use serde_json::json;

use super::kit::{CliFixture, command, finished};
use crate::kit::{ClosedPort, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn every_step_is_a_plain_line_where_no_terminal_is() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10", "--watch"];
    let mut command = fixture.command(&line);
    command.env("RIALTO_KEY", &fixture.boss.key);
    let watching = tokio::spawn(finished(command, ""));
    let in_hand = async || fixture.get("/v1/work", Some(&worker.key)).await.at("/jobs");
    eventually(async || in_hand().await != json!([])).await;
    let id = in_hand().await[0]["id"].as_str().expect("an id").to_owned();
    fixture.work(&worker, &id, json!({"text": "HELLO"})).await;
    let ran = watching.await.expect("no panic").ok();
    assert_eq!(ran.json(), json!({"text": "HELLO"}));
    assert!(!ran.err.contains('\r') && !ran.err.contains('\x1b'), "{ran:#?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines[..2], ["opened", "assigned to shop's agent"], "{ran:#?}");
    assert!(lines.last().is_some_and(|last| last.starts_with("done by shop's agent in ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_followed_to_its_end_and_ends_as_if_it_had_been_waited_for() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &[]).await;
    fixture.run(&["job", "watch", &id, "--timeout", "10ms"]).await.expect(8);
    fixture.work(&worker, &id, json!({"text": "HELLO"})).await;
    let ran = fixture.run(&["job", "watch", &id]).await.ok();
    assert_eq!(ran.json(), json!({"text": "HELLO"}));
    assert!(ran.err.contains("done by shop's agent in "), "{ran:#?}");
    let ran = fixture.run(&["job", "watch", &id, "--json"]).await.ok();
    assert_eq!(ran.str("/state"), "completed");
    let id = fixture.posted("shout", &[]).await;
    fixture.run(&["job", "cancel", &id, "--reason", "enough"]).await.ok();
    fixture.run(&["job", "watch", &id]).await.expect(1);
    assert_eq!(
        fixture.run(&["job", "watch", &id, "--json"]).await.expect(1).str("/state"),
        "cancelled"
    );
    fixture.run(&["job", "watch", "11111111-1111-4111-8111-111111111111"]).await.failed(3, "");
    let stranger = fixture.orchestrator("stranger").await;
    fixture.run_for(&stranger, &["job", "watch", &id]).await.failed(3, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_never_answered_is_not_waited_for() {
    let fixture = CliFixture::start().await;
    let nobody = ClosedPort::take();
    let line = ["job", "watch", "11111111-1111-4111-8111-111111111111", "--json"];
    let mut command = command(fixture.home.path(), &nobody.url, &line);
    command.env("RIALTO_KEY", &fixture.boss.key);
    let ran = finished(command, "").await.expect(7);
    assert!(ran.str("/next").contains("--hub"), "{ran:#?}");
}
