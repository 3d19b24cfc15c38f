//! The inbox as a stream and as pages: nothing is lost or reordered, and only acknowledged
//! envelopes do not come again (R31, R61, R72, D18, 2.5).

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, Token, assert_error, assert_vouched, envelope_of};
use super::scene::Pair;
use crate::relay::kit::{Event, Inbox};

/// Notes from Alice to Bob.
async fn send(pair: &Pair, count: usize) -> Vec<Said> {
    let mut sent = Vec::new();
    for n in 0..count {
        let payload = json!({"n": n, "text": "line\nline\u{2028}é"});
        let note = pair.alice.sign_for(MessageType::Hello, &payload, Some(pair.bob.public()));
        pair.hub.tell(&note).await.expect(202);
        sent.push(note);
    }
    sent
}

/// The next events are these envelopes at these positions, with valid receipts.
async fn assert_comes(hub: &Hub, inbox: &mut Inbox, sent: &[Said], first: u64) {
    let hub_key = hub.hub_key().await;
    for (said, position) in sent.iter().zip(first..) {
        let event = inbox.next().await;
        assert_eq!(event.position(), position);
        assert_eq!(*envelope_of(&event), said.json());
        assert!(event.text.starts_with(&format!("{{\"envelope\":{}", said.text)), "as signed");
        assert_vouched(hub_key, &event.data);
    }
}

/// The first event of a stream: its owner, its start position, and the size of the backlog.
fn assert_connected(inbox: &Inbox, key: &Key, from: u64, backlog: u64) {
    let hello = inbox.hello.as_ref().expect("it was read");
    let wanted = json!({"id": key.did(), "resume_from": from, "backlog": backlog});
    assert_eq!(hello.data, wanted);
    assert_eq!(hello.position(), from);
}

async fn ack(hub: &Hub, token: &Token, up_to: Value) -> crate::kit::Reply {
    hub.post("/agora/inbox/ack", Some(&token.0), &json!({"up_to": up_to})).await
}

#[tokio::test]
async fn a_stream_begins_with_connected_and_brings_what_comes_with_its_receipt() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, bob_reads, .. } = &pair;
    let early = send(&pair, 2).await;
    let mut inbox = hub.agora_inbox(bob_reads, None).await;
    assert_connected(&inbox, bob, 0, 2);
    assert_comes(hub, &mut inbox, &early, 1).await;
    let late = send(&pair, 3).await;
    assert_comes(hub, &mut inbox, &late, 3).await;
    // An envelope is one line, whatever it contains.
    assert!(inbox.raw.lines().filter(|line| line.starts_with("data: ")).count() == 6);
    assert!(inbox.raw.contains("event: envelope\n"), "{}", inbox.raw);
}

#[tokio::test]
async fn several_readers_get_everything_each() {
    let pair = Pair::meet().await;
    let Pair { hub, bob_reads, .. } = &pair;
    let mut first = hub.agora_inbox(bob_reads, None).await;
    let mut second = hub.agora_inbox(bob_reads, None).await;
    // Another token of the same key reads the same inbox.
    let other = hub.hello(&pair.bob, json!({})).await;
    let mut third = hub.agora_inbox(&other, None).await;
    let sent = send(&pair, 3).await;
    for inbox in [&mut first, &mut second, &mut third] {
        assert_comes(hub, inbox, &sent, 1).await;
    }
}

#[tokio::test]
async fn who_comes_back_with_an_event_id_goes_on_after_it() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, bob_reads, .. } = &pair;
    let sent = send(&pair, 5).await;
    for last in [0, 3, 4, 5] {
        let mut inbox = hub.agora_inbox(bob_reads, Some(&last.to_string())).await;
        assert_connected(&inbox, bob, last as u64, 5 - last as u64);
        assert_comes(hub, &mut inbox, &sent[last..], last as u64 + 1).await;
    }
    // A position that this inbox never had is ignored.
    let inbox = hub.agora_inbox(bob_reads, Some("99")).await;
    assert_connected(&inbox, bob, 0, 5);
    let bearer = format!("Bearer {}", bob_reads.0);
    for last in ["x", "-1", "1.5", "18446744073709551616"] {
        let headers = [("authorization", bearer.as_str()), ("last-event-id", last)];
        let reply = hub.send("GET", "/agora/inbox", &headers, b"").await;
        assert_error(&reply, 400);
        assert!(reply.str("/payload/message").contains("Last-Event-ID"), "{}", reply.text);
    }
}

#[tokio::test]
async fn what_was_not_acknowledged_comes_again_and_what_was_does_not() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, bob_reads, .. } = &pair;
    let sent = send(&pair, 4).await;
    for _ in 0..2 {
        let mut inbox = hub.agora_inbox(bob_reads, None).await;
        assert_connected(&inbox, bob, 0, 4);
        assert_comes(hub, &mut inbox, &sent, 1).await;
    }
    let reply = ack(hub, bob_reads, json!(3)).await.expect(200);
    assert_eq!(reply.json(), json!({"acked_to": 3, "pending": 1}));
    let mut inbox = hub.agora_inbox(bob_reads, None).await;
    assert_connected(&inbox, bob, 3, 1);
    assert_comes(hub, &mut inbox, &sent[3..], 4).await;
    drop(inbox);
    // Also over a restart; a reader that asks for acknowledged envelopes gets them.
    let Pair { hub, bob, bob_reads, .. } = pair;
    let hub = hub.restart(&[]).await;
    let mut inbox = hub.agora_inbox(&bob_reads, None).await;
    assert_connected(&inbox, &bob, 3, 1);
    assert_comes(&hub, &mut inbox, &sent[3..], 4).await;
    let mut inbox = hub.agora_inbox(&bob_reads, Some("0")).await;
    assert_comes(&hub, &mut inbox, &sent, 1).await;
}

#[tokio::test]
async fn acknowledging_goes_forward_only_and_never_past_the_end() {
    let pair = Pair::meet().await;
    let Pair { hub, bob_reads, .. } = &pair;
    send(&pair, 3).await;
    for (up_to, acked_to) in [(0, 0), (2, 2), (1, 2), (99, 3), (0, 3)] {
        let reply = ack(hub, bob_reads, json!(up_to)).await.expect(200);
        assert_eq!(reply.json(), json!({"acked_to": acked_to, "pending": 3 - acked_to}));
    }
    for bad in [json!(null), json!(-1), json!(1.5), json!("3")] {
        let reply = ack(hub, bob_reads, bad).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/up_to");
    }
    assert_error(&ack(hub, &Token("at_x".to_owned()), json!(3)).await, 401);
}

#[tokio::test]
async fn pages_are_the_same_inbox_from_any_place() {
    let pair = Pair::meet().await;
    let Pair { hub, bob_reads, .. } = &pair;
    let sent = send(&pair, 5).await;
    let hub_key = hub.hub_key().await;
    let (mut after, mut got) = (0, Vec::new());
    loop {
        let path = format!("/agora/messages?after={after}&limit=2");
        let page = hub.get(&path, Some(&bob_reads.0)).await.expect(200);
        let messages = page.at("/messages").as_array().expect("a list").clone();
        assert!(messages.len() <= 2);
        for message in &messages {
            assert_vouched(hub_key, message);
            assert_eq!(message["position"], got.len() as u64 + 1);
            got.push(message["envelope"].clone());
        }
        if messages.is_empty() {
            break;
        }
        after = page.at("/next_after").as_u64().expect("a number");
    }
    assert_eq!(got, sent.iter().map(Said::json).collect::<Vec<_>>());
    // A page past the end returns its position.
    let page = hub.get("/agora/messages?after=5", Some(&bob_reads.0)).await.expect(200);
    assert_eq!(page.json(), json!({"messages": [], "next_after": 5}));
    // Reading a page acknowledges nothing; without a position it begins after the last acknowledged
    // one.
    let count = async || {
        let page = hub.get("/agora/messages", Some(&bob_reads.0)).await.expect(200);
        page.at("/messages").as_array().expect("a list").len()
    };
    assert_eq!(count().await, 5);
    ack(hub, bob_reads, json!(4)).await.expect(200);
    assert_eq!(count().await, 1);
    for bad in ["after=-1", "after=x", "limit=0", "limit=201", "limit=x"] {
        let reply = hub.get(&format!("/agora/messages?{bad}"), Some(&bob_reads.0)).await;
        assert_error(&reply, 400);
    }
}

#[tokio::test]
async fn after_a_restart_streams_and_pages_resume_before_anything_is_written() {
    let pair = Pair::meet().await;
    let sent = send(&pair, 3).await;
    let mut inbox = pair.hub.agora_inbox(&pair.bob_reads, None).await;
    assert_comes(&pair.hub, &mut inbox, &sent, 1).await;
    drop(inbox);
    let Pair { hub, bob, bob_reads, .. } = pair;
    let hub = hub.restart(&[]).await;
    let newest = crate::kit::newest_event(&hub);
    let mut inbox = hub.agora_inbox(&bob_reads, Some("1")).await;
    assert_connected(&inbox, &bob, 1, 2);
    assert_comes(&hub, &mut inbox, &sent[1..], 2).await;
    let page = hub.get("/agora/messages?after=1", Some(&bob_reads.0)).await.expect(200);
    let page = page.at("/messages");
    let read: Vec<_> =
        page.as_array().expect("a list").iter().map(|one| one["envelope"].clone()).collect();
    assert_eq!(read, sent[1..].iter().map(Said::json).collect::<Vec<_>>());
    assert_eq!(crate::kit::newest_event(&hub), newest, "nothing was written meanwhile");
}

#[tokio::test]
async fn every_kind_of_envelope_of_a_request_comes_with_a_receipt() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let carol = Key::of(3);
    let carol_reads = hub.provider(&carol, super::scene::SEARCH, None).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    hub.told(&carol.offer(&request.id, json!(3))).await;
    let offer = pair.offer(&request, json!(2)).await;
    hub.told(&alice.accept(&offer)).await;
    hub.told(&bob.partial(&request.id, false)).await;
    hub.told(&bob.error(&request.id, 500)).await;
    let timed = pair.ask(json!({"timeout": 500, "budget": {"max": 6}})).await;
    pair.fails(&timed).await;
    let hub_key = hub.hub_key().await;
    let mut seen = Vec::new();
    for reads in [alice_reads, bob_reads, &carol_reads] {
        for letter in hub.letters(reads).await {
            assert_vouched(hub_key, &letter);
            let (envelope, receipt) = (&letter["envelope"], &letter["receipt"]);
            assert_eq!(receipt["type"], "STATUS");
            assert_eq!(receipt["sender"]["id"], hub_key.did());
            let said = &receipt["payload"];
            assert_eq!(said["status"], "received");
            assert_eq!(said["message_id"], envelope["id"]);
            assert_eq!(said["message_sender"], envelope["sender"]["id"]);
            assert_eq!(said["sha256"].as_str().map(str::len), Some(64));
            seen.push(envelope["type"].as_str().expect("text").to_owned());
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["ACCEPT", "ERROR", "OFFER", "REQUEST", "RESULT", "STATUS"]);
}

#[tokio::test]
async fn what_the_hub_says_itself_is_the_same_however_often_it_is_read() {
    let pair = Pair::meet().await;
    let Pair { hub, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"timeout": 500})).await;
    pair.fails(&request).await;
    let read = async |hub: &Hub, token: &Token| -> Value { hub.newest(token).await };
    let first = read(hub, alice_reads).await;
    let mut inbox = hub.agora_inbox(alice_reads, Some("0")).await;
    let event: Event = inbox.next().await;
    assert_eq!(*envelope_of(&event), first);
    drop(inbox);
    let Pair { hub, alice_reads, .. } = pair;
    let hub = hub.restart(&[]).await;
    assert_eq!(read(&hub, &alice_reads).await, first);
}

#[tokio::test]
async fn an_inbox_is_its_own_keys_only() {
    let pair = Pair::meet().await;
    let Pair { hub, alice_reads, .. } = &pair;
    send(&pair, 3).await;
    assert_eq!(hub.letters(alice_reads).await.len(), 0);
    let inbox = hub.agora_inbox(alice_reads, Some("3")).await;
    assert_connected(&inbox, &pair.alice, 0, 0);
    for path in ["/agora/inbox", "/agora/messages"] {
        for key in [None, Some("at_AAAA"), Some(hub.operator.as_str())] {
            assert_error(&hub.get(path, key).await, 401);
        }
    }
}
