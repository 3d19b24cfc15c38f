//! Thousands of open inboxes: most of them idle, many of them never read.

use std::net::SocketAddr;

use futures_util::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use super::room::Room;
use crate::kit::in_time;
use crate::relay::kit::Peer;

const IDLE: usize = 5_000;
const STALLED: usize = 1_000;
/// Agents that own the idle streams.
const AGENTS: usize = 100;
/// Memory limit of one idle stream, in a hub built without optimisation.
const IDLE_BYTES: u64 = 40 << 10;
/// Memory limit of one stalled reader (T45).
const STALLED_BYTES: u64 = 256 << 10;
/// Connections opened concurrently.
const AT_ONCE: usize = 64;
/// Agents that do not read, and the bytes that wait for each: more than the socket buffers take.
const SLEEPERS: usize = 25;
const LETTERS: usize = 8;
const LETTER_CHARS: usize = 60_000;

/// Opens an inbox on a raw connection and reads only its beginning.
async fn open(address: SocketAddr, key: &str, buffer: Option<u32>) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes).expect("a small buffer");
    }
    let mut stream = socket.connect(address).await.expect("a connection");
    let head = format!(
        "GET /relay/agent/inbox HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.expect("an answer");
    assert_eq!(&begun, b"HTTP/1.1 200", "it is opened");
    stream
}

async fn everybody(process: &HubProcess, count: usize) -> Vec<Peer> {
    let names = (0..count).map(|n| format!("crowd{n}"));
    let joined = stream::iter(names).map(async |name| process.join(&name).await);
    joined.buffered(AT_ONCE).collect().await
}

async fn open_all(
    process: &HubProcess,
    of: &[Peer],
    count: usize,
    buffer: Option<u32>,
) -> Vec<TcpStream> {
    let keys = of.iter().map(|peer| peer.key.as_str()).cycle().take(count);
    let opened = stream::iter(keys).map(|key| in_time(open(process.address, key, buffer)));
    opened.buffer_unordered(AT_ONCE).collect().await
}

/// Reads until this text has arrived.
async fn hears(stream: &mut TcpStream, text: &str) {
    let (mut all, mut part) = (Vec::new(), [0; 4_096]);
    while !String::from_utf8_lossy(&all).contains(text) {
        let length = stream.read(&mut part).await.expect("the stream is open");
        assert!(length > 0, "the stream ended without {text}");
        all.extend_from_slice(&part[..length]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_streams_cost_little_and_each_still_gets_its_messages() {
    let room = Room::of(IDLE).await;
    let process = HubProcess::open(&[]);
    let bystander = Bystander::arrive(&process).await;
    let crowd = everybody(&process, AGENTS).await;
    let count = room.count;
    let before = process.memory();
    let mut streams = open_all(&process, &crowd, count, None).await;
    bystander.assert_well().await;
    process.assert_within(before, count as u64 * IDLE_BYTES, &format!("{count} idle streams"));
    // Every stream of every agent receives what is sent to it.
    let sender = process.join("sender").await;
    for (n, peer) in crowd.iter().enumerate() {
        process.say(&sender, peer, &format!("hello number {n}.")).await.expect(200);
    }
    let mut heard = 0;
    // Streams were opened concurrently, in any order: each receives one of the texts.
    for stream in streams.iter_mut().step_by(17) {
        in_time(hears(stream, "hello number ")).await;
        heard += 1;
    }
    assert_eq!(heard, count.div_ceil(17));
    drop(streams);
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_stalled_readers_use_bounded_memory_and_slow_no_other() {
    let room = Room::of(STALLED).await;
    let process = HubProcess::open(&[]);
    let bystander = Bystander::arrive(&process).await;
    let crowd = everybody(&process, SLEEPERS).await;
    let sender = process.join("sender").await;
    let text = "x".repeat(LETTER_CHARS);
    let letters = crowd.iter().flat_map(|peer| (0..LETTERS).map(move |_| peer));
    let (process_ref, sender_ref, text) = (&process, &sender, &text);
    let sent = stream::iter(letters).map(async |peer| {
        process_ref.say(sender_ref, peer, text).await.expect(202);
    });
    sent.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let count = room.count;
    let before = process.memory();
    let stalled = open_all(&process, &crowd, count, Some(4_096)).await;
    bystander.assert_well().await;
    // New messages reach the active readers while all the others are stalled.
    let reader = process.join("reader").await;
    let mut reads = in_time(open(process.address, &reader.key, None)).await;
    for n in 0..20 {
        let text = format!("message {n}.");
        process.say(&sender, &reader, &text).await.expect(200);
        in_time(hears(&mut reads, &text)).await;
    }
    let allowance = count as u64 * STALLED_BYTES;
    process.assert_within(before, allowance, &format!("{count} stalled readers"));
    drop(stalled);
    bystander.leave().await;
}
