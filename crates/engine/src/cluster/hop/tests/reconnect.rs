//! Connections that end, writers that are gone, and links that only lose what is sent.

use std::time::Instant;

use tokio::net::TcpListener;

use super::*;
use crate::cluster::hop::SILENCE_MAX;
use crate::cluster::hop::proxy::{Direction, LinkProxy};

/// A writer behind a proxy, and a node that is connected to it.
async fn pair_with_proxy(epoch: u64) -> (TestNode, TestNode, LinkProxy) {
    let (writer, mut follower) = (TestNode::start(1), TestNode::start(2));
    let proxy = LinkProxy::start(writer.address.to_string()).expect("it starts");
    writer.lead(epoch);
    follower.follow(epoch, proxy.address());
    assert_eq!(follower.next().await, Event::Connected(epoch, writer.events.head));
    (writer, follower, proxy)
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn a_node_connects_again_and_says_so() {
    let (mut writer, mut follower, proxy) = pair_with_proxy(5).await;
    for round in 0..3 {
        proxy.cut();
        assert_eq!(writer.next().await, Event::Left(follower.id));
        proxy.heal();
        while follower.next().await != Event::Connected(5, writer.events.head) {}
        follower.hop.ask(5, ask(round, "text"));
        assert_eq!(writer.next_ask().await.number, round);
    }
}

#[tokio::test]
async fn a_dropped_connection_is_replaced_at_once() {
    let (mut writer, mut follower) = connected_pair(5).await;
    // Longer than `BACKOFF_RESET_AFTER`, so the next attempt is made without a delay.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let _other = say_hello(writer.address, 2, 5).await;
    let began = Instant::now();
    assert_eq!(writer.next().await, Event::Left(follower.id));
    assert_eq!(follower.next().await, Event::Connected(5, writer.events.head));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_address_where_nothing_listens_is_refused_until_a_writer_does() {
    let mut follower = TestNode::start(2);
    follower.follow(5, free_address().await);
    assert_eq!(follower.next().await, Event::Refused(5));
    assert_eq!(follower.next().await, Event::Refused(5));
    let writer = TestNode::start(1);
    writer.lead(6);
    follower.follow(6, writer.address);
    loop {
        match follower.next().await {
            Event::Refused(5) => {}
            event => break assert_eq!(event, Event::Connected(6, writer.events.head)),
        }
    }
}

#[tokio::test]
async fn a_proxy_that_closes_every_connection_at_once_is_a_refusal() {
    let (mut writer, mut follower, proxy) = pair_with_proxy(5).await;
    proxy.cut();
    assert_eq!(follower.next().await, Event::Refused(5));
    assert_eq!(writer.next().await, Event::Left(follower.id));
}

/// Closes the first connections at once and then keeps the others open without an answer.
async fn close_first(count: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        for _ in 0..count {
            drop(listener.accept().await);
        }
        let mut open = Vec::new();
        while let Ok(accepted) = listener.accept().await {
            open.push(accepted);
        }
    });
    address
}

#[tokio::test]
async fn two_quick_closes_are_no_refusal_and_three_are() {
    for (closes, is_refused) in [(1, false), (2, false), (3, true)] {
        let mut follower = TestNode::start(2);
        follower.follow(5, close_first(closes).await);
        let expected: &[Event] = if is_refused { &[Event::Refused(5)] } else { &[] };
        let events = follower.events_for(Duration::from_millis(500)).await;
        assert_eq!(events, expected, "{closes} closes");
    }
}

#[tokio::test]
async fn a_writer_that_only_does_not_answer_is_not_refused() {
    let (writer, proxy_target) = (TestNode::start(1), TestNode::start(3));
    writer.lead(5);
    let proxy = LinkProxy::start(proxy_target.address.to_string()).expect("it starts");
    for direction in [Direction::Both, Direction::ToTarget, Direction::FromTarget] {
        proxy.black_hole(direction);
        let mut follower = TestNode::start(2);
        follower.follow(5, proxy.address());
        assert_eq!(follower.events_for(Duration::from_millis(500)).await, []);
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_on_both_sides_and_replaced_when_the_link_is_healed() {
    for direction in [Direction::ToTarget, Direction::FromTarget] {
        let (mut writer, mut follower, proxy) = pair_with_proxy(5).await;
        proxy.black_hole(direction);
        let began = Instant::now();
        if direction == Direction::ToTarget {
            assert_eq!(writer.next().await, Event::Left(follower.id));
            assert!(began.elapsed() >= SILENCE_MAX - Duration::from_secs(1));
        } else {
            assert_eq!(follower.events_for(SILENCE_MAX + A_MOMENT).await, []);
        }
        proxy.heal();
        while follower.next().await != Event::Connected(5, writer.events.head) {}
    }
}

const A_MOMENT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_slow_link_only_takes_longer() {
    let (mut writer, mut follower, proxy) = pair_with_proxy(5).await;
    proxy.delay(Duration::from_millis(30));
    for number in 0..5 {
        follower.hop.ask(5, ask(number, "text"));
        assert_eq!(writer.next_ask().await.number, number);
        writer.hop.reply(follower.id, 5, done(number));
        assert_eq!(follower.next_reply().await, done(number));
    }
}
