//! Block lists: senders an agent refuses (R90).

use serde_json::json;

use super::kit::{BOTH, assert_error, assert_rejected, message, registration, state};
use crate::kit::{Behaviour, TestHub, Worker};

#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_is_refused_until_the_block_is_lifted() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
        let (ada, bob) = (hub.join("Ada").await, hub.join_at("bob", &worker.url).await);
        let carol = hub.join("carol").await;
        let (own, path) = (Some(bob.key.as_str()), |id: &str| format!("{prefix}/agent/blocks{id}"));
        assert_eq!(hub.get(&path(""), own).await.expect(200).at("/data"), json!([]));
        // Any spelling names the sender, and a second block changes nothing.
        for id in ["/ada", "/ADA%40chorus"] {
            let reply = hub.call("PUT", &path(id), own, None).await.expect(200);
            assert_eq!(reply.at("/data"), json!(["Ada@chorus"]));
        }
        let before = state(&hub).await;
        for body in [message(&ada.id, &bob.id, "please"), message("ADA@chorus", "bob", "please")] {
            let reply = hub.post("/relay/messages", Some(&ada.key), &body).await;
            assert_rejected(&reply, 403, "ERR_BLOCKED");
        }
        // The operator cannot send in its name either.
        let body = message(&ada.id, &bob.id, "please");
        let reply = hub.post("/relay/messages", Some(&hub.operator), &body).await;
        assert_rejected(&reply, 403, "ERR_BLOCKED");
        assert_eq!(state(&hub).await, before);
        assert!(worker.got().is_empty(), "no delivery was attempted");
        // The block works in one direction, and for one sender.
        hub.say(&carol, &bob, "hello").await.expect(200);
        hub.say(&bob, &ada, "leave me alone").await.expect(202);

        let reply = hub.call("DELETE", &path("/ada"), own, None).await.expect(200);
        assert_eq!(reply.at("/data"), json!([]));
        hub.say(&ada, &bob, "thank you").await.expect(200);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_outlives_a_restart_an_update_and_a_departure() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    hub.call("PUT", "/agent/blocks/ada", Some(&bob.key), None).await.expect(200);
    hub.post("/relay/register", Some(&bob.key), &registration("bob")).await.expect(200);
    hub.call("DELETE", "/agents/ada", Some(&ada.key), None).await.expect(200);
    hub.post("/relay/register", Some(&ada.key), &registration("ada")).await.expect(201);
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    assert_rejected(&hub.say(&ada, &bob, "me again").await, 403, "ERR_BLOCKED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_belongs_to_one_agent_and_names_a_known_one() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    hub.call("PUT", "/agent/blocks/ada", Some(&bob.key), None).await.expect(200);
    let before = state(&hub).await;
    for method in ["PUT", "DELETE"] {
        for key in [None, Some("ca_x"), Some(hub.operator.as_str())] {
            let reply = hub.call(method, "/agent/blocks/ada", key, None).await;
            assert_error(&reply, 401, "ERR_UNAUTHORIZED");
        }
        for id in ["nobody", "%FF", "a%20b", "ada@elsewhere"] {
            let reply =
                hub.call(method, &format!("/agent/blocks/{id}"), Some(&bob.key), None).await;
            assert_error(&reply, 404, "ERR_AGENT_NOT_FOUND");
        }
    }
    // No other agent sees Bob's block list.
    assert_eq!(hub.get("/agent/blocks", Some(&ada.key)).await.expect(200).at("/data"), json!([]));
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}
