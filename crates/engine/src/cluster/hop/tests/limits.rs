//! What a node may send without an answer, and a node that does not read.

use rialto_core::refusal::Refusal;

use super::*;
use crate::cluster::hop::{OUTGOING_BYTES_MAX, UNANSWERED_MAX};

fn overloaded(number: u64) -> Reply {
    Reply { number, place: 0, result: ReplyResult::Overloaded }
}

#[tokio::test]
async fn a_node_has_a_limited_number_of_commands_without_a_reply() {
    let (mut writer, mut follower) = connected_pair(5).await;
    let limit = UNANSWERED_MAX as u64;
    for number in 0..limit + 2 {
        follower.hop.ask(5, ask(number, "text"));
    }
    assert_eq!(follower.next_reply().await, overloaded(limit));
    assert_eq!(follower.next_reply().await, overloaded(limit + 1));
    for number in 0..limit {
        assert_eq!(writer.next_ask().await.number, number);
    }
    // The same command again takes no second place.
    follower.hop.ask(5, ask(0, "text"));
    assert_eq!(writer.next_ask().await.number, 0);
    // A reply frees a place, and so does a command that says which ones are answered.
    writer.hop.reply(follower.id, 5, done(7));
    assert_eq!(follower.next_reply().await, done(7));
    follower.hop.ask(5, ask(limit + 2, "text"));
    follower.hop.ask(5, ask(limit + 3, "text"));
    assert_eq!(writer.next_ask().await.number, limit + 2);
    assert_eq!(follower.next_reply().await, overloaded(limit + 3));
    follower.hop.ask(5, Ask { low: 2, ..ask(limit + 4, "text") });
    assert_eq!(writer.next_ask().await.number, limit + 4);
}

#[tokio::test]
async fn a_command_for_which_the_writer_has_no_room_is_replied_overloaded() {
    let (writer, mut follower) = connected_pair(5).await;
    writer.events.is_full.store(true, Ordering::SeqCst);
    for number in 0..2 * UNANSWERED_MAX as u64 {
        follower.hop.ask(5, ask(number, "text"));
        assert_eq!(follower.next_reply().await, overloaded(number));
    }
}

#[tokio::test]
async fn a_node_that_does_not_read_is_closed_and_the_others_are_served() {
    let (mut writer, mut follower) = connected_pair(5).await;
    let _stuck = say_hello(writer.address, 3, 5).await;
    let part = 4 << 20;
    let result = ReplyResult::Refused(Refusal::NoSuchOwner { name: "x".repeat(part) });
    let reply = Reply { number: 1, place: 1, result };
    // Buffers of the system hold some more.
    for _ in 0..OUTGOING_BYTES_MAX / part + 10 {
        writer.hop.reply(NodeId(3), 5, reply.clone());
        tokio::task::yield_now().await;
    }
    assert_eq!(writer.next().await, Event::Left(NodeId(3)));
    follower.hop.ask(5, ask(1, "text"));
    assert_eq!(writer.next_ask().await.number, 1);
    writer.hop.reply(follower.id, 5, done(1));
    assert_eq!(follower.next_reply().await, done(1));
}
