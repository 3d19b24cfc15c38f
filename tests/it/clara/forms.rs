//! What the clients of deployed markets send, literally, and what they read.

use serde_json::{Value, json};

use super::kit::{Hub, Wallet, purse};

const DEPLOYED: &str = "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZY";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_called_by_its_metadata_s_name_in_every_protocol() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let register = async |id: &str, data: Value| {
        let tags = [
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "1"),
            ("RedStone-Agent-Id", id),
        ];
        let said = hub.act(&by, "Register-Agent-Profile", &tags, &data.to_string()).await;
        assert_eq!(said.first().tag("Action"), Some("Registered"), "{said:?}");
    };
    let names = |native: &str| {
        hub.engine.look(|world| {
            let id = world.agent_named(rialto_protocols::clara::ID, native).expect("an agent");
            let of = |face: &&dyn rialto_protocols::face::Face| {
                world.name_of(id, face.id()).map(|name| (face.id().to_string(), name.to_owned()))
            };
            let aliases: Vec<_> = rialto_protocols::ALL.iter().filter_map(of).collect();
            (world.agent(id).expect("an agent").name.clone(), aliases)
        })
    };
    register("AGENT_1", json!({"name": "Nice Writer"})).await;
    let (name, aliases) = names("AGENT_1");
    assert_eq!(name, "Nice Writer");
    let relay = aliases.iter().find(|(protocol, _)| protocol == "relay").expect("an alias");
    assert!(relay.1.starts_with("nice-writer"), "{aliases:?}");
    for (_, alias) in aliases.iter().filter(|(protocol, _)| protocol != "clara") {
        assert!(!alias.contains("agent-1"), "{aliases:?}");
    }
    // No name, or none that could be shown: it goes by its id.
    for (n, data) in
        [json!({}), json!({"name": 7}), json!({"name": ""}), json!([])].iter().enumerate()
    {
        let id = format!("PLAIN_{n}");
        register(&id, data.clone()).await;
        assert_eq!(names(&id).0, id);
    }
    // Aliases are for ever; what it is called follows its profile.
    register("PLAIN_0", json!({"name": "Late Name"})).await;
    let (name, aliases) = names("PLAIN_0");
    assert_eq!(name, "Late Name");
    assert!(aliases.iter().any(|(_, alias)| alias.contains("plain-0")), "{aliases:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_and_the_dashboard_are_read_without_a_protocol_tag() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(9);
    hub.fund(&by, "100").await;
    let said = hub.say(&by, &[("Action", "Balance")], " ").await;
    assert_eq!(said.first().tag("Balance"), Some("100"), "{said:?}");
    let said = hub.say(&by, &[("Action", "Balances")], " ").await;
    assert_eq!(said.error(), "Sign this message to read it");
    let shown = hub.dry_run(&[("Action", "Dashboard-Data")], "").await;
    assert!(shown.error.is_none(), "{shown:?}");
    assert_eq!(shown.messages[0].tag("Action"), Some("Dashboard-Data"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_result_read_through_the_deployed_process_says_which_task_it_answers() {
    let hub = Hub::serve(&[("clara.deployed_process_id", DEPLOYED)]).await;
    let (worker, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "100").await;
    hub.agent(&worker, "A", "tweet", "20").await;
    for process in [DEPLOYED, rialto_protocols::clara::PROCESS] {
        let task = hub.task(&requester, "tweet", "20", "cheapest").await;
        hub.deliver(&worker, "A", &task.id).await;
        let tags = [("Action", "Load-Next-Task-Result"), ("Protocol", "C.L.A.R.A.")];
        let item = requester.item_for(process, &tags, b"1234");
        let id = hub.post_bytes(item).await.expect(202).str("/id");
        let read = hub.result(&id).await;
        let data = read.messages[0].data.as_deref().expect("data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["id"], task.id.as_str());
        match process == DEPLOYED {
            true => {
                assert_eq!(data["agentAddress"], worker.address().as_str());
                assert_eq!(data["originalTask"]["id"], task.id.as_str());
                assert_eq!(data["originalTask"]["payload"]["say"], "hello");
            }
            false => assert!(data.get("agentAddress").is_none(), "{data}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_recipient_is_kept_in_the_record_and_diverts_nothing() {
    let hub = Hub::serve(&[]).await;
    let (worker, requester, other) = (Wallet::of(1), Wallet::of(9), Wallet::of(5));
    hub.fund(&requester, "100").await;
    hub.agent(&worker, "A", "tweet", "20").await;
    let task = hub.task(&requester, "tweet", "20", "cheapest").await;
    let address = other.address();
    let tags = [
        ("RedStone-Agent-Id", "A"),
        ("RedStone-Task-Id", task.id.as_str()),
        ("RedStone-Task-Recipient", address.as_str()),
    ];
    let done = hub.act(&worker, "Send-Result", &tags, r#"{"result":"whatever"}"#).await;
    assert_eq!(done.data()["recipient"], address.as_str());
    assert_eq!(done.first().target, requester.address());
    assert_eq!(done.result.messages.len(), 1);
    assert_eq!(hub.listed("A").await["tasks"]["outbox"][&task.id]["recipient"], address.as_str());
    assert_eq!(hub.purse(&worker).await, purse("20", "0"));
    let next = [("Action", "Load-Next-Task-Result"), ("Protocol", "C.L.A.R.A.")];
    assert_eq!(hub.say(&other, &next, "1").await.result.messages.len(), 0);
    assert_eq!(hub.say(&requester, &next, "1").await.data()["recipient"], address.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_topic_registers_to_post_and_is_given_no_work() {
    let hub = Hub::serve(&[]).await;
    let (poster, worker) = (Wallet::of(9), Wallet::of(1));
    hub.fund(&poster, "100").await;
    let register = |tags: &'static [(&'static str, &'static str)]| {
        hub.act(&poster, "Register-Agent-Profile", tags, r#"{"name":"Poster"}"#)
    };
    let said = register(&[("RedStone-Agent-Id", "P")]).await;
    assert_eq!(said.first().tag("Action"), Some("Registered"), "{said:?}");
    let said = register(&[("RedStone-Agent-Id", "Q"), ("RedStone-Agent-Fee", "x")]).await;
    assert_eq!(said.error(), "Value Agent-Fee must be positive integer");
    assert_eq!(hub.listed("P").await["topic"], "none");
    hub.agent(&worker, "A", "tweet", "20").await;
    let tags = [
        ("RedStone-Agent-Topic", "broadcast"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "roundRobin"),
    ];
    let all = hub.act(&worker, "Register-Task", &tags, "{}").await;
    assert!(all.result.error.is_some(), "there is nobody else to work: {all:?}");
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
        ("RedStone-Agent-Id", "P"),
    ];
    let task = hub.act(&poster, "Register-Task", &tags, "{}").await;
    assert_eq!(task.chosen(), "A");
    assert_eq!(task.data()["requesterId"], "P");
}
