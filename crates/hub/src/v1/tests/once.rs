//! Tests of repeated requests, key rotation, and request ids.

use http::Method;
use rialto_core::time::Millis;

use super::kit::{Got, Hub};
use crate::edge::RequestId;

async fn keyed(hub: &Hub, path: &str, key: &str, body: &str, once: &str) -> Got {
    let mut request = Hub::request(Method::POST, path, key, body);
    request.headers_mut().insert("idempotency-key", once.parse().expect("a header"));
    hub.send(request).await
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_has_no_effect() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let body = format!(r#"{{"to":{},"body":1}}"#, ada.id);
    let first = keyed(&hub, "/v1/messages", &ada.key, &body, "k").await;
    let again = keyed(&hub, "/v1/messages", &ada.key, &body, "k").await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["content-type"], "application/json");
    assert_eq!(hub.get("/v1/me", &ada.key).await.body["inbox"]["head"], 1);
    keyed(&hub, "/v1/messages", &ada.key, "{}", "k").await.is_problem(422, "other_content");
    let long = "k".repeat(257);
    keyed(&hub, "/v1/messages", &ada.key, &body, &long).await.is_problem(400, "malformed");
    let path = "/v1/operator/grants";
    let sum = r#"{"owner":"acme","amount":1.50}"#;
    let first = keyed(&hub, path, &hub.operator, sum, "k").await;
    assert_eq!(keyed(&hub, path, &hub.operator, sum, "k").await.text, first.text);
    assert!(hub.get("/v1/accounts/acme", &ada.key).await.text.contains(r#""available":1.50"#));
}

#[tokio::test]
async fn a_refusal_is_repeated_as_a_problem() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let body = r#"{"to":"nobody","body":1}"#;
    keyed(&hub, "/v1/messages", &ada.key, body, "k").await.is_problem(404, "not_found");
    let again = keyed(&hub, "/v1/messages", &ada.key, body, "k").await;
    again.is_problem(404, "not_found");
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn a_revoked_key_gets_no_old_answers() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let body = format!(r#"{{"to":{},"body":1}}"#, ada.id);
    assert_eq!(keyed(&hub, "/v1/messages", &ada.key, &body, "k").await.status, 200);
    assert_eq!(hub.delete("/v1/keys", &ada.key).await.text, r#"{"revoked":true}"#);
    keyed(&hub, "/v1/messages", &ada.key, &body, "k").await.is_problem(401, "unauthorized");
}

#[tokio::test]
async fn a_rotated_key_is_shown_once_and_the_old_one_lives_ten_minutes() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let rotated = keyed(&hub, "/v1/keys/rotate", &ada.key, "", "k").await;
    let fresh = rotated.body["key"].as_str().expect("a key").to_owned();
    assert!(fresh.starts_with("rk_") && fresh != ada.key);
    assert_eq!(rotated.body["others_until"], "2026-02-11T12:10:00.000Z");
    let again = keyed(&hub, "/v1/keys/rotate", &ada.key, "", "k").await;
    assert_eq!(again.text, r#"{"others_until":"2026-02-11T12:10:00.000Z"}"#);
    for key in [&fresh, &ada.key] {
        assert_eq!(hub.get("/v1/me", key).await.status, 200);
    }
    hub.clock.advance(Millis::minutes(10));
    assert_eq!(hub.get("/v1/me", &fresh).await.status, 200);
    hub.get("/v1/me", &ada.key).await.is_problem(401, "unauthorized");
}

#[tokio::test]
async fn a_new_webhook_secret_is_shown_once_and_the_old_one_lives_a_day() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let renewed = keyed(&hub, "/v1/webhooks/secret", &ada.key, "", "k").await;
    let secret = hub.engine.hub_secret().webhook_secret(ada.id, 2).to_text();
    assert_eq!(renewed.body["webhook_secret"], secret);
    assert_eq!(renewed.body["others_until"], "2026-02-12T12:00:00.000Z");
    let again = keyed(&hub, "/v1/webhooks/secret", &ada.key, "", "k").await;
    assert_eq!(again.text, r#"{"others_until":"2026-02-12T12:00:00.000Z"}"#);
    let good = || {
        let now = hub.engine.now();
        hub.engine
            .with_world(|world| world.agent(ada.id).map(|agent| agent.valid_secrets(now).collect()))
    };
    assert_eq!(good(), Some(vec![2, 1]));
    hub.clock.advance(Millis::hours(24));
    assert_eq!(good(), Some(vec![2]));
}

#[tokio::test]
async fn a_problem_names_its_request() {
    let hub = Hub::start().await;
    let mut headers = http::HeaderMap::new();
    headers.insert("x-request-id", "abc".parse().expect("a header"));
    let source: crate::edge::IdSource = std::sync::Arc::new(|| "made".to_owned());
    for path in ["/v1/agents/99", "/v1/me", "/v1/agents?limit=0"] {
        let mut request = Hub::request(Method::GET, path, "", "");
        request.extensions_mut().insert(RequestId::from_headers(&headers, &source));
        assert_eq!(hub.send(request).await.body["request_id"], "abc", "{path}");
        assert!(hub.get(path, "").await.body.get("request_id").is_none());
    }
}
