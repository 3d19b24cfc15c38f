//! Which agent a command is about and which one it acts as: by name, with the right key, and with
//! helpful hints.

use rialto_client::KeyFile;
use serde_json::json;

use super::kit::{CliFixture, finished};
use crate::kit::{ClosedPort, output};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_found_by_what_it_calls_itself() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let name = "shop's agent";
    let shown = fixture.run(&["agent", "show", name, "--json"]).await.ok().json();
    assert_eq!(shown["names"]["registry"], json!(shop.id));
    let scored = fixture.run(&["rep", "show", name, "--json"]).await.ok().json();
    assert_eq!(scored["agent"], shown["id"]);
    fixture.run(&["rep", "explain", name]).await.ok();
    let posted = fixture.posted("shout", &["--to", name]).await;
    let job = fixture.run(&["job", "show", &posted, "--json"]).await.ok().json();
    assert_eq!(job["worker"], shown["id"]);
    // Two agents with one name: the command does not guess.
    let twin = json!({"agent_name": name, "owner_id": "twin", "version": "0.1", "skills": []});
    fixture.enrol(&twin, None).await;
    let ran = fixture
        .run(&["agent", "show", name])
        .await
        .failed(5, "2 agents have the name shop's agent");
    assert!(ran.err.contains(&shown["id"].to_string()), "{ran:#?}");
    fixture.run(&["agent", "show", "nobody-there"]).await.failed(3, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_acts_for_the_agent_that_is_named() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &shop);
    let posted = fixture.posted("shout", &[]).await;
    fixture.work(&shop, &posted, json!({})).await;
    // Each acts as the shop and not as the boss, whose key is in the environment.
    let own = fixture.run(&["wallet", "balance", "--as", "shout", "--json"]).await.ok().json();
    let account = fixture.get("/v1/me", Some(&shop.key)).await.expect(200).at("/account");
    assert_eq!(own, account);
    assert_eq!(own["available"], json!(0.05));
    let ledger = fixture.run(&["wallet", "ledger", "--as", "shout", "--json"]).await.ok().json();
    assert_eq!(ledger.as_array().map(Vec::len), Some(1), "{ledger}");
    fixture.run(&["wallet", "verify", "--as", "shout"]).await.ok();
    let worked = ["job", "ls", "--worked", "--as", "shout", "--json"];
    assert_eq!(fixture.run(&worked).await.ok().json()[0]["id"], json!(posted));
    fixture.run(&["job", "show", &posted, "--as", "shout"]).await.ok();
    fixture.run(&["rep", "show", "--as", "shout"]).await.ok();
    fixture.run(&["webhook", "ls", "--as", "shout"]).await.ok();
    fixture.run(&["msg", "history", "--as", "shout"]).await.ok();
    // Commands without an agent refuse `--as`.
    fixture.run(&["wallet", "grant", "x", "1", "--as", "shout"]).await.failed(2, "--as shout");
    fixture.run(&["agent", "run", "--as", "shout"]).await.failed(2, "--name");
    fixture.run(&["wallet", "balance", "--as", "nobody"]).await.failed(3, "its agents are shout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_refused_is_named_by_where_it_comes_from() {
    let fixture = CliFixture::start().await;
    let mut wrong = fixture.command(&["wallet", "balance"]);
    wrong.env("RIALTO_KEY", "rk_wrong");
    finished(wrong, "").await.failed(4, "the hub rejected the key in RIALTO_KEY");
    let file = fixture.home.path().join("wrong.key");
    std::fs::write(&file, "rk_wrong\n").expect("written");
    let file = file.to_str().expect("text");
    fixture.run(&["wallet", "balance", "--key-file", file]).await.failed(4, file);
    // The operator's key is separate, and an agent's key does not help.
    fixture.run(&["wallet", "grant", "acme", "1"]).await.failed(4, "RIALTO_OPERATOR_KEY");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_not_there_refuses_the_connection_and_it_is_said_so() {
    let fixture = CliFixture::start().await;
    let nobody = ClosedPort::take();
    let line = ["wallet", "balance", "--hub", &nobody.url];
    fixture
        .run(&line)
        .await
        .failed(7, "connection refused; check that it is running; `rialto dev`");
    let doctor = fixture.run(&["doctor", "--hub", &nobody.url]).await.expect(1);
    assert!(doctor.out.contains("connection refused"), "{doctor:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_comes_with_one_that_is_free() {
    let fixture = CliFixture::start().await;
    let taken = fixture.url.trim_start_matches("http://");
    let data = fixture.home.path().join("data");
    for verb in ["serve", "dev"] {
        let mut command = fixture.command(&[verb, "--listen", taken, "--data"]);
        command.arg(&data);
        let ran = tokio::task::spawn_blocking(move || output(&mut command)).await;
        let ran = ran.expect("no panic").expect("it runs");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        let (_, free) = said.trim().rsplit_once("--listen ").expect(&said);
        let free: std::net::SocketAddr = free.parse().expect(free);
        assert_ne!(free.to_string(), taken);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_program_crashed_here_leads_to_its_log() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &shop);
    for (log, verb) in [("", "show"), ("Traceback: no such file\n", "log")] {
        let id = fixture.posted("shout", &[]).await;
        std::fs::write(fixture.log_of("shout", &id), log).expect("written");
        let body = json!({"ok": false, "message": "the program ended with status 1"});
        let path = format!("/v1/jobs/{id}/result");
        fixture.post(&path, Some(&shop.key), &body).await.expect(200);
        let hint = format!("`rialto job {verb} {id}` shows more");
        fixture.run(&["job", "watch", &id]).await.failed(1, &hint);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn context_show_and_doctor_name_the_same_context() {
    let fixture = CliFixture::start().await;
    let name = |text: &str| {
        let line = text.lines().find(|line| line.contains(&fixture.url)).expect("a hub");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    fixture.keep("shout", &fixture.boss);
    // Another hub in the environment is another context, for agents and keys.
    let other = CliFixture::start().await;
    for hub in [&fixture.url, &other.url] {
        let run = async |line: &[&str]| {
            let mut command = fixture.command(line);
            command.env("RIALTO_HUB", hub);
            finished(command, "").await
        };
        let shown = run(&["context", "show", "--json"]).await.ok().json();
        let checked = run(&["doctor", "--json"]).await.json();
        let checks = checked["checks"].as_array().expect("a list");
        let context = checks.iter().find(|check| check["check"] == "context").expect("it is there");
        let what = context["what"].as_str().expect("text");
        assert!(what.starts_with(shown["name"].as_str().expect("text")), "{what} is not {shown}");
        assert_eq!(shown["hub"], json!(hub));
    }
    assert!(name(&fixture.run(&["context", "show"]).await.ok().out).contains(&fixture.url));
    let shown = fixture.run(&["context", "show"]).await.ok().out;
    assert!(shown.contains("in RIALTO_KEY"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_webhook_secret_is_kept_where_the_key_is() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &shop);
    let path = fixture.home.path().join("contexts/default/agents/shout/agent.key");
    for _ in 0..2 {
        let ran = fixture.run(&["webhook", "rotate", "--as", "shout", "--json"]).await.ok();
        let kept = KeyFile::load(&path).expect("a key file");
        assert_eq!(kept.key.reveal(), shop.key);
        let secret = kept.webhook_secret.expect("a secret").reveal();
        assert_eq!(ran.str("/webhook_secret"), secret);
        assert_eq!(ran.str("/kept_in"), path.display().to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_new_hub_or_of_a_stopped_agent_is_told_how_it_works_again() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    fixture.keep("shout", &worker);
    fixture.call("DELETE", "/v1/me", Some(&worker.key), None).await.expect(200);
    let stopped = finished(fixture.command(&["wallet", "balance", "--as", "shout"]), "").await;
    let stopped = stopped.failed(4, "shout is stopped");
    assert!(stopped.err.contains("`rialto agent run`"), "{stopped:#?}");
    let me = fixture.home.path().join("contexts/default/me.key");
    std::fs::write(me, "rk_0000000000000000000000000000000000000000\n").expect("written");
    let new = finished(fixture.command(&["wallet", "balance"]), "").await;
    new.failed(4, "the next `rialto job post` registers you again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_agent_is_told_once_what_helps_and_of_no_other_key() {
    let fixture = CliFixture::start().await;
    let path = format!("/v1/operator/agents/{}/suspend", fixture.boss.id);
    fixture.call("POST", &path, Some(&fixture.operator), None).await.expect(200);
    let ran = fixture.run(&["wallet", "balance"]).await.expect(4);
    assert_eq!(ran.err.matches("operator").count(), 2, "{ran:#?}");
    assert!(ran.err.contains("suspended by the operator"), "{ran:#?}");
    let key = fixture.home.path().join("alice.key").display().to_string();
    let register = ["agent", "register", "alice", "--key-out", &key];
    finished(fixture.command(&register), "").await.ok();
    let path = "/v1/operator/agents/alice@chorus/suspend";
    fixture.call("POST", path, Some(&fixture.operator), None).await.expect(200);
    let send = ["msg", "send", "--key-file", &key, "--to", "somebody", "Hello"];
    let ran = finished(fixture.command(&send), "").await.expect(4);
    assert!(ran.err.contains("suspended") && !ran.err.contains("key"), "{ran:#?}");
}
