//! Registering again: an update with the agent's own key only (R10, R11).

use serde_json::json;

use super::kit::{BOTH, assert_error, card, registration, state, with};
use crate::kit::{TestHub, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_card_and_endpoint_and_not_the_date() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let ada = hub.join("Ada@chorus").await;
        let first = hub.record(&ada.id).await;
        // Time passes, so that a new date would be visible.
        let born = hub.engine.now();
        eventually(async || hub.engine.now() > born).await;
        let new = json!({"card_version": "0.3", "user_culture": "zh-CN", "supported_languages": ["zh-CN", "en"]});
        let body = json!({"agent_id": "ada@chorus", "agent_card": new, "endpoint": "https://ada.example/in",
            "envelope_format": "a2a-1.0"});
        let path = format!("{prefix}/register");
        let reply = hub.post(&path, Some(&ada.key), &body).await.expect(200);
        assert_eq!(reply.str("/data/api_key"), ada.key);
        let record = reply.at("/data/registration");
        assert_eq!(record["registered_at"], first["registered_at"]);
        assert_eq!(
            (&record["agent_card"], &record["endpoint"]),
            (&new, &json!("https://ada.example/in"))
        );
        assert_eq!(record["envelope_format"], "a2a-1.0");

        // Omitted members are removed: the record is the latest registration.
        let body = json!({"agent_id": "ada@chorus", "agent_card": card()});
        let reply = hub.post(&path, Some(&ada.key), &body).await.expect(200);
        let record = reply.at("/data/registration");
        assert_eq!(record["registered_at"], first["registered_at"]);
        assert_eq!(record["agent_card"], card());
        assert!(record.get("endpoint").is_none() && record.get("envelope_format").is_none());
        assert!(reply.json().pointer("/data/webhook_secret").is_none());
        let listed = hub.get("/relay/agents", None).await.at("/data");
        assert_eq!(listed.as_array().expect("a list").len(), 1);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_keeps_its_key_unless_a_new_one_is_asked_for() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let rotate = with(&registration("ada"), "/rotate_key", Some(json!(true)));
    let reply = hub.post("/relay/register", Some(&ada.key), &rotate).await.expect(200);
    let fresh = reply.str("/data/api_key");
    assert_ne!(fresh, ada.key);
    // The old key stays valid for a while, so that the agent is not locked out.
    for key in [&fresh, &ada.key] {
        hub.get("/relay/agent/blocks", Some(key)).await.expect(200);
    }
    let reply = hub.post("/relay/register", Some(&fresh), &registration("ada")).await.expect(200);
    assert_eq!(reply.str("/data/api_key"), fresh);
    // With an idempotency key the new key is shown once.
    let first = hub.post_once("/relay/register", Some(&fresh), "k1", &rotate).await.expect(200);
    let again = hub.post_once("/relay/register", Some(&fresh), "k1", &rotate).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_ne!(first.str("/data/api_key"), fresh);
    assert!(again.json().pointer("/data/api_key").is_none(), "{}", again.text);
    // A new agent has no key to rotate.
    let new = with(&registration("bob"), "/rotate_key", Some(json!(true)));
    hub.post("/relay/register", None, &new).await.expect(201);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_cannot_be_taken_over_without_its_key() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        hub.say(&bob, &ada, "for ada alone").await.expect(202);
        let before = state(&hub).await;
        let path = format!("{prefix}/register");
        for id in ["ada@chorus", "Ada@Chorus", "ADA@CHORUS"] {
            let body = json!({"agent_id": id, "endpoint": "https://evil.example/in", "agent_card": card(), "rotate_key": true});
            let taken = hub.post(&path, None, &body).await;
            assert_error(&taken, 409, "ERR_AGENT_ID_TAKEN");
            assert!(taken.str("/error/hint").contains("Authorization: Bearer"), "{}", taken.text);
            assert!(!taken.text.contains("api_key"));
            let wrong = hub.post(&path, Some(&bob.key), &body).await;
            assert_error(&wrong, 401, "ERR_UNAUTHORIZED");
            let unknown = "ca_0123456789abcdef0123456789abcdef012345674195f880";
            assert_error(&hub.post(&path, Some(unknown), &body).await, 401, "ERR_UNAUTHORIZED");
        }
        assert_eq!(state(&hub).await, before);
        let mut inbox = hub.inbox(&ada).await;
        assert_eq!(inbox.message().await.said(), "for ada alone");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_another_protocol_cannot_take_an_address_or_the_name_of_its_owner() {
    let hub = TestHub::serve(&[]).await;
    let stranger = hub.orchestrator("stranger").await;
    // A registry agent tries to take the ledger name of an address that is not registered yet.
    let body = json!({"agent_name": "n", "owner_id": "relay:ada@chorus", "skills": []});
    let squat = hub.post("/registry/register", None, &body).await;
    assert!(squat.status >= 400, "{}", squat.text);
    let ada = hub.join("ada").await;
    let before = state(&hub).await;
    let reply = hub.post("/relay/register", Some(&stranger.key), &registration("ada")).await;
    assert_error(&reply, 401, "ERR_UNAUTHORIZED");
    let late = hub.post("/registry/register", None, &body).await;
    assert!(late.status >= 400, "{}", late.text);
    assert_eq!(state(&hub).await, before);
    hub.get("/relay/agent/blocks", Some(&ada.key)).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_update_any_agent_and_it_is_logged() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let events = hub.engine.with_world(|world| world.next.event.0);
    let body = json!({"agent_id": "ada"});
    let reply = hub.post("/relay/register", Some(&hub.operator), &body).await.expect(200);
    assert_eq!(reply.at("/data/registration/agent_card"), card());
    assert!(reply.json().pointer("/data/api_key").is_none(), "{}", reply.text);
    assert!(!reply.text.contains(&hub.operator));
    assert!(hub.engine.with_world(|world| world.next.event.0) > events);
    hub.get("/relay/agent/blocks", Some(&ada.key)).await.expect(200);
    hub.stop().await;
}
