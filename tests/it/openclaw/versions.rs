//! Versions and the common members: on everything the hub sends, whatever it received (R2, R4, R75,
//! R76, R81).

use rialto_protocols::kit::{ijson, rfc3339};
use rialto_protocols::openclaw::{Kind, wire};
use serde_json::{Value, json};
use uuid::Uuid;

use super::kit::{Hub, assert_error, assert_violation, fresh_id, identity, with};
use crate::kit::snapshot;

#[tokio::test(flavor = "multi_thread")]
async fn no_version_and_every_one_of_major_one_is_spoken_here() {
    let hub = Hub::serve(&[]).await;
    for version in [Value::Null, json!("1.0.0"), json!("1.99.3"), json!("1.0.12")] {
        let body = with(&identity("node", hub.now()), json!({"protocol_version": version}));
        let reply = hub.post("/openclaw/identity", None, &body).await.expect(201);
        assert_eq!(reply.str("/protocol_version"), "1.0.0", "the hub's own version");
        let shown = hub.entry(&reply.str("/agent_id")).await;
        assert_eq!(shown["protocol_version"], "1.0.0");
        let node = super::kit::Node {
            id: reply.str("/agent_id"),
            key: reply.str("/api_key"),
            identity: body,
        };
        let request = hub.request(&node, json!({"protocol_version": version}));
        assert_eq!(hub.ask(&node, &request).await.expect(200).str("/protocol_version"), "1.0.0");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_major_is_told_apart_from_nonsense_at_every_path() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let work = hub.accepted(&other, &node, json!({})).await;
    let update = json!({"current_status": "idle", "status_timestamp": hub.time(0)});
    let status = json!({"agent_id": node.id, "status_update": update,
        "correlation_id": fresh_id(), "timestamp": hub.time(0)});
    let bodies = [
        ("/openclaw/identity".to_owned(), node.identity.clone()),
        ("/openclaw/status".to_owned(), status.clone()),
        ("/openclaw/messages".to_owned(), status),
        ("/openclaw/collaborations".to_owned(), hub.request(&node, json!({}))),
        (format!("/openclaw/collaborations/{}/result", work.id), hub.done(&work, json!({}))),
        (format!("/openclaw/collaborations/{}/cancel", work.id), json!({})),
        (format!("/openclaw/collaborations/{}/approve", work.id), json!({"approved": true})),
    ];
    let before = snapshot(&hub).await;
    for (path, body) in bodies {
        for version in ["2.0.0", "0.9.0", "11.0.0"] {
            let body = with(&body, json!({"protocol_version": version}));
            let reply = hub.post(&path, Some(&node.key), &body).await;
            assert_error(&reply, 400, "UNSUPPORTED_PROTOCOL_VERSION");
        }
        for version in [json!("1"), json!("1.0"), json!("one"), json!(1), json!("1.0.0-rc")] {
            let body = with(&body, json!({"protocol_version": version}));
            let reply = hub.post(&path, Some(&node.key), &body).await;
            assert_violation(&reply, "protocol_version must be a version like \"1.0.0\"");
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

/// Checks that a body has the three common members.
#[track_caller]
fn assert_common(body: &Value) {
    assert_eq!(body["protocol_version"], "1.0.0", "{body}");
    let id = body["correlation_id"].as_str().unwrap_or_default();
    assert!(id.parse::<Uuid>().is_ok(), "{body}");
    let at = body["timestamp"].as_str().unwrap_or_default();
    assert!(rfc3339::parse(at).is_ok(), "{body}");
}

/// Checks a message against the spec's own schema.
#[track_caller]
fn assert_message(kind: Kind, body: &Value) {
    let text = body.to_string();
    let json = ijson::read(text.as_bytes()).expect("JSON");
    assert_eq!(wire::schema_of(kind).check_json(&json), Ok(()), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_body_the_hub_sends_has_the_three_members_and_every_message_its_schema() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut hears = hub.resume(&asker, &format!("?watch={}", worker.id), None).await;
    let mut works = hub.resume(&worker, "", None).await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.ask(&asker, &request).await.expect(200);
    assert_message(Kind::Response, &reply.json());
    assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    let work = super::scene::work(&reply.str("/collaboration_id"), &request, &worker);
    hub.result(&work, json!({})).await.expect(200);
    let rejected = hub.hire(&asker, &worker, json!({"capability_id": "sing"})).await.expect(200);
    assert_message(Kind::Response, &rejected.json());
    let id = &worker.id;
    let collaboration = format!("/openclaw/collaborations/{}", work.id);
    for path in [
        "/openclaw/health",
        "/openclaw/agents",
        &format!("/openclaw/agents/{id}"),
        &format!("/openclaw/agents/{id}/status"),
        &format!("/openclaw/agents/{id}/reputation"),
        "/openclaw/collaborations",
        &collaboration,
    ] {
        let body = hub.get(path, Some(&asker.key)).await.expect(200).json();
        assert_common(&body);
        match path {
            path if path.ends_with("/status") => assert_message(Kind::Status, &body),
            path if path.ends_with("/reputation") => assert_message(Kind::Reputation, &body),
            path if path.ends_with(id) => assert_message(Kind::Identity, &body),
            _ => {}
        }
    }
    for (stream, last) in [(&mut works, "reputation_update"), (&mut hears, "collaboration_result")]
    {
        loop {
            let event = stream.next().await;
            assert_common(&event.data);
            match event.event.as_str() {
                "collaboration_request" => assert_message(Kind::Request, &event.data),
                "collaboration_result" => assert_message(Kind::Result, &event.data),
                "status_update" => assert_message(Kind::Status, &event.data),
                "reputation_update" => assert_message(Kind::Reputation, &event.data),
                other => assert_eq!(other, "connected"),
            }
            if event.event == last {
                break;
            }
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_keeps_its_correlation_id_or_is_given_one() {
    let hub = Hub::serve(&[]).await;
    let bare = hub.post("/openclaw/identity", None, &identity("bare", hub.now())).await.expect(201);
    assert_common(&bare.json());
    let named = with(&identity("named", hub.now()), json!({"correlation_id": fresh_id()}));
    let reply = hub.post("/openclaw/identity", None, &named).await.expect(201);
    assert_eq!(reply.at("/correlation_id"), named["correlation_id"]);
    hub.0.stop().await;
}
