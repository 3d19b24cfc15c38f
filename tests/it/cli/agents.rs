//! `rialto agent`: finding agents of all protocols, and registering agents.

use serde_json::json;

use super::kit::Cli;
use crate::kit::TestHub;

/// A hub with two workers, one expensive and one cheap.
async fn market() -> (TestHub, Cli) {
    let hub = TestHub::open(&[]).await;
    hub.agent("dear", "sum", "0.90", None).await;
    hub.agent("cheap", "sum", "0.10", None).await;
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    (hub, cli)
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_by_text_price_and_score() {
    let (_hub, cli) = market().await;
    let owners = async |more: &[&str]| {
        let line = [&["agent", "search", "--json"][..], more].concat();
        let found = cli.run(&line).await.ok().json();
        let mut owners: Vec<String> = found
            .as_array()
            .expect("a list")
            .iter()
            .map(|agent| agent["owner"].as_str().unwrap_or_default().to_owned())
            .collect();
        owners.sort_unstable();
        owners
    };
    assert_eq!(owners(&[]).await, ["cheap", "dear"]);
    assert_eq!(owners(&["DEAR"]).await, ["dear"]);
    assert_eq!(owners(&["--max-price", "0.10"]).await, ["cheap"]);
    assert_eq!(owners(&["--max-price", "0.09"]).await, [""; 0]);
    assert_eq!(owners(&["--min-score", "50"]).await, ["cheap", "dear"]);
    assert_eq!(owners(&["--min-score", "50.01"]).await, [""; 0]);
    assert_eq!(owners(&["--limit", "1"]).await.len(), 1);
    // The command reads page by page; the match may be on a later one.
    assert_eq!(owners(&["--limit", "1", "--max-price", "0.10"]).await, ["cheap"]);
    assert_eq!(owners(&["--skill", "none"]).await, [""; 0]);
    let told = cli.run(&["agent", "search", "cheap"]).await.ok();
    assert!(told.out.starts_with("ID  NAME") && told.out.contains("sum 0.10"), "{told:#?}");
    assert!(cli.run(&["agent", "search", "nobody"]).await.ok().err.contains("no agent matches"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_shown_by_any_of_its_names() {
    let (hub, cli) = market().await;
    let worker = hub.agent("shown", "echo", "0.05", None).await;
    let whole = cli.json(&["agent", "show", &worker.id]).await;
    assert_eq!(whole["names"]["registry"], json!(worker.id));
    assert!(whole["skills"][0]["input_schema"].is_object(), "{whole}");
    let relay = whole["names"]["relay"].as_str().expect("a name in every protocol").to_owned();
    let number = whole["id"].to_string();
    for id in [&number, &format!("registry:{}", worker.id), &relay] {
        assert_eq!(cli.json(&["agent", "show", id]).await["id"], whole["id"], "{id}");
    }
    let told = cli.run(&["agent", "show", &number]).await.ok().out;
    for line in [
        &format!("name registry:{}", worker.id),
        "skill echo  0.05",
        "score 50.0 after 0 jobs",
        "ranks as 50.0: 0 other owners paid 0.00",
    ] {
        assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
    }
    cli.run(&["agent", "show", "nobody"]).await.failed(3, &["rialto agent ls"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_relay_is_shown_as_its_record_and_more() {
    let (_hub, cli) = market().await;
    let key = cli.path("alice.key");
    let line = ["agent", "register", "alice", "--culture", "zh-CN", "--key-out", &key];
    cli.run(&line).await.ok();
    for id in ["alice", "alice@chorus"] {
        let whole = cli.json(&["agent", "show", id]).await;
        assert_eq!(whole["agent_id"], "alice@chorus", "{whole}");
        assert!(whole["names"]["registry"].is_string() && whole["id"].is_number(), "{whole}");
        let told = cli.run(&["agent", "show", id]).await.ok().out;
        assert!(told.starts_with("alice@chorus  zh-CN  zh-CN  "), "{told}");
        assert!(told.contains("\nname relay:alice@chorus\n"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_registry_is_registered_with_skills_and_updated_by_its_key() {
    let (_hub, cli) = market().await;
    let key = cli.path("dora.key");
    let start = ["agent", "register", "dora", "--protocol", "registry", "--owner", "acme"];
    let line = [&start[..], &["--skill", "max=0.1", "--key-out", &key]].concat();
    cli.run(&line).await.ok();
    let me = cli.json(&["wallet", "balance", "--key-file", &key]).await;
    assert_eq!(me["owner"], "acme");
    let again = [&start[..], &["--skill", "max=0.20", "--key-file", &key]].concat();
    let told = cli.run(&again).await.ok().out;
    assert!(told.contains("key unchanged"), "{told}");
    let found = cli.json(&["agent", "search", "--skill", "max"]).await;
    assert_eq!(found.as_array().map(Vec::len), Some(1), "one agent, not two: {found}");
    assert_eq!(found[0]["skills"][0]["price"], json!(0.2));
    for (more, part) in [
        (["--skill", "max"], "sum=0.05"),
        (["--skill", "max=0.001"], "sum=0.05"),
        (["--culture", "en"], "--protocol relay"),
    ] {
        cli.run(&[&start[..], &more].concat()).await.failed(2, &[part]);
    }
    let relay = ["agent", "register", "eva", "--skill", "max=0.10"];
    cli.run(&relay).await.failed(2, &["--protocol registry"]);
}
