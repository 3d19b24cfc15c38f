//! `rialto doctor`: finds problems and says how to fix them.

use serde_json::Value;

use super::kit::Cli;
use crate::kit::{ClosedPort, TestHub};

/// The result of one check.
#[track_caller]
fn verdict<'a>(report: &'a Value, check: &str) -> &'a str {
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|one| one["check"] == check);
    found
        .and_then(|one| one["verdict"].as_str())
        .unwrap_or_else(|| panic!("no {check} in {report}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_setting_is_found_healthy() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let report = cli.json(&["doctor"]).await;
    assert_eq!(report["ok"], true, "{report}");
    for check in ["home", "context", "hub", "clock", "key", "inbox"] {
        assert_eq!(verdict(&report, check), "ok", "{check}");
    }
    assert_eq!(verdict(&report, "credits"), "warn", "there was no grant");
    hub.grant("acme", "1").await;
    assert_eq!(verdict(&cli.json(&["doctor"]).await, "credits"), "ok");
    let told = cli.run(&["doctor"]).await.ok().out;
    assert!(
        told.lines().any(|line| line.starts_with("ok    credits   1.00 available to acme")),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_not_there_and_a_key_that_does_not_work_are_failures() {
    let closed = ClosedPort::take();
    let cli = Cli::new().with("RIALTO_HUB", &closed.url);
    let ran = cli.run(&["doctor", "--json"]).await.expect(1);
    assert_eq!(verdict(&ran.json(), "hub"), "fail");
    assert!(cli.run(&["doctor"]).await.expect(1).out.contains("rialto dev"));
    let hub = TestHub::serve(&[]).await;
    let cli = Cli::at(&hub.url, "rk_wrong").await;
    let ran = cli.run(&["doctor", "--json"]).await.expect(1);
    assert_eq!((verdict(&ran.json(), "hub"), verdict(&ran.json(), "key")), ("ok", "fail"));
    let without = Cli::new().with("RIALTO_HUB", &hub.url).json(&["doctor"]).await;
    assert_eq!(verdict(&without, "key"), "warn", "a key is created when it is needed");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_others_can_read_is_a_failure() {
    use std::os::unix::fs::PermissionsExt;
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let open = |part: &str, mode: u32| {
        let path = cli.home().join(part);
        let before = std::fs::metadata(&path).expect("there").permissions();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("changed");
        move || std::fs::set_permissions(&path, before).expect("changed")
    };
    let close_key = open("contexts/here/me.key", 0o644);
    let ran = cli.run(&["doctor"]).await.expect(1);
    assert!(ran.out.contains("chmod 600"), "{ran:#?}");
    close_key();
    // A listed file that cannot be opened is not a failure.
    let close_home = open("", 0o755);
    let report = cli.json(&["doctor"]).await;
    assert_eq!(verdict(&report, "home"), "warn", "{report}");
    let close_contexts = open("contexts", 0o755);
    let ran = cli.run(&["doctor"]).await.expect(1);
    assert!(ran.out.contains("chmod -R"), "{ran:#?}");
    close_contexts();
    close_home();
    cli.run(&["doctor"]).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_an_earlier_hub_is_told_apart_from_one_that_was_stopped() {
    let (earlier, hub) = (TestHub::serve(&[]).await, TestHub::serve(&[]).await);
    let agent = earlier.agent("acme", "sum", "0.05", None).await;
    let boss = hub.orchestrator("boss").await;
    let cli = Cli::at(&hub.url, &boss.key).await;
    let directory = cli.home().join("contexts/here/agents/sum");
    std::fs::create_dir_all(&directory).expect("made");
    let file = format!("{}\nagent_id {}\nhub {}\n", agent.key, agent.id, hub.url);
    std::fs::write(directory.join("agent.key"), file).expect("written");
    let told = cli.run(&["doctor"]).await.ok().out;
    assert!(told.contains("sum was registered before the hub was reset"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_the_context_are_looked_at() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.agent("acme", "sum", "0.05", None).await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let directory = cli.home().join("contexts/here/agents/sum");
    std::fs::create_dir_all(&directory).expect("made");
    assert_eq!(verdict(&cli.json(&["doctor"]).await, "agent"), "warn", "it has no key yet");
    std::fs::write(directory.join("agent.key"), "rk_wrong").expect("written");
    let ran = cli.run(&["doctor", "--json"]).await.expect(1);
    assert_eq!(verdict(&ran.json(), "agent"), "fail");
    std::fs::write(directory.join("agent.key"), &agent.key).expect("written");
    let report = cli.json(&["doctor"]).await;
    assert_ne!(verdict(&report, "agent"), "fail", "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_stopped_keeps_its_key_and_is_told_how_to_come_back() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.agent("acme", "sum", "0.05", None).await;
    let boss = hub.orchestrator("boss").await;
    let cli = Cli::at(&hub.url, &boss.key).await;
    let directory = cli.home().join("contexts/here/agents/sum");
    std::fs::create_dir_all(&directory).expect("made");
    let file = format!("{}\nagent_id {}\nhub {}\n", agent.key, agent.id, hub.url);
    std::fs::write(directory.join("agent.key"), file).expect("written");
    let path = format!("/registry/agents/{}", agent.id);
    hub.call("DELETE", &path, Some(&agent.key), None).await.expect(200);
    let report = cli.json(&["doctor"]).await;
    assert_eq!(verdict(&report, "agent"), "warn", "{report}");
    let told = cli.run(&["doctor"]).await.ok().out;
    let line = told.lines().find(|line| line.contains("sum")).expect("a line about it");
    assert!(line.contains("`rialto agent run` starts it again"), "{line}");
    // Only the file identifies the agent, even if its key is refused.
    std::fs::write(directory.join("agent.key"), "rk_wrong").expect("written");
    for told in [told, cli.run(&["doctor"]).await.expect(1).out] {
        assert!(!told.contains("remove"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_is_no_directory_is_named_and_left_alone() {
    let hub = TestHub::serve(&[]).await;
    let cli = Cli::new().with("RIALTO_HUB", &hub.url).with("RIALTO_HOME", "/dev/null");
    let told = cli.run(&["doctor"]).await.expect(1).out;
    let line = told.lines().find(|line| line.contains("home")).expect("a line about it");
    assert!(line.contains("not a directory") && line.contains("RIALTO_HOME"), "{line}");
    assert!(!told.contains("chmod"), "{told}");
}
