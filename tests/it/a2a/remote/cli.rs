//! The command line: an agent with a server of its own is added by its card, shown and hired.

use serde_json::json;

use super::server::Puppet;
use crate::a2a::kit::{hire_message, id};
use crate::cli::kit::Cli;
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_added_by_its_card_and_its_price_counts_once_the_card_is_proven() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.want("authorization", "Bearer throw-away");
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    let (url, token) = (puppet.card_url(), cli.file("geo.token", "throw-away\n"));
    let key = cli.path("geo.key");
    let start = ["agent", "add", "--a2a", &url, "--price", "route=0.25", "--bearer-file", &token];
    let told =
        cli.run(&[&start[..], &["--name", "geo", "--key-out", &key]].concat()).await.ok().out;
    assert!(told.starts_with("geo registered, key in "), "{told}");
    for line in [
        format!("at {}/a2a/agents/geo", hub.url),
        format!("server {} JSONRPC 1.0 unsigned", puppet.url),
        "skill route  0 (asks 0.25)".to_owned(),
    ] {
        assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
    }
    let proof = told.lines().last().and_then(|line| line.split_once("--key-file: "));
    let proof: serde_json::Value = serde_json::from_str(proof.expect("a proof").1).expect("JSON");
    assert_eq!(proof["uri"], "urn:rialto:a2a:owner:v1");
    assert!(!told.contains("rk_"), "the key is in its file: {told}");
    puppet.change_card(|card| card["capabilities"]["extensions"] = json!([proof]));
    let again = [&start[..], &["--name", "geo", "--key-file", &key]].concat();
    let document = cli.json(&again).await;
    assert_eq!(
        (&document["proven"], &document["skills"][0]["price"]),
        (&json!(true), &json!("0.25"))
    );
    let shown = cli.run(&["agent", "show", "geo"]).await.ok().out;
    for line in ["skill route  0.25  Plans a route", &format!("server {} JSONRPC 1.0", puppet.url)]
    {
        assert!(shown.lines().any(|one| one == line), "{line} is not in\n{shown}");
    }
    assert!(shown.contains("card unsigned, owner proven, fetched 20"), "{shown}");
    assert!(shown.contains(&format!("card at {url}\n")), "{shown}");
    for (name, expected) in [(Some("geo"), "Geo Route Planner"), (None, "Rialto")] {
        let line: Vec<&str> = ["agent", "card"].into_iter().chain(name).collect();
        let card = cli.json(&line).await;
        assert!(card["name"].as_str().is_some_and(|name| name.contains(expected)), "{card}");
        assert_eq!(cli.run(&line).await.ok().json(), card);
    }
    cli.run(&["agent", "card", "nobody"])
        .await
        .failed(3, &["agent nobody not found", "rialto agent search"]);
    // Taken, not readable, and no card.
    cli.run(&start).await.ok();
    let taken = ["agent", "add", "--a2a", &url, "--name", "geo"];
    cli.run(&taken).await.failed(5, &["\"geo\" is taken"]);
    let wrong = ["agent", "add", "--a2a", "http://127.0.0.1:1/card", "--name", "other"];
    cli.run(&wrong).await.failed(2, &["could not be reached: the connection was refused"]);
    let wrong = ["agent", "add", "--a2a", &url, "--bearer-file", "missing"];
    cli.run(&wrong).await.failed(2, &["cannot read missing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_its_own_server_is_hired_and_written_to_from_the_command_line() {
    let hub = TestHub::open(&[]).await;
    let puppet = Puppet::start().await;
    let boss = hub.orchestrator("boss").await;
    let cli = Cli::at(&hub.url, &boss.key).await;
    let url = puppet.card_url();
    cli.run(&["agent", "add", "--a2a", &url, "--name", "geo", "--price", "route=0.25"]).await.ok();
    let job = [
        "job",
        "post",
        "--skill",
        "route",
        "--to",
        "geo",
        "--input",
        r#"{"text":"to Lugano"}"#,
        "--budget",
        "0.25",
        "--wait",
        "--json",
    ];
    let (ran, ()) = tokio::join!(cli.run(&job), async {
        let task = puppet.task().await;
        puppet.complete(&task, "Take the A2.");
    });
    let done = ran.ok().json();
    assert_eq!(done["result"]["output"], json!({"text": "Take the A2."}), "{done}");
    assert_eq!(puppet.messages()[0]["parts"], json!([{"text": "to Lugano"}]));
    assert_eq!(hub.balance("boss").await.0, "99.75");

    let ann = cli.path("ann.key");
    cli.run(&["agent", "register", "ann", "--key-out", &ann]).await.ok();
    let owner = cli.json(&["wallet", "balance", "--key-file", &ann]).await;
    hub.grant(owner["owner"].as_str().expect("an owner"), "1.00").await;
    let names = cli.json(&["agent", "show", "geo"]).await;
    let to = names["names"]["relay"].as_str().expect("a name").to_owned();
    let line = ["msg", "send", "--key-file", &ann, "--to", &to, "--budget", "0.25", "to Ascona"];
    cli.run(&line).await.ok();
    let task = puppet.task().await;
    puppet.complete(&task, "Take the A13.");
    assert_eq!(puppet.messages()[1]["parts"], json!([{"text": "to Ascona"}]));
    let line = ["msg", "tail", "--key-file", &ann, "--from-start", "--count", "1"];
    let heard = cli.run(&line).await.ok().out;
    assert!(heard.contains("Take the A13."), "{heard}");
    // While the server is away, a task of a client says whom it waits for and why.
    puppet.stop().await;
    let client = hub.rich_client("client").await;
    let message = hire_message("m-1", "go", json!({"budget": "0.25"}));
    let own = id(&hub.begin("/a2a/agents/geo", &client.key, message).await);
    let cli = Cli::at(&hub.url, &client.key).await;
    crate::kit::eventually(async || {
        let shown = cli.run(&["job", "show", &own]).await.ok().out;
        shown.contains("none; waits for Geo Route Planner, which is offline")
    })
    .await;
}
