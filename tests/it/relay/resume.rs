//! Reconnecting: positions, acknowledgements, and what is sent again (R44, R61, R63).

use rialto_hub::config::Profile;
use serde_json::json;

use super::kit::{BOTH, Peer, assert_bad, assert_error};
use super::looks::trace;
use crate::kit::{TestHub, newest_event};

/// Alice, and Bob with this many messages from her in his inbox.
async fn mailed(hub: &TestHub, count: u64) -> (Peer, Peer) {
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    send(hub, &alice, &bob, 1..=count).await;
    (alice, bob)
}

async fn send(hub: &TestHub, alice: &Peer, bob: &Peer, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        hub.say(alice, bob, &format!("message {n}")).await.expect(202);
    }
}

/// Checks that a reader gets exactly these positions, by sending one more and waiting for it.
async fn assert_resumes(
    hub: &TestHub,
    (alice, bob): (&Peer, &Peer),
    (query, last): (&str, Option<&str>),
    wanted: &[u64],
    new: u64,
) {
    let mut inbox = hub.inbox_at(bob, query, last).await;
    let reply = hub.say(alice, bob, &format!("message {new}")).await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    let hello = inbox.hello.clone().expect("it was read");
    assert_eq!(hello.data["backlog"], wanted.len(), "{hello:?}");
    let before = wanted.first().map_or(new - 1, |first| first - 1);
    assert_eq!((hello.position(), &hello.data["resume_from"]), (before, &json!(before)));
    for position in wanted.iter().copied().chain([new]) {
        let event = inbox.message().await;
        assert_eq!(event.position(), position);
        assert_eq!(event.said(), format!("message {position}"));
    }
    drop(inbox);
    hub.heard_by(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_was_cut_resumes_after_the_last_event_it_has() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = mailed(&hub, 5).await;
    let mut inbox = hub.inbox(&bob).await;
    for position in 1..=3 {
        assert_eq!(inbox.message().await.position(), position);
    }
    drop(inbox);
    hub.heard_by(0).await;
    let pair = (&alice, &bob);
    assert_resumes(&hub, pair, ("", Some("3")), &[4, 5], 6).await;
    assert_resumes(&hub, pair, ("", Some("6")), &[], 7).await;
    assert_resumes(&hub, pair, ("?after=3", None), &[4, 5, 6, 7], 8).await;
    // The header takes precedence over the query.
    assert_resumes(&hub, pair, ("?after=1", Some("7")), &[8], 9).await;
    // Acknowledged messages are not gone: a reader can request them again.
    assert_resumes(&hub, pair, ("", Some("0")), &[1, 2, 3, 4, 5, 6, 7, 8, 9], 10).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_are_the_same_after_a_restart() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = mailed(&hub, 5).await;
    let mut inbox = hub.inbox(&bob).await;
    let mut first = Vec::new();
    for _ in 0..5 {
        first.push(inbox.message().await);
    }
    drop(inbox);
    hub.heard_by(0).await;
    let hub = hub.restart(Profile::Serve, &[]).await;
    let mut inbox = hub.inbox_at(&bob, "", Some("0")).await;
    for wanted in &first {
        assert_eq!(inbox.message().await, *wanted, "the same event, byte for byte");
    }
    drop(inbox);
    hub.heard_by(0).await;
    let pair = (&alice, &bob);
    assert_resumes(&hub, pair, ("", Some("3")), &[4, 5], 6).await;
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_resumes(&hub, pair, ("", Some("6")), &[], 7).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_an_inbox_resumes_before_anything_is_written() {
    let hub = TestHub::serve(&[]).await;
    let (_, bob) = mailed(&hub, 3).await;
    let mut inbox = hub.inbox(&bob).await;
    let mut read = Vec::new();
    for _ in 0..3 {
        read.push(inbox.message().await);
    }
    drop(inbox);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let newest = newest_event(&hub);
    for (query, last) in [("", Some("1")), ("?after=1", None)] {
        let mut inbox = hub.inbox_at(&bob, query, last).await;
        for wanted in &read[1..] {
            assert_eq!(inbox.message().await, *wanted);
        }
    }
    assert_eq!(newest_event(&hub), newest, "nothing was written meanwhile");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_inbox_is_read_page_by_page_without_gap() {
    const MANY: u64 = 200;
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    // Separate conversations, so that the loop guard does not interfere.
    for n in 1..=MANY {
        let said = super::kit::turn(&alice.id, &format!("message {n}"), &n.to_string(), 1);
        hub.mail(&alice, &bob, &said).await.expect(202);
    }
    for last in [0, 1, 63, 64, 65, 150, MANY - 1] {
        let mut inbox = hub.inbox_at(&bob, "", Some(&last.to_string())).await;
        for position in last + 1..=MANY {
            let event = inbox.message().await;
            assert_eq!(
                (event.position(), event.said()),
                (position, &*format!("message {position}"))
            );
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_position_a_stream_starts_at_the_first_message_never_handed_over() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = mailed(&hub, 3).await;
    let pair = (&alice, &bob);
    assert_resumes(&hub, pair, ("", None), &[1, 2, 3], 4).await;
    assert_resumes(&hub, pair, ("", None), &[], 5).await;
    send(&hub, &alice, &bob, 6..=7).await;
    // Also over a clean restart.
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_resumes(&hub, pair, ("", None), &[6, 7], 8).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_explicit_reader_did_not_acknowledge_comes_again() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = mailed(&hub, 3).await;
    let (pair, explicit) = ((&alice, &bob), ("?ack=explicit", None));
    assert_resumes(&hub, pair, explicit, &[1, 2, 3], 4).await;
    assert_resumes(&hub, pair, explicit, &[1, 2, 3, 4], 5).await;
    let reply = hub.ack(&bob, 2).await.expect(200);
    assert_eq!(reply.at("/data"), json!({"acked_to": 2, "pending": 3}));
    assert_resumes(&hub, pair, explicit, &[3, 4, 5], 6).await;
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_resumes(&hub, pair, explicit, &[3, 4, 5, 6], 7).await;
    // A reader that resumes after an event has it and all before it.
    assert_resumes(&hub, pair, ("?ack=explicit", Some("5")), &[6, 7], 8).await;
    assert_resumes(&hub, pair, explicit, &[6, 7, 8], 9).await;
    let reply = hub.ack(&bob, 9).await.expect(200);
    assert_eq!(reply.at("/data"), json!({"acked_to": 9, "pending": 0}));
    assert_resumes(&hub, pair, explicit, &[], 10).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledging_goes_forward_only_and_never_past_the_end() {
    let hub = TestHub::serve(&[]).await;
    let (_, bob) = mailed(&hub, 3).await;
    for (up_to, acked_to) in [(0, 0), (2, 2), (1, 2), (0, 2), (99, 3), (u64::from(u32::MAX), 3)] {
        let reply = hub.ack(&bob, up_to).await.expect(200);
        assert_eq!(reply.at("/data"), json!({"acked_to": acked_to, "pending": 3 - acked_to}));
    }
    let path = |base| format!("{base}/agent/inbox/ack");
    for base in BOTH {
        let key = Some(bob.key.as_str());
        for bad in [json!({}), json!({"up_to": -1}), json!({"up_to": 1.5}), json!({"up_to": "3"})] {
            assert_bad(&hub.post(&path(base), key, &bad).await, "/up_to");
        }
        for key in [None, Some(hub.operator.as_str())] {
            let reply = hub.post(&path(base), key, &json!({"up_to": 3})).await;
            assert_error(&reply, 401, "ERR_UNAUTHORIZED");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_from_another_inbox_gives_nothing_of_that_inbox() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = mailed(&hub, 2).await;
    let carol = hub.join("carol@chorus").await;
    for n in 1..=9 {
        hub.say(&alice, &carol, &format!("for carol {n}")).await.expect(202);
    }
    // 9 is a position that Carol has and Bob has not. None of his messages is skipped for it.
    let pair = (&alice, &bob);
    assert_resumes(&hub, pair, ("", Some("9")), &[1, 2], 3).await;
    assert_eq!(hub.ack(&bob, 0).await.expect(200).at("/data/acked_to"), 0);
    let far = u64::MAX.to_string();
    assert_resumes(&hub, pair, ("", Some(&far)), &[], 4).await;
    // A lower one is a position of Bob's own.
    assert_resumes(&hub, pair, ("", Some("1")), &[2, 3, 4], 5).await;
    let mut inbox = hub.inbox(&carol).await;
    assert_eq!(inbox.message().await.said(), "for carol 1");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_id_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let bob = hub.join("bob@chorus").await;
    let bearer = format!("Bearer {}", bob.key);
    for last in ["x", "-1", "1.5", "0x10", " 1 2", "18446744073709551616", "1,2"] {
        let headers = [("authorization", bearer.as_str()), ("last-event-id", last)];
        let reply = hub.send("GET", "/agent/inbox", &headers, b"").await;
        assert_error(&reply, 400, "ERR_VALIDATION");
        assert!(reply.str("/error/message").contains("Last-Event-ID"), "{}", reply.text);
    }
    for query in ["after=x", "after=-1", "ack=sometimes"] {
        let reply = hub.get(&format!("/agent/inbox?{query}"), Some(&bob.key)).await;
        assert_error(&reply, 400, "ERR_VALIDATION");
    }
    assert_eq!(hub.engine.inbox_reader_count(), 0);
    // Browsers without a last id send an empty one.
    hub.inbox_at(&bob, "", Some("")).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_messages_are_queued_and_delivered_in_order_on_connect() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join("carol@chorus").await;
    let mut traces = Vec::new();
    for n in 0..20 {
        let from = if n % 3 == 0 { &carol } else { &alice };
        let reply = hub.say(from, &bob, &format!("message {n}")).await.expect(202);
        let data = json!({"delivery": "queued", "trace_id": trace(&reply)});
        assert_eq!(reply.at("/data"), data);
        traces.push(trace(&reply));
    }
    // It is durable over a restart.
    let hub = hub.restart(Profile::Serve, &[]).await;
    let mut inbox = hub.inbox(&bob).await;
    for (n, trace) in traces.iter().enumerate() {
        let event = inbox.message().await;
        assert_eq!(event.said(), format!("message {n}"));
        assert_eq!(event.data["trace_id"], *trace);
        assert_eq!(event.position(), n as u64 + 1);
    }
    hub.stop().await;
}
