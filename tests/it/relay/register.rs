//! Registration: who may register, what is answered, what is stored (R3–R9, R12).

use serde_json::json;

use super::kit::{
    BOTH, assert_bad, assert_error, assert_stamp, assert_wrapped, card, escaped, message,
    registration, state, with,
};
use crate::kit::{Behaviour, TestHub, Worker};

const QUICK_START: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/register.json");
const SKILL: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/skill-register.json");

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_registrations_need_no_key_and_are_answered_201_with_one() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        for (body, id) in [(QUICK_START, "my-agent@chorus"), (SKILL, "your-agent-name@chorus")] {
            let reply = hub.post_text(&format!("{prefix}/register"), None, body).await.expect(201);
            assert_wrapped(&reply, true);
            let at = reply.str("/data/registration/registered_at");
            assert_stamp(&at);
            let record = json!({"agent_id": id, "agent_card": card(), "registered_at": at,
                "online": false, "protocol": "relay"});
            let key = reply.str("/data/api_key");
            let data = json!({"agent_id": id, "api_key": key, "registration": record});
            assert_eq!(reply.at("/data"), data);
            assert_eq!(hub.record(id).await, record);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_ca_and_48_hex_digits_and_no_two_are_alike() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    assert_ne!(ada.key, bob.key);
    for key in [&ada.key, &bob.key] {
        let digits = key.strip_prefix("ca_").expect("an agent's key");
        assert_eq!(digits.len(), 48);
        assert!(digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    }
    hub.stop().await;
}

/// Every response to every read about an agent.
async fn answers(hub: &TestHub, key: Option<&str>) -> String {
    let mut all = String::new();
    for path in [
        "/agents",
        "/agents/ada",
        "/agent/messages",
        "/agent/blocks",
        "/health",
        "/agent/inbox?after=x",
    ] {
        all += &hub.get(&format!("/relay{path}"), key).await.text;
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_never_kept() {
    let hub = TestHub::serve(&[]).await;
    let body = with(&registration("ada"), "/endpoint", Some(json!("https://ada.example/in")));
    let reply = hub.post_once("/register", None, "k1", &body).await.expect(201);
    let (key, secret) = (reply.str("/data/api_key"), reply.str("/data/webhook_secret"));
    assert!(secret.starts_with("whsec_"));
    let shown = [answers(&hub, None).await, answers(&hub, Some(&hub.operator)).await].concat();
    let own = answers(&hub, Some(&key)).await;
    // An update with the agent's key returns that key, and the operator's returns none.
    let update = hub.post("/register", Some(&key), &body).await.expect(200);
    assert_eq!(update.str("/data/api_key"), key);
    let update = hub.post("/register", Some(&hub.operator), &body).await.expect(200);
    assert!(update.json().pointer("/data/api_key").is_none(), "{}", update.text);
    for (hidden, what) in [(&key, "key"), (&secret, "secret")] {
        assert!(!shown.contains(hidden.as_str()) && !own.contains(hidden.as_str()), "{what}");
    }
    let dir = hub.stop().await;
    let mut written = Vec::new();
    for file in std::fs::read_dir(dir.path()).expect("a directory") {
        written.extend(std::fs::read(file.expect("a file").path()).expect("its bytes"));
    }
    let holds = |text: &str| written.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("https://ada.example/in"), "the search finds stored texts");
    for hidden in [&key, &secret] {
        assert!(!holds(hidden) && !holds(&hidden[6..]), "a secret is on disk");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_good_for_every_later_call_of_its_agent() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let key = Some(ada.key.as_str());
        let path = |path: &str| format!("{prefix}{path}");
        let inbox = hub.http.get(format!("{}{prefix}/agent/inbox", hub.url)).bearer_auth(&ada.key);
        assert_eq!(inbox.send().await.expect("an answer").status(), 200);
        let sent =
            hub.post(&path("/messages"), key, &message(&ada.id, &bob.id, "hi")).await.expect(202);
        let trace = sent.str("/data/trace_id");
        hub.get(&path(&format!("/messages/{trace}")), key).await.expect(200);
        hub.get(&path("/agent/messages"), key).await.expect(200);
        hub.post(&path("/agent/inbox/ack"), key, &json!({"up_to": 0})).await.expect(200);
        hub.call("PUT", &path("/agent/blocks/bob"), key, None).await.expect(200);
        hub.get(&path("/agent/blocks"), key).await.expect(200);
        hub.call("DELETE", &path("/agent/blocks/bob"), key, None).await.expect(200);
        hub.post(&path("/register"), key, &registration("ada@chorus")).await.expect(200);
        hub.call("DELETE", &path("/agents/ada"), key, None).await.expect(200);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_optional_and_brings_a_secret() {
    let hub = TestHub::serve(&[]).await;
    let without = hub.post("/relay/register", None, &registration("ada")).await.expect(201);
    assert!(without.json().pointer("/data/webhook_secret").is_none());
    assert!(without.json().pointer("/data/registration/endpoint").is_none());
    let url = "https://bob.example/receive";
    let body = with(&registration("bob"), "/endpoint", Some(json!(url)));
    let given = hub.post("/relay/register", None, &body).await.expect(201);
    assert!(given.str("/data/webhook_secret").starts_with("whsec_"));
    assert_eq!(given.str("/data/registration/endpoint"), url);
    assert_eq!(given.at("/data/registration/online"), true);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_go_to_the_endpoint_unless_the_inbox_is_open() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let ada = hub.join("ada").await;
    let bob = hub.join_at("bob", &format!("{}/in", worker.url)).await;
    let reply = hub.say(&ada, &bob, "by post").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered");
    let got = worker.got();
    assert_eq!((got.len(), got[0].path.as_str()), (1, "/in"));
    assert_eq!(got[0].json(), json!({"envelope": super::kit::envelope(&ada.id, "by post")}));

    let mut inbox = hub.inbox_at(&bob, "?after=1", None).await;
    let reply = hub.say(&ada, &bob, "by stream").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    assert_eq!(inbox.message().await.said(), "by stream");
    assert_eq!(worker.got().len(), 1, "the inbox had priority");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_may_be_left_out_and_a_default_one_is_listed() {
    let hub = TestHub::serve(&[]).await;
    for (id, body) in [
        ("ada@chorus", json!({"agent_id": "ada@chorus"})),
        ("bob@chorus", json!({"agent_id": "bob@chorus", "agent_card": null})),
    ] {
        let reply = hub.post("/relay/register", None, &body).await.expect(201);
        assert_eq!(reply.at("/data/registration/agent_card"), card());
        assert_eq!(hub.record(id).await["agent_card"], card());
    }
    let listed = hub.get("/relay/agents?language=en", None).await.expect(200).at("/data");
    assert_eq!(
        listed.as_array().expect("a list").len(),
        2,
        "they are found by name, too: {listed}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_registration_names_its_field_shows_a_good_one_and_leaves_nothing() {
    let hub = TestHub::serve(&[]).await;
    hub.join("taken").await;
    let before = state(&hub).await;
    let good = registration("ada@chorus");
    for (field, wrong) in [
        ("/agent_id", None),
        ("/agent_id", Some(json!(7))),
        ("/agent_id", Some(json!(null))),
        ("/agent_id", Some(json!(""))),
        ("/agent_card", Some(json!("0.3"))),
        ("/agent_card", Some(json!([]))),
        ("/endpoint", Some(json!("ada.example"))),
        ("/endpoint", Some(json!(7))),
        ("/endpoint", Some(json!("ftp://ada.example"))),
        ("/endpoint", Some(json!("https:///in"))),
        ("/envelope_format", Some(json!("a2a"))),
        ("/envelope_format", Some(json!(1))),
        ("/rotate_key", Some(json!("yes"))),
    ] {
        let body = with(&good, field, wrong);
        let reply = hub.post("/relay/register", None, &body).await;
        assert_bad(&reply, field);
        let mut repaired = body;
        let shown = reply.at("/error/example");
        repaired
            .as_object_mut()
            .expect("an object")
            .extend(shown.as_object().expect(field).clone());
        assert_eq!(state(&hub).await, before, "{field}");
        let fresh = TestHub::serve(&[]).await;
        fresh.post("/relay/register", None, &repaired).await.expect(201);
        fresh.stop().await;
    }
    let all = json!({"agent_id": "a b", "agent_card": {"card_version": "0.2"}, "endpoint": "x"});
    let reply = hub.post("/relay/register", None, &all).await;
    assert_bad(&reply, "/agent_id");
    let message = reply.str("/error/message");
    for field in ["/agent_card/card_version: ", "; /agent_card/user_culture: ", "; /endpoint: "] {
        assert!(message.contains(field), "{message}");
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_sent_twice_makes_one_agent_and_shows_its_key_once() {
    let hub = TestHub::serve(&[]).await;
    for (path, id) in [("/relay/register", "ada@chorus"), ("/register", "bob@chorus")] {
        let body = with(&registration(id), "/endpoint", Some(json!("https://x.example/in")));
        let first = hub.post_once(path, None, "k1", &body).await.expect(201);
        assert_eq!(first.header("idempotency-replayed"), None);
        let before = state(&hub).await;
        let again = hub.post_once(path, None, "k1", &body).await.expect(201);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let mut wanted = first.json();
        for secret in ["api_key", "webhook_secret"] {
            assert!(wanted["data"].as_object_mut().expect("an object").remove(secret).is_some());
        }
        assert_eq!(again.json(), wanted);
        let other = with(&body, "/agent_card", None);
        let refused = hub.post_once(path, None, "k1", &other).await;
        assert_error(&refused, 422, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(state(&hub).await, before);
        // The key of the first answer is the valid one.
        let key = first.str("/data/api_key");
        let own = hub.get(&format!("/relay/agents/{}", escaped(id)), Some(&key)).await.expect(200);
        assert_eq!(own.str("/data/endpoint"), "https://x.example/in");
    }
    // The same idempotency key of another unregistered caller is another key.
    hub.post_once("/relay/register", None, "k1", &registration("carol")).await.expect(201);
    let long = "k".repeat(257);
    let reply = hub.post_once("/relay/register", None, &long, &registration("dora")).await;
    assert_bad(&reply, "Idempotency-Key");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_key_registers_no_agent() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    let made_up = "ca_0123456789abcdef0123456789abcdef012345674195f880";
    for bearer in ["Bearer ", "Bearer x", "Basic eDp5", "ca_x", &format!("Bearer {made_up}")] {
        let body = registration("ada").to_string();
        let headers = [("authorization", bearer)];
        let reply = hub.send("POST", "/relay/register", &headers, body.as_bytes()).await;
        assert_error(&reply, 401, "ERR_UNAUTHORIZED");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}
