//! `rialto job submit`, `decline` and `cancel`: an assigned job.

use serde_json::json;

use super::kit::{CliFixture, finished};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_submits_what_it_made_and_is_paid_once() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &[]).await;
    let line = ["job", "submit", &id, "--output", r#"{"text":"HELLO","n":1.50}"#];
    let ran = fixture.run_for(&worker, &line).await.ok();
    assert_eq!(ran.out, format!("{id} completed\n"));
    let ran = fixture.run_for(&worker, &[&line[..], &["--json"]].concat()).await.ok();
    assert_eq!((ran.str("/state"), &ran.json()["repeated"]), ("completed".into(), &json!(true)));
    assert_eq!(fixture.balance("shop").await.0, "0.05");
    let job = fixture.get(&format!("/v1/jobs/{id}"), Some(&fixture.boss.key)).await.expect(200);
    assert!(job.text.contains(r#""output":{"text":"HELLO","n":1.50}"#), "{}", job.text);
    let other = ["job", "submit", &id, "--failed", "changed my mind"];
    fixture.run_for(&worker, &other).await.failed(5, "");
    assert_eq!(
        fixture.run_for(&worker, &[&other[..], &["--json"]].concat()).await.expect(5).str("/code"),
        "wrong_state"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_why_it_failed_and_the_requester_reads_it() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &[]).await;
    let ran =
        fixture.run_for(&worker, &["job", "submit", &id, "--failed", "no paper left"]).await.ok();
    assert_eq!(ran.out, format!("{id} failed\n"));
    let shown = fixture.run(&["job", "show", &id]).await.ok().out;
    assert!(shown.lines().any(|line| line == "message    no paper left"), "{shown}");
    assert_eq!(fixture.balance("boss").await.0, "100.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_context_is_acted_for_by_name() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &worker);
    let id = fixture.posted("shout", &[]).await;
    let output = r#"{"text":"HELLO"}"#;
    let line = |name: &'static str| ["job", "submit", "--output", output, "--as", name];
    let with_id = |name: &'static str| [&line(name)[..], &[id.as_str()]].concat();
    let ran = fixture.run(&with_id("nobody")).await.failed(3, "agent nobody not found");
    assert!(ran.err.contains("its agents are shout"), "{ran:#?}");
    fixture.run(&with_id("../shout")).await.failed(3, "agent ../shout not found");
    // The boss is the job's requester, not its worker.
    fixture.run(&["job", "submit", &id, "--output", output]).await.failed(3, "");
    assert_eq!(fixture.run(&with_id("shout")).await.ok().out, format!("{id} completed\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_job_goes_to_the_next_worker_or_ends_with_the_reason() {
    let fixture = CliFixture::start().await;
    let first = fixture.agent("first", "shout", "0.01", None).await;
    let second = fixture.agent("second", "shout", "0.09", None).await;
    let id = fixture.posted("shout", &["--select", "cheapest"]).await;
    let ran = fixture.run_for(&first, &["job", "decline", &id, "--json"]).await.ok();
    assert_eq!((ran.str("/id"), ran.str("/state")), (id.clone(), "assigned".into()));
    let in_hand = fixture.get("/v1/work", Some(&second.key)).await.expect(200);
    assert_eq!(in_hand.str("/jobs/0/id"), id);
    // The job is no longer assigned to the first worker.
    fixture.run_for(&first, &["job", "decline", &id]).await.failed(3, "");
    let named = fixture.posted("shout", &["--to", &first.id]).await;
    fixture.keep("first", &first);
    let line = ["job", "decline", &named, "--reason", "too busy", "--as", "first"];
    let ran = fixture.run(&line).await.ok();
    assert_eq!(ran.out.split_whitespace().next(), Some(named.as_str()), "{ran:#?}");
    let shown = fixture.run(&["job", "show", &named]).await.ok().out;
    assert!(shown.contains("too busy"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_cancelled_by_its_requester_and_refunded() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &[]).await;
    assert_eq!(fixture.balance("boss").await.1, "0.10");
    fixture.run_for(&worker, &["job", "cancel", &id]).await.failed(3, "");
    let ran = fixture.run(&["job", "cancel", &id, "--reason", "enough"]).await.ok();
    assert_eq!(ran.out, format!("{id} cancelled\n"));
    assert_eq!(fixture.balance("boss").await, ("100.00".to_owned(), "0.00".to_owned()));
    let late = fixture.posted("shout", &[]).await;
    fixture.work(&worker, &late, json!({})).await;
    fixture.run(&["job", "cancel", &late]).await.failed(5, "rialto job watch");
    let started = fixture.posted("shout", &[]).await;
    fixture.get("/v1/work", Some(&worker.key)).await.expect(200);
    fixture.run(&["job", "cancel", &started]).await.failed(5, "can no longer be cancelled");
    let mut keyless = fixture.command(&["job", "cancel", &late, "--json"]);
    keyless.env("RIALTO_HOME", fixture.home.path().join("empty"));
    let ran = finished(keyless, "").await.expect(4);
    assert!(ran.str("/next").contains("--key-file"), "{ran:#?}");
}
