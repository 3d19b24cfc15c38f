//! Agents whose servers are unmodified SDKs: hired from another protocol and by A2A clients, and paid.

use serde_json::{Value, json};

use super::scene::{SdkServer, WorkerVersion};
use crate::a2a::kit::{first_text, hire_message, id, state};
use crate::kit::{TestHub, together};
use crate::relay::kit::Event;

const TOKEN: &str = "worker-token-throw-away";

/// Registers a server with a price, which shows whose it is. Returns its name in the registry.
async fn register(hub: &TestHub, server: &SdkServer) -> String {
    let body = json!({"card_url": server.card_url(), "name": "sdk", "prices": {"echo": "0.25"},
        "auth": {"scheme": "bearer", "token": TOKEN}});
    let reply = hub.post("/a2a/agents", None, &body).await.expect(201);
    let owner = hub.http.put(format!("{}/owner", server.url));
    let answer = owner.body(reply.str("/proof/params/token")).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let key = reply.str("/api_key");
    let refreshed = hub.call("POST", "/a2a/agents/sdk/refresh", Some(&key), None).await.expect(200);
    assert_eq!(refreshed.at("/proven"), true, "{}", refreshed.text);
    hub.engine.with_world(|world| {
        let agent = world.agent_by_alias(rialto_protocols::a2a::ID, "sdk").expect("known");
        let registry = rialto_core::alias::Protocol::new("registry");
        world.alias_of(agent, registry).expect("an alias").to_owned()
    })
}

/// The ids of all messages that the server got, a repeat included.
async fn message_ids(hub: &TestHub, server: &SdkServer) -> Vec<Value> {
    let answer = hub.http.get(format!("{}/seen", server.url)).send().await.expect("an answer");
    let seen: Value = serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON");
    seen["messageIds"].as_array().expect("ids").clone()
}

/// The texts of all artifact updates, joined.
fn pieces(events: &[Event]) -> String {
    let updates = events.iter().map(|event| &event.data["artifactUpdate"]["artifact"]["parts"]);
    let parts = updates.flat_map(|parts| parts.as_array().into_iter().flatten());
    parts.map(|part| part["text"].as_str().unwrap_or_default()).collect()
}

/// Hires a server that is started with these options.
async fn is_hired_and_paid(version: WorkerVersion, options: &[&str]) {
    let hub = TestHub::serve(&[]).await;
    let server = SdkServer::start(version, &[options, &["--bearer", TOKEN]].concat());
    let alias = register(&hub, &server).await;

    let by = hub.orchestrator("acme").await;
    hub.grant("acme", "10.00").await;
    let hire = async |text: &str| {
        let body = json!({"orchestrator_id": by.id, "skill_name": "echo",
            "input_data": {"text": text}, "budget": 0.3});
        let path = format!("/registry/agents/{alias}/jobs");
        hub.post(&path, Some(&by.key), &body).await.expect(200)
    };
    let done = hire("hello").await;
    assert_eq!(done.at("/output_data"), json!({"text": "hello"}), "{}", done.text);
    assert_eq!(done.at("/execution_cost"), 0.25);
    let failed = hire("fail").await;
    assert_eq!(failed.str("/status"), "FAILURE", "{}", failed.text);
    assert_eq!(hub.balance("acme").await, ("9.75".to_owned(), "0.00".to_owned()));

    let client = hub.rich_client("ann").await;
    let base = "/a2a/agents/sdk";
    let budget = json!({"budget": "0.25"});
    let send = async |message: Value| {
        let sent = hub.result(base, &client.key, "SendMessage", json!({"message": message})).await;
        sent["task"].clone()
    };
    let asking = send(hire_message("m-1", "ask", budget.clone())).await;
    assert_eq!(state(&asking), "TASK_STATE_INPUT_REQUIRED", "{asking}");
    assert_eq!(first_text(&asking["status"]["message"]), "Which city?");
    let mut answer = hire_message("m-2", "Lugano", json!({}));
    answer["taskId"] = id(&asking).into();
    let answered = send(answer).await;
    assert_eq!(first_text(&answered["artifacts"][0]), "You said Lugano", "{answered}");
    let mut stream = hub.follow(base, &client.key, hire_message("m-3", "chunks", budget)).await;
    let events = stream.rest().await;
    assert_eq!(pieces(&events), "chunk 1 chunk 2 chunk 3 ", "{options:?}");
    assert_eq!(hub.balance("a2a:ann").await, ("99.50".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("a2a:sdk").await.0, "0.75");

    let mut ids = message_ids(&hub, &server).await;
    assert_eq!(ids.len(), 5, "{ids:?}");
    ids.sort_by_key(Value::to_string);
    ids.dedup();
    assert_eq!(ids.len(), 5, "no message came twice");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_sdk_1_3_is_hired_from_the_registry_and_from_a2a_and_paid() {
    let options = [&[][..], &["--bindings", "HTTP+JSON"], &["--no-streaming"]];
    together(options.map(|options| is_hired_and_paid(WorkerVersion::New, options))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_sdk_0_3_is_hired_from_the_registry_and_from_a2a_and_paid() {
    let options = [&[][..], &["--no-streaming"]];
    together(options.map(|options| is_hired_and_paid(WorkerVersion::Old, options))).await;
}
