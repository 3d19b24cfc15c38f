//! Lost responses and hubs that go away: the command posts a job once, and waits for it.

use serde_json::json;

use super::door::Door;
use super::kit::{CliFixture, command, finished};
use crate::kit::{Lines, TestHub, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_answer_got_lost_is_posted_once() {
    let fixture = CliFixture::start().await;
    fixture.agent("shop", "shout", "0.05", None).await;
    let door = Door::to(&fixture.url).await;
    door.lose_an_answer(&fixture.url);
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10", "--json"];
    let mut command = command(fixture.home.path(), &door.url, &line);
    command.env("RIALTO_KEY", &fixture.boss.key);
    let ran = finished(command, "").await.ok();
    assert!(door.lost_it(), "it was sent twice");
    let jobs = fixture.get("/v1/jobs", Some(&fixture.boss.key)).await.expect(200);
    assert_eq!(jobs.at("/items").as_array().map(Vec::len), Some(1), "{}", jobs.text);
    assert_eq!(jobs.str("/items/0/id"), ran.str("/id"));
    assert_eq!(fixture.balance("boss").await.1, "0.10");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_waited_for_over_a_restart_of_the_hub() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let door = Door::to(&fixture.url).await;
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10", "--wait"];
    let mut command = command(fixture.home.path(), &door.url, &line);
    command.env("RIALTO_KEY", &fixture.boss.key);
    let waiting = tokio::spawn(finished(command, ""));
    let in_hand = async || fixture.get("/v1/work", Some(&worker.key)).await.at("/jobs");
    eventually(async || in_hand().await != json!([])).await;
    let id = in_hand().await[0]["id"].as_str().expect("an id").to_owned();
    door.close();
    let CliFixture { hub, home, .. } = fixture;
    let hub: TestHub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let body = json!({"ok": true, "output": {"text": "HELLO"}});
    let path = format!("/v1/jobs/{id}/result");
    hub.post(&path, Some(&worker.key), &body).await.expect(200);
    door.open_to(&hub.url);
    let ran = waiting.await.expect("no panic").ok();
    assert_eq!(ran.json(), json!({"text": "HELLO"}));
    drop(home);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_must_wait_says_so_at_once_and_ends_with_its_timeout() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let offline = json!({"status": "offline"});
    fixture.post("/v1/me/status", Some(&worker.key), &offline).await.expect(200);
    let line = ["job", "post", "--skill", "shout", "--input", "{}", "--budget", "0.10"];
    let short = [&line[..], &["--timeout", "5s"]].concat();
    let ran = fixture.run(&short).await.expect(8);
    assert!(ran.err.contains("within 5 s") && ran.err.contains("--timeout"), "{ran:#?}");
    let mut long = fixture.command(&line);
    long.env("RIALTO_KEY", &fixture.boss.key).stderr(std::process::Stdio::piped());
    let said = tokio::task::spawn_blocking(move || {
        let mut child = long.spawn().expect("it starts");
        let said = Lines::of(child.stderr.take()).next();
        child.kill().expect("it waits");
        child.wait().expect("it ends");
        said
    });
    let said = said.await.expect("no panic").expect("a line");
    assert!(said.contains("retrying in 30 s"), "{said}");
}
