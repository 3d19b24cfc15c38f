//! Slow or unreachable agents do not affect others: a stream that is not read, an endpoint that
//! does not answer. (Agents that never respond are in `ask_mode`, closed endpoints in `push`.)

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use super::kit::{Hub, Node};
use crate::kit::{Behaviour, Worker, in_time, together};

/// More than all buffers between the hub and a reader hold.
const RESULTS: usize = 120;
const LARGE: usize = 100_000;
/// Far more than the limit per host, and fewer than the limit in total.
const MANY: usize = 100;

/// A stream on a raw connection that is not read.
async fn unread(hub: &Hub, node: &Node) -> BufReader<TcpStream> {
    let address: SocketAddr = hub.url.trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut socket = BufReader::new(socket.connect(address).await.expect("a connection"));
    let head = format!(
        "GET /openclaw/stream?watch=all HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n",
        node.key
    );
    socket.write_all(head.as_bytes()).await.expect("it is sent");
    let mut said = String::new();
    while !said.ends_with("\r\n\r\n") {
        assert!(in_time(socket.read_line(&mut said)).await.expect("a head") > 0, "{said}");
    }
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_stream_slows_no_other_and_loses_nothing() {
    let hub = Hub::serve(&[]).await;
    let (sleeper, asker) = (hub.node("sleeper").await, hub.node("asker").await);
    let worker = hub.node("worker").await;
    let stalled = unread(&hub, &sleeper).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut wanted = Vec::new();
    for n in 0..RESULTS {
        let large = json!({"output_data": {"r": format!("{n} {}", "x".repeat(LARGE))}});
        let theirs = hub.accepted(&sleeper, &worker, json!({})).await;
        hub.result(&theirs, large).await.expect(200);
        wanted.push(theirs.id);
        // Other agents get theirs before the next request.
        let work = hub.accepted(&asker, &worker, json!({})).await;
        hub.result(&work, json!({})).await.expect(200);
        let told = hears.until("collaboration_result").await;
        assert_eq!(told.data["collaboration_id"], work.id);
    }
    let number = hub.engine.with_world(|world| {
        world.agent_by_alias(rialto_protocols::openclaw::ID, &sleeper.id).expect("an agent")
    });
    let head = hub.engine.with_world(|world| world.inbox(number).head);
    assert!(hub.engine.read_position(number) < head, "the reader was not slow");
    // Another connection of the same agent gets everything, in order.
    let mut other = hub.resume(&sleeper, "", Some("0-0")).await;
    for id in wanted {
        let told = other.until("collaboration_result").await;
        assert_eq!(told.data["collaboration_id"], id);
    }
    drop(stalled);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_answer_delays_no_other() {
    let hub = Hub::serve(&[("egress.timeout", "30s")]).await;
    let asker = hub.node("asker").await;
    // A separate host, since agents on one host share its connection limit.
    let host = tokio::net::TcpListener::bind("127.0.0.2:0").await.expect("a port");
    let silent = Worker::at(host, Behaviour::Dawdle(Duration::from_secs(600)));
    let prompt = Worker::start(Behaviour::Say(200, String::new())).await;
    let slow = hub.node_with("slow", json!({"endpoint": silent.url})).await;
    let quick = hub.node_with("quick", json!({"endpoint": prompt.url})).await;
    together((0..MANY).map(|_| hub.accepted(&asker, &slow, json!({})))).await;
    silent.heard(1).await;
    for n in 1..=10 {
        let work = hub.accepted(&asker, &quick, json!({})).await;
        prompt.heard(n).await;
        hub.result(&work, json!({})).await.expect(200);
    }
    drop(silent);
    hub.0.stop().await;
}
