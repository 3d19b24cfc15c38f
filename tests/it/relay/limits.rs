//! Limits of size, rate and capacity, and addresses that are not called (R86, R87).

use serde_json::json;

use super::kit::{
    BOTH, Peer, assert_error, assert_later, assert_rejected, message, registration, state, with,
};
use crate::kit::{Behaviour, TestHub, Worker};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_may_not_be_called_is_refused_at_registration() {
    let hub = TestHub::serve(&[("egress.allow", "")]).await;
    let ada = hub.join("ada").await;
    let before = state(&hub).await;
    for url in [
        "http://127.0.0.1:9/in",
        "https://127.0.0.1/in",
        "https://[::1]/in",
        "https://[::ffff:127.0.0.1]/in",
        "https://10.0.0.1/in",
        "https://192.168.1.1/in",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/in",
        "https://[fd00::1]/in",
        "https://0.0.0.0/in",
        "https://2130706433/in",
        "https://0x7f.1/in",
        "http://agent.example/in",
        "https://user:secret@agent.example/in",
    ] {
        let body = with(&registration("bob@chorus"), "/endpoint", Some(json!(url)));
        let update = with(&registration("ada@chorus"), "/endpoint", Some(json!(url)));
        for (path, key, body) in [
            ("/relay/register", None, &body),
            ("/register", None, &body),
            ("/agents", Some(&hub.operator), &body),
            ("/relay/register", Some(&ada.key), &update),
        ] {
            let reply = hub.post(path, key.map(String::as_str), body).await;
            assert_error(&reply, 400, "ERR_ENDPOINT_BLOCKED");
            assert_eq!(reply.str("/error/field"), "/endpoint");
            assert_eq!(
                reply.at("/error/example"),
                json!({"endpoint": "https://agent.example/receive"})
            );
            assert!(!reply.text.contains("secret"), "{}", reply.text);
        }
    }
    assert_eq!(state(&hub).await, before);
    let fine = with(&registration("bob"), "/endpoint", Some(json!("https://agent.example/in")));
    hub.post("/relay/register", None, &fine).await.expect(201);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_forbidden_later_is_never_connected_to() {
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join_at("bob", &worker.url).await);
    let flags = [("egress.allow", "")];
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &flags).await;
    let reply = hub.say(&ada, &bob, "psst").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "failed");
    assert_eq!(reply.str("/data/error_code"), "ERR_AGENT_UNREACHABLE");
    assert!(worker.got().is_empty());
    hub.stop().await;
}

/// A message whose body has exactly this many bytes.
fn of_size(from: &Peer, to: &str, bytes: usize) -> String {
    let empty = message(&from.id, to, "").to_string().len();
    message(&from.id, to, &"a".repeat(bytes - empty)).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_64_kib_is_taken_and_one_byte_more_is_not() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    for prefix in BOTH {
        let full = of_size(&ada, &bob.id, 65_536);
        assert_eq!(full.len(), 65_536);
        hub.post_text(&format!("{prefix}/messages"), Some(&ada.key), &full).await.expect(202);
    }
    let before = state(&hub).await;
    let bearer = format!("Bearer {}", ada.key);
    // The hub does not read such a body to its end, so the connection cannot be reused.
    let own = [("authorization", bearer.as_str()), ("connection", "close")];
    let once = [own[0], own[1], ("idempotency-key", "k1")];
    for prefix in BOTH {
        for (size, headers) in [(65_537, &own[..]), (65_537, &once[..]), (2 << 20, &own[..])] {
            let body = of_size(&ada, &bob.id, size);
            let path = format!("{prefix}/messages");
            let reply = hub.send("POST", &path, headers, body.as_bytes()).await;
            assert_error(&reply, 413, "ERR_PAYLOAD_TOO_LARGE");
        }
        let body = registration("eve@chorus").to_string() + &" ".repeat(65_536);
        let path = format!("{prefix}/register");
        let reply = hub.send("POST", &path, &own[1..], body.as_bytes()).await;
        assert_error(&reply, 413, "ERR_PAYLOAD_TOO_LARGE");
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_writes_are_told_when_to_come_back() {
    let hub = TestHub::serve(&[("limits.writes_per_minute", "3")]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let mut refused = None;
    for n in 0..50 {
        let prefix = BOTH[n % 2];
        let body = message(&ada.id, &bob.id, &format!("no. {n}"));
        let reply = hub.post(&format!("{prefix}/messages"), Some(&ada.key), &body).await;
        if reply.status != 202 {
            refused = Some(reply);
            break;
        }
    }
    assert_later(&refused.expect("an end to it"), 429, "ERR_RATE_LIMITED");
    // Reads and other agents are not affected.
    hub.get("/agents", None).await.expect(200);
    hub.say(&bob, &ada, "all well?").await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_registrations_are_told_when_to_come_back() {
    let hub = TestHub::serve(&[("limits.registrations_per_minute", "3")]).await;
    let mut refused = None;
    for n in 0..50 {
        let reply = hub.post("/relay/register", None, &registration(&format!("agent{n}x"))).await;
        if reply.status != 201 {
            refused = Some(reply);
            break;
        }
    }
    assert_later(&refused.expect("an end to it"), 429, "ERR_RATE_LIMITED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_hand_in_too_many_envelopes_are_told_when_to_come_back() {
    let flags = [("limits.registrations_per_minute", "3"), ("relay.accept_direct", "true")];
    let hub = TestHub::serve(&flags).await;
    hub.join("bob").await;
    let mut refused = None;
    for n in 0..50 {
        let envelope = super::kit::envelope("stranger@elsewhere", &format!("no. {n}"));
        let body = json!({ "envelope": envelope });
        let reply = hub.post("/relay/receive/bob", None, &body).await;
        if reply.status != 200 {
            refused = Some(reply);
            break;
        }
    }
    assert_later(&refused.expect("an end to it"), 429, "ERR_RATE_LIMITED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_inbox_takes_no_more_until_it_is_read() {
    let hub = TestHub::serve(&[("limits.inbox_pending", "3")]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    for n in 0..3 {
        hub.say(&ada, &bob, &format!("no. {n}")).await.expect(202);
    }
    let before = state(&hub).await;
    let reply = hub.say(&ada, &bob, "one too many").await;
    assert_later(&reply, 429, "ERR_INBOX_FULL");
    assert_eq!(reply.at("/data"), json!({"delivery": "rejected"}));
    assert_eq!(state(&hub).await, before);
    hub.say(&bob, &ada, "others are not full").await.expect(202);
    let mut inbox = hub.inbox(&bob).await;
    inbox.texts(3).await;
    let acked =
        hub.post("/agent/inbox/ack", Some(&bob.key), &json!({"up_to": 3})).await.expect(200);
    assert_eq!(acked.at("/data/pending"), 0);
    drop(inbox);
    let reply = hub.say(&ada, &bob, "now then").await;
    assert!(reply.status < 300, "{}", reply.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_may_read_what_is_public_and_do_nothing() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let before = state(&hub).await;
    let bearer = format!("Bearer {}", ada.key);
    let headers = [("authorization", bearer.as_str()), ("origin", "https://evil.example")];
    let body = message(&ada.id, &bob.id, "from a page").to_string();
    for prefix in BOTH {
        let path = format!("{prefix}/messages");
        let reply = hub.send("POST", &path, &headers, body.as_bytes()).await;
        assert_error(&reply, 403, "ERR_FORBIDDEN");
        let reply =
            hub.send("GET", &format!("{prefix}/agents"), &headers[1..], b"").await.expect(200);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    }
    assert_eq!(state(&hub).await, before);
    // Without a key it is refused as well, and the answer says nothing about the body.
    let reply = hub.post("/messages", None, &json!({})).await;
    assert_rejected(&reply, 401, "ERR_UNAUTHORIZED");
    hub.stop().await;
}
