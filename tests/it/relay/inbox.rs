//! The inbox: an open stream of all notices (R39, R56–R59, R62, R65).

use std::time::Duration;

use serde_json::json;

use super::kit::{BOTH, assert_error, assert_stamp, assert_wrapped, envelope};
use super::looks::trace;
use crate::kit::{Behaviour, TestHub, Worker};

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_opens_with_connected_as_the_book_prints_it() {
    let hub = TestHub::serve(&[]).await;
    let bob = hub.join("bob@chorus").await;
    for base in BOTH {
        let url = format!("{}{base}/agent/inbox", hub.url);
        let mut answer = hub.http.get(url).bearer_auth(&bob.key).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let first = answer.chunk().await.expect("bytes").expect("an event");
        let wanted = "retry: 2000\nid: 0\nevent: connected\ndata: {\"agent_id\":\"bob@chorus\",\
                      \"message\":\"Inbox connected. Messages will be delivered here.\",\
                      \"resume_from\":0,\"backlog\":0}\n\n";
        assert_eq!(String::from_utf8_lossy(&first), wanted);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_agents_own_key_opens_an_inbox() {
    let hub = TestHub::serve(&[]).await;
    let bob = hub.join("bob@chorus").await;
    let unknown = format!("ca_{}", "0".repeat(48));
    let keys = [None, Some("ca_no"), Some(unknown.as_str()), Some(hub.operator.as_str())];
    for (base, key) in BOTH.into_iter().flat_map(|base| keys.map(|key| (base, key))) {
        let reply = hub.get(&format!("{base}/agent/inbox"), key).await;
        assert_error(&reply, 401, "ERR_UNAUTHORIZED");
    }
    // A key in the URL is not accepted.
    let reply = hub.get(&format!("/agent/inbox?token={}", bob.key), None).await;
    assert_error(&reply, 401, "ERR_UNAUTHORIZED");
    assert_eq!(hub.engine.inbox_reader_count(), 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_an_open_inbox_is_handed_over_whole_and_answered_delivered_sse() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inbox = hub.inbox(&bob).await;
    for position in 1..=3 {
        let mut said = envelope(&alice.id, &format!("hello {position}"));
        said["x_extra"] = json!({"a": [1]});
        let reply = hub.mail(&alice, &bob, &said).await.expect(200);
        assert_wrapped(&reply, true);
        let data = json!({"delivery": "delivered_sse", "trace_id": trace(&reply)});
        assert_eq!(reply.at("/data"), data);
        let event = inbox.message().await;
        assert_eq!(event.position(), position);
        assert_stamp(event.data["timestamp"].as_str().expect("a time"));
        let wanted = json!({"trace_id": trace(&reply), "sender_id": "alice@chorus",
            "envelope": said, "timestamp": event.data["timestamp"]});
        assert_eq!(event.data, wanted);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_gets_only_its_own_messages() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join("carol@chorus").await;
    let (mut bobs, mut carols) = (hub.inbox(&bob).await, hub.inbox(&carol).await);
    for n in 0..5 {
        hub.say(&alice, &bob, &format!("for bob {n}")).await.expect(200);
        hub.say(&alice, &carol, &format!("for carol {n}")).await.expect(200);
    }
    for (inbox, name) in [(&mut bobs, "bob"), (&mut carols, "carol")] {
        let wanted: Vec<String> = (0..5).map(|n| format!("for {name} {n}")).collect();
        assert_eq!(inbox.texts(5).await, wanted);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_connections_of_one_agent_all_receive_every_new_message() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inboxes = vec![hub.inbox(&bob).await];
    for n in 0..4_usize {
        hub.say(&alice, &bob, &format!("message {n}")).await.expect(200);
        for inbox in &mut inboxes {
            let event = inbox.message().await;
            assert_eq!(event.said(), format!("message {n}"));
            assert_eq!(event.position(), n as u64 + 1);
        }
        // A new connection does not end the others.
        inboxes.push(hub.inbox(&bob).await);
    }
    assert_eq!(hub.get("/health", None).await.expect(200).at("/data/inbox_connections"), 5);
    // A closed one takes nothing from the others.
    drop(inboxes.remove(0));
    hub.heard_by(4).await;
    hub.say(&alice, &bob, "last").await.expect(200);
    for inbox in &mut inboxes {
        assert_eq!(inbox.message().await.said(), "last");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_inbox_has_priority_over_the_endpoint() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let mut inbox = hub.inbox(&bob).await;
    let reply = hub.say(&alice, &bob, "by stream").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    assert_eq!(inbox.message().await.said(), "by stream");
    assert_eq!(hub.pushes(), []);
    drop(inbox);
    hub.heard_by(0).await;
    let reply = hub.say(&alice, &bob, "by post").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered");
    let got = worker.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].json()["envelope"]["original_text"], "by post");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_ends_its_streams_and_no_others() {
    /// Well before the next ping, when a stream would notice anyway.
    const SOON: Duration = Duration::from_secs(10);
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let open = [hub.inbox(&bob).await, hub.inbox(&bob).await];
    let mut other = hub.inbox(&alice).await;
    let path = format!("/v1/operator/agents/{}/revoke-keys", hub.number(&bob).0);
    hub.call("POST", &path, Some(&hub.operator), None).await.expect(200);
    for inbox in open {
        let rest = tokio::time::timeout(SOON, inbox.rest()).await.expect("the stream ends");
        assert_eq!(rest, []);
    }
    assert_error(&hub.get("/agent/inbox", Some(&bob.key)).await, 401, "ERR_UNAUTHORIZED");
    // There is no reader any more, so new messages wait.
    hub.say(&alice, &bob, "later").await.expect(202);
    hub.say(&alice, &alice, "still here").await.expect(200);
    assert_eq!(other.message().await.said(), "still here");
    // A connection with a new key gets the waiting messages.
    let path = "/relay/agents/bob%40chorus/key";
    let key = hub.call("POST", path, Some(&hub.operator), None).await.expect(201);
    let bob = super::kit::Peer { key: key.str("/data/api_key"), ..bob };
    assert_eq!(hub.inbox(&bob).await.message().await.said(), "later");
    hub.stop().await;
}
