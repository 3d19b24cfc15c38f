//! A repeated message is one message: turns and idempotency keys (R47, R48).

use std::time::Duration;

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{Peer, assert_error, assert_rejected, envelope, message, turn, with};
use super::looks::{header, trace};
use crate::kit::{Behaviour, Reply, TestHub, Worker, together};

const OK: &str = r#"{"status":"ok"}"#;

async fn three(hub: &TestHub) -> [Peer; 3] {
    let names = ["alice@chorus", "bob@chorus", "carol@chorus"];
    together(names.map(|name| hub.join(name))).await.try_into().expect("three of them")
}

/// How many messages wait in an inbox.
async fn waiting(hub: &TestHub, peer: &Peer) -> Value {
    let readers = hub.engine.inbox_reader_count();
    let inbox = hub.inbox_at(peer, "?ack=explicit", None).await;
    let backlog = inbox.hello.as_ref().expect("it was read").data["backlog"].clone();
    drop(inbox);
    hub.heard_by(readers).await;
    backlog
}

#[track_caller]
fn assert_same(again: &Reply, first: &Reply) {
    assert_eq!((again.status, again.at("/data")), (first.status, first.at("/data")));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.header("idempotency-replayed"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_turn_gets_the_first_outcome_and_is_one_message() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok","n":1}"#.into())).await;
    let [alice, bob, carol] = three(&hub).await;
    let dave = hub.join_at("dave@chorus", &worker.url).await;
    let mut inbox = hub.inbox(&carol).await;
    let said = turn(&alice.id, "hello", "c", 1);
    for (to, status, word) in
        [(&bob, 202, "queued"), (&carol, 200, "delivered_sse"), (&dave, 200, "delivered")]
    {
        let first = hub.mail(&alice, to, &said).await.expect(status);
        assert_eq!(first.str("/data/delivery"), word);
        if word == "delivered_sse" {
            inbox.message().await;
        }
        worker.behave(Behaviour::Say(200, r#"{"status":"ok","n":2}"#.into()));
        for _ in 0..5 {
            assert_same(&hub.mail(&alice, to, &said).await, &first);
        }
    }
    assert_eq!(worker.got().len(), 1);
    assert_eq!(waiting(&hub, &bob).await, 1);
    hub.say(&alice, &carol, "next").await.expect(200);
    assert_eq!(inbox.message().await.said(), "next", "no other message came");
    // A later acknowledgement does not change the first answer.
    hub.ack(&dave, 1).await.expect(200);
    assert_eq!(hub.mail(&alice, &dave, &said).await.expect(200).str("/data/delivery"), "delivered");
    // As long as the message is stored, so also after a restart.
    let before = hub.mail(&alice, &dave, &said).await.expect(200);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let after = hub.mail(&alice, &dave, &said).await.expect(200);
    assert_eq!(after.at("/data"), before.at("/data"));
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_a_repeated_turn_is_one_new_try_of_the_same_message() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(500, String::new())).await;
    let alice = hub.join("alice@chorus").await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let said = turn(&alice.id, "hello", "c", 1);
    let first = hub.mail(&alice, &bob, &said).await.expect(200);
    assert_eq!(first.str("/data/delivery"), "failed");
    assert_eq!(worker.got().len(), 1);
    let second = hub.mail(&alice, &bob, &said).await.expect(200);
    assert_eq!(second.str("/data/delivery"), "failed");
    assert!(second.str("/data/detail").ends_with("next try in 5 min"), "{}", second.text);
    assert_eq!(worker.got().len(), 2);
    worker.behave(Behaviour::Say(200, OK.into()));
    let third = hub.mail(&alice, &bob, &said).await.expect(200);
    assert_eq!(third.str("/data/delivery"), "delivered");
    let fourth = hub.mail(&alice, &bob, &said).await.expect(200);
    assert_eq!(fourth.at("/data"), third.at("/data"), "the outcome is final now");
    let got = worker.got();
    assert_eq!(got.len(), 3);
    for (reply, got) in [&first, &second, &third].into_iter().zip(&got) {
        assert_eq!(trace(reply), trace(&first));
        assert_eq!(header(got, "webhook-id"), trace(&first));
        assert_eq!(got.json()["envelope"], said);
    }
    let standing = hub.standing(&alice, &trace(&first)).await.expect(200);
    assert_eq!(standing.at("/data/attempts"), 3);
    assert_eq!(hub.pushes(), []);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_of_a_turn_that_is_being_tried_wait_for_the_same_end() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(500, String::new())).await;
    let alice = hub.join("alice@chorus").await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let said = turn(&alice.id, "hello", "c", 1);
    hub.mail(&alice, &bob, &said).await.expect(200);
    // One after a failure, and many more while the recipient has not answered.
    worker.behave(Behaviour::Dawdle(Duration::from_secs(2)));
    let many = async || {
        worker.heard(2).await;
        together((0..20).map(|_| hub.mail(&alice, &bob, &said))).await
    };
    let (one, others) = tokio::join!(hub.mail(&alice, &bob, &said), many());
    assert_eq!(one.str("/data/delivery"), "delivered", "{}", one.text);
    for other in &others {
        assert_eq!((other.status, other.at("/data")), (200, one.at("/data")));
    }
    assert_eq!(worker.got().len(), 2, "the receiver was called once for all of them");
    let standing = hub.standing(&alice, &trace(&one)).await.expect(200);
    assert_eq!(standing.at("/data/attempts"), 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_another_protocols_path_is_a_new_one_here() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    let body = json!({"agent_id": "alice@chorus", "agent_card": null});
    for path in ["/relay/register", "/relay/register"] {
        hub.post_once(path, Some(&alice.key), "k", &body).await.expect(200);
    }
    let other = hub.post_once("/registry/register", Some(&alice.key), "k", &body).await;
    assert_eq!(other.header("idempotency-replayed"), None, "{}", other.text);
    assert_eq!(other.status, 400, "it is not a registration there: {}", other.text);
    // The path at the root is the same as with the prefix.
    let sent = message(&alice.id, &alice.id, "hello");
    let first = hub.post_once("/relay/messages", Some(&alice.key), "m", &sent).await.expect(202);
    assert_same(&hub.post_once("/messages", Some(&alice.key), "m", &sent).await, &first);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_another_envelope_is_refused_with_the_way_on() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, _] = three(&hub).await;
    let said = turn(&alice.id, "hello", "c", 1);
    let first = hub.mail(&alice, &bob, &said).await.expect(202);
    for other in [
        turn(&alice.id, "something else", "c", 1),
        with(&said, "/sender_culture", Some("de".into())),
        with(&said, "/x_extra", Some(json!(1))),
    ] {
        let reply = hub.mail(&alice, &bob, &other).await;
        assert_rejected(&reply, 422, "ERR_IDEMPOTENCY_CONFLICT");
        assert!(reply.str("/error/hint").contains("increase turn_number"), "{}", reply.text);
        assert_eq!(reply.str("/error/field"), "/envelope/turn_number");
        // As the answer says.
        hub.mail(&alice, &bob, &said).await.expect(202);
    }
    let next = hub.mail(&alice, &bob, &turn(&alice.id, "something else", "c", 2)).await;
    assert_ne!(trace(&next.expect(202)), trace(&first));
    assert_eq!(waiting(&hub, &bob).await, 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_sender_receiver_conversation_and_number_together() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, carol] = three(&hub).await;
    let mut traces = std::collections::BTreeSet::new();
    for (from, to, conversation, number) in [
        (&alice, &bob, "c", 1),
        (&alice, &bob, "c", 2),
        (&alice, &bob, "C", 1),
        (&alice, &bob, "c ", 1),
        (&alice, &carol, "c", 1),
        (&carol, &bob, "c", 1),
        (&bob, &alice, "c", 1),
    ] {
        let said = turn(&from.id, "hello", conversation, number);
        let reply = hub.mail(from, to, &said).await.expect(202);
        assert!(traces.insert(trace(&reply)), "{said}");
    }
    // An incomplete turn is ignored: each of these is a separate message.
    let conversation = with(&envelope(&alice.id, "x"), "/conversation_id", Some("d".into()));
    let number = with(&envelope(&alice.id, "y"), "/turn_number", Some(1.into()));
    for said in [&envelope(&alice.id, "z"), &conversation, &number] {
        for _ in 0..2 {
            assert!(traces.insert(trace(&hub.mail(&alice, &bob, said).await.expect(202))));
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_turn_ten_times_at_once_is_one_message() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, _] = three(&hub).await;
    let said = turn(&alice.id, "hello", "c", 1);
    let replies = together((0..10).map(|_| hub.mail(&alice, &bob, &said))).await;
    let first = trace(&replies[0]);
    assert!(replies.iter().all(|reply| reply.status == 202 && trace(reply) == first));
    let fresh = replies.iter().filter(|reply| reply.header("idempotency-replayed").is_none());
    assert_eq!(fresh.count(), 1);
    assert_eq!(waiting(&hub, &bob).await, 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_gets_the_stored_answer_word_for_word() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, OK.into())).await;
    let [alice, bob, _] = three(&hub).await;
    let dave = hub.join_at("dave@chorus", &worker.url).await;
    for (n, (to, status)) in [(&bob, 202), (&dave, 200)].into_iter().enumerate() {
        let (key, body) = (format!("key {n}"), message(&alice.id, &to.id, "hello"));
        let send = async || hub.post_once("/messages", Some(&alice.key), &key, &body).await;
        let first = send().await.expect(status);
        assert_eq!(first.header("idempotency-replayed"), None);
        for _ in 0..3 {
            let again = send().await.expect(status);
            assert_eq!(again.text, first.text);
            assert_eq!(again.header("idempotency-replayed"), Some("true"));
            assert_eq!(again.header("content-type"), Some("application/json"));
        }
        // The same body without a key, or with another one, is another message.
        let fresh = hub.post("/messages", Some(&alice.key), &body).await.expect(status);
        assert_ne!(trace(&fresh), trace(&first));
        let other = hub.post_once("/messages", Some(&alice.key), &format!("{key}!"), &body).await;
        assert_ne!(trace(&other.expect(status)), trace(&first));
        // Another body under the same key is refused and changes nothing.
        let reply = hub
            .post_once("/messages", Some(&alice.key), &key, &message(&alice.id, &to.id, "no"))
            .await;
        assert_error(&reply, 422, "ERR_IDEMPOTENCY_CONFLICT");
        assert_eq!(send().await.text, first.text);
    }
    assert_eq!(worker.got().len(), 3);
    assert_eq!(waiting(&hub, &bob).await, 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_keys_belong_to_their_sender() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, carol] = three(&hub).await;
    let mut traces = std::collections::BTreeSet::new();
    for from in [&alice, &carol, &bob] {
        let body = message(&from.id, &bob.id, "hello");
        let reply = hub.post_once("/messages", Some(&from.key), "same", &body).await.expect(202);
        assert_eq!(reply.header("idempotency-replayed"), None);
        traces.insert(trace(&reply));
    }
    assert_eq!(traces.len(), 3);
    // An invalid key does not get a saved answer.
    let body = message(&alice.id, &bob.id, "hello");
    let unknown = format!("ca_{}", "0".repeat(48));
    let reply = hub.post_once("/messages", Some(&unknown), "same", &body).await;
    assert_rejected(&reply, 401, "ERR_UNAUTHORIZED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_at_most_256_characters_and_a_refusal_does_not_use_it_up() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, _] = three(&hub).await;
    let body = message(&alice.id, &bob.id, "hello");
    let send = async |key: &str, body: &Value| {
        hub.post_once("/messages", Some(&alice.key), key, body).await
    };
    for key in ["", &"k".repeat(257)] {
        assert_error(&send(key, &body).await, 400, "ERR_VALIDATION");
    }
    assert_eq!(waiting(&hub, &bob).await, 0);
    let longest = "k".repeat(256);
    let bad = with(&body, "/envelope/original_text", Some("".into()));
    assert_rejected(&send(&longest, &bad).await, 400, "ERR_VALIDATION");
    let first = send(&longest, &body).await.expect(202);
    assert_eq!(send(&longest, &body).await.text, first.text);
    assert_eq!(waiting(&hub, &bob).await, 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_ten_times_at_once_is_one_message_and_one_call() {
    let hub = TestHub::serve(&[]).await;
    let dawdling = Behaviour::Dawdle(Duration::from_millis(200));
    let worker = Worker::start(dawdling).await;
    let [alice, bob, _] = three(&hub).await;
    let dave = hub.join_at("dave@chorus", &worker.url).await;
    for (to, status) in [(&bob, 202), (&dave, 200)] {
        let body = message(&alice.id, &to.id, "hello");
        let send = || hub.post_once("/messages", Some(&alice.key), &to.id, &body);
        let replies = together((0..10).map(|_| send())).await;
        for reply in &replies {
            // A repeat during the first request waits for it, or is told to retry.
            if reply.status == 409 {
                assert_eq!(reply.str("/error/code"), "ERR_IN_PROGRESS");
                assert_eq!(reply.at("/error/retryable"), true);
                continue;
            }
            assert_eq!(reply.status, status, "{}", reply.text);
        }
        let done: Vec<_> = replies.iter().filter(|reply| reply.status == status).collect();
        assert!(done.iter().all(|reply| reply.text == done[0].text), "one answer for all");
        let fresh = done.iter().filter(|reply| reply.header("idempotency-replayed").is_none());
        assert_eq!(fresh.count(), 1);
    }
    assert_eq!(worker.got().len(), 1);
    assert_eq!(waiting(&hub, &bob).await, 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_remembered_over_a_restart() {
    let hub = TestHub::serve(&[]).await;
    let [alice, bob, _] = three(&hub).await;
    let body = message(&alice.id, &bob.id, "hello");
    let first = hub.post_once("/messages", Some(&alice.key), "k", &body).await.expect(202);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let again = hub.post_once("/messages", Some(&alice.key), "k", &body).await.expect(202);
    assert_eq!(again.text, first.text);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(waiting(&hub, &bob).await, 1);
    hub.stop().await;
}
