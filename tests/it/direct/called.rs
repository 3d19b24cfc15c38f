//! A hub calls agents in direct mode at their registered address.

use serde_json::json;

use super::stand::Stand;
use crate::kit::{TestHub, digits};

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_hires_an_agent_at_its_own_address_and_pays_it() {
    let (hub, stand) = (TestHub::serve(&[]).await, Stand::new().await);
    let asker = hub.orchestrator("asker").await;
    hub.grant("asker", "1.00").await;
    let body = json!({"agent_id": stand.identity.id().to_string(), "agent_name": "Shouter",
        "owner_id": "maker", "api_endpoint": stand.url,
        "skills": [{"skill_name": "shout", "cost_per_call": 0.05}]});
    let worker = hub.enrol(&body, None).await;
    let reply = hub.hire(&asker, &worker, "shout", "0.10").await.expect(200);
    assert_eq!(reply.at("/output_data"), json!({"text": "HELLO"}));
    assert_eq!(reply.str("/agent_id"), worker.id);
    assert_eq!(digits(&reply.text, "execution_cost"), "0.05");
    assert_eq!(hub.balance("asker").await, ("0.95".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("maker").await.0, "0.05");
    // A declined job counts as failed at the hub, and costs nothing.
    let body = json!({"orchestrator_id": asker.id, "skill_name": "shout", "input_data": {},
        "budget": 0.05});
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let reply = hub.post(&path, Some(&asker.key), &body).await.expect(200);
    assert_eq!(
        (reply.str("/status"), reply.str("/error_code")),
        ("FAILURE".into(), "EXECUTION_ERROR".into())
    );
    assert_eq!(reply.str("/error_message"), "there is nothing to shout");
    assert_eq!(hub.balance("asker").await.0, "0.95");
    assert_eq!(stand.works(), 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_agent_in_direct_mode_is_answered_with_what_it_made() {
    let (hub, stand) = (TestHub::open(&[]).await, Stand::new().await);
    let alice = hub.join("alice@chorus").await;
    let shouter = hub.join_at("shouter@chorus", &format!("{}/receive", stand.url)).await;
    let envelope = json!({"chorus_version": "0.4", "sender_id": alice.id, "sender_culture": "en",
        "original_text": "hello", "budget": 0.05});
    let reply = hub.mail(&alice, &shouter, &envelope).await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered");
    assert_eq!(reply.at("/data/receiver_response"), json!({"status": "ok", "reply": "HELLO"}));
    // An agent that refuses was reached: the hub does not retry.
    let mut poor = envelope;
    poor["budget"] = json!(0.01);
    let reply = hub.mail(&alice, &shouter, &poor).await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered");
    assert_eq!(reply.str("/data/receiver_response/error_code"), "ADAPTATION_FAILED");
    hub.stop().await;
}
