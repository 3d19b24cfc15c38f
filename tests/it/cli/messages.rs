//! `rialto msg send`: the sender of a message, and how its recipient sees it.

use super::kit::Cli;
use crate::kit::TestHub;

/// A hub with an agent that counts words for credits, and a command line with credits.
async fn office() -> (TestHub, Cli) {
    let hub = TestHub::serve(&[]).await;
    hub.agent("shop", "count", "0.05", None).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "1").await;
    // As the first `rialto job post` stores it: with the agent's registry id.
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    let file = cli.file("me.key", &format!("{}\nagent_id {}\n", boss.key, boss.id));
    let line = ["context", "add", "here", "--hub", &hub.url, "--key-file", &file];
    cli.run(&line).await.ok();
    (hub, cli)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_can_also_send_messages_under_its_relay_name() {
    let (hub, cli) = office().await;
    let friend = cli.path("friend.key");
    cli.run(&["agent", "register", "friend", "--key-out", &friend]).await.ok();
    let sent = cli.json(&["msg", "send", "--to", "friend", "Hello!"]).await;
    assert_eq!(sent["delivery"], "queued", "{sent}");
    let got = cli.run(&["msg", "history", "--key-file", &friend, "--json"]).await.ok();
    assert!(got.out.contains("Hello!"), "{got:#?}");
    let me = cli.path("bare.key");
    let key = std::fs::read_to_string(cli.path("me.key")).expect("a key");
    std::fs::write(&me, key.lines().next().expect("a line")).expect("written");
    let line = ["msg", "send", "--key-file", &me, "--to", "friend", "Again!"];
    cli.run(&line).await.ok();
    let stranger = Cli::new().with("RIALTO_HUB", &hub.url);
    let line = ["msg", "send", "--to", "friend", "Who am I?"];
    stranger.run(&line).await.failed(2, &["no sender given", "--from"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_works_for_credits_says_no_and_then_how() {
    let (hub, cli) = office().await;
    let shop = hub.get("/v1/agents?skill=count", None).await.expect(200);
    let to = shop.str("/items/0/names/relay");
    let line = ["msg", "send", "--to", &to, "one two three"];
    cli.run(&line).await.failed(1, &["costs 0.05 credits", "--budget"]);
    let ran = cli.run(&[&line[..], &["--json"]].concat()).await.expect(1);
    let document = ran.json();
    assert!(document["code"] == "ADAPTATION_FAILED" && document["next"].is_string(), "{document}");
    cli.run(&[&line[..], &["--budget", "0.05"]].concat()).await.ok();
    assert_eq!(hub.balance("boss").await, ("0.95".to_owned(), "0.05".to_owned()));
    cli.run(&[&line[..], &["--budget", "much"]].concat()).await.expect(2);
}
