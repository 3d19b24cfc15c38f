//! `POST /register` at the root, which two protocols share and tell apart by the body.

use serde_json::{Value, json};

use super::forms::{AGENT_ID, both_modes, registration};
use crate::kit::{Reply, TestHub, assert_malformed, snapshot};

/// The answer to a body that matches no registration, or more than one.
#[track_caller]
fn assert_fits_nobody(reply: &Reply) {
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!(reply.at("/success"), false);
    assert_eq!(reply.str("/status"), "error");
    assert_eq!(reply.str("/error_code"), "INVALID_REQUEST");
    assert_eq!(reply.str("/error/code"), "ERR_VALIDATION");
    assert_eq!(reply.at("/error/retryable"), false);
    assert_eq!(reply.str("/error/message"), reply.str("/error_message"));
    assert_eq!(reply.str("/detail"), reply.str("/error_message"));
    assert!(reply.str("/metadata/timestamp").ends_with('Z'));
    let shapes = reply.at("/error/shapes");
    let registry =
        shapes.as_array().and_then(|all| all.iter().find(|one| one["protocol"] == "registry"));
    let registry = registry.unwrap_or_else(|| panic!("no registry in {shapes}"));
    assert_eq!(registry["path"], "/registry/register");
    assert_eq!(registry["example"]["skills"][0]["skill_name"], "analyze_text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_at_the_root_is_told_by_its_shape() {
    for hub in both_modes().await {
        for (n, body) in [
            json!({"agent_name": "n", "owner_id": "o", "skills": []}),
            json!({"agent_name": "n", "owner_id": "p"}),
            json!({"agent_name": "n", "owner_id": "q", "agent_id": AGENT_ID}),
            registration("r"),
        ]
        .into_iter()
        .enumerate()
        {
            let reply = hub.post("/register", None, &body).await.expect(201);
            assert_eq!(reply.str("/status"), "registered", "{n}");
            let agent = hub
                .get(&format!("/registry/agents/{}", reply.str("/agent_id")), None)
                .await
                .expect(200);
            assert_eq!(agent.str("/protocol"), "registry");
        }
        // One member of its form selects the registry, which then names what is missing.
        for (body, field) in [
            (json!({"agent_name": "n"}), "/owner_id"),
            (json!({"owner_id": "new"}), "/agent_name"),
            (json!({"skills": []}), "/owner_id"),
            (json!({"agent_id": AGENT_ID.to_uppercase()}), "/owner_id"),
        ] {
            assert_malformed(&hub.post("/register", None, &body).await, field);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_at_the_root_that_fits_no_protocol_gets_examples() {
    for hub in both_modes().await {
        let before = snapshot(&hub).await;
        for body in [
            json!({}),
            json!({"agent_id": "bob"}),
            json!({"agent_id": 7}),
            json!({"name": "n"}),
            // Members of both forms.
            json!({"agent_card": {}, "owner_id": "o"}),
            json!({"agent_id": "x@y", "agent_name": "n"}),
            json!([]),
            json!("agent_name"),
            Value::Null,
        ] {
            assert_fits_nobody(&hub.post("/register", None, &body).await);
        }
        let reply = hub.post_text("/register", None, "{\"agent_name\":").await;
        assert_fits_nobody(&reply);
        assert!(reply.str("/error_message").contains("unexpected end"), "{}", reply.text);
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_shown_at_the_root_works_where_it_says() {
    let hub = TestHub::serve(&[]).await;
    let shapes = hub.post("/register", None, &json!({})).await.at("/error/shapes");
    for shape in shapes.as_array().expect("a list") {
        let path = shape["path"].as_str().expect("a path");
        hub.post(path, None, &shape["example"]).await.expect(201);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_at_the_root_as_under_the_prefix() {
    let hub = TestHub::serve(&[]).await;
    let first = hub.enrol(&registration("acme"), None).await;
    let second = hub.post("/register", Some(&first.key), &registration("acme")).await.expect(201);
    assert_ne!(second.str("/agent_id"), first.id);
    hub.post("/register", None, &registration("acme")).await.expect(409);
    hub.post("/register", Some("rk_nonsense"), &registration("new")).await.expect(401);
    hub.stop().await;
}
