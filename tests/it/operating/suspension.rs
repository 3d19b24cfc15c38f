//! A suspended agent is refused by every protocol, in that protocol's own form.

use serde_json::json;

use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_with_keys_refuses_a_suspended_agent_with_the_reason() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    let card = json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]});
    let relay = json!({"agent_id": "alice@chorus", "agent_card": card});
    let relay = hub.post("/relay/register", None, &relay).await;
    assert_eq!(relay.status, 201, "{}", relay.text);
    let alice = relay.str("/data/api_key");
    let suspend = async |id: &str, verb: &str| {
        let path = format!("/v1/operator/agents/{id}/{verb}");
        hub.call("POST", &path, Some(&hub.operator), None).await.expect(200);
    };
    let calls = [
        ("GET", "/registry/audit", &agent.key),
        ("GET", "/openclaw/collaborations", &agent.key),
        ("GET", "/v1/me", &agent.key),
        ("GET", "/relay/agent/messages", &alice),
    ];
    for (method, path, key) in calls {
        let got = hub.call(method, path, Some(key), None).await;
        assert_eq!(got.status, 200, "{path}: {}", got.text);
    }
    for id in [&agent.id, "alice@chorus"] {
        suspend(id, "suspend").await;
    }
    for (method, path, key) in calls {
        let got = hub.call(method, path, Some(key), None).await;
        assert_eq!(got.status, 403, "{path}: {}", got.text);
        assert!(got.text.contains("suspended by the operator"), "{path}: {}", got.text);
    }
    for id in [&agent.id, "alice@chorus"] {
        suspend(id, "resume").await;
    }
    for (method, path, key) in calls {
        hub.call(method, path, Some(key), None).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_ends_when_its_agent_is_suspended_and_resumes_without_a_gap() {
    let hub = TestHub::serve(&[]).await;
    let (reader, writer) = (hub.orchestrator("reader").await, hub.orchestrator("writer").await);
    let open = async |after: u64| {
        let path = format!("{}/v1/events?after={after}", hub.url);
        hub.http.get(path).bearer_auth(&reader.key).send().await.expect("an answer")
    };
    let send = async || {
        let body = json!({"to": reader.id, "body": {"hello": "there"}});
        hub.post("/v1/messages", Some(&writer.key), &body).await.expect(200);
    };
    send().await;
    let mut stream = open(0).await;
    read_to(&mut stream, "id: 1").await;
    let path = format!("/v1/operator/agents/{}/suspend", reader.id);
    hub.call("POST", &path, Some(&hub.operator), None).await.expect(200);
    send().await;
    while let Some(more) = stream.chunk().await.expect("a stream") {
        assert!(!String::from_utf8_lossy(&more).contains("id: 2"), "{more:?}");
    }
    assert_eq!(open(1).await.status().as_u16(), 403);
    let path = format!("/v1/operator/agents/{}/resume", reader.id);
    hub.call("POST", &path, Some(&hub.operator), None).await.expect(200);
    read_to(&mut open(1).await, "id: 2").await;
}

/// Reads a stream until it has contained this text.
async fn read_to(stream: &mut reqwest::Response, wanted: &str) {
    let mut text = String::new();
    while !text.contains(wanted) {
        let more = stream.chunk().await.expect("a stream").expect("the stream is open");
        text.push_str(&String::from_utf8_lossy(&more));
    }
}
