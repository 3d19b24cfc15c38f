//! Registration: what is accepted, what is answered, and that it is visible at once (R8–R14).

use rialto_core::alias::Protocol;
use serde_json::{Value, json};

use super::forms::{AGENT_ID, both_modes, registration, with};
use crate::kit::{Reply, TestHub, assert_malformed, digits, snapshot};

/// What only the hub keeps of a registration: the agent's own card.
fn card(hub: &TestHub, id: &str) -> Value {
    let card = hub.engine.with_world(|world| {
        let agent = world.agent_by_alias(Protocol::new("registry"), id)?;
        world.agent(agent).map(|agent| agent.card.clone())
    });
    serde_json::from_str(&card.expect("an agent")).expect("JSON")
}

fn names(reply: &Reply) -> Vec<String> {
    reply.json().as_object().expect("an object").keys().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_takes_the_seven_fields_and_keeps_them() {
    for hub in both_modes().await {
        let paths = ["/registry/register", "/register"];
        let ids = [AGENT_ID, "550e8400-e29b-41d4-a716-446655440000"];
        for ((path, id), owner) in paths.into_iter().zip(ids).zip(["acme", "globex"]) {
            let body = with(&registration(owner), "/agent_id", Some(json!(id)));
            assert_eq!(body.as_object().expect("an object").len(), 7);
            hub.post(path, None, &body).await.expect(201);
            let agent = hub.get(&format!("/registry/agents/{id}"), None).await.expect(200);
            for field in ["agent_id", "agent_name", "owner_id", "api_endpoint", "skills"] {
                assert_eq!(agent.at(&format!("/{field}")), body[field], "{field}");
            }
            let said = card(&hub, id);
            assert_eq!(said["version"], "0.1");
            assert_eq!(said["timestamp_utc"], body["timestamp_utc"]);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_shown_with_all_five_fields_as_they_came() {
    let hub = TestHub::serve(&[]).await;
    let skill = r#"{"skill_name":"Übersetzung 界","description":"One\nline\u0021",
        "cost_per_call":0.1,"input_schema":{"text" : "string","n":"int"},"output_schema":{"a/b":"list"}}"#;
    let body = format!(
        r#"{{"agent_name":"n","owner_id":"o","skills":[{skill}, {{"skill_name":"bare","cost_per_call":0}}]}}"#
    );
    let reply = hub.post_text("/registry/register", None, &body).await.expect(201);
    let agent =
        hub.get(&format!("/registry/agents/{}", reply.str("/agent_id")), None).await.expect(200);
    let first = json!({"skill_name": "Übersetzung 界", "description": "One\nline!", "cost_per_call": 0.1,
        "input_schema": {"text": "string", "n": "int"}, "output_schema": {"a/b": "list"}});
    assert_eq!(agent.at("/skills/0"), first);
    let bare = json!({"skill_name": "bare", "description": "", "cost_per_call": 0.0,
        "input_schema": {}, "output_schema": {}});
    assert_eq!(agent.at("/skills/1"), bare);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_an_owner_are_enough_and_null_is_the_same_as_nothing() {
    let hub = TestHub::serve(&[]).await;
    let least = json!({"agent_name": "n", "owner_id": "o"});
    let nulls = json!({"agent_name": "n", "owner_id": "p", "agent_id": null, "api_endpoint": null,
        "skills": null, "version": null, "timestamp_utc": null, "rotate_key": null});
    for body in [least, nulls] {
        let id = hub.post("/register", None, &body).await.expect(201).str("/agent_id");
        let agent = hub.get(&format!("/registry/agents/{id}"), None).await.expect(200);
        assert_eq!(agent.at("/skills"), json!([]));
        assert_eq!(card(&hub, &id)["version"], "0.1");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_0_1_or_a_variant_of_it() {
    for hub in both_modes().await {
        for (n, version) in ["0.1", "0.1-", "0.1-serverless"].into_iter().enumerate() {
            let body = with(&registration(&format!("o{n}")), "/version", Some(json!(version)));
            let path = if n == 0 { "/register" } else { "/registry/register" };
            let id = hub.post(path, None, &body).await.expect(201).str("/agent_id");
            assert_eq!(card(&hub, &id)["version"], version);
        }
        let before = snapshot(&hub).await;
        let wrong = ["", "0.2", "0.10", "0.1.1", "0.1 ", "v0.1", "1.0", "0"].map(Value::from);
        for version in wrong.into_iter().chain([json!(0.1), json!(["0.1"])]) {
            for path in ["/registry/register", "/register"] {
                let body = with(&registration("new"), "/version", Some(version.clone()));
                assert_malformed(&hub.post(path, None, &body).await, "/version");
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_agent_is_answered_201_with_its_id_its_key_and_a_score_of_50() {
    for hub in both_modes().await {
        for (n, path) in ["/registry/register", "/register"].into_iter().enumerate() {
            let id = format!("0000000{n}-0b3b-4b1a-9c1a-1a2b3c4d5e6f");
            let body = with(&registration(&format!("o{n}")), "/agent_id", Some(json!(id)));
            let reply = hub.post(path, None, &body).await.expect(201);
            assert_eq!(reply.str("/status"), "registered");
            assert_eq!(reply.str("/agent_id"), id);
            assert_eq!(digits(&reply.text, "reputation_score"), "50.0");
            let key = reply.str("/api_key");
            let random = key.strip_prefix("rk_").expect("a registry key");
            assert!(random.len() == 48 && random.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
            assert!(reply.str("/webhook_secret").starts_with("whsec_"));
            assert_eq!(
                hub.get(&format!("/registry/reputation/{id}"), None).await.at("/score"),
                50.0
            );
            let beat = hub.post("/heartbeat", Some(&key), &json!({"agent_id": id})).await;
            assert_eq!(beat.status, 200, "the key is valid at once");
        }
        // Only an endpoint for deliveries needs a signing secret.
        for (n, endpoint) in
            [None, Some(json!("")), Some(json!("local://memory"))].into_iter().enumerate()
        {
            let body = with(&registration(&format!("p{n}")), "/api_endpoint", endpoint);
            let reply = hub.post("/registry/register", None, &body).await.expect(201);
            assert_eq!(names(&reply), ["agent_id", "api_key", "reputation_score", "status"]);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_answered_200_with_the_key_that_was_shown_or_a_new_one() {
    let hub = TestHub::serve(&[]).await;
    let first = hub.enrol(&registration("acme"), None).await;
    let body = with(&registration("acme"), "/agent_id", Some(json!(first.id)));
    let reply = hub.post("/registry/register", Some(&first.key), &body).await.expect(200);
    assert_eq!(
        names(&reply),
        ["agent_id", "api_key", "reputation_score", "status", "webhook_secret"]
    );
    assert_eq!(reply.str("/status"), "registered");
    assert_eq!(reply.str("/agent_id"), first.id);
    assert_eq!(reply.str("/api_key"), first.key);
    let rotating = with(&body, "/rotate_key", Some(json!(true)));
    let reply = hub.post("/register", Some(&first.key), &rotating).await.expect(200);
    let fresh = reply.str("/api_key");
    assert_ne!(fresh, first.key);
    for key in [&fresh, &first.key] {
        hub.post("/heartbeat", Some(key), &json!({"agent_id": first.id})).await.expect(200);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_found_by_each_of_its_skills_right_after_the_201() {
    for hub in both_modes().await {
        let many: Vec<Value> = (0..64)
            .map(|n| json!({"skill_name": format!("skill {n}"), "cost_per_call": n}))
            .collect();
        for endpoint in [None, Some(json!("https://agent.example/jobs"))] {
            let owner = if endpoint.is_some() { "called" } else { "polling" };
            let body = with(&registration(owner), "/skills", Some(Value::from(many.clone())));
            let body = with(&body, "/api_endpoint", endpoint);
            let id = hub.post("/register", None, &body).await.expect(201).str("/agent_id");
            for n in 0..64 {
                let base = if n % 2 == 0 { "/registry" } else { "" };
                let found =
                    hub.get(&format!("{base}/discover?skill=skill+{n}"), None).await.expect(200);
                let ids: Vec<Value> = found.at("/agents").as_array().expect("a list").clone();
                assert!(
                    ids.iter().any(|one| one["agent_id"] == id.as_str()),
                    "skill {n}: {}",
                    found.text
                );
            }
        }
        hub.stop().await;
    }
}
