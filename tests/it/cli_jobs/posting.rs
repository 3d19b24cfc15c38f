//! `rialto job post` without waiting.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::kit::{CliFixture, command, finished};
use crate::kit::ClosedPort;

const INPUT: &str = r#"{"text":"hello","n":1.50}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_posted_job_is_told_at_once_by_id_and_state() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let line = ["job", "post", "--skill", "shout", "--input", INPUT, "--budget", "0.10"];
    let ran = fixture.run(&line).await.ok();
    let (id, state) = ran.out.trim().split_once(' ').expect("two words");
    assert_eq!((state, ran.err.as_str()), ("assigned", ""));
    let job = fixture.get(&format!("/v1/jobs/{id}"), Some(&worker.key)).await.expect(200);
    assert_eq!(job.at("/input"), json!({"text": "hello", "n": 1.5}));
    assert!(job.text.contains("1.50"), "digits are unchanged: {}", job.text);
    let ran = fixture.run(&[&line[..], &["--json"]].concat()).await.ok();
    let shown = fixture.get(&format!("/v1/jobs/{}", ran.str("/id")), Some(&fixture.boss.key)).await;
    assert_eq!(ran.json(), shown.expect(200).json(), "the document is the hub's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_comes_from_the_line_a_file_or_a_pipe() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let path = fixture.home.path().join("in.json");
    std::fs::write(&path, INPUT).expect("written");
    let from_file = format!("@{}", path.display());
    for (given, piped) in [(INPUT, ""), (&from_file, ""), ("-", INPUT)] {
        let line = ["job", "post", "--skill", "shout", "--budget", "0.10", "--json", "--input"];
        let mut command = fixture.command(&[&line[..], &[given]].concat());
        command.env("RIALTO_KEY", &fixture.boss.key);
        let ran = finished(command, piped).await.ok();
        assert_eq!(ran.json()["input"], json!({"text": "hello", "n": 1.5}), "{given}");
    }
    for given in ["hello", "@/nowhere", "-"] {
        let line = ["job", "post", "--skill", "shout", "--budget", "1", "--input", given];
        let ran = fixture.run(&line).await.failed(2, r#"--input '{"text":"hello"}'"#);
        assert!(ran.err.lines().count() == 1, "{ran:#?}");
        let ran = fixture.run(&[&line[..], &["--json"]].concat()).await.expect(2);
        assert!(ran.str("/next").contains("--input @file.json"), "{ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_may_be_for_one_agent_alone_and_told_to_a_url() {
    let fixture = CliFixture::start().await;
    fixture.agent("cheap", "shout", "0.01", None).await;
    let dear = fixture.agent("dear", "shout", "0.09", None).await;
    let more = ["--to", dear.id.as_str(), "--callback", "http://127.0.0.1:9/done"];
    let id = fixture.posted("shout", &more).await;
    let job = fixture.get(&format!("/v1/jobs/{id}"), Some(&fixture.boss.key)).await.expect(200);
    assert_eq!(job.str("/callback"), "http://127.0.0.1:9/done");
    let in_hand = fixture.get("/v1/work", Some(&dear.key)).await.expect(200);
    assert_eq!(in_hand.str("/jobs/0/id"), id);
    let id = fixture.posted("shout", &["--select", "cheapest"]).await;
    let job = fixture.get(&format!("/v1/jobs/{id}"), Some(&fixture.boss.key)).await.expect(200);
    assert!(job.text.contains("\"price\":0.01"), "{}", job.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_is_one_job_and_never_two() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let first = fixture.posted("shout", &["--id", id]).await;
    assert_eq!(fixture.posted("shout", &["--id", id]).await, first);
    let other =
        ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10", "--id", id];
    fixture.run(&other).await.failed(5, "");
    assert_eq!(fixture.balance("boss").await, ("99.90".to_owned(), "0.10".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_no_has_its_exit_code() {
    let fixture = CliFixture::with(&[("limits.writes_per_minute", "1")]).await;
    let line = |more: &[&'static str]| {
        let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10"];
        [&line[..], more].concat()
    };
    fixture.run(&line(&["--to", "nobody-at-all"])).await.failed(3, "");
    // The one write of this minute is used up.
    let ran = fixture.run(&line(&[])).await.failed(6, "try again in");
    assert!(ran.err.contains("--id"), "it says how to continue: {ran:#?}");
    let mut stranger = fixture.command(&line(&["--json"]));
    stranger.env("RIALTO_KEY", "rk_wrong");
    let ran = finished(stranger, "").await.expect(4);
    assert!(ran.json()["error"].is_string() && ran.json()["next"].is_string(), "{ran:#?}");
    let nobody = ClosedPort::take();
    let mut lost = command(fixture.home.path(), &nobody.url, &line(&["--json"]));
    lost.env("RIALTO_KEY", &fixture.boss.key);
    let ran = finished(lost, "").await.expect(7);
    assert!(ran.str("/next").contains("--id "), "{ran:#?}");
    fixture.run(&["job", "post", "--skill", "shout"]).await.expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_cannot_be_paid_is_refused_and_changes_nothing() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let poor = fixture.orchestrator("poor").await;
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10"];
    let ran = fixture.run_for(&poor, &line).await.failed(1, "credits");
    assert!(ran.err.contains("too_few_credits"), "{ran:#?}");
    let listed = fixture.run_for(&poor, &["job", "ls", "--json"]).await.ok();
    assert_eq!(listed.json(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_a_key_is_registered_once() {
    let fixture = CliFixture::with(&[("ledger.welcome_grant", "1.00")]).await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let home = TempDir::new().expect("a directory");
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10", "--json"];
    let mut requesters = Vec::new();
    for told in [1, 0] {
        let ran = finished(command(home.path(), &fixture.url, &line), "").await.ok();
        assert_eq!(ran.err.matches("registered as").count(), told, "{ran:#?}");
        requesters.push(ran.json()["requester"].clone());
    }
    assert!(requesters[0] != Value::Null && requesters[0] == requesters[1], "{requesters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_may_have_a_deadline_as_a_moment_or_a_length_from_now() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let shown = async |more: &[&str]| {
        let id = fixture.posted("shout", more).await;
        fixture
            .get(&format!("/v1/jobs/{id}"), Some(&fixture.boss.key))
            .await
            .expect(200)
            .str("/deadline")
    };
    let soon = shown(&["--deadline", "10m"]).await;
    assert!(soon < shown(&["--deadline", "20m"]).await);
    let again = shown(&["--deadline", &soon]).await;
    assert_eq!(again, soon);
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10"];
    let line = [&line[..], &["--deadline"]].concat();
    fixture.run(&[&line[..], &["soon"]].concat()).await.failed(2, "10m");
    let nobody = ClosedPort::take();
    let line = [&line[..], &["10m", "--json"]].concat();
    let mut lost = command(fixture.home.path(), &nobody.url, &line);
    lost.env("RIALTO_KEY", &fixture.boss.key);
    let ran = finished(lost, "").await.expect(7);
    assert!(ran.str("/next").contains("--deadline 20"), "it must be the same job: {ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_below_nothing_is_told_so_and_a_cancelled_job_has_no_other_cause() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "-1"];
    let ran = fixture.run(&line).await.expect(2);
    assert!(ran.err.contains("must not be negative"), "{ran:#?}");
    let id = fixture.posted("shout", &[]).await;
    fixture.run(&["job", "cancel", &id]).await.ok();
    let shown = fixture.run(&["job", "show", &id]).await.ok().out;
    assert!(shown.lines().next().is_some_and(|line| line.ends_with(" cancelled")), "{shown}");
}
