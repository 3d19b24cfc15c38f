//! What nodes say to each other arrives, and in order.

use std::time::Instant;

use super::*;
use crate::cluster::hop::{CALL_TIMEOUT, CALLS_MAX, SENT_BATCH_BYTES_MAX};

#[tokio::test]
async fn commands_and_replies_keep_their_order() {
    let (mut writer, mut follower) = connected_pair(5).await;
    for number in 0..500 {
        follower.hop.ask(5, ask(number, "text"));
    }
    for number in 0..500 {
        let asked = Event::Asked(5, follower.id, ask(number, "text"));
        assert_eq!(writer.next().await, asked);
        writer.hop.reply(follower.id, 5, done(number));
    }
    for number in 0..500 {
        assert_eq!(follower.next().await, Event::Replied(5, done(number)));
    }
}

#[tokio::test]
async fn several_nodes_get_their_own_replies() {
    let (mut writer, mut first) = connected_pair(5).await;
    let mut second = TestNode::start(3);
    second.follow(5, writer.address);
    assert!(matches!(second.next().await, Event::Connected(5, _)));
    first.hop.ask(5, ask(1, "of the first"));
    assert_eq!(writer.next().await, Event::Asked(5, first.id, ask(1, "of the first")));
    second.hop.ask(5, ask(1, "of the second"));
    assert_eq!(writer.next().await, Event::Asked(5, second.id, ask(1, "of the second")));
    writer.hop.reply(second.id, 5, done(1));
    assert_eq!(second.next_reply().await, done(1));
    writer.hop.reply(first.id, 5, Reply { place: 9, ..done(1) });
    assert_eq!(first.next_reply().await, Reply { place: 9, ..done(1) });
}

#[tokio::test]
async fn long_frames_arrive_whole_between_short_ones() {
    let (mut writer, follower) = connected_pair(5).await;
    let long = "x".repeat(20 << 20);
    for (number, text) in ["short", &long, "short"].into_iter().enumerate() {
        follower.hop.ask(5, ask(number as u64, text));
    }
    for (number, text) in ["short", &long, "short"].into_iter().enumerate() {
        assert!(writer.next_ask().await == ask(number as u64, text), "frame {number}");
    }
}

#[tokio::test]
async fn notes_arrive_and_idle_frames_are_not_reported() {
    let (mut writer, follower) = connected_pair(5).await;
    let notes = Notes { with_readers: vec![AgentId(4)], ..Notes::default() };
    follower.hop.note(notes.clone());
    assert_eq!(writer.next().await, Event::Noted(follower.id, notes));
    assert_eq!(writer.events_for(Duration::from_millis(1_200)).await, []);
}

#[tokio::test]
async fn an_idle_writer_repeats_its_head() {
    let (writer, mut follower) = connected_pair(5).await;
    let head = timeout(WAIT, follower.received.recv()).await.expect("a head arrives");
    assert_eq!(head, Some(Event::Announced(5, writer.events.head)));
}

#[tokio::test]
async fn the_newest_head_arrives_and_none_comes_after_a_newer_one() {
    let (writer, mut follower) = connected_pair(5).await;
    let head = |number: u64| Head { number: 1_000 + number, now: Timestamp(0) };
    for number in 0..10_000 {
        writer.hop.announce(5, place(head(number).number), Timestamp(0), None);
    }
    let mut numbers = Vec::new();
    while numbers.last() != Some(&head(9_999).number) {
        match timeout(WAIT, follower.received.recv()).await.expect("a head arrives") {
            Some(Event::Announced(5, head)) => numbers.push(head.number),
            other => panic!("expected a head, got {other:?}"),
        }
    }
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(numbers.len() < 5_000, "heads that were not sent are replaced: {}", numbers.len());
}

#[tokio::test]
async fn batches_arrive_in_order_and_a_long_one_is_only_announced() {
    let (writer, mut follower) = connected_pair(5).await;
    let record = |length: usize| BatchRecord { format: 1, body: vec![7; length] };
    let sent = [(1, 10), (2, SENT_BATCH_BYTES_MAX), (3, 0)];
    for (number, length) in sent {
        writer.hop.announce(5, place(number), Timestamp(9), Some(record(length)));
        writer.hop.announce(4, place(number), Timestamp(9), Some(record(length)));
    }
    for (number, length) in sent {
        let (place, now, record) = (place(number), Timestamp(9), record(length));
        let batch = CommittedBatch { place, epoch: 5, now, record };
        assert_eq!(follower.next().await, Event::Received(batch));
    }
    writer.hop.announce(5, place(4), Timestamp(9), Some(record(SENT_BATCH_BYTES_MAX + 1)));
    let long = Event::Announced(5, Head { number: 4, now: Timestamp(9) });
    loop {
        match timeout(WAIT, follower.received.recv()).await.expect("a head arrives") {
            Some(event) if event == long => return,
            // An idle writer repeats its own.
            Some(Event::Announced(..)) => {}
            other => panic!("expected a head, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_for_another_epoch_or_node_is_not_sent() {
    let (mut writer, mut follower) = connected_pair(5).await;
    follower.hop.ask(4, ask(1, "earlier epoch"));
    follower.hop.ask(6, ask(2, "later epoch"));
    follower.hop.ask(5, ask(3, "this epoch"));
    assert_eq!(writer.next_ask().await.number, 3);
    writer.hop.reply(follower.id, 4, done(1));
    writer.hop.reply(NodeId(99), 5, done(2));
    writer.hop.reply(follower.id, 5, done(3));
    assert_eq!(follower.next_reply().await, done(3));
}

#[tokio::test]
async fn a_call_gets_its_own_answer() {
    let (writer, follower) = connected_pair(5).await;
    let calls = (0..100_u8).map(|byte| follower.hop.call(vec![byte]));
    for (byte, call) in calls.collect::<Vec<_>>().into_iter().enumerate().rev() {
        assert_eq!(call.await, Some(vec![byte as u8]));
    }
    *writer.events.call_answer.lock() = CallAnswer::Nothing;
    let began = Instant::now();
    assert_eq!(follower.hop.call(vec![1]).await, None);
    assert!(began.elapsed() < CALL_TIMEOUT, "no answer is an answer, too");
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over_or_its_connection() {
    let (writer, follower) = connected_pair(5).await;
    *writer.events.call_answer.lock() = CallAnswer::Never;
    let began = Instant::now();
    assert_eq!(follower.hop.call(vec![1]).await, None);
    assert!(began.elapsed() >= CALL_TIMEOUT);
    let began = Instant::now();
    let call = follower.hop.call(vec![1]);
    follower.hop.lead(6);
    assert_eq!(call.await, None);
    assert!(began.elapsed() < CALL_TIMEOUT);
    assert_eq!(follower.hop.call(vec![1]).await, None, "a writer has no writer to ask");
}

#[tokio::test]
async fn calls_over_the_limit_get_no_answer_until_others_end() {
    let (writer, follower) = connected_pair(5).await;
    *writer.events.call_answer.lock() = CallAnswer::Never;
    let mut calls: Vec<_> = (0..CALLS_MAX).map(|_| follower.hop.call(vec![1])).collect();
    let began = Instant::now();
    assert_eq!(follower.hop.call(vec![1]).await, None);
    assert!(began.elapsed() < CALL_TIMEOUT);
    // The writer still has all of them, and it has the same limit; so the answer is that there is
    // none, but it comes from the writer.
    calls.pop();
    assert_eq!(follower.hop.call(vec![1]).await, None);
}
