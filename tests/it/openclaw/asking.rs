//! Requests: required members, answers, and that a refused one changes nothing (R49, R50, R51, R55,
//! R62, R85, R92).

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, assert_violation, fresh_id, with};
use super::scene::COLLABORATIONS;

/// The documents that the spec prints.
const EXAMPLES: &str =
    include_str!("../../../crates/protocols/src/openclaw/fixtures/examples.json");

fn example(kind: &str) -> Value {
    let all: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    let all = all["examples"].as_array().expect("a list").clone();
    let found = all.into_iter().find(|one| one["kind"] == kind);
    found.expect("an example")["document"].clone()
}

/// The agents of the spec's examples, with their ids.
async fn printed(hub: &Hub) -> (Node, Node, Value) {
    let request = example("collaboration_request");
    let asker = hub.node_with("asker", json!({"agent_id": request["requester_agent_id"]})).await;
    let worker = hub.publish(&example("identity")).await;
    (asker, worker, request)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_six_members_is_needed_and_has_its_type() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let right = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let before = hub.held().await;
    let members = [
        "request_id",
        "requester_agent_id",
        "capability_id",
        "input_data",
        "correlation_id",
        "timestamp",
    ];
    for member in members {
        let mut absent = right.clone();
        absent.as_object_mut().expect("an object").remove(member);
        let says = format!("{member} is required");
        let reply = hub.ask(&asker, &absent).await;
        assert_violation(&reply, &says);
        if member != "correlation_id" {
            assert_eq!(reply.str("/correlation_id"), right["correlation_id"].as_str().unwrap());
        }
        for wrong in [json!(7), json!("no such thing \u{7}"), json!([]), json!(null)] {
            let mut other = right.clone();
            other[member] = wrong.clone();
            let reply = hub.ask(&asker, &other).await;
            assert_error(&reply, 400, "VALIDATION_ERROR");
            assert!(reply.text.contains(member), "{member} {wrong}: {}", reply.text);
        }
    }
    assert_eq!(hub.held().await, before);
    hub.ask(&asker, &right).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_wrong_is_listed_at_once() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let wrong = hub.request(&asker, json!({"priority": 11, "request_id": "x", "input_data": 3}));
    let reply = hub.ask(&asker, &wrong).await;
    assert_violation(&reply, "priority must be between 1 and 10");
    let listed = reply.at("/error/details/validation_errors");
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_priority_is_a_whole_number_from_1_to_10_and_the_other_options_have_their_types() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let before = hub.held().await;
    for (member, wrong) in [
        ("priority", json!(0)),
        ("priority", json!(11)),
        ("priority", json!(2.5)),
        ("priority", json!("3")),
        ("idempotency_key", json!("k".repeat(257))),
        ("idempotency_key", json!(5)),
        ("deadline", json!("tomorrow")),
        ("deadline", json!(1_800_000_000)),
        ("budget", json!("5")),
        ("budget", json!(-1)),
        ("budget", json!(0.000_000_1)),
        ("responder_agent_id", json!("worker")),
    ] {
        let reply = hub.hire(&asker, &worker, json!({member: wrong})).await;
        assert_error(&reply, 400, "VALIDATION_ERROR");
        assert!(reply.text.contains(member), "{}", reply.text);
    }
    assert_eq!(hub.held().await, before);
    for right in [
        json!({"priority": 1}),
        json!({"priority": 10}),
        json!({"idempotency_key": "é".repeat(256)}),
        json!({"deadline": hub.time(60_000)}),
        json!({"budget": 0, "made_up": {"x": [1]}}),
    ] {
        hub.accepted(&asker, &worker, right).await;
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_request_is_taken_as_printed_and_only_its_deadline_is_past() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker, request) = printed(&hub).await;
    let path = format!("/openclaw/agents/{}/collaborations", worker.id);
    let reply = hub.post(&path, Some(&asker.key), &request).await;
    assert_rejected(&reply, "deadline_too_soon");
    assert_eq!(reply.at("/request_id"), request["request_id"]);
    assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    assert_eq!(reply.str("/responder_agent_id"), worker.id);
    // With a later deadline it is accepted, and its extra member is forwarded.
    let timely = with(&request, json!({"deadline": hub.time(60_000), "idempotency_key": null}));
    let timely = with(&timely, json!({"request_id": fresh_id()}));
    let mut works = hub.stream(&worker, "").await;
    let reply = hub.post(&path, Some(&asker.key), &timely).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    let told = works.until("collaboration_request").await;
    assert_eq!(told.data["input_data"], request["input_data"]);
    assert_eq!(told.data["priority"], 3);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_checked_before_anything_is_accepted_and_every_flaw_is_told() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker, request) = printed(&hub).await;
    let timely = with(&request, json!({"deadline": hub.time(60_000), "idempotency_key": null}));
    let before = hub.held().await;
    let mut flawed = timely.clone();
    flawed["input_data"]["trends"][0]["relevance_score"] = json!(1.5);
    flawed["input_data"]["trends"][0]["title"] = json!(7);
    let path = format!("/openclaw/agents/{}/collaborations", worker.id);
    let reply = hub.post(&path, Some(&asker.key), &flawed).await;
    assert_rejected(&reply, "invalid_input");
    let errors = reply.at("/rejection_reason/details/validation_errors");
    let errors = errors.as_array().expect("a list");
    let score = "trends[0].relevance_score must be between 0.0 and 1.0";
    assert!(errors.iter().any(|one| one == score), "{errors:?}");
    assert_eq!(errors.len(), 2, "{errors:?}");
    let after = hub.held().await;
    assert_eq!(
        (&after.0.shown, &after.0.kept, &after.1),
        (&before.0.shown, &before.0.kept, &before.1)
    );
    assert_eq!(hub.entry(&worker.id).await["effective_status"], "idle");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_without_a_schema_takes_any_object() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub
        .node_with(
            "worker",
            json!({"capabilities": {
                "advertised_capabilities": [super::kit::capability("sum", json!({}))],
                "input_schemas": {}, "output_schemas": {},
            }}),
        )
        .await;
    let work = hub.accepted(&asker, &worker, json!({"input_data": {"whatever": [1, {}]}})).await;
    let reply = hub.result(&work, json!({"output_data": {"anything": null}})).await.expect(200);
    assert_eq!(reply.at("/output_valid"), true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_or_an_agent_that_is_not_there_is_no_error_but_an_answer() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let none = hub.hire(&asker, &worker, json!({"capability_id": "fly"})).await;
    assert_rejected(&none, "capability_not_available");
    assert_eq!(none.str("/responder_agent_id"), worker.id);
    let nobody = hub.request(&asker, json!({"responder_agent_id": fresh_id()}));
    assert_rejected(&hub.ask(&asker, &nobody).await, "capability_not_available");
    let path = format!("/openclaw/agents/{}/collaborations", fresh_id());
    let reply = hub.post(&path, Some(&asker.key), &hub.request(&asker, json!({}))).await;
    assert_rejected(&reply, "capability_not_available");
    // An agent that has left is not found, and a removed capability is refused.
    hub.call("DELETE", &format!("/openclaw/agents/{}", worker.id), Some(&worker.key), None)
        .await
        .expect(200);
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "capability_not_available");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_cannot_use_another_agents_name() {
    let hub = Hub::serve(&[]).await;
    let (asker, other) = (hub.node("asker").await, hub.node("other").await);
    let worker = hub.node("worker").await;
    let registered = hub.orchestrator("acme").await;
    let before = hub.held().await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    for key in [&other.key, &registered.key, &hub.operator] {
        let reply = hub.post(COLLABORATIONS, Some(key), &request).await;
        assert_error(&reply, 403, "FORBIDDEN");
        assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    }
    assert_error(&hub.post(COLLABORATIONS, None, &request).await, 401, "UNAUTHORIZED");
    let path = format!("/openclaw/agents/{}/collaborations", worker.id);
    assert_error(&hub.post(&path, Some(&other.key), &request).await, 403, "FORBIDDEN");
    assert_error(&hub.post(&path, None, &request).await, 401, "UNAUTHORIZED");
    assert_error(
        &hub.post("/openclaw/messages", Some(&other.key), &request).await,
        403,
        "FORBIDDEN",
    );
    assert_eq!(hub.held().await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_names_the_responder_and_the_body_must_not_contradict_it() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let other = hub.node("other").await;
    let path = format!("/openclaw/agents/{}/collaborations", worker.id);
    let request = hub.request(&asker, json!({"responder_agent_id": other.id}));
    let before = hub.held().await;
    let reply = hub.post(&path, Some(&asker.key), &request).await;
    assert_violation(&reply, "responder_agent_id must be the agent in the path");
    assert_eq!(hub.held().await, before);
    let reply =
        hub.post(&path, Some(&asker.key), &hub.request(&asker, json!({}))).await.expect(200);
    assert_eq!(reply.str("/responder_agent_id"), worker.id);
    assert_eq!(reply.str("/response_status"), "accepted");
    assert!(reply.header("rialto-job").is_some());
    // One route accepts every type of message.
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.post("/openclaw/messages", Some(&asker.key), &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted");
    let itself = hub.hire(&worker, &worker, json!({})).await;
    assert_rejected(&itself, "policy_violation");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_takes_the_word_of_its_own_and_of_guests_for_what_is_free() {
    let hub = Hub::open(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let registered = hub.agent("acme", "sum", "0", None).await;
    let ask = async |by: &str| {
        let request =
            hub.request(&asker, json!({"requester_agent_id": by, "responder_agent_id": worker.id}));
        hub.post(COLLABORATIONS, None, &request).await
    };
    assert_eq!(ask(&asker.id).await.expect(200).str("/response_status"), "accepted");
    assert_eq!(ask(&fresh_id()).await.expect(200).str("/response_status"), "accepted");
    // A body cannot act for an agent of another protocol.
    let all = hub.get("/openclaw/agents", None).await.expect(200).at("/agents");
    let bridged =
        all.as_array().expect("a list").iter().find(|one| one["native_id"] == registered.id);
    let alias = bridged.expect("it is listed")["agent_id"].as_str().expect("an id").to_owned();
    assert_error(&ask(&alias).await, 403, "FORBIDDEN");
    hub.0.stop().await;
}
