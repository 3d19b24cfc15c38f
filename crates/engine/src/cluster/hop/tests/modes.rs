//! Which node follows which, and when connections end for it.

use std::time::Instant;

use super::*;
use crate::cluster::hop::{CALL_TIMEOUT, LEAD_WAIT_MAX};

#[tokio::test]
async fn a_node_of_another_epoch_is_refused() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut earlier = TestNode::start(2);
    earlier.follow(4, writer.address);
    assert_eq!(earlier.next().await, Event::Refused(4), "its writer writes no longer");
    // A later epoch may be about to begin.
    let mut connection = connect_by_hand(writer.address).await;
    let began = Instant::now();
    connection.write_frame(&Frame::Hello(hello(3, 6))).await.expect("it is written");
    assert_closed(&mut connection).await;
    assert!(began.elapsed() >= LEAD_WAIT_MAX);
    assert_eq!(writer.events_for(Duration::from_millis(50)).await, []);
}

#[tokio::test]
async fn nodes_that_learn_of_a_writer_before_it_writes_are_not_refused() {
    let (writer, mut follower) = (TestNode::start(1), TestNode::start(2));
    writer.follow(4, "127.0.0.1:1".parse().expect("an address"));
    follower.follow(5, writer.address);
    assert_eq!(follower.events_for(Duration::from_millis(300)).await, []);
    // It has the lease, but its lane is not open yet.
    writer.hop.lead(5);
    assert_eq!(follower.events_for(Duration::from_millis(100)).await, []);
    writer.events.leading.store(5, Ordering::SeqCst);
    assert_eq!(follower.next().await, Event::Connected(5, writer.events.head));
}

#[tokio::test]
async fn a_node_that_follows_the_same_epoch_is_not_its_writer() {
    let (node, mut follower) = (TestNode::start(1), TestNode::start(2));
    node.follow(5, "127.0.0.1:1".parse().expect("an address"));
    follower.follow(5, node.address);
    assert_eq!(follower.next().await, Event::Refused(5));
}

#[tokio::test]
async fn a_second_connection_of_a_node_replaces_the_first() {
    let mut writer = TestNode::start(1);
    writer.lead(5);
    let mut first = say_hello(writer.address, 2, 5).await;
    first.write_frame(&Frame::Ask(ask(1, "text"))).await.expect("it is written");
    assert_eq!(writer.next_ask().await.number, 1);
    let mut second = say_hello(writer.address, 2, 5).await;
    assert_eq!(writer.next().await, Event::Left(NodeId(2)));
    assert_closed(&mut first).await;
    writer.hop.reply(NodeId(2), 5, done(1));
    let reply = second.input.read_frame(FRAME_BYTES_MAX).await.expect("a reply");
    assert_eq!(reply, Frame::Reply(done(1)));
    assert_eq!(writer.events_for(Duration::from_millis(50)).await, []);
}

#[tokio::test]
async fn to_follow_the_same_writer_again_changes_nothing() {
    let (mut writer, mut follower) = connected_pair(5).await;
    follower.follow(5, writer.address);
    let beat = Lease { epoch: 5, address: writer.address.to_string(), beat: 9, ..Lease::default() };
    follower.hop.follow(&beat);
    writer.lead(5);
    assert_eq!(follower.events_for(Duration::from_millis(200)).await, []);
    assert_eq!(writer.events_for(Duration::from_millis(50)).await, []);
}

#[tokio::test]
async fn to_follow_another_writer_ends_the_connection_at_once() {
    let (mut old, mut follower) = connected_pair(5).await;
    let new = TestNode::start(3);
    new.lead(6);
    follower.follow(6, new.address);
    follower.hop.ask(5, ask(1, "too late"));
    assert_eq!(old.next().await, Event::Left(follower.id));
    assert_eq!(follower.next().await, Event::Connected(6, new.events.head));
    follower.hop.ask(6, ask(2, "in time"));
    assert_eq!(old.events_for(Duration::from_millis(50)).await, []);
}

#[tokio::test]
async fn a_writer_that_follows_closes_what_it_accepted() {
    let (mut writer, mut follower) = connected_pair(5).await;
    let call = follower.hop.call(vec![1]);
    assert_eq!(call.await, Some(vec![1]));
    follower.lead(6);
    let mut new = TestNode::start(3);
    new.follow(6, follower.address);
    assert!(matches!(new.next().await, Event::Connected(6, _)));
    assert_eq!(writer.next().await, Event::Left(follower.id));

    writer.follow(6, follower.address);
    assert_eq!(writer.next().await, Event::Connected(6, follower.events.head));
    let mut late = TestNode::start(4);
    late.follow(5, writer.address);
    assert_eq!(late.next().await, Event::Refused(5));

    follower.follow(7, writer.address);
    writer.lead(7);
    let ends = [follower.next().await, follower.next().await];
    assert!(ends.contains(&Event::Left(new.id)) && ends.contains(&Event::Left(writer.id)));
    assert_eq!(new.next().await, Event::Refused(6));
    assert_eq!(follower.next().await, Event::Connected(7, writer.events.head));
}

#[tokio::test]
async fn a_later_epoch_of_the_same_writer_needs_new_connections() {
    let (mut writer, mut follower) = connected_pair(5).await;
    writer.lead(6);
    assert_eq!(writer.next().await, Event::Left(follower.id));
    assert_eq!(follower.next().await, Event::Refused(5));
    follower.follow(6, writer.address);
    loop {
        match follower.next().await {
            Event::Refused(5) => {}
            event => break assert_eq!(event, Event::Connected(6, writer.events.head)),
        }
    }
}

#[tokio::test]
async fn a_lease_without_a_writer_is_not_dialled() {
    let (mut writer, mut follower) = connected_pair(5).await;
    follower.hop.follow(&Lease { epoch: 5, ..Lease::default() });
    assert_eq!(writer.next().await, Event::Left(follower.id));
    assert_eq!(follower.events_for(Duration::from_millis(200)).await, []);
}

#[tokio::test]
async fn a_hop_that_is_stopped_or_dropped_ends_everything() {
    let (writer, mut follower) = connected_pair(5).await;
    writer.hop.stop();
    assert_eq!(follower.next().await, Event::Refused(5));
    writer.hop.lead(6);
    follower.follow(6, writer.address);
    while follower.next().await != Event::Refused(6) {}

    let (mut writer, follower) = connected_pair(5).await;
    let (events, id) = (follower.events.clone(), follower.id);
    let call = follower.hop.call(vec![1]);
    drop(follower);
    assert_eq!(writer.next().await, Event::Left(id));
    timeout(CALL_TIMEOUT, call).await.expect("the call ends");
    let tasks_ended = async {
        while Arc::strong_count(&events) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(WAIT, tasks_ended).await.expect("the tasks let go of the events");
}
