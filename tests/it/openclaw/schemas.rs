//! Schemas of untrusted agents: refused or bounded, and nothing they reference is fetched (R18,
//! D22).

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::kit::{Hub, assert_rejected, identity};
use super::spoil::{assert_only, put};
use crate::kit::snapshot;

const IDENTITY: &str = "/openclaw/identity";
const INPUT: &str = "/capabilities/input_schemas/sum";

/// A listener that must not get connections, and its URL.
async fn trap() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/schema.json", listener.local_addr().expect("an address"));
    (listener, url)
}

/// Whether there was never a connection.
async fn is_untouched(listener: &TcpListener) -> bool {
    let waiting = std::future::poll_fn(|context| {
        std::task::Poll::Ready(listener.poll_accept(context).is_pending())
    });
    waiting.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_elsewhere_is_refused_by_name_and_never_fetched() {
    let hub = Hub::serve(&[]).await;
    let (listener, url) = trap().await;
    let before = snapshot(&hub).await;
    let body = identity("curious", hub.now());
    for schema in [
        json!({"$ref": url}),
        json!({"$ref": format!("{url}#/$defs/x")}),
        json!({"properties": {"a": {"items": {"$ref": url}}}}),
        json!({"$dynamicRef": url}),
        json!({"$id": url, "$ref": "other.json"}),
        json!({"$ref": "file:///etc/passwd"}),
    ] {
        for map in ["input_schemas", "output_schemas"] {
            for name in ["sum", "nobody_uses"] {
                let pointer = format!("/capabilities/{map}/{name}");
                let reply =
                    hub.post(IDENTITY, None, &put(&body, &pointer, Some(schema.clone()))).await;
                assert_only(&reply, &pointer, &schema.to_string());
            }
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    assert!(is_untouched(&listener).await, "there was a connection");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_to_a_schema_is_a_text_that_is_shown_and_never_followed() {
    let hub = Hub::serve(&[]).await;
    let (listener, url) = trap().await;
    let more = json!({"input_schema_ref": url, "output_schema_ref": url});
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", more).await;
    // The inline schema of the identity is used; the reference is never fetched.
    let wrong = hub.hire(&asker, &worker, json!({"input_data": {"a": 2}})).await;
    assert_rejected(&wrong, "invalid_input");
    let work = hub.accepted(&asker, &worker, json!({})).await;
    hub.result(&work, json!({})).await.expect(200);
    let shown = hub.entry(&worker.id).await;
    assert_eq!(
        shown["capabilities"]["advertised_capabilities"][0]["input_schema_ref"],
        url.as_str()
    );
    // `$schema` and `$id` are names, too: the draft is known, and the id is not fetched.
    let named = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": url,
        "definitions": {"small": {"maximum": 1}}, "properties": {"a": {"$ref": "#/definitions/small"}}});
    let worker = hub.publish(&put(&identity("named", hub.now()), INPUT, Some(named))).await;
    let wrong = hub.hire(&asker, &worker, json!({"input_data": {"a": 2}})).await;
    assert_rejected(&wrong, "invalid_input");
    assert!(is_untouched(&listener).await, "there was a connection");
    hub.0.stop().await;
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "not": inner }))
}

/// Loops, exponential growth, depth, length, and forbidden patterns.
fn hostile() -> Vec<(&'static str, Value)> {
    let mut doubling = serde_json::Map::new();
    for n in 0..30 {
        let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
        doubling.insert(format!("a{n}"), json!({"allOf": [next, next]}));
    }
    doubling.insert("a30".to_owned(), json!({"type": "integer"}));
    vec![
        ("a loop", json!({"$ref": "#"})),
        (
            "a loop of two",
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        ),
        ("a doubling", json!({"$defs": doubling, "$ref": "#/$defs/a0"})),
        ("33 levels", nested(32)),
        ("more than 64 KiB", json!({"title": "x".repeat(65_536)})),
        ("look-ahead", json!({"pattern": "(?=x)"})),
        ("a back-reference", json!({"pattern": r"(a)\1"})),
        ("a pattern that explodes", json!({"pattern": "(x{1000}){1000}"})),
        ("no schema", json!({"type": "thing"})),
        ("an unknown draft", json!({"$schema": "https://schemas.example/mine"})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_made_to_hurt_are_refused_and_nothing_is_stored() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let body = identity("hostile", hub.now());
    for (what, schema) in hostile() {
        let reply = hub.post(IDENTITY, None, &put(&body, INPUT, Some(schema))).await;
        assert_only(&reply, INPUT, what);
    }
    // 50,000 alternatives are more nodes than a body may have.
    let many = json!({"anyOf": vec![json!({"type": "string"}); 50_000]});
    let reply = hub.post(IDENTITY, None, &put(&body, INPUT, Some(many))).await;
    assert!([400, 413].contains(&reply.status), "{}", reply.status);
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_would_backtrack_is_answered_like_any_other() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    let worker = hub.publish(&put(&identity("worker", hub.now()), INPUT, Some(schema))).await;
    let wrong = json!({"input_data": {"a": "a".repeat(50_000) + "!"}});
    assert_rejected(&hub.hire(&asker, &worker, wrong).await, "invalid_input");
    let right = json!({"input_data": {"a": "a".repeat(50_000)}});
    hub.accepted(&asker, &worker, right).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_is_too_much_work_to_check_is_rejected() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let both = json!({"properties": {"a": {"$ref": "#/$defs/both"}},
        "$defs": {"both": {"allOf": [{"items": {"$ref": "#/$defs/both"}}, {"items": {"$ref": "#/$defs/both"}}]}}});
    let worker = hub.publish(&put(&identity("worker", hub.now()), INPUT, Some(both))).await;
    let deep = (0..50).fold(json!([]), |inner, _| json!([inner]));
    let reply = hub.hire(&asker, &worker, json!({"input_data": {"a": deep}})).await;
    assert_rejected(&reply, "invalid_input");
    let told = reply.at("/rejection_reason/details/validation_errors").to_string();
    assert!(told.contains("too expensive to check"), "{told}");
    hub.accepted(&asker, &worker, json!({"input_data": {"a": [[]]}})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_just_the_largest_size_is_taken() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let deepest = put(&nested(31), "/title", Some(json!("x".repeat(60_000))));
    let body =
        put(&identity("large", hub.now()), "/capabilities/input_schemas/other", Some(deepest));
    let worker = hub.publish(&body).await;
    hub.accepted(&asker, &worker, json!({})).await;
    // Maps for an unknown capability are kept as they are.
    assert_eq!(hub.entry(&worker.id).await["capabilities"], body["capabilities"]);
    hub.0.stop().await;
}
