//! The local log of a worker's program: `rialto job log`, and its lines in `watch`.

use serde_json::json;

use super::kit::{CliFixture, command, finished};
use crate::runtime::kit::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_on_this_machine_is_printed_and_cannot_take_over_the_terminal() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &worker);
    let id = fixture.posted("shout", &[]).await;
    let missing = fixture.run(&["job", "log", &id]).await.failed(3, "no log of job");
    assert!(missing.err.contains("rialto agent run"), "{missing:#?}");
    std::fs::write(fixture.log_of("shout", &id), "one\n\x1b[2Jtwo").expect("written");
    let ran = fixture.run(&["job", "log", &id]).await.ok();
    assert_eq!(ran.out, "one\n\\u{1b}[2Jtwo\n");
    let document = fixture.run(&["job", "log", &id, "--json"]).await.ok().json();
    assert_eq!(document["logs"][0]["agent"], "shout");
    assert_eq!(document["logs"][0]["text"], "one\n\u{1b}[2Jtwo\n");
    let elsewhere = fixture.run(&["job", "log", "../../../../etc", "--json"]).await.expect(3);
    assert!(elsewhere.json()["next"].is_string(), "{elsewhere:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_reads_all_messages() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &worker);
    let id = fixture.posted("shout", &[]).await;
    std::fs::write(fixture.log_of("shout", &id), "reading\nthinking \x07\nunfinished")
        .expect("written");
    fixture.work(&worker, &id, json!({"text": "HELLO"})).await;
    let ran = fixture.run(&["job", "watch", &id]).await.ok();
    let logged: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("log: ")).collect();
    assert_eq!(logged, ["log: reading", "log: thinking \\u{7}", "log: unfinished"], "{ran:#?}");
    assert_eq!(ran.json(), json!({"text": "HELLO"}), "the log is not in the output");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_running_agent_logs_is_found_under_the_id_of_the_job() {
    let fixture = CliFixture::start().await;
    let place = Place::new();
    let program = "echo thinking hard >&2; echo '{\"text\":\"HELLO\"}'";
    let flags = ["--skill", "shout", "--price", "0.05", "--exec", program];
    let _runtime = place.at_work(&fixture.hub, "said", &flags).await;
    let id = fixture.posted("shout", &["--wait"]).await;
    let home = place.path("home");
    for (verb, told) in [("log", "thinking hard\n"), ("watch", "log: thinking hard\n")] {
        let mut command = command(&home, &fixture.url, &["job", verb, &id]);
        command.env("RIALTO_KEY", &fixture.boss.key);
        let ran = finished(command, "").await.ok();
        assert!([&ran.out, &ran.err].iter().any(|said| said.contains(told)), "{ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_found_by_the_id_that_its_requester_gave() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &worker);
    let own = "0e37df36-f698-41e6-8a1c-0d2f6e2c7a10";
    let id = fixture.posted("shout", &["--id", own]).await;
    std::fs::write(fixture.log_of("shout", &id), "one\n").expect("written");
    assert_eq!(fixture.run(&["job", "log", own]).await.ok().out, "one\n");
}
