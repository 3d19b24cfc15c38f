//! Unregistering: who may do it, what ends with it, and who can return (R21–R24).

use serde_json::{Value, json};

use super::kit::{BOTH, Peer, assert_error, assert_rejected, card, registration, state, with};
use crate::kit::{Reply, TestHub};

async fn delete(hub: &TestHub, prefix: &str, id: &str, key: Option<&str>) -> Reply {
    hub.call("DELETE", &format!("{prefix}/agents/{id}"), key, None).await
}

fn gone(deleted: bool, id: &str) -> Value {
    json!({"deleted": deleted, "agent_id": id})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_and_the_operator_may_unregister_it() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (ada, bob) = (hub.join("Ada").await, hub.join("bob").await);
        let own = delete(&hub, prefix, "ada", Some(&ada.key)).await.expect(200);
        assert_eq!(own.at("/data"), gone(true, &ada.id));
        let operators = delete(&hub, prefix, "bob%40chorus", Some(&hub.operator)).await.expect(200);
        assert_eq!(operators.at("/data"), gone(true, &bob.id));
        assert_eq!(hub.get(&format!("{prefix}/agents"), None).await.at("/data"), json!([]));
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_is_gone_already() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        delete(&hub, prefix, "bob", Some(&bob.key)).await.expect(200);
        let before = state(&hub).await;
        for key in [&ada.key, &hub.operator] {
            for id in ["carol@chorus", "bob@chorus"] {
                let reply = delete(&hub, prefix, id, Some(key)).await.expect(200);
                assert_eq!(reply.at("/data"), gone(false, id));
            }
        }
        assert_eq!(state(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_agents_own_key_no_agent_is_deleted() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (_ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let other = hub.orchestrator("other").await;
        let before = state(&hub).await;
        for key in [&bob.key, &other.key] {
            let reply = delete(&hub, prefix, "ada", Some(key)).await;
            assert_error(&reply, 404, "ERR_AGENT_NOT_FOUND");
        }
        for key in [None, Some("ca_x")] {
            let reply = delete(&hub, prefix, "ada", key).await;
            assert_error(&reply, 401, "ERR_UNAUTHORIZED");
        }
        assert_eq!(state(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_it_the_key_is_refused_the_inbox_streams_end_and_messages_are_refused() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let (one, two) = (hub.inbox(&ada).await, hub.inbox(&ada).await);
    delete(&hub, "", "ada", Some(&ada.key)).await.expect(200);
    assert!(one.rest().await.is_empty() && two.rest().await.is_empty(), "the streams have ended");
    for (method, path) in [
        ("GET", "/agent/inbox"),
        ("GET", "/agent/messages"),
        ("GET", "/agent/blocks"),
        ("PUT", "/agent/blocks/bob"),
        ("DELETE", "/agents/ada"),
        ("DELETE", "/agents/bob"),
        ("POST", "/messages"),
        ("POST", "/agent/inbox/ack"),
    ] {
        let reply = hub.call(method, path, Some(&ada.key), Some("{}")).await;
        assert_error(&reply, 401, "ERR_UNAUTHORIZED");
    }
    assert_error(&hub.get("/agents/ada", None).await, 404, "ERR_AGENT_NOT_FOUND");
    assert_eq!(hub.get("/agents", None).await.at("/data/0/agent_id"), "bob@chorus");
    let before = state(&hub).await;
    assert_rejected(&hub.say(&bob, &ada, "still there?").await, 404, "ERR_AGENT_NOT_FOUND");
    let body = super::kit::message(&ada.id, &bob.id, "as the operator");
    let reply = hub.post("/messages", Some(&hub.operator), &body).await;
    assert_rejected(&reply, 400, "ERR_SENDER_NOT_REGISTERED");
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_former_key_brings_an_id_back() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let since = hub.record("ada").await["registered_at"].clone();
        delete(&hub, prefix, "ada", Some(&ada.key)).await.expect(200);
        let before = state(&hub).await;
        let path = format!("{prefix}/register");
        for id in ["ada@chorus", "ADA@chorus"] {
            let none = hub.post(&path, None, &registration(id)).await;
            assert_error(&none, 409, "ERR_AGENT_ID_TAKEN");
            let wrong = hub.post(&path, Some(&bob.key), &registration(id)).await;
            assert_error(&wrong, 401, "ERR_UNAUTHORIZED");
        }
        assert_eq!(state(&hub).await, before);

        let back = hub.post(&path, Some(&ada.key), &registration("ada@chorus")).await.expect(201);
        assert_eq!(back.str("/data/api_key"), ada.key);
        assert_eq!(back.at("/data/registration/registered_at"), since);
        hub.say(&bob, &ada, "welcome back").await.expect(202);
        let mut inbox = hub.inbox(&ada).await;
        assert_eq!(inbox.message().await.said(), "welcome back");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lost_its_key_is_told_how_to_recover_and_can() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    delete(&hub, "", "ada", Some(&ada.key)).await.expect(200);
    let taken = hub.post("/relay/register", None, &registration("ada")).await;
    assert_error(&taken, 409, "ERR_AGENT_ID_TAKEN");
    assert!(taken.str("/error/message").contains("key"), "{}", taken.text);
    assert!(taken.str("/error/hint").contains("POST /agents/{id}/key"), "{}", taken.text);
    let minted = hub.call("POST", "/agents/ada/key", Some(&hub.operator), None).await.expect(201);
    let key = minted.str("/data/api_key");
    assert_error(&hub.get("/agents/ada", None).await, 404, "ERR_AGENT_NOT_FOUND");
    hub.post("/relay/register", Some(&key), &registration("ada")).await.expect(201);
    assert_eq!(hub.record("ada").await["agent_id"], ada.id);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_is_still_there_for_who_comes_back() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    hub.say(&bob, &ada, "before").await.expect(202);
    delete(&hub, "", "ada", Some(&ada.key)).await.expect(200);
    hub.post("/relay/register", Some(&ada.key), &registration("ada")).await.expect(201);
    let mut inbox = hub.inbox(&ada).await;
    assert_eq!(inbox.message().await.said(), "before");
    // The key of a removed agent does not get a saved answer.
    let body = with(&registration("carol"), "/agent_card", Some(card()));
    let carol = hub.post_once("/relay/register", None, "k1", &body).await.expect(201);
    let carol = Peer { id: "carol@chorus".to_owned(), key: carol.str("/data/api_key") };
    delete(&hub, "", "carol", Some(&carol.key)).await.expect(200);
    let sent = super::kit::message(&carol.id, &bob.id, "x");
    let reply = hub.post_once("/relay/messages", Some(&carol.key), "k2", &sent).await;
    assert_rejected(&reply, 401, "ERR_UNAUTHORIZED");
    hub.stop().await;
}
