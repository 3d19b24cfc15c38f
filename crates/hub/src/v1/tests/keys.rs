//! Tests of keys with limits.

use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::store::memory::MemoryStore;

use super::kit::{Agent, Got, Hub};

/// A hub with an agent that has credits, and a worker.
async fn market() -> (Hub, Agent, Agent) {
    let hub = Hub::start().await;
    hub.grant("acme", "10.00").await;
    let ada = hub.enrol_at("ada", "acme", None, None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.40"))).await;
    (hub, ada, worker)
}

/// A new key of an agent: its id and its secret.
async fn issue(hub: &Hub, agent: &Agent, body: &str) -> (u64, String) {
    let got = hub.post("/v1/keys", &agent.key, body).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let key = got.body["key"].as_str().expect("a key").to_owned();
    (got.body["id"].as_u64().expect("an id"), key)
}

async fn open(hub: &Hub, key: &str, budget: &str) -> Got {
    let body = format!(r#"{{"skill":"sum","input":{{"text":"x"}},"budget":{budget}}}"#);
    hub.post("/v1/jobs", key, &body).await
}

async fn only(hub: &Hub, key: &str, id: u64) -> serde_json::Value {
    let listed = hub.get("/v1/keys", key).await;
    let items = listed.body["items"].as_array().expect("a list").clone();
    items.into_iter().find(|item| item["id"] == id).expect("it is listed")
}

#[tokio::test]
async fn a_key_spends_within_its_limits_and_is_listed_with_them() {
    let (hub, ada, _) = market().await;
    let body = r#"{"label":"laptop","per_job":1.00,"per_day":2.00}"#;
    let got = hub.post("/v1/keys", &ada.key, body).await;
    assert_eq!(got.status, 201);
    assert!(got.text.contains(r#""label":"laptop","per_job":1.00,"per_day":2.00,"transfers":true"#));
    let (id, key) = (got.body["id"].as_u64().unwrap(), got.body["key"].as_str().unwrap());
    assert!(key.starts_with("rk_"));
    assert_eq!(open(&hub, key, "1.00").await.status, 201);
    let over = open(&hub, key, "1.01").await;
    over.is_problem(402, "over_limit");
    let text = over.body["detail"].as_str().unwrap().to_owned();
    assert!(text.contains("1.00 is left"), "{text}");
    assert_eq!(open(&hub, key, "1.00").await.status, 201);
    open(&hub, key, "0.01").await.is_problem(402, "over_limit");
    // The agent's own key is not bound.
    assert_eq!(open(&hub, &ada.key, "5.00").await.status, 201);
    let listed = only(&hub, &ada.key, id).await;
    assert_eq!(listed["spent_today"], 2.00);
    assert_eq!(listed["left_today"], 0.00);
    assert_eq!((&listed["label"], &listed["current"]), (&"laptop".into(), &false.into()));
    assert!(listed["issued_at"].is_string(), "{listed}");
    let all = hub.get("/v1/keys", &ada.key).await;
    assert!(!all.text.contains(key) && !all.text.contains(&ada.key), "{}", all.text);
    assert_eq!(all.body["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn the_last_use_of_a_key_is_listed() {
    let (hub, ada, _) = market().await;
    let (id, key) = issue(&hub, &ada, "{}").await;
    assert!(only(&hub, &ada.key, id).await["last_used"].is_null());
    hub.clock.advance(Millis::minutes(5));
    let now = hub.engine.now();
    assert_eq!(hub.get("/v1/me", &key).await.status, 200);
    let mut listed = only(&hub, &ada.key, id).await;
    for _ in 0..100 {
        if listed["last_used"].is_string() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        listed = only(&hub, &ada.key, id).await;
    }
    let shown = serde_json::to_value(super::super::response::format_time(now)).unwrap();
    assert_eq!(listed["last_used"], shown);
}

#[tokio::test]
async fn a_limited_key_touches_neither_keys_nor_secrets_nor_the_registration() {
    let (hub, ada, _) = market().await;
    let (own, key) = issue(&hub, &ada, r#"{"transfers":false}"#).await;
    let (other, _) = issue(&hub, &ada, "{}").await;
    for path in ["/v1/keys", "/v1/keys/rotate", "/v1/webhooks/secret"] {
        hub.post(path, &key, "{}").await.is_problem(403, "forbidden");
    }
    let one = format!("/v1/keys/{other}");
    for path in ["/v1/keys", "/v1/me", &one] {
        hub.delete(path, &key).await.is_problem(403, "forbidden");
    }
    let seen = hub.get("/v1/keys", &key).await;
    let items = seen.body["items"].as_array().expect("a list");
    assert_eq!(items.len(), 1);
    assert_eq!((&items[0]["id"], &items[0]["current"]), (&own.into(), &true.into()));
    // Without limits, another key may do all of it.
    let (_, free) = issue(&hub, &ada, r#"{"label":"second"}"#).await;
    assert_eq!(hub.delete(&one, &free).await.text, r#"{"revoked":true}"#);
    assert_eq!(hub.get("/v1/me", &key).await.status, 200);
}

#[tokio::test]
async fn one_key_is_revoked_and_the_others_live() {
    let (hub, ada, worker) = market().await;
    let (id, key) = issue(&hub, &ada, r#"{"per_day":2.00}"#).await;
    let path = format!("/v1/keys/{id}");
    for stranger in [&worker.key, &hub.operator] {
        let got = hub.delete(&path, stranger).await;
        assert!([403, 404].contains(&got.status), "{}", got.text);
    }
    assert_eq!(hub.get("/v1/me", &key).await.status, 200);
    assert_eq!(hub.delete(&path, &ada.key).await.status, 200);
    hub.get("/v1/me", &key).await.is_problem(401, "unauthorized");
    assert_eq!(hub.get("/v1/me", &ada.key).await.status, 200);
    for gone in [path.as_str(), "/v1/keys/999999", "/v1/keys/none", "/v1/keys/-1"] {
        hub.delete(gone, &ada.key).await.is_problem(404, "not_found");
    }
}

#[tokio::test]
async fn wrong_bodies_name_the_field_and_issue_nothing() {
    let (hub, ada, _) = market().await;
    for (body, field) in [
        (r#"{"per_job":"1.00"}"#, "/per_job"),
        (r#"{"per_job":-1}"#, "/per_job"),
        (r#"{"per_day":0.0000001}"#, "/per_day"),
        (r#"{"transfers":"no"}"#, "/transfers"),
        (r#"{"label":"a\u202eb"}"#, "/label"),
        (r#"{"label":""}"#, "/label"),
        (r#"{"perjob":1}"#, "/perjob"),
    ] {
        let got = hub.post("/v1/keys", &ada.key, body).await;
        got.is_problem(400, "malformed");
        assert_eq!(got.body["field"], field, "{}", got.text);
    }
    let listed = hub.get("/v1/keys", &ada.key).await;
    assert_eq!(listed.body["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_repeated_request_issues_one_key_and_shows_it_once() {
    let (hub, ada, _) = market().await;
    let keyed = || {
        let mut request =
            Hub::request(http::Method::POST, "/v1/keys", &ada.key, r#"{"per_day":1}"#);
        request.headers_mut().insert("idempotency-key", "k".parse().expect("a header"));
        hub.send(request)
    };
    let (first, again) = (keyed().await, keyed().await);
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(again.body["id"], first.body["id"]);
    assert!(first.body["key"].is_string() && again.body["key"].is_null(), "{}", again.text);
}

#[tokio::test]
async fn what_a_key_spent_outlives_a_restart() {
    let store = MemoryStore::default();
    let (id, key, ada) = {
        let hub = Hub::over(store.clone(), Rules::default()).await;
        hub.grant("acme", "10.00").await;
        let ada = hub.enrol_at("ada", "acme", None, None).await;
        hub.enrol("worker", "globex", Some(("sum", "0.40"))).await;
        let (id, key) = issue(&hub, &ada, r#"{"per_day":2.00}"#).await;
        assert_eq!(open(&hub, &key, "1.50").await.status, 201);
        hub.engine.stop().await;
        (id, key, ada)
    };
    let hub = Hub::over(store, Rules::default()).await;
    assert_eq!(only(&hub, &ada.key, id).await["spent_today"], 1.50);
    open(&hub, &key, "0.51").await.is_problem(402, "over_limit");
    assert_eq!(open(&hub, &key, "0.50").await.status, 201);
}
