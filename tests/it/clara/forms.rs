//! The literal messages of deployed markets' clients, and what they read.
//!
//! The fixture names their sources. They are sent unchanged; only the signatures are ours.

use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::MessageResult;
use serde_json::{Value, json};

use super::kit::{Hub, Said, Wallet, account};

const RECORDED: &str =
    include_str!("../../../crates/protocols/src/clara/fixtures/deployed_clients.json");

fn recorded() -> Value {
    serde_json::from_str(RECORDED).expect("JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// A hub whose market also has the process id from the recorded clients' settings.
async fn deployed() -> (Hub, String) {
    let process = text(&recorded()["process"]).to_owned();
    (Hub::serve(&[("clara.deployed_process_id", &process)]).await, process)
}

/// Sends a recorded message to a process, with these placeholders filled in.
async fn send(hub: &Hub, by: &Wallet, to: &str, name: &str, open: &[(&str, &str)]) -> Said {
    let message = &recorded()["messages"][name];
    let tags: Vec<(&str, &str)> = message["tags"]
        .as_array()
        .unwrap_or_else(|| panic!("{name} was not recorded"))
        .iter()
        .map(|tag| {
            let value = text(&tag[1]);
            let filled = open.iter().find(|(word, _)| *word == value);
            (text(&tag[0]), filled.map_or(value, |(_, filled)| filled))
        })
        .collect();
    let item = by.item_for(to, &tags, text(&message["data"]).as_bytes());
    let id = hub.post_bytes(item).await.expect(202).str("/id");
    let result = hub.result(&id).await;
    Said { id, result }
}

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
        hub.engine.with_world(|world| {
            let id = world.agent_by_alias(rialto_protocols::clara::ID, native).expect("an agent");
            let of = |face: &&dyn rialto_protocols::adapter::ProtocolAdapter| {
                world.alias_of(id, face.id()).map(|name| (face.id().to_string(), name.to_owned()))
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
    // No name, or none that can be shown: the id is used.
    for (n, data) in
        [json!({}), json!({"name": 7}), json!({"name": ""}), json!([])].iter().enumerate()
    {
        let id = format!("PLAIN_{n}");
        register(&id, data.clone()).await;
        assert_eq!(names(&id).0, id);
    }
    // Aliases never change; the display name follows the profile.
    register("PLAIN_0", json!({"name": "Late Name"})).await;
    let (name, aliases) = names("PLAIN_0");
    assert_eq!(name, "Late Name");
    assert!(aliases.iter().any(|(_, alias)| alias.contains("plain-0")), "{aliases:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_and_the_dashboard_are_read_without_a_protocol_tag() {
    let (hub, process) = deployed().await;
    let by = Wallet::of(9);
    hub.fund(&by, "100").await;
    hub.agent(&Wallet::of(1), "A", "tweet", "20").await;
    for to in [process.as_str(), PROCESS] {
        let said = send(&hub, &by, to, "balance", &[]).await;
        assert_eq!(said.first().tag("Balance"), Some("100"), "{said:?}");
        let said = send(&hub, &by, to, "balances", &[]).await;
        assert_eq!(said.error(), "Sign this message to read it");
        let asked = &recorded()["dashboard"];
        let [path, body] = ["path", "body"].map(|part| text(&asked[part]).replace(&process, to));
        let (path, json) = (format!("/clara/cu{path}"), ("content-type", "application/json"));
        let reply = hub.0.send("POST", &path, &[json], body.as_bytes()).await.expect(200);
        let shown = MessageResult::read(reply.text.as_bytes()).expect("a result");
        assert!(shown.error.is_none(), "{shown:?}");
        assert_eq!(shown.messages[0].tag("Action"), Some("Dashboard-Data"));
        let data = shown.messages[0].data.as_deref().expect("data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        // Everything the dashboard reads.
        assert_eq!((&data["queue"], &data["totals"]["done"]), (&json!([]), &json!(0)));
        assert_eq!(data["agents"][0]["totals"]["assigned"], 0);
        let tasks = &data["agents"][0]["tasks"];
        assert_eq!((&tasks["inbox"], &tasks["results"]), (&json!([]), &json!([])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_result_read_through_the_deployed_process_says_which_task_it_answers() {
    let (hub, process) = deployed().await;
    let (worker, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "200").await;
    hub.agent(&worker, "A", "tweet", "20").await;
    send(&hub, &requester, &process, "register_to_post_only", &[]).await;
    for (asked, read) in
        [(process.as_str(), process.as_str()), (PROCESS, &process), (PROCESS, PROCESS)]
    {
        let task = send(&hub, &requester, asked, "register_task", &[]).await;
        hub.deliver(&worker, "A", &task.id).await;
        let data = send(&hub, &requester, read, "load_next_task_result", &[]).await.data();
        assert_eq!((&data["id"], &data["result"]), (&json!(task.id), &json!({"done": 1})));
        match read == process {
            true => {
                assert_eq!(data["agentAddress"], worker.address().as_str());
                assert_eq!(data["originalTask"]["id"], task.id.as_str());
                assert_eq!(data["originalTask"]["payload"], "Bring it on");
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
    hub.agent(&worker, "AO_Agent_1", "tweet", "20").await;
    let task = hub.task(&requester, "tweet", "20", "cheapest").await;
    let address = other.address();
    let open = [("TASK_ID", task.id.as_str()), ("RECIPIENT", &address)];
    let done = send(&hub, &worker, PROCESS, "send_result_with_recipient", &open).await;
    assert_eq!(done.data()["recipient"], address.as_str());
    assert_eq!(done.first().target, requester.address());
    assert_eq!(done.result.messages.len(), 1);
    let outbox = hub.listed("AO_Agent_1").await["tasks"]["outbox"].clone();
    assert_eq!(outbox[&task.id]["recipient"], address.as_str());
    assert_eq!(hub.account(&worker).await, account("20", "0"));
    let next = [("Action", "Load-Next-Task-Result"), ("Protocol", "C.L.A.R.A.")];
    assert_eq!(hub.say(&other, &next, "1").await.result.messages.len(), 0);
    assert_eq!(hub.say(&requester, &next, "1").await.data()["recipient"], address.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_topic_registers_to_post_and_is_given_no_work() {
    let (hub, process) = deployed().await;
    let (poster, worker) = (Wallet::of(9), Wallet::of(1));
    hub.fund(&poster, "200").await;
    hub.fund(&worker, "100").await;
    for to in [process.as_str(), PROCESS] {
        let said = send(&hub, &poster, to, "register_to_post_only", &[]).await;
        assert_eq!(said.actions(), ["Registered"], "{said:?}");
    }
    let id = "VIRTUALS_CLARA_AGENT_1";
    assert_eq!(hub.listed(id).await["topic"], "none");
    let tags = [("RedStone-Agent-Id", "Q"), ("RedStone-Agent-Fee", "x")];
    let said = hub.act(&poster, "Register-Agent-Profile", &tags, "{}").await;
    assert_eq!(said.error(), "Value Agent-Fee must be positive integer");
    let tags = [
        ("RedStone-Agent-Topic", "broadcast"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "roundRobin"),
    ];
    let all = hub.act(&worker, "Register-Task", &tags, "{}").await;
    assert_eq!(all.error(), "No agents to choose from");
    hub.agent(&worker, "A", "tweet", "20").await;
    for to in [process.as_str(), PROCESS] {
        let task = send(&hub, &poster, to, "register_task", &[]).await;
        assert_eq!(task.chosen(), "A");
        assert_eq!(task.data()["requesterId"], id);
    }
}
