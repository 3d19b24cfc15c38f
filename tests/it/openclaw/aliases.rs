//! Agents of other protocols in openclaw's directory: their ids and their entries
//! (docs/requirements.md, sections 4, 5 and 9).

use rialto_core::time::Millis;
use rialto_protocols::agora::MessageType as Agora;
use rialto_protocols::kit::ijson;
use rialto_protocols::openclaw::{Kind, wire};
use serde_json::{Value, json};

use super::kit::{Hub, assert_error, assert_rejected, identity, with};
use crate::agora::kit::Key;
use crate::kit::snapshot;

const NATIVE: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
const ANALYST: &str = "20917bb1-7e13-5f41-9321-10f5be2a3322";
const ALICE: &str = "a6ee3ec5-dd35-589a-917a-ea2c3a03e30f";

/// Registers the agent of the requirements' worked aliases, and returns its key.
async fn analyst(hub: &Hub) -> String {
    let skill = json!({"skill_name": "analyze_text", "description": "reads", "cost_per_call": 0.10,
        "input_schema": {"text": "string", "depth": "int"}, "output_schema": {"entities": "list"}});
    let body = json!({"agent_id": NATIVE, "agent_name": "Text-Analyst-3000", "owner_id": "acme",
        "skills": [skill]});
    hub.enrol(&body, None).await.key
}

/// Sends HELLO to agora and returns the agent's openclaw id.
async fn speaker(hub: &Hub, key: &Key, resource: &str) -> String {
    let hello = json!({"name": "Zoë", "capabilities": [{"resource": resource, "price": 0.5}]});
    let said = key.sign(Agora::Hello, &hello);
    hub.call("POST", "/agora/envelopes", None, Some(&said.text)).await.expect(200);
    let all = hub.get("/openclaw/agents", None).await.expect(200).at("/agents");
    let mut all = all.as_array().expect("a list").iter();
    let own = all.find(|one| one["native_id"] == key.did()).expect("an alias");
    own["agent_id"].as_str().expect("an id").to_owned()
}

/// Checks an entry against the spec's identity schema, except for a score that does not exist yet.
#[track_caller]
fn assert_identity(entry: &Value) {
    let text = with(entry, json!({"trust_signals": null})).to_string();
    let json = ijson::read(text.as_bytes()).expect("JSON");
    assert_eq!(wire::schema_of(Kind::Identity).check_json(&json), Ok(()), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_agent_is_listed_under_the_name_the_book_works_out() {
    let hub = Hub::serve(&[]).await;
    analyst(&hub).await;
    let entry = hub.entry(ANALYST).await;
    let fixed = [
        ("agent_name", "chimera-bridge-text-analyst-3000-20917bb1"),
        ("agent_type", "autonomous_content_node"),
        ("version", "0.0.0"),
        ("protocol", "registry"),
        ("native_id", NATIVE),
        ("effective_status", "idle"),
    ];
    for (name, value) in fixed {
        assert_eq!(entry[name], value, "{name}");
    }
    let capability = &entry["capabilities"]["advertised_capabilities"][0];
    assert_eq!(
        (&capability["capability_id"], &capability["price"]),
        (&json!("analyze_text"), &json!(0.1))
    );
    assert_eq!(capability["category"], "content_generation");
    // Types given in words become a schema that requires all of them.
    let schema = json!({"type": "object", "required": ["depth", "text"],
        "properties": {"text": {"type": "string"}, "depth": {"type": "integer"}}});
    assert_eq!(entry["capabilities"]["input_schemas"]["analyze_text"], schema);
    assert_identity(&entry);
    let found = hub.get("/openclaw/agents?capability=analyze_text", None).await.expect(200);
    assert_eq!(found.at("/agents/0/agent_id"), ANALYST);
    assert_eq!(found.at("/agents/0/agent_name"), entry["agent_name"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_agent_is_listed_under_the_name_the_book_works_out() {
    let hub = Hub::serve(&[]).await;
    hub.join("alice").await;
    let entry = hub.entry(ALICE).await;
    assert_eq!(entry["agent_name"], "chimera-bridge-alice-a6ee3ec5");
    assert_eq!(
        (&entry["protocol"], &entry["native_id"]),
        (&json!("relay"), &json!("alice@chorus"))
    );
    let listed = hub.get("/openclaw/agents", None).await.expect(200);
    assert_eq!(listed.at("/agents/0/agent_id"), ALICE);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agora_agent_is_listed_with_its_price_and_a_category_by_name() {
    let hub = Hub::serve(&[]).await;
    let zoe = Key::of(3);
    let id = speaker(&hub, &zoe, "agora:fact_check:v1").await;
    let entry = hub.entry(&id).await;
    assert_eq!(entry["agent_name"], format!("chimera-bridge-zoe-{}", &id[..8]));
    assert_eq!((&entry["protocol"], &entry["native_id"]), (&json!("agora"), &json!(zoe.did())));
    let capability = &entry["capabilities"]["advertised_capabilities"][0];
    assert_eq!(capability["price"], 0.5);
    assert_eq!(
        capability["category"], "content_validation",
        "the category comes from a word in its name"
    );
    assert_identity(&entry);
    let found = hub.get("/openclaw/agents?category=content_validation", None).await.expect(200);
    assert_eq!(found.at("/agents/0/agent_id"), id.as_str());
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_never_changes_and_is_nobodys_to_publish() {
    let hub = Hub::serve(&[]).await;
    let key = analyst(&hub).await;
    let before = snapshot(&hub).await;
    let body = with(&identity("thief", hub.now()), json!({"agent_id": ANALYST}));
    for key in [None, Some(key.as_str()), Some(hub.operator.as_str())] {
        let reply = hub.post("/openclaw/identity", key, &body).await;
        assert_error(&reply, 409, "CONFLICT");
    }
    assert_eq!(snapshot(&hub).await, before);
    let renamed = json!({"agent_id": NATIVE, "agent_name": "Other", "owner_id": "acme",
        "skills": [{"skill_name": "read", "cost_per_call": 0}]});
    hub.post("/registry/register", Some(&key), &renamed).await.expect(200);
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.entry(ANALYST).await["native_id"], NATIVE);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridged_agent_is_busy_while_it_works_and_stale_when_it_is_away() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.agent("acme", "free", "0", None).await;
    let all = hub.get("/openclaw/agents?capability=free", None).await.expect(200);
    let id = all.str("/agents/0/agent_id");
    let request =
        || hub.request(&asker, json!({"responder_agent_id": id, "capability_id": "free"}));
    let reply = hub.ask(&asker, &request()).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    let entry = hub.entry(&id).await;
    assert_eq!(
        (&entry["effective_status"], &entry["active_collaborations"]),
        (&json!("busy"), &json!(1))
    );
    let jobs = format!("/registry/agents/{}/jobs", worker.id);
    let job = hub.get(&jobs, Some(&worker.key)).await.expect(200).str("/jobs/0/job_id");
    hub.0.report(&worker, &job, "SUCCESS", "0").await.expect(200);
    let view = hub.view(&asker, &reply.str("/collaboration_id")).await;
    assert_eq!(view["result"]["output_data"], json!({"done": true}));
    let figures = hub.get(&format!("/openclaw/agents/{id}/reputation"), None).await.expect(200);
    assert_eq!(figures.at("/reputation_update/metrics/total_collaborations"), 1);
    hub.pass(Millis::seconds(91));
    let entry = hub.entry(&id).await;
    assert_eq!((&entry["effective_status"], &entry["stale"]), (&json!("idle"), &json!(true)));
    assert_rejected(&hub.ask(&asker, &request()).await, "resource_exhausted");
    hub.0.stop().await;
}
