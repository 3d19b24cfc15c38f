//! `rialto context`: adding, choosing, showing, removing.

use serde_json::json;

use super::kit::Cli;
use crate::kit::TestHub;

#[tokio::test]
async fn contexts_are_added_chosen_listed_and_removed() {
    let cli = Cli::new();
    let key = cli.file("work.key", "rk_secret\nagent_id 17\n");
    let added = ["context", "add", "work", "--hub", "HTTP://Hub.example:80/", "--key-file", &key];
    let ran = cli.run(&added).await.ok();
    assert_eq!(ran.out, "context work is for http://hub.example, the current one\n");
    cli.run(&["context", "add", "play", "--hub", "http://127.0.0.1:9"]).await.ok();
    let all = cli.json(&["context", "ls"]).await;
    let play = json!({"name": "play", "hub": "http://127.0.0.1:9", "current": false, "kept": true,
        "has_key": false, "agent_id": null, "agents": []});
    assert_eq!((&all[0], all.as_array().map(Vec::len)), (&play, Some(2)));
    assert_eq!((&all[1]["current"], &all[1]["agent_id"]), (&json!(true), &json!("17")));
    cli.run(&["context", "use", "play"]).await.ok();
    assert_eq!(cli.json(&["context", "show"]).await["name"], "play");
    assert_eq!(cli.json(&["context", "show", "work"]).await["has_key"], true);
    let listed = cli.run(&["context", "ls"]).await.ok();
    assert!(listed.out.lines().any(|line| line.starts_with("*  play")), "{listed:#?}");
    assert!(!listed.out.contains("rk_secret") && !all.to_string().contains("rk_secret"));
    let gone = cli.run(&["context", "rm", "work"]).await.ok();
    assert_eq!(gone.out, "context work removed, with the keys of 17\n");
    assert!(!cli.home().join("contexts/work").exists());
}

#[tokio::test]
async fn the_current_one_is_removed_only_by_force_and_says_what_goes() {
    let cli = Cli::new();
    let key = cli.file("a.key", "rk_secret\nagent_id 17\n");
    cli.run(&["context", "add", "a", "--hub", "http://a", "--key-file", &key]).await.ok();
    let parts = ["the keys of 17", "rialto context use", "--force"];
    cli.run(&["context", "rm", "a"]).await.failed(5, &parts);
    assert_eq!(cli.json(&["context", "show"]).await["has_key"], true, "nothing was changed");
    cli.run(&["context", "rm", "a", "--force"]).await.ok();
    let shown = cli.json(&["context", "show"]).await;
    assert_eq!((&shown["name"], &shown["kept"]), (&json!("default"), &json!(false)));
}

#[tokio::test]
async fn without_any_there_is_one_for_a_hub_of_ones_own() {
    let cli = Cli::new();
    let shown = cli.json(&["context", "show"]).await;
    assert_eq!(
        (&shown["name"], &shown["hub"]),
        (&json!("default"), &json!("http://127.0.0.1:7425"))
    );
    assert_eq!(cli.json(&["context", "ls"]).await[0]["kept"], false);
    assert!(!cli.home().exists(), "reading creates nothing");
}

#[tokio::test]
async fn mistakes_are_told_with_what_to_type_and_change_nothing() {
    let cli = Cli::new();
    let key = cli.file("b.key", "rk_secret\nhub http://b\n");
    for (line, code, part) in [
        (&["context", "add", "No", "--hub", "http://a"][..], 2, "a-z"),
        (&["context", "add", "../no", "--hub", "http://a"], 2, "a-z"),
        (&["context", "add", "no", "--hub", "a:1"], 2, "http://127.0.0.1:7425"),
        (&["context", "add", "no", "--hub", "http://me:secret@a"], 2, "http://127.0.0.1:7425"),
        (&["context", "add", "no", "--hub", "http://a", "--key-file", &key], 2, "--hub http://b"),
        (&["context", "add", "no", "--hub", "http://a", "--key-file", "/nowhere"], 2, "--key-out"),
        (&["context", "use", "no"], 3, "rialto context add no"),
        (&["context", "show", "no"], 3, "rialto context ls"),
        (&["context", "rm", "no"], 3, "rialto context ls"),
        (&["agent", "search", "--context", "no"], 3, "rialto context add no"),
    ] {
        cli.run(line).await.failed(code, &[part]);
        let told = cli.run(&[line, &["--json"]].concat()).await.expect(code);
        assert!(told.json()["next"].as_str().is_some_and(|next| next.contains(part)), "{told:#?}");
    }
    assert!(!cli.home().exists());
}

#[tokio::test]
async fn a_context_with_keys_keeps_its_hub() {
    let cli = Cli::new();
    let key = cli.file("a.key", "rk_secret\n");
    let add = |hub: &'static str| ["context", "add", "a", "--hub", hub];
    cli.run(&add("http://a")).await.ok();
    cli.run(&add("http://b")).await.ok();
    cli.run(&[&add("http://b")[..], &["--key-file", &key]].concat()).await.ok();
    cli.run(&add("http://c")).await.failed(5, &["holds keys for http://b"]);
    assert_eq!(cli.json(&["context", "show"]).await["hub"], "http://b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_named_for_once_gets_a_context_but_is_not_the_current_one() {
    let hub = TestHub::open(&[]).await;
    hub.agent("shop", "sum", "0.05", None).await;
    let cli = Cli::new();
    let line = ["job", "post", "--skill", "sum", "--input", "{}", "--budget", "0.10"];
    let there = ["--hub", hub.url.as_str()];
    let ran = cli.run(&[&line[..], &there].concat()).await.ok();
    assert!(ran.err.contains("; key saved in context 127-0-0-1-"), "{ran:#?}");
    let all = cli.json(&["context", "ls"]).await;
    assert_eq!((&all[0]["hub"], &all[0]["has_key"]), (&json!(hub.url), &json!(true)), "{all}");
    let default = json!({"name": "default", "hub": "http://127.0.0.1:7425", "current": true,
        "kept": false, "has_key": false, "agent_id": null, "agents": []});
    assert_eq!(all[1], default);
    // Its key is found by the hub's address.
    cli.run(&[&["wallet", "balance"][..], &there].concat()).await.ok();
}
