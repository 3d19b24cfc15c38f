//! The spec's own examples, verbatim from its section 3, sent to a real hub.
//!
//! Only what the spec leaves open is filled in: `"uuid"` by the type examples of its section 2, the
//! fictional hosts by addresses of the tests, and the owners by the actual ones.

use serde_json::{Value, json};

use super::forms::{AGENT_ID, JOB_ID};
use crate::kit::{Agent, Behaviour, TestHub, Worker};

const REGISTER: &str =
    include_str!("../../../crates/protocols/src/registry/fixtures/register.json");
const REGISTERED: &str =
    include_str!("../../../crates/protocols/src/registry/fixtures/registered.json");
const DISCOVERED: &str =
    include_str!("../../../crates/protocols/src/registry/fixtures/discovered.json");
const JOB: &str = include_str!("../../../crates/protocols/src/registry/fixtures/job.json");
const RESULT: &str = include_str!("../../../crates/protocols/src/registry/fixtures/result.json");
const TRANSFER: &str =
    include_str!("../../../crates/protocols/src/registry/fixtures/transfer.json");

/// Fills in one member whose example is only `"uuid"`.
fn with_id(text: &str, member: &str, id: &str) -> String {
    let open = format!("\"{member}\": \"uuid\"");
    assert!(text.contains(&open), "{member} is open in {text}");
    text.replace(&open, &format!("\"{member}\": \"{id}\""))
}

fn register(endpoint: &str) -> String {
    with_id(REGISTER, "agent_id", AGENT_ID).replace("https://agent-host:port", endpoint)
}

/// Every member of the example is there, with the same type of value.
#[track_caller]
fn assert_has_shape(got: &Value, example: &Value, at: &str) {
    match (got, example) {
        (Value::Object(got), Value::Object(example)) => {
            for (name, wanted) in example {
                let found = got.get(name).unwrap_or_else(|| panic!("no {at}/{name} in {got:?}"));
                assert_has_shape(found, wanted, &format!("{at}/{name}"));
            }
        }
        (Value::Array(got), Value::Array(example)) => {
            assert!(!got.is_empty(), "{at} is empty");
            got.iter().for_each(|one| assert_has_shape(one, &example[0], at));
        }
        _ => {
            assert_eq!(std::mem::discriminant(got), std::mem::discriminant(example), "{at}: {got}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_registration_is_answered_as_the_spec_prints_it() {
    for path in ["/registry/register", "/register"] {
        let hub = TestHub::serve(&[]).await;
        let reply =
            hub.post_text(path, None, &register("https://agent-host:8010")).await.expect(201);
        let wanted: Value =
            serde_json::from_str(&with_id(REGISTERED, "agent_id", AGENT_ID)).expect("JSON");
        for (member, value) in wanted.as_object().expect("an object") {
            assert_eq!(reply.at(&format!("/{member}")), *value, "{member}");
        }
        assert!(reply.text.contains("\"reputation_score\":50.0"), "{}", reply.text);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_has_the_shape_the_spec_prints() {
    let hub = TestHub::serve(&[]).await;
    hub.post_text("/register", None, &register("https://agent-host:8010")).await.expect(201);
    let example: Value = serde_json::from_str(DISCOVERED).expect("JSON");
    for base in ["/registry", ""] {
        let path = format!("{base}/discover?skill=analyze_text&min_reputation=40&max_cost=0.20");
        let reply = hub.get(&path, None).await.expect(200);
        assert_has_shape(&reply.json(), &example, "");
        assert_eq!(reply.at("/agents/0/skill"), example["agents"][0]["skill"]);
        assert_eq!(reply.at("/agents/0/status"), example["agents"][0]["status"]);
    }
    hub.stop().await;
}

/// Registers both agents of the spec's example under the owners its transfer names.
async fn both_sides(hub: &TestHub, worker: &Worker) -> (Agent, Agent) {
    let asking = hub.orchestrator("orchestrator_owner_id").await;
    let body = register(&worker.url).replace("Owner identifier", "agent_owner_id");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let working = hub.enrol(&body, None).await;
    hub.grant("orchestrator_owner_id", "100.00").await;
    (asking, working)
}

fn job(asking: &Agent) -> String {
    with_id(&with_id(JOB, "job_id", JOB_ID), "orchestrator_id", &asking.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_job_reaches_the_agent_and_its_result_comes_back() {
    let hub = TestHub::serve(&[]).await;
    let result = with_id(&with_id(RESULT, "job_id", JOB_ID), "agent_id", AGENT_ID);
    let worker = Worker::start(Behaviour::Say(200, result.clone())).await;
    let (asking, working) = both_sides(&hub, &worker).await;
    let path = format!("/registry/agents/{}/jobs", working.id);
    let reply = hub.post_text(&path, Some(&asking.key), &job(&asking)).await.expect(200);
    let (sent, asked): (Value, Value) =
        (worker.got()[0].json(), serde_json::from_str(&job(&asking)).expect("JSON"));
    for (member, value) in asked.as_object().expect("an object") {
        if member != "callback_url" {
            assert_eq!(sent[member], *value, "{member}");
        }
    }
    let wanted: Value = serde_json::from_str(&result).expect("JSON");
    for (member, value) in wanted.as_object().expect("an object") {
        // The hub decides the time of the end.
        if member != "timestamp_utc" {
            assert_eq!(reply.at(&format!("/{member}")), *value, "{member}");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_story_runs_from_job_to_result_to_transfer() {
    for base in ["/registry", ""] {
        let hub = TestHub::serve(&[]).await;
        let worker = Worker::start(Behaviour::Pending).await;
        let (asking, working) = both_sides(&hub, &worker).await;
        let orchestrator = Worker::start(Behaviour::Say(200, String::new())).await;
        let job = job(&asking).replace("https://orchestrator", &orchestrator.url);
        let asked = hub.post_text(&format!("{base}/jobs"), Some(&asking.key), &job).await;
        assert_eq!(asked.expect(202).str("/status"), "PENDING");
        let result = with_id(&with_id(RESULT, "job_id", JOB_ID), "agent_id", AGENT_ID);
        let reply = hub
            .post_text(&format!("{base}/results"), Some(&working.key), &result)
            .await
            .expect(200);
        assert_eq!(reply.json(), json!({"status": "accepted", "job_id": JOB_ID, "paid": 0.10}));
        let told = orchestrator.heard(1).await;
        assert_eq!(told[0].path, "/results");
        let shape: Value = serde_json::from_str(RESULT).expect("JSON");
        assert_has_shape(&told[0].json(), &shape, "");
        let transfer = with_id(TRANSFER, "transfer_id", "0e37df36-f698-41e6-8a1c-0d2f6e2c7a10");
        let transfer = with_id(&transfer, "job_id", JOB_ID);
        let reply = hub
            .post_text(&format!("{base}/transfer"), Some(&asking.key), &transfer)
            .await
            .expect(200);
        assert_eq!(reply.str("/settlement"), "escrow");
        let wanted: Value = serde_json::from_str(&transfer).expect("JSON");
        for (member, value) in wanted.as_object().expect("an object") {
            if member != "timestamp_utc" {
                assert_eq!(reply.at(&format!("/transfer/{member}")), *value, "{member}");
            }
        }
        assert_eq!(
            hub.balance("orchestrator_owner_id").await,
            ("99.90".to_owned(), "0.00".to_owned())
        );
        assert_eq!(hub.balance("agent_owner_id").await.0, "0.10");
        hub.stop().await;
    }
}
