//! `rialto job submit`, `decline` and `cancel`: an assigned job.

use serde_json::json;

use super::kit::{Desk, finished};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_submits_what_it_made_and_is_paid_once() {
    let desk = Desk::start().await;
    let worker = desk.agent("shop", "shout", "0.05", None).await;
    let id = desk.posted("shout", &[]).await;
    let line = ["job", "submit", &id, "--output", r#"{"text":"HELLO","n":1.50}"#];
    let ran = desk.run_for(&worker, &line).await.ok();
    assert_eq!(ran.out, format!("{id} completed\n"));
    let ran = desk.run_for(&worker, &[&line[..], &["--json"]].concat()).await.ok();
    assert_eq!((ran.str("/state"), &ran.json()["repeated"]), ("completed".into(), &json!(true)));
    assert_eq!(desk.balance("shop").await.0, "0.05");
    let job = desk.get(&format!("/v1/jobs/{id}"), Some(&desk.boss.key)).await.expect(200);
    assert!(job.text.contains(r#""output":{"text":"HELLO","n":1.50}"#), "{}", job.text);
    let other = ["job", "submit", &id, "--failed", "changed my mind"];
    desk.run_for(&worker, &other).await.failed(5, "");
    assert_eq!(
        desk.run_for(&worker, &[&other[..], &["--json"]].concat()).await.expect(5).str("/code"),
        "wrong_state"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_why_it_failed_and_the_requester_reads_it() {
    let desk = Desk::start().await;
    let worker = desk.agent("shop", "shout", "0.05", None).await;
    let id = desk.posted("shout", &[]).await;
    let ran =
        desk.run_for(&worker, &["job", "submit", &id, "--failed", "no paper left"]).await.ok();
    assert_eq!(ran.out, format!("{id} failed\n"));
    let shown = desk.run(&["job", "show", &id]).await.ok().out;
    assert!(shown.lines().any(|line| line == "message    no paper left"), "{shown}");
    assert_eq!(desk.balance("boss").await.0, "100.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_context_is_acted_for_by_name() {
    let desk = Desk::start().await;
    let worker = desk.agent("shop", "shout", "0.05", None).await;
    desk.keep("shout", &worker);
    let id = desk.posted("shout", &[]).await;
    let output = r#"{"text":"HELLO"}"#;
    let line = |name: &'static str| ["job", "submit", "--output", output, "--as", name];
    let with_id = |name: &'static str| [&line(name)[..], &[id.as_str()]].concat();
    let ran = desk.run(&with_id("nobody")).await.failed(3, "agent nobody not found");
    assert!(ran.err.contains("its agents are shout"), "{ran:#?}");
    desk.run(&with_id("../shout")).await.failed(3, "agent ../shout not found");
    // The boss is the job's requester, not its worker.
    desk.run(&["job", "submit", &id, "--output", output]).await.failed(3, "");
    assert_eq!(desk.run(&with_id("shout")).await.ok().out, format!("{id} completed\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_job_goes_to_the_next_worker_or_ends_with_the_reason() {
    let desk = Desk::start().await;
    let first = desk.agent("first", "shout", "0.01", None).await;
    let second = desk.agent("second", "shout", "0.09", None).await;
    let id = desk.posted("shout", &["--select", "cheapest"]).await;
    let ran = desk.run_for(&first, &["job", "decline", &id, "--json"]).await.ok();
    assert_eq!((ran.str("/id"), ran.str("/state")), (id.clone(), "assigned".into()));
    let in_hand = desk.get("/v1/work", Some(&second.key)).await.expect(200);
    assert_eq!(in_hand.str("/jobs/0/id"), id);
    // The job is no longer assigned to the first worker.
    desk.run_for(&first, &["job", "decline", &id]).await.failed(3, "");
    let named = desk.posted("shout", &["--to", &first.id]).await;
    desk.keep("first", &first);
    let line = ["job", "decline", &named, "--reason", "too busy", "--as", "first"];
    let ran = desk.run(&line).await.ok();
    assert_eq!(ran.out.split_whitespace().next(), Some(named.as_str()), "{ran:#?}");
    let shown = desk.run(&["job", "show", &named]).await.ok().out;
    assert!(shown.contains("too busy"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_called_off_by_whoever_asked_and_paid_back() {
    let desk = Desk::start().await;
    let worker = desk.agent("shop", "shout", "0.05", None).await;
    let id = desk.posted("shout", &[]).await;
    assert_eq!(desk.balance("boss").await.1, "0.10");
    desk.run_for(&worker, &["job", "cancel", &id]).await.failed(3, "");
    let ran = desk.run(&["job", "cancel", &id, "--reason", "enough"]).await.ok();
    assert_eq!(ran.out, format!("{id} cancelled\n"));
    assert_eq!(desk.balance("boss").await, ("100.00".to_owned(), "0.00".to_owned()));
    let late = desk.posted("shout", &[]).await;
    desk.work(&worker, &late, json!({})).await;
    desk.run(&["job", "cancel", &late]).await.failed(5, "rialto job watch");
    let started = desk.posted("shout", &[]).await;
    desk.get("/v1/work", Some(&worker.key)).await.expect(200);
    desk.run(&["job", "cancel", &started]).await.failed(5, "can no longer be cancelled");
    let mut keyless = desk.command(&["job", "cancel", &late, "--json"]);
    keyless.env("RIALTO_HOME", desk.home.path().join("empty"));
    let ran = finished(keyless, "").await.expect(4);
    assert!(ran.str("/next").contains("--key-file"), "{ran:#?}");
}
