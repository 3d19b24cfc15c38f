//! `GET /agent/messages`: what an agent sent and received, oldest first.

use serde_json::{Value, json};

use super::kit::{BOTH, Peer, assert_error, assert_stamp, envelope, turn};
use super::looks::trace;
use crate::kit::{Behaviour, Reply, TestHub, Worker};

async fn list(hub: &TestHub, peer: &Peer, query: &str) -> Vec<Value> {
    let reply = hub.get(&format!("/agent/messages{query}"), Some(&peer.key)).await.expect(200);
    super::kit::assert_wrapped(&reply, true);
    reply.at("/data").as_array().expect("a list").clone()
}

fn texts(listed: &[Value]) -> Vec<&str> {
    listed.iter().map(|one| one["envelope"]["original_text"].as_str().expect("a text")).collect()
}

fn ids(listed: &[Value]) -> Vec<Option<u64>> {
    listed.iter().map(|one| one["id"].as_u64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_both_parties_see_a_message_and_its_delivery_status() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join_at("carol@chorus", &worker.url).await;
    let stranger = hub.join("stranger@chorus").await;
    let mut inbox = hub.inbox(&bob).await;
    let by_stream = hub.say(&alice, &bob, "by stream").await.expect(200);
    inbox.message().await;
    drop(inbox);
    hub.heard_by(0).await;
    let queued = hub.say(&alice, &bob, "queued").await.expect(202);
    let posted = hub.say(&alice, &carol, "by post").await.expect(200);
    worker.behave(Behaviour::Say(500, String::new()));
    let failed = hub.say(&alice, &carol, "failed").await.expect(200);
    let rows = [
        (&by_stream, &bob, 1, "sse", "by stream"),
        (&queued, &bob, 2, "queued", "queued"),
        (&posted, &carol, 1, "webhook", "by post"),
        (&failed, &carol, 2, "queued", "failed"),
    ];
    let row = |(reply, to, id, via, text): (&Reply, &Peer, Option<u64>, &str, &str), at: &Value| {
        json!({"id": id, "trace_id": trace(reply), "sender_id": alice.id, "receiver_id": to.id,
            "envelope": envelope(&alice.id, text), "delivered_via": via, "timestamp": at})
    };
    let sent = list(&hub, &alice, "").await;
    assert_eq!(sent.len(), rows.len());
    for ((reply, to, _, via, text), shown) in rows.into_iter().zip(&sent) {
        assert_stamp(shown["timestamp"].as_str().expect("a time"));
        assert_eq!(*shown, row((reply, to, None, via, text), &shown["timestamp"]));
    }
    for peer in [&bob, &carol] {
        let received = list(&hub, peer, "").await;
        let own: Vec<_> = rows.into_iter().filter(|row| row.1.id == peer.id).collect();
        assert_eq!(received.len(), own.len());
        for ((reply, to, id, via, text), shown) in own.into_iter().zip(&received) {
            assert_eq!(*shown, row((reply, to, Some(id), via, text), &shown["timestamp"]));
        }
    }
    assert_eq!(list(&hub, &stranger, "").await, [] as [Value; 0]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_chosen_by_position_time_and_number() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    // Bob receives 1, sends a, receives 2, sends b, receives 3, sends c.
    for (heard, said) in [("1", "a"), ("2", "b"), ("3", "c")] {
        hub.say(&alice, &bob, heard).await.expect(202);
        hub.say(&bob, &alice, said).await.expect(202);
    }
    let all = list(&hub, &bob, "").await;
    assert_eq!(texts(&all), ["1", "a", "2", "b", "3", "c"]);
    assert_eq!(ids(&all), [Some(1), None, Some(2), None, Some(3), None]);
    for (query, wanted) in [
        ("?after=0", vec!["1", "a", "2", "b", "3", "c"]),
        ("?after=1", vec!["a", "2", "b", "3", "c"]),
        ("?after=2", vec!["b", "3", "c"]),
        ("?after=3", vec!["c"]),
        ("?after=99", vec!["c"]),
        ("?after=0&limit=2", vec!["1", "a"]),
        ("?after=1&limit=2", vec!["a", "2"]),
        // Without a start, it returns the newest.
        ("?limit=2", vec!["3", "c"]),
    ] {
        assert_eq!(texts(&list(&hub, &bob, query).await), wanted, "{query}");
    }
    // The exact time is included, in any offset; a moment later it is not.
    let third = all[2]["timestamp"].as_str().expect("a time").to_owned();
    let from_third = list(&hub, &bob, &format!("?since={third}")).await;
    assert!(texts(&from_third).contains(&"2") && texts(&from_third).contains(&"c"));
    let offset = third.replace('Z', "%2B00:00");
    assert_eq!(list(&hub, &bob, &format!("?since={offset}")).await, from_third);
    assert_eq!(list(&hub, &bob, "?since=2000-01-01T00:00:00Z").await, all);
    assert!(list(&hub, &bob, "?since=2100-01-01T00:00:00Z").await.is_empty());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_at_most_500_and_100_unless_asked() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    for n in 1..=120 {
        let said = turn(&alice.id, &n.to_string(), &n.to_string(), 1);
        hub.mail(&alice, &bob, &said).await.expect(202);
    }
    let newest: Vec<Option<u64>> = (21..=120).map(Some).collect();
    assert_eq!(ids(&list(&hub, &bob, "").await), newest);
    assert_eq!(list(&hub, &bob, "?limit=500").await.len(), 120);
    assert_eq!(list(&hub, &alice, "?limit=1").await.len(), 1);
    let oldest: Vec<Option<u64>> = (1..=100).map(Some).collect();
    assert_eq!(ids(&list(&hub, &bob, "?after=0").await), oldest);
    for base in BOTH {
        for bad in ["limit=0", "limit=501", "limit=x", "after=-1", "after=x", "since=yesterday"] {
            let path = format!("{base}/agent/messages?{bad}");
            let reply = hub.get(&path, Some(&bob.key)).await;
            assert_error(&reply, 400, "ERR_VALIDATION");
            let name = bad.split('=').next().expect("a name");
            assert!(reply.str("/error/message").contains(name), "{}", reply.text);
        }
        for key in [None, Some(hub.operator.as_str())] {
            let reply = hub.get(&format!("{base}/agent/messages"), key).await;
            assert_error(&reply, 401, "ERR_UNAUTHORIZED");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_oneself_is_listed_once_and_reading_changes_nothing() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    hub.say(&alice, &alice, "note to self").await.expect(202);
    for query in ["", "?after=0", "?since=2000-01-01T00:00:00Z"] {
        let listed = list(&hub, &alice, query).await;
        assert_eq!((texts(&listed), ids(&listed)), (vec!["note to self"], vec![Some(1)]));
    }
    // Reading the history acknowledges nothing.
    let mut inbox = hub.inbox(&alice).await;
    assert_eq!(inbox.message().await.said(), "note to self");
    hub.stop().await;
}
