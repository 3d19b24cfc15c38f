//! Message states: always exactly one, and visible to the parties only (R42, R49).

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{BOTH, Peer, assert_error, assert_stamp, assert_wrapped, envelope, turn};
use super::looks::trace;
use crate::kit::{Behaviour, TestHub, Worker, eventually};

const OK: &str = r#"{"status":"ok"}"#;

/// The answer to both parties, which is the same.
async fn shown(hub: &TestHub, peers: [&Peer; 2], trace: &str) -> Value {
    let [one, other] = [hub.standing(peers[0], trace).await, hub.standing(peers[1], trace).await];
    let (one, other) = (one.expect(200), other.expect(200));
    assert_wrapped(&one, true);
    assert_eq!(one.at("/data"), other.at("/data"));
    one.at("/data")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_waits_is_queued_then_presented_then_acked() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let trace = trace(&hub.say(&alice, &bob, "hello").await.expect(202));
    let both = [&alice, &bob];
    let first = shown(&hub, both, &trace).await;
    assert_stamp(first["timestamp"].as_str().expect("a time"));
    let wanted = json!({"trace_id": trace, "sender_id": alice.id, "receiver_id": bob.id,
        "state": "queued", "attempts": 0, "timestamp": first["timestamp"],
        "envelope": envelope(&alice.id, "hello")});
    assert_eq!(first, wanted);
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_eq!(shown(&hub, both, &trace).await, wanted, "a restart changes nothing");
    let mut inbox = hub.inbox_at(&bob, "?ack=explicit", None).await;
    inbox.message().await;
    // The hand-over is recorded with the next write.
    hub.join("carol@chorus").await;
    assert_eq!(shown(&hub, both, &trace).await["state"], "presented");
    hub.ack(&bob, 1).await.expect(200);
    assert_eq!(shown(&hub, both, &trace).await["state"], "acked");
    drop(inbox);
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_eq!(shown(&hub, both, &trace).await["state"], "acked");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_stands_as_its_sender_was_told_from_the_first_moment() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let _inbox = hub.inbox(&bob).await;
    for n in 1..=10 {
        let reply = hub.say(&alice, &bob, &format!("message {n}")).await.expect(200);
        assert_eq!(reply.str("/data/delivery"), "delivered_sse");
        // There was no write in between, and the inbox's bytes were not read.
        assert_eq!(hub.state_of(&alice, &trace(&reply)).await, "presented");
        let path = format!("/relay/agent/messages?after={}", n - 1);
        let received = hub.get(&path, Some(&bob.key)).await.expect(200);
        assert_eq!(received.str("/data/0/delivered_via"), "sse", "{}", received.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_after_an_event_acknowledges_it_and_all_before_it() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inbox = hub.inbox(&bob).await;
    let mut traces = Vec::new();
    for n in 1..=4 {
        traces.push(trace(&hub.say(&alice, &bob, &format!("message {n}")).await.expect(200)));
        assert_eq!(inbox.message().await.position(), n);
    }
    drop(inbox);
    hub.heard_by(0).await;
    hub.inbox_at(&bob, "", Some("2")).await;
    let mut states = Vec::new();
    for trace in &traces {
        states.push(hub.state_of(&alice, trace).await);
    }
    assert_eq!(states, ["acked", "acked", "presented", "presented"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoints_answer_decides_between_delivered_and_failed() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let good = trace(&hub.say(&alice, &bob, "good").await.expect(200));
    worker.behave(Behaviour::Say(500, String::new()));
    let bad = trace(&hub.say(&alice, &bob, "bad").await.expect(200));
    let both = [&alice, &bob];
    for (trace, state) in [(&good, "delivered"), (&bad, "failed")] {
        let shown = shown(&hub, both, trace).await;
        assert_eq!((&shown["state"], &shown["attempts"]), (&json!(state), &json!(1)));
    }
    // It fails again; then the recipient reads it in its inbox and acknowledges it.
    let said = turn(&alice.id, "worse", "c", 1);
    let worse = trace(&hub.mail(&alice, &bob, &said).await.expect(200));
    hub.mail(&alice, &bob, &said).await.expect(200);
    assert_eq!(shown(&hub, both, &worse).await["attempts"], 2);
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.texts(2).await, ["bad", "worse"]);
    hub.ack(&bob, 3).await.expect(200);
    for trace in [&bad, &worse] {
        assert_eq!(shown(&hub, both, trace).await["state"], "acked");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_not_fetched_in_time_expires_and_is_no_longer_shown() {
    let set = [("relay.retention", "2s")];
    let hub = TestHub::serve(&set).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let old = trace(&hub.say(&alice, &bob, "old").await.expect(202));
    let both = [&alice, &bob];
    eventually(async || hub.state_of(&alice, &old).await == "expired").await;
    let hub = hub.restart(Profile::Serve, &set).await;
    let mut inbox = hub.inbox(&bob).await;
    let new = trace(&hub.say(&alice, &bob, "new").await.expect(200));
    let event = inbox.message().await;
    assert_eq!((event.said(), event.position()), ("new", 2), "positions do not change");
    // The reader is past its position, which does not count as a hand-over.
    hub.join("carol@chorus").await;
    assert_eq!(shown(&hub, both, &old).await["state"], "expired");
    hub.ack(&bob, 2).await.expect(200);
    assert_eq!(shown(&hub, both, &new).await["state"], "acked");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_agents_get_not_found_for_a_message() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join("carol@chorus").await;
    let trace = trace(&hub.say(&alice, &bob, "hello").await.expect(202));
    let nobodys = "00000000-0000-4000-8000-000000000000";
    for base in BOTH {
        let path = |trace: &str| format!("{base}/messages/{trace}");
        hub.get(&path(&trace), Some(&alice.key)).await.expect(200);
        hub.get(&path(&trace), Some(&bob.key)).await.expect(200);
        let stranger = hub.get(&path(&trace), Some(&carol.key)).await;
        let unknown = hub.get(&path(nobodys), Some(&carol.key)).await;
        for reply in [&stranger, &unknown] {
            assert_error(reply, 404, "ERR_NOT_FOUND");
        }
        assert_eq!(stranger.at("/error"), unknown.at("/error"), "both answers are equal");
        for odd in ["x", "1", &trace.replace('-', ""), "%FF", "..%2F"] {
            let reply = hub.get(&path(odd), Some(&alice.key)).await;
            assert_eq!(reply.status, 404, "{odd}: {}", reply.text);
        }
        for key in [None, Some(hub.operator.as_str())] {
            assert_error(&hub.get(&path(&trace), key).await, 401, "ERR_UNAUTHORIZED");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_numbers_count_every_outcome() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join_at("carol@chorus", &worker.url).await;
    hub.say(&alice, &bob, "queued").await.expect(202);
    let inbox = hub.inbox(&bob).await;
    hub.say(&alice, &bob, "by stream").await.expect(200);
    hub.say(&alice, &carol, "by post").await.expect(200);
    worker.behave(Behaviour::Say(500, String::new()));
    hub.say(&alice, &carol, "failed").await.expect(200);
    let health = hub.get("/health", None).await.expect(200);
    for (name, count) in [
        ("messages_delivered", 2),
        ("messages_failed", 1),
        ("messages_queued", 1),
        ("inbox_connections", 1),
    ] {
        assert_eq!(health.at(&format!("/data/{name}")), count, "{}", health.text);
    }
    drop(inbox);
    hub.stop().await;
}
