//! More connections than slots, and listeners that fail.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::kit::{Begun, Hub, LONG, SHORT, dispatcher, get_more, get_request, patient};
use crate::edge::ConnectionThreads;
use crate::edge::Settings;
use crate::edge::accept::{Listener, run_accept_loop};
use crate::shutdown::Shutdown;
use crate::telemetry::Metrics;

/// Error 24 of Linux and macOS: this process has no file descriptors left.
const EMFILE: i32 = 24;

#[tokio::test]
async fn two_thousand_connections_of_one_peer_leave_the_others_their_place() {
    let hub = Hub::start(Settings { max_connections_per_address: 100, ..patient() });
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(hub.connect_from(2).await.expect("there is room"));
    }
    hub.until_open(100).await;
    let mut known = hub.connect().await;
    for wave in 0..19 {
        let mut refused = Vec::new();
        for _ in 0..100 {
            // The OS may be slow to release what the hub has closed.
            refused.extend(hub.connect_from(2).await);
        }
        known.send(&get_more("/hello")).await;
        known.until("hello").await;
        assert!(hub.metrics.connection_gauge().get() <= 101);
        if wave % 6 == 0 {
            hub.assert_well().await;
        }
    }
    hub.until_open(101).await;
    drop(held);
    hub.until_open(1).await;
    let mut again = hub.connect_from(2).await.expect("there is room again");
    again.send(&get_request("/hello")).await;
    assert!(again.rest().await.ends_with("hello"));
}

#[tokio::test]
async fn a_full_hub_goes_on_serving_those_it_has() {
    let hub = Hub::start(Settings { max_connections: 100, ..patient() });
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(hub.connect().await);
    }
    hub.until_open(100).await;
    for (turn, client) in held.iter_mut().enumerate() {
        for last in [3, 4, 5] {
            drop(hub.connect_from(last).await);
        }
        client.send(&get_more("/hello")).await;
        assert!(client.until("hello").await.starts_with("HTTP/1.1 200"), "{turn}");
    }
    held.truncate(99);
    hub.until_open(99).await;
    hub.assert_well().await;
}

#[tokio::test]
async fn who_finds_no_place_is_told_when_to_come_back() {
    let hub = Hub::start(Settings { max_connections: 1, ..patient() });
    let held = hub.connect().await;
    hub.until_open(1).await;
    let answer = hub.ask(&get_more("/hello")).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("\"retryable\":true"), "{answer}");
    drop(held);
    hub.until_open(0).await;
    hub.assert_well().await;
}

#[tokio::test]
async fn a_full_hub_still_says_how_it_is_and_nothing_else() {
    let kept = Settings { health_connections: 8, health_connections_per_address: 8, ..patient() };
    let hub = Hub::start(Settings { max_connections: 1, ..kept });
    let held = hub.connect().await;
    hub.until_open(1).await;
    for _ in 0..20 {
        // One request per connection: the hub closes it although the client did not ask for that.
        let answer = hub.ask(&get_more("/health")).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("well"), "{answer}");
    }
    let answer = hub.ask(&get_more("/hello")).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("hello says"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let body = "x".repeat(1 << 20);
    let head = format!("POST /keyed HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = hub.ask(&(head + &body)).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("keyed says"), "{answer}");
    assert_eq!(hub.metrics.connection_gauge().get(), 1);
    drop(held);
    hub.until_open(0).await;
    hub.assert_well().await;
}

#[tokio::test]
async fn one_peer_cannot_take_all_places_that_are_kept_for_questions_about_health() {
    let kept = Settings { health_connections: 8, health_connections_per_address: 2, ..patient() };
    let hub = Hub::start(Settings { max_connections_per_address: 1, ..kept });
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(hub.connect_from(2).await.expect("the server accepts"));
    }
    let mut refused = hub.connect_from(2).await.expect("the server accepts");
    refused.send(&get_more("/health")).await;
    assert!(refused.rest().await.starts_with("HTTP/1.1 503"));
    let _held = hub.connect_from(3).await.expect("the server accepts");
    let mut other = hub.connect_from(3).await.expect("the server accepts");
    other.send(&get_more("/health")).await;
    assert!(other.rest().await.ends_with("well"));
}

#[tokio::test]
async fn who_is_silent_in_a_place_kept_for_health_loses_it_soon() {
    let kept = Settings { health_connections: 1, health_connections_per_address: 1, ..patient() };
    let hub = Hub::start(Settings { max_connections: 1, health_timeout: SHORT, ..kept });
    let _held = hub.connect().await;
    hub.until_open(1).await;
    let mut silent = hub.connect().await;
    assert_eq!(silent.rest().await, "");
    // The slot is free shortly after the client has seen the end.
    let answered = async { while !hub.ask(&get_more("/health")).await.ends_with("well") {} };
    timeout(LONG, answered).await.expect("the slot becomes free in time");
}

struct Jammed {
    listener: TcpListener,
    failures: AtomicU32,
}

impl Listener for Jammed {
    async fn accept_next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self.failures.fetch_sub(1, Ordering::Relaxed) {
            0 => self.failures.store(0, Ordering::Relaxed),
            left if left % 2 == 0 => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => return Err(io::Error::from_raw_os_error(EMFILE)),
        }
        self.listener.accept().await
    }
}

#[tokio::test]
async fn a_door_that_jams_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (trigger, shutdown) = Shutdown::manual();
    let serving = tokio::spawn(async move {
        let door = Jammed { listener, failures: AtomicU32::new(6) };
        let served = Arc::new(dispatcher(address, &[], Metrics::new(Vec::new), &Begun::default()));
        let (threads, metrics) = (ConnectionThreads::of_caller(), Metrics::new(Vec::new));
        run_accept_loop(door, &threads, served, patient(), &metrics, shutdown).await;
    });
    let mut client =
        super::kit::Client(TcpStream::connect(address).await.expect("the server accepts"));
    client.send(&get_request("/hello")).await;
    assert!(client.rest().await.ends_with("hello"));
    trigger.trigger();
    serving.await.expect("the server stops without an error");
}

#[tokio::test]
async fn a_jammed_door_does_not_keep_the_hub_from_stopping() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (trigger, shutdown) = Shutdown::manual();
    let serving = tokio::spawn(async move {
        let door = Jammed { listener, failures: AtomicU32::new(u32::MAX) };
        let served = Arc::new(dispatcher(address, &[], Metrics::new(Vec::new), &Begun::default()));
        let (threads, metrics) = (ConnectionThreads::of_caller(), Metrics::new(Vec::new));
        run_accept_loop(door, &threads, served, patient(), &metrics, shutdown).await;
    });
    tokio::task::yield_now().await;
    trigger.trigger();
    serving.await.expect("the server stops without an error");
}
