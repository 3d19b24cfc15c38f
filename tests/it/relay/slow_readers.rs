//! A reader that does not read, or an endpoint that does not answer, slows no other agent and loses
//! nothing (R64, G7). The edge closes such a reader in the end, which is tested there.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use super::kit::{Event, Peer, events, turn};
use crate::kit::{Behaviour, TestHub, Worker, in_time};

/// More than all buffers between the hub and a reader hold.
const MESSAGES: u64 = 200;
const LARGE: usize = 60_000;

/// An inbox on a raw connection, read only on request.
struct Stalled {
    socket: BufReader<TcpStream>,
    bytes: Vec<u8>,
}

impl Stalled {
    async fn open(hub: &TestHub, peer: &Peer) -> Self {
        let address: SocketAddr =
            hub.url.trim_start_matches("http://").parse().expect("an address");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let mut socket = BufReader::new(socket.connect(address).await.expect("a connection"));
        let request = format!(
            "GET /agent/inbox HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n",
            peer.key
        );
        socket.write_all(request.as_bytes()).await.expect("it is sent");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(in_time(socket.read_line(&mut head)).await.expect("a head") > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Self { socket, bytes: Vec::new() }
    }

    /// The events of the next chunk of the stream; `None` once it was closed.
    async fn read(&mut self) -> Option<Vec<Event>> {
        let mut size = String::new();
        in_time(self.socket.read_line(&mut size)).await.ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut piece = vec![0; size + 2];
        in_time(self.socket.read_exact(&mut piece)).await.ok()?;
        self.bytes.extend_from_slice(&piece[..size]);
        Some(events(&mut self.bytes))
    }
}

/// The text of one message; large, and different each time.
fn text(n: u64) -> String {
    format!("{n} {}", "x".repeat(LARGE))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader_slows_no_other_and_loses_nothing() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join("carol@chorus").await;
    let mut stalled = Stalled::open(&hub, &bob).await;
    let mut carols = hub.inbox(&carol).await;
    for n in 1..=MESSAGES {
        let said = turn(&alice.id, &text(n), &n.to_string(), 1);
        hub.mail(&alice, &bob, &said).await;
        hub.mail(&alice, &carol, &said).await.expect(200);
        // The other reader has each one before the next is sent.
        let event = carols.message().await;
        assert_eq!((event.position(), event.said() == text(n)), (n, true));
    }
    // Most of it is in the store, not in memory: the hub does not read ahead for a stalled reader.
    let read_to = hub.engine.read_position(hub.number(&bob));
    assert!(read_to < MESSAGES, "the reader was not slow");

    // Another connection of the same agent is not delayed by the first.
    let mut other = hub.inbox_at(&bob, "", Some("0")).await;
    for n in 1..=MESSAGES {
        let event = other.message().await;
        assert_eq!((event.position(), event.said() == text(n)), (n, true));
    }
    // A reader that continues finds every event, in order; one that stalled for too long was
    // closed, and finds what had been sent.
    let mut next = 0;
    while let Some(events) = stalled.read().await.filter(|_| next < MESSAGES / 2) {
        for event in events {
            if event.event == "message" {
                next += 1;
                assert_eq!((event.position(), event.said() == text(next)), (next, true));
            }
        }
    }
    // A closed one resumes where it was.
    drop((stalled, other));
    let mut resumed = hub.inbox_at(&bob, "", Some(&next.to_string())).await;
    for n in next + 1..=MESSAGES {
        let event = resumed.message().await;
        assert_eq!((event.position(), event.said() == text(n)), (n, true));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_answer_delays_only_its_own_sender() {
    let hub = TestHub::serve(&[]).await;
    let silent = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let quick = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let (alice, bob) =
        (hub.join("alice@chorus").await, hub.join_at("bob@chorus", &silent.url).await);
    let carol = hub.join("carol@chorus").await;
    let dave = hub.join_at("dave@chorus", &quick.url).await;
    let mut inbox = hub.inbox(&carol).await;
    let body = super::kit::message(&alice.id, &bob.id, "anybody there?").to_string();
    let request = hub.http.post(format!("{}/messages", hub.url)).bearer_auth(&alice.key).body(body);
    let waiting = tokio::spawn(request.send());
    silent.heard(1).await;
    for n in 0..5 {
        let text = format!("message {n}");
        hub.say(&alice, &carol, &text).await.expect(200);
        assert_eq!(inbox.message().await.said(), text);
        let reply = hub.say(&alice, &dave, &text).await.expect(200);
        assert_eq!(reply.str("/data/delivery"), "delivered");
    }
    // The same recipient can still be reached in its inbox, by others and with pending messages.
    let mut bobs = hub.inbox(&bob).await;
    let reply = hub.say(&carol, &bob, "come here").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    assert_eq!(bobs.texts(2).await, ["anybody there?", "come here"]);
    assert!(!waiting.is_finished());
    waiting.abort();
    hub.stop().await;
}
