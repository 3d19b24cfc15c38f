//! Key rotation, keys with limits, and removing an agent.

use super::kit::{Cli, Stage};
use crate::kit::TestHub;

/// The key on the first line of a file.
fn key_in(path: &str) -> String {
    let text = std::fs::read_to_string(path).expect("a key file");
    text.lines().next().expect("a line").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_takes_the_place_of_the_old_one_in_its_file() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::new();
    let file =
        cli.file("a.key", &format!("{}\nagent_id {}\nhub {}\n", agent.key, agent.id, hub.url));
    let ran = cli.run(&["agent", "rekey", "--key-file", &file]).await.ok();
    let fresh = key_in(&file);
    assert_ne!(fresh, agent.key);
    assert!(!ran.out.contains(&fresh), "the key is only in the file: {ran:#?}");
    let text = std::fs::read_to_string(&file).expect("a key file");
    assert!(text.contains(&format!("agent_id {}\n", agent.id)), "{text}");
    cli.run(&["wallet", "balance", "--key-file", &file]).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_kept_in_the_context_or_shown_once() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let kept = cli.json(&["agent", "rekey"]).await;
    assert_eq!(kept["kept_in"], "context here");
    let path = cli.home().join("contexts/here/me.key").display().to_string();
    let fresh = key_in(&path);
    assert_ne!(fresh, agent.key);
    cli.run(&["wallet", "balance"]).await.ok();
    let cli = cli.with("RIALTO_KEY", &fresh);
    let shown = cli.json(&["agent", "rekey"]).await;
    let last = shown["key"].as_str().expect("only its owner can keep it").to_owned();
    assert_eq!(key_in(&path), fresh, "the context's own key is unchanged");
    cli.with("RIALTO_KEY", &last).run(&["wallet", "balance"]).await.ok();
}

/// A rotation whose new key cannot be written must not lose the old key. No file can be created
/// beside this one, and its text could be a key.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_kept_is_not_asked_for() {
    let stage = Stage::start(&[("/v1/keys/rotate", r#"{"key":"rk_new"}"#)]).await;
    let line = ["agent", "rekey", "--hub", &stage.url, "--key-file", "/proc/sys/kernel/ostype"];
    Cli::new().run(&line).await.failed(1, &["cannot write", "make the file"]);
    assert!(stage.heard().is_empty(), "{:?}", stage.heard());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_issued_with_limits_listed_and_revoked_one_by_one() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let limits = ["--per-job", "0.50", "--per-day", "5", "--no-transfers"];
    let ran = cli.run(&[&["key", "issue", "--label", "laptop"], &limits[..]].concat()).await.ok();
    let file = cli.file("laptop.key", &ran.out);
    assert!(ran.out.starts_with("rk_") && ran.out.lines().count() == 1, "{ran:#?}");
    assert!(ran.err.contains("only this once") && !ran.err.contains(ran.out.trim()), "{ran:#?}");
    let issued = cli.json(&["key", "issue", "--label", "ci"]).await;
    assert!(issued["key"].is_string() && issued["transfers"] == true, "{issued}");

    let list = cli.json(&["key", "ls"]).await;
    let keys = list.as_array().expect("a list");
    assert_eq!(keys.len(), 3, "{list}");
    let laptop = keys.iter().find(|key| key["label"] == "laptop").expect("the key");
    assert_eq!(laptop["transfers"], false);
    assert_eq!(cli.run(&["key", "--json", "ls"]).await.ok().json(), list);
    let shown = cli.run(&["key", "ls"]).await.ok();
    let line = shown.out.lines().find(|line| line.contains("laptop")).expect("a line");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[1..6], ["laptop", "0.50", "5.00", "0.00", "no"], "{shown:#?}");
    let own = shown.out.lines().find(|line| line.contains("(this key)")).expect("a line");

    // The new key acts for the agent, sees itself alone, and issues no others.
    cli.run(&["wallet", "balance", "--key-file", &file]).await.ok();
    let alone = cli.json(&["key", "ls", "--key-file", &file]).await;
    assert!(alone[0]["label"] == "laptop" && alone[1].is_null(), "{alone}");
    let line = ["key", "issue", "--label", "more", "--key-file", &file];
    cli.run(&line).await.failed(4, &[]);

    let own = own.split_whitespace().next().expect("an id");
    cli.run(&["key", "revoke", own]).await.failed(5, &["rialto agent rekey", "--force"]);
    cli.run(&["key", "revoke", "999999"]).await.failed(3, &["rialto key ls"]);
    let id = laptop["id"].to_string();
    let ran = cli.run(&["key", "revoke", &id]).await.ok();
    assert!(ran.out.contains("(laptop) is revoked"), "{ran:#?}");
    cli.run(&["wallet", "balance", "--key-file", &file]).await.expect(4);
    assert_eq!(cli.json(&["key", "ls"]).await.as_array().map(Vec::len), Some(2));
    cli.run(&["key", "revoke", own, "--force"]).await.ok();
    cli.run(&["wallet", "balance"]).await.expect(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_leaves_only_when_it_is_named() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    let next = format!("rialto agent rm {}", agent.id);
    cli.run(&["agent", "rm"]).await.failed(2, &[&next]);
    cli.run(&["agent", "rm", "somebody"]).await.failed(5, &["not to somebody", &next]);
    cli.run(&["wallet", "balance"]).await.ok();
    cli.run(&["agent", "rm", &agent.id]).await.ok();
    hub.get("/v1/me", Some(&agent.key)).await.expect(401);
    cli.run(&["wallet", "balance"]).await.failed(4, &["no key given"]);
}

/// One route removes agents of every protocol.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_relay_leaves_as_well() {
    let hub = TestHub::serve(&[]).await;
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    let key = cli.path("alice.key");
    cli.run(&["agent", "register", "alice", "--key-out", &key]).await.ok();
    cli.run(&["agent", "rm", "alice@chorus", "--key-file", &key]).await.ok();
    cli.run(&["agent", "show", "alice@chorus"]).await.expect(3);
}
