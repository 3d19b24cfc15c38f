//! Endpoints that hang, respond slowly, or never end their response (T26).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use crate::kit::{Behaviour, Worker, eventually};

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Hangs,
    DripsHead,
    DripsBody,
    EndlessHead,
    EndlessBody,
    EndlessChunks,
    PromisesMuch,
    NotHttp,
    Resets,
}

const MANNERS: [Manner; 9] = [
    Manner::Hangs,
    Manner::DripsHead,
    Manner::DripsBody,
    Manner::EndlessHead,
    Manner::EndlessBody,
    Manner::EndlessChunks,
    Manner::PromisesMuch,
    Manner::NotHttp,
    Manner::Resets,
];

/// Jobs for each of them.
const JOBS: usize = 20;
/// More than all buffers between, and less than a client that keeps reading would take.
const ENDLESS_MAX: usize = 64 << 20;

/// An endpoint on its own address, and the most bytes of its response that were read.
struct Receiver {
    url: String,
    calls: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Receiver {
    async fn open(last: usize, manner: Manner) -> Self {
        // Endpoints on one host share its connection limit, so each has its own address.
        let listener = TcpListener::bind(format!("127.0.1.{last}:0")).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let this = Self { url, calls: Arc::default(), over: Arc::default(), most: Arc::default() };
        let (calls, over, most) =
            (Arc::clone(&this.calls), Arc::clone(&this.over), Arc::clone(&this.most));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                calls.fetch_add(1, Ordering::SeqCst);
                let (over, most) = (Arc::clone(&over), Arc::clone(&most));
                tokio::spawn(async move {
                    let wrote = serve(stream, manner).await;
                    most.fetch_max(wrote, Ordering::SeqCst);
                    over.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        this
    }
}

/// Responds until the hub closes the connection; returns the bytes sent.
async fn serve(mut stream: TcpStream, manner: Manner) -> usize {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let mut request = [0; 4_096];
    let _ = stream.read(&mut request).await;
    let pause = Duration::from_millis(30);
    let drip = [b'x'];
    let large = [b'x'; 16 << 10];
    let lines = "x-more: and more\r\n".repeat(500);
    let chunk = [b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat();
    let (begin, again, pause): (String, &[u8], _) = match manner {
        Manner::Hangs => (String::new(), b"", Some(pause)),
        Manner::DripsHead => (format!("{OK}x-slow: "), &drip, Some(pause)),
        Manner::DripsBody => (format!("{OK}content-length: 100000\r\n\r\n"), &drip, Some(pause)),
        Manner::EndlessHead => (OK.to_owned(), lines.as_bytes(), None),
        Manner::EndlessBody => (format!("{OK}connection: close\r\n\r\n"), &large, None),
        Manner::EndlessChunks => (format!("{OK}transfer-encoding: chunked\r\n\r\n"), &chunk, None),
        Manner::PromisesMuch => {
            (format!("{OK}content-length: 9999999999999\r\n\r\n"), &large, None)
        }
        Manner::NotHttp => (String::new(), &large, None),
        Manner::Resets => return 0,
    };
    let mut wrote = 0;
    if stream.write_all(begin.as_bytes()).await.is_err() {
        return wrote;
    }
    loop {
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        let gone = async { stream.read(&mut request).await.map_or(true, |length| length == 0) };
        if again.is_empty() {
            match gone.await {
                true => return wrote,
                false => continue,
            }
        }
        if wrote > ENDLESS_MAX || stream.write_all(again).await.is_err() {
            return wrote;
        }
        wrote += again.len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_misbehaves_costs_little_and_keeps_no_other_from_its_work() {
    let process = HubProcess::open(&[
        ("egress.timeout", "2s"),
        ("egress.connect_timeout", "1s"),
        ("registry.sync_wait", "1ms"),
    ]);
    let bystander = Bystander::arrive(&process).await;
    let requester = process.agent("requester", "asks", None).await;
    let before = process.memory();
    let mut bad = Vec::new();
    for (at, manner) in MANNERS.into_iter().enumerate() {
        let receiver = Receiver::open(at + 1, manner).await;
        let worker = process.agent(&format!("{manner:?}"), "bad", Some(&receiver.url)).await;
        bad.push((manner, receiver, worker));
    }
    let prompt = Worker::start(Behaviour::Succeed(json!({"r": 1}), "0")).await;
    let good = process.agent("good", "good", Some(&prompt.url)).await;
    let hire = async |of: &crate::relay::kit::Peer, skill: &str| {
        let job = json!({"orchestrator_id": requester.id, "skill_name": skill, "input_data": {},
            "budget": 0});
        let path = format!("/registry/agents/{}/jobs", of.id);
        process.post(&path, Some(&requester.key), &job).await
    };
    for n in 1..=JOBS {
        for (manner, _, worker) in &bad {
            let reply = hire(worker, "bad").await;
            // Pending, failed or unreachable: never an internal error of the hub.
            let fine = [200, 202, 502, 503].contains(&reply.status);
            assert!(fine, "{manner:?}: {} {}", reply.status, reply.text);
        }
        let reply = hire(&good, "good").await;
        assert!(reply.status < 300, "{}", reply.text);
        prompt.heard(n).await;
    }
    for (manner, receiver, _) in &bad {
        // Each one was called, and the hub closed the connection.
        let ended = || receiver.over.load(Ordering::SeqCst);
        eventually(async || receiver.calls.load(Ordering::SeqCst) > 0 && ended() > 0).await;
        let most = receiver.most.load(Ordering::SeqCst);
        assert!(most < ENDLESS_MAX, "{manner:?} could send {most} bytes");
    }
    process.assert_within(before, 128 << 20, "endpoints that misbehave");
    bystander.leave().await;
}
