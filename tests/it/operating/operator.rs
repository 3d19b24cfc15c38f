//! `rialto operator` against a real hub.

use serde_json::{Value, json};

use crate::cli::kit::Cli;
use crate::kit::{Process, TestHub, operator_key, run};

async fn operator(hub: &TestHub) -> Cli {
    let cli = Cli::new().with("RIALTO_OPERATOR_KEY", &hub.operator);
    cli.with("RIALTO_HUB", &hub.url)
}

#[tokio::test(flavor = "multi_thread")]
async fn granting_credits_to_an_unknown_name_needs_the_create_flag() {
    let hub = TestHub::serve(&[]).await;
    let cli = operator(&hub).await;
    for verb in ["operator", "wallet"] {
        cli.run(&[verb, "grant", "acmee", "5"]).await.failed(3, &["--create"]);
    }
    assert!(hub.engine.with_world(|world| world.owner_by_name("acmee").is_none()));
    let ran = cli.run(&["operator", "grant", "acme", "5", "--create"]).await.ok();
    assert_eq!(ran.out, "acme: 5.00 available, 0.00 held\n");
    let ran = cli.run(&["operator", "grant", "acme", "1"]).await.ok();
    assert_eq!(ran.out, "acme: 6.00 available, 0.00 held\n");
    let ran = cli.run(&["operator", "burn", "acme", "2.50"]).await.ok();
    assert_eq!(ran.out, "acme: 3.50 available, 0.00 held\n");
    cli.run(&["operator", "burn", "nobody", "1"]).await.expect(3);
    cli.run(&["operator", "burn", "acme", "much"]).await.failed(2, &["100.00"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_jobs_and_agents_are_listed_for_people_and_programs() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("maker", "make", "0", None).await;
    let boss = hub.orchestrator("boss").await;
    hub.hire(&boss, &worker, "make", "0").await.expect(202);
    let cli = operator(&hub).await;
    assert_eq!(cli.json(&["operator", "stats"]).await["agents"], 2);
    let told = cli.run(&["operator", "stats"]).await.ok().out;
    assert!(told.contains("epoch: 1\n") && told.contains("live jobs: 1 "), "{told}");
    let memory = told.lines().find(|line| line.starts_with("memory: ")).expect("a line");
    assert!(memory.contains(" used, at most ") && !memory.contains(['{', '[']), "{memory}");
    let jobs = cli.json(&["operator", "jobs"]).await;
    assert_eq!((jobs[0]["skill"].as_str(), &jobs[0]["input"]), (Some("make"), &Value::Null));
    assert_eq!(cli.run(&["operator", "jobs"]).await.ok().out.lines().count(), 2);
    assert_eq!(cli.json(&["operator", "jobs", "--state", "ended"]).await, json!([]));
    let agents = cli.json(&["operator", "agents"]).await;
    let owners: Vec<_> =
        agents.as_array().expect("a list").iter().map(|one| one["owner"].clone()).collect();
    assert_eq!(owners, ["maker", "boss"]);
    assert!(cli.run(&["operator", "agents"]).await.ok().out.contains("active"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_owners_are_suspended_resumed_and_revoked_by_name() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = operator(&hub).await;
    let works = async || hub.get("/v1/me", Some(&agent.key)).await.status;
    for whom in [&[agent.id.as_str()][..], &["--owner", "acme"]] {
        cli.run(&[&["operator", "suspend"], whom].concat()).await.ok();
        assert_eq!(works().await, 403);
        assert_eq!(cli.json(&[&["operator", "resume"], whom].concat()).await["suspended"], false);
        assert_eq!(works().await, 200);
    }
    cli.run(&["operator", "suspend", "nobody"]).await.failed(3, &["operator agents"]);
    cli.run(&["operator", "revoke", &agent.id]).await.ok();
    assert_eq!(works().await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_operators_key_is_used_and_it_can_be_rotated() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let none = Cli::new().with("RIALTO_HUB", &hub.url);
    none.run(&["operator", "stats"]).await.failed(4, &["RIALTO_OPERATOR_KEY"]);
    let other = Cli::new().with("RIALTO_HUB", &hub.url).with("RIALTO_KEY", &agent.key);
    other.run(&["operator", "stats"]).await.failed(4, &["ro_"]);
    let cli = operator(&hub).await;
    let second = cli.json(&["operator", "key", "new"]).await["key"].as_str().unwrap().to_owned();
    cli.run(&["operator", "stats"]).await.ok();
    let told = cli.run(&["operator", "key", "rotate"]).await.ok().out;
    let third = told.trim().rsplit(' ').next().expect("a key").to_owned();
    cli.run(&["operator", "stats"]).await.expect(4);
    for (key, code) in [(&second, 4), (&third, 0)] {
        let cli = Cli::new().with("RIALTO_HUB", &hub.url).with("RIALTO_OPERATOR_KEY", key);
        cli.run(&["operator", "stats"]).await.expect(code);
    }
}

#[test]
fn another_operator_key_in_the_environment_is_refused_and_a_lost_one_is_replaced_offline() {
    let data = tempfile::TempDir::new().expect("a directory");
    let key = operator_key();
    let first = Process::with_env("serve", data.path(), &[], &[("RIALTO_OPERATOR_KEY", &key)]);
    let path = data.path().display().to_string();
    let rotate = ["operator", "key", "rotate", "--data", &path, "--json"];
    assert_eq!(run(&rotate).0, 5, "a running hub needs its key");
    first.kill();
    let bits = [0x77; 20];
    let other =
        rialto_engine::keys::Key::from_random(rialto_engine::keys::KeyPrefix::OPERATOR, bits);
    let start = |key: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rialto"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", &path]);
        crate::kit::output(command.env("RIALTO_OPERATOR_KEY", key)).expect("it runs")
    };
    let refused = start(other.expose());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("rialto operator key rotate --data"), "{error}");
    assert!(!error.contains(other.expose()), "{error}");
    // The stored key was not replaced by that.
    Process::with_env("serve", data.path(), &[], &[("RIALTO_OPERATOR_KEY", &key)]).kill();
    let (code, told, error) = run(&rotate);
    assert_eq!(code, 0, "{error}");
    let told: Value = serde_json::from_str(&told).expect("one document");
    let fresh = told["key"].as_str().expect("a key");
    Process::with_env("serve", data.path(), &[], &[("RIALTO_OPERATOR_KEY", fresh)]).kill();
    assert_eq!(start(&key).status.code(), Some(1), "the lost key is invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_named_as_it_is_listed_and_one_of_several_by_its_number() {
    let hub = TestHub::serve(&[]).await;
    let register = async |owner: &str| {
        let body = json!({"agent_name": "alice", "owner_id": owner, "skills": []});
        hub.post("/registry/register", None, &body).await.expect(201).str("/api_key")
    };
    let key = register("acme").await;
    let cli = operator(&hub).await;
    let works = async || hub.get("/v1/me", Some(&key)).await.status;
    cli.run(&["operator", "suspend", "alice"]).await.ok();
    assert_eq!(works().await, 403);
    cli.run(&["operator", "resume", "alice"]).await.ok();
    assert_eq!(works().await, 200);
    register("globex").await;
    let told =
        cli.run(&["operator", "revoke", "alice"]).await.failed(5, &["2 agents", "of globex"]);
    assert!(told.err.contains(" of acme"), "{told:#?}");
    assert_eq!(works().await, 200, "nothing was done");
    let nobody = cli.run(&["operator", "suspend", "bob"]).await.failed(3, &["agent not found"]);
    assert!(!nobody.err.contains("yours"), "{nobody:#?}");
    let nobody = cli.run(&["operator", "suspend", "--owner", "bob"]).await;
    nobody.failed(3, &["owner not found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_operator_key_is_told_where_the_right_one_goes() {
    let hub = TestHub::serve(&[]).await;
    let wrong = "ro_7777777777777777777777777777777777777777";
    let cli = Cli::new().with("RIALTO_OPERATOR_KEY", wrong).with("RIALTO_HUB", &hub.url);
    for line in [&["operator", "stats"][..], &["operator", "suspend", "7"]] {
        let told = cli.run(line).await.failed(4, &["ro_", "RIALTO_OPERATOR_KEY"]);
        assert!(!told.err.contains("rk_") && !told.err.contains("--as"), "{told:#?}");
    }
}
