//! What the hub takes over of a card, what it shows of it, and when it fetches it again (R89, R93,
//! R107).

use serde_json::{Value, json};

use super::server::{Dialect, Fault, Puppet, old_card};
use crate::a2a::kit::{HIRE, id, text_message};
use crate::kit::{TestHub, eventually};

/// What `GET /v1/agents/{id}` says of an agent's own server.
async fn shown(hub: &TestHub, name: &str) -> Value {
    hub.get(&format!("/v1/agents/{name}"), None).await.expect(200).at("/server")
}

#[tokio::test]
async fn the_skills_modes_and_extensions_of_a_card_are_taken_over() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let client = hub.a2a_client("client").await;
    let skills: Vec<Value> = (0..64)
        .map(|n| json!({"id": format!("s-{n}"), "name": "S", "description": "s", "tags": ["s"]}))
        .collect();
    puppet.change_card(|card| {
        card["skills"] = skills.into();
        card["defaultInputModes"] = json!(["text/plain"]);
        card["defaultOutputModes"] = json!(["text/markdown"]);
        card["capabilities"]["extensions"] = json!([
            {"uri": "urn:example:needed", "required": true},
            {"uri": "urn:example:offered", "description": "nice", "params": {"n": 1}}]);
    });
    let geo = hub.remote(&puppet, "geo").await;
    let card = hub.get(&geo.base, None).await.expect(200);
    let ids: Vec<Value> = card
        .at("/skills")
        .as_array()
        .expect("a list")
        .iter()
        .map(|skill| skill["id"].clone())
        .collect();
    assert_eq!(ids, (0..64).map(|n| json!(format!("s-{n}"))).collect::<Vec<_>>());
    assert_eq!(card.at("/defaultInputModes"), json!(["text/plain"]));
    assert_eq!(card.at("/defaultOutputModes"), json!(["text/markdown"]));
    let extensions = card.at("/capabilities/extensions");
    for own in [
        json!({"uri": "urn:example:needed", "required": true}),
        json!({"uri": "urn:example:offered", "description": "nice", "params": {"n": 1}}),
    ] {
        let shown = extensions.as_array().expect("a list").iter();
        let shown = shown.filter(|one| one["uri"] == own["uri"]).collect::<Vec<_>>();
        assert_eq!(shown, [&own]);
    }
    let params = json!({"message": crate::a2a::kit::hire_message("m-1", "go", json!({"skill": "s-7"})),
        "configuration": {"returnImmediately": true}});
    let refused = hub.refusal(&geo.base, &client.key, "SendMessage", params.clone()).await;
    assert_eq!(refused.0, -32008);
    let body = crate::a2a::kit::rpc(1, "SendMessage", params).to_string();
    let both = [("a2a-extensions", "urn:example:needed, urn:example:other")];
    let reply = hub.request(("POST", &geo.base), &client.key, &both, &body).await.expect(200);
    let in_use = format!("{HIRE}, urn:example:needed");
    assert_eq!(reply.header("a2a-extensions"), Some(in_use.as_str()));
    puppet.task().await;
    let sent = &puppet.calls("SendStreamingMessage")[0];
    assert_eq!(sent.header("a2a-extensions"), Some("urn:example:needed"), "those it knows");

    puppet.change_card(|card| card["skills"] = json!([]));
    let reply = hub.refresh("geo", &geo.key).await.expect(200);
    assert_eq!(reply.at("/skills"), json!([{"id": "message", "price": "0", "asks": "0"}]));
}

#[tokio::test]
async fn an_agent_shows_its_server_and_a_bad_card_leaves_the_old_one() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let before = shown(&hub, "geo").await;
    let interface = json!({"url": puppet.url, "binding": "JSONRPC", "version": "1.0"});
    assert_eq!(before["interface"], interface);
    assert_eq!((&before["signature"], &before["proven"]), (&json!("unsigned"), &json!(false)));
    assert!(before["fetched_at"].is_string(), "{before}");
    assert_eq!(before.get("problem"), None);
    for (fault, why) in [
        (Fault::Status(500, &[], String::new()), "answered HTTP 500"),
        (Fault::Text("application/json", "{}".to_owned()), "is not a card"),
    ] {
        puppet.fault_of("card", fault);
        hub.refresh("geo", &geo.key).await.expect(400);
        let after = shown(&hub, "geo").await;
        assert!(after["problem"]["text"].as_str().is_some_and(|text| text.contains(why)));
        assert!(after["problem"]["at"].is_string(), "{after}");
        assert_eq!(
            (&after["interface"], &after["fetched_at"]),
            (&interface, &before["fetched_at"])
        );
    }
    // By any name, and it works as before.
    let alias = hub.engine.with_world(|world| {
        let agent = world.agent_by_alias(rialto_protocols::a2a::ID, "geo").expect("known");
        world.alias_of(agent, rialto_core::alias::Protocol::new("registry")).map(str::to_owned)
    });
    assert_eq!(shown(&hub, &alias.expect("an alias")).await["interface"], interface);
    works(&hub, &puppet, "geo", "after").await;
    let reply = hub.refresh("geo", &geo.key).await.expect(200);
    assert_eq!(reply.at("/changed"), false);
    puppet.change_card(|card| card["description"] = "Plans routes by the lake".into());
    assert_eq!(hub.refresh("geo", &geo.key).await.expect(200).at("/changed"), true);
    assert_eq!(shown(&hub, "geo").await.get("problem"), None, "it is over");
    // Agents without a server have nothing of it.
    hub.a2a_client("client").await;
    assert_eq!(hub.get("/v1/agents/client", None).await.expect(200).json().get("server"), None);
}

/// Does one job.
async fn works(hub: &TestHub, puppet: &Puppet, name: &str, client: &str) {
    let client = hub.a2a_client(client).await;
    let base = format!("/a2a/agents/{name}");
    let own = id(&hub.begin(&base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, &base, &own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn cards_are_fetched_again_at_intervals() {
    let hub = TestHub::serve(&[("a2a.refresh", "1s")]).await;
    let puppet = Puppet::start().await;
    hub.remote(&puppet, "geo").await;
    puppet.change_card(|card| card["skills"][0]["id"] = "plan".into());
    eventually(async || {
        let card = hub.get("/a2a/agents/geo", None).await;
        card.at("/skills/0/id") == "plan"
    })
    .await;
    hub.a2a_client("client").await;
}

#[tokio::test]
async fn a_call_that_shows_that_the_server_has_changed_fetches_the_card_and_goes_on() {
    let moved = Fault::Status(404, &[], String::new());
    let locked = Fault::Status(401, &[], String::new());
    let version = Fault::Refuse(-32009, "this server speaks 0.3");
    for (fault, dialect) in
        [(moved, Dialect::HttpJson), (locked, Dialect::JsonRpc), (version, Dialect::Old)]
    {
        let hub = TestHub::serve(&[]).await;
        let puppet = Puppet::start().await;
        hub.remote(&puppet, "geo").await;
        puppet.fault(fault);
        let url = puppet.url.clone();
        match dialect {
            Dialect::Old => puppet.set_card(old_card(&url)),
            Dialect::HttpJson => puppet.change_card(|card| {
                card["supportedInterfaces"][0]["protocolBinding"] = "HTTP+JSON".into();
            }),
            Dialect::JsonRpc => puppet.change_card(|card| {
                card["supportedInterfaces"][0]["url"] = format!("{url}/moved").into();
            }),
        }
        works(&hub, &puppet, "geo", "client").await;
        let interface = &shown(&hub, "geo").await["interface"];
        let binding = if dialect == Dialect::HttpJson { "HTTP+JSON" } else { "JSONRPC" };
        let version = if dialect == Dialect::Old { "0.3" } else { "1.0" };
        assert_eq!(
            (&interface["binding"], &interface["version"]),
            (&json!(binding), &json!(version))
        );
        assert_eq!(puppet.message_ids().len(), 2, "refused once, and taken once");
        assert_eq!(puppet.task_count(), 1);
    }
}
