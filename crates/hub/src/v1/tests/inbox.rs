//! Tests of messages and the inbox.

use rialto_core::world::Rules;
use rialto_engine::store::memory::MemoryStore;

use super::kit::Hub;

#[tokio::test]
async fn a_message_arrives_as_it_was_written() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    let bob = hub.enrol("bob", "globex", None).await;
    let bodies = [r#"{"n": 1.10}"#, "null", r#""text""#, "[1, 2]", "1e400"];
    for (at, body) in (1..).zip(bodies) {
        let to = if at % 2 == 0 { format!("\"{}\"", bob.native) } else { bob.id.to_string() };
        let got =
            hub.post("/v1/messages", &ada.key, &format!(r#"{{"to":{to},"body":{body}}}"#)).await;
        assert_eq!(got.text, format!(r#"{{"position":{at}}}"#));
    }
    let inbox = hub.get("/v1/inbox", &bob.key).await;
    let items = inbox.body["items"].as_array();
    // serde cannot represent 1e400, so the page is compared as text.
    assert!(items.is_none_or(|items| items.len() == 5));
    for body in bodies {
        assert!(inbox.text.contains(&format!("\"from\":{},\"body\":{body}}}", ada.id)), "{body}");
    }
    assert!(hub.get("/v1/inbox", &ada.key).await.text.contains(r#""items":[]"#));
}

#[tokio::test]
async fn what_is_acknowledged_is_not_shown_unless_asked_for() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    for n in 1..=5 {
        hub.say(&ada, &ada, &n.to_string()).await;
    }
    let positions = |items: &[serde_json::Value]| -> Vec<u64> {
        items.iter().filter_map(|item| item["position"].as_u64()).collect()
    };
    assert_eq!(positions(&hub.all("/v1/inbox", &ada.key, 2).await), [1, 2, 3, 4, 5]);
    let acked = hub.post("/v1/inbox/ack", &ada.key, r#"{"up_to":3}"#).await;
    assert_eq!(acked.text, r#"{"head":5,"acked":3}"#);
    assert_eq!(positions(&hub.all("/v1/inbox", &ada.key, 2).await), [4, 5]);
    assert_eq!(positions(&hub.all("/v1/inbox?after=1", &ada.key, 3).await), [2, 3, 4, 5]);
    assert_eq!(positions(&hub.all("/v1/inbox?after=99", &ada.key, 3).await), [0; 0]);
    for body in [r#"{"up_to":-1}"#, r#"{"up_to":"3"}"#, r#"{"up_to":1.5}"#, "{}", "[]", "{"] {
        hub.post("/v1/inbox/ack", &ada.key, body).await.is_problem(400, "malformed");
    }
    assert_eq!(hub.post("/v1/inbox/ack", &ada.key, r#"{"up_to":99}"#).await.body["acked"], 5);
}

#[tokio::test]
async fn bad_messages_are_refused_and_leave_nothing() {
    let rules = Rules { inbox_messages_max: 1, ..Rules::default() };
    let hub = Hub::over(MemoryStore::default(), rules).await;
    let ada = hub.enrol("ada", "acme", None).await;
    let large = format!(r#"{{"to":{},"body":"{}"}}"#, ada.id, "x".repeat(65_536));
    for (body, status, code) in [
        (r#"{"to":1}"#, 400, "malformed"),
        (r#"{"body":1}"#, 400, "malformed"),
        (r#"{"to":[1],"body":1}"#, 400, "malformed"),
        (r#"{"to":1.5,"body":1}"#, 400, "malformed"),
        (r#"{"to":"nobody","body":1}"#, 404, "not_found"),
        (&large, 413, "too_large"),
    ] {
        hub.post("/v1/messages", &ada.key, body).await.is_problem(status, code);
    }
    assert_eq!(hub.get("/v1/me", &ada.key).await.body["inbox"]["head"], 0);
    let body = format!(r#"{{"to":{},"body":1}}"#, ada.id);
    assert_eq!(hub.post("/v1/messages", &ada.key, &body).await.status, 200);
    let full = hub.post("/v1/messages", &ada.key, &body).await;
    full.is_problem(429, "inbox_full");
    assert_eq!(full.body["retryable"], true);
}
