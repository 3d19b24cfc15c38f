//! The card for callers with a key (R11, R12).

use serde_json::json;

use super::cards::strict;
use super::kit::{HUB, TaskWorker};
use crate::kit::{Reply, TestHub};
use crate::openclaw::kit::{Hub, capability};

#[tokio::test(flavor = "multi_thread")]
async fn the_extended_card_needs_a_key_and_says_more() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "sum", "0").await;
    let client = hub.a2a_client("reader").await;
    let path = format!("{}/extendedAgentCard", worker.base);
    let refused = hub.get(&path, None).await.expect(401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let public = strict(&hub, &worker.base).await;
    let extended = hub.request(("GET", &path), &client.key, &[], "").await.expect(200);
    assert_eq!(extended.header("cache-control"), Some("no-store"));
    let uri = |reply: &Reply, name: &str| {
        let all = reply.at("/capabilities/extensions");
        let uri = format!("urn:rialto:a2a:{name}");
        all.as_array().expect("extensions").iter().find(|one| one["uri"] == uri).cloned()
    };
    let (shown, more) = (uri(&public, "trust:v1").expect("trust"), uri(&extended, "trust:v1"));
    let more = more.expect("trust");
    assert_eq!(shown["params"].get("presence"), None);
    assert_eq!(more["params"]["presence"]["state"], "ready");
    assert!(more["params"]["presence"]["seenAt"].is_string());
    assert_eq!(more["params"]["running"], 0);
    // The same by JSON-RPC, in both versions, and of the hub itself.
    let rpc = hub.result(&worker.base, &client.key, "GetExtendedAgentCard", json!({})).await;
    let extensions = "/capabilities/extensions";
    assert_eq!(rpc.pointer(extensions), extended.json().pointer(extensions));
    let old = super::kit::rpc(1, "agent/getAuthenticatedExtendedCard", json!({})).to_string();
    let old = hub
        .send(
            "POST",
            &worker.base,
            &[("authorization", &format!("Bearer {}", client.key))],
            old.as_bytes(),
        )
        .await
        .expect(200);
    assert_eq!(old.str("/result/protocolVersion"), "0.3.0");
    assert_eq!(old.header("cache-control"), Some("no-store"));
    let own = hub.request(("GET", "/a2a/extendedAgentCard"), &client.key, &[], "").await;
    assert_eq!(own.expect(200).str("/name"), "Rialto");
    let operator = hub.operator.clone();
    hub.request(("GET", &path), &operator, &[], "").await.expect(403);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_more_than_16_kib_is_on_the_extended_card_alone() {
    let hub = Hub::serve(&[]).await;
    let about = "x".repeat(20_000);
    let sum = json!({"type": "object", "description": about});
    let capabilities = json!({
        "advertised_capabilities": [capability("sum", json!({"estimated_duration_ms": 5_000}))],
        "input_schemas": {"sum": sum},
        "output_schemas": {"sum": {"type": "object"}},
    });
    let more =
        json!({"capabilities": capabilities, "resource_limits": {"max_concurrent_tasks": 3}});
    let node = hub.node_with("summer", more).await;
    let base = hub.a2a_path("openclaw", &node.id);
    let public = strict(&hub, &base).await.text;
    assert!(public.contains("urn:rialto:a2a:schemas:v1") && !public.contains(&about));
    assert!(public.contains("\"takesMs\":5000"), "{public}");
    let path = format!("{base}/extendedAgentCard");
    let extended = hub.0.request(("GET", &path), &node.key, &[], "").await.expect(200).text;
    assert!(extended.contains(&about));
    // How many tasks it takes at a time is not for everybody.
    assert!(extended.contains("\"atOnce\":3") && !public.contains("atOnce"), "{extended}");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_keys_promises_no_extended_card_and_refuses_it() {
    let hub = TestHub::open(&[]).await;
    let card = strict(&hub, HUB).await;
    assert_eq!(card.json().pointer("/capabilities/extendedAgentCard"), None);
    assert_eq!(card.json().get("securitySchemes"), None);
    let client = hub.a2a_client("reader").await;
    for key in ["", client.key.as_str()] {
        let refused = hub.refusal(HUB, key, "GetExtendedAgentCard", json!({})).await;
        assert_eq!(refused, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
        let reply = hub.request(("GET", "/a2a/extendedAgentCard"), key, &[], "").await;
        let reply = reply.expect(400);
        assert_eq!(reply.str("/error/details/0/reason"), "UNSUPPORTED_OPERATION");
    }
    hub.stop().await;
}
