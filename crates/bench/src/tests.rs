//! The load client against the echo: small real runs that check counts, never speed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::connection::RawRequest;
use crate::echo::{EchoServer, EchoWorker};
use crate::load::{self, LoadPlan, Pace, Request, Target};
use crate::message::Messages;
use crate::relay::RelayAgent;

const WORKER: &str = "0b7e1a52-4a39-4d50-9c66-9f0a3c9a7d11";

fn echo() -> EchoServer {
    EchoServer::start(1, EchoWorker { agent_id: WORKER.to_owned(), cost: 0.10 }).unwrap()
}

fn brief(address: SocketAddr) -> LoadPlan {
    LoadPlan {
        connections: 4,
        threads: 2,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(500),
        answer_timeout: Duration::from_secs(10),
        ..LoadPlan::new(address)
    }
}

fn job(connection: usize, n: u64) -> Request {
    let body = json!({
        "job_id": format!("00000000-0000-4000-8000-{:012}", connection as u64 * 1_000_000 + n),
        "orchestrator_id": "5c2c8f0e-8a0f-4f0f-8f56-1d9f9a8b2b77",
        "skill_name": "analyze_text",
        "input_data": {"text": "Revenue rose."},
        "budget": 0.15,
        "timestamp_utc": "2026-02-11T14:15:09Z",
    });
    Request::post("/registry/jobs", body.to_string())
}

#[test]
fn a_closed_loop_counts_what_the_echo_answered() {
    let echo = echo();
    let checked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&checked);
    let measured = load::run(&brief(echo.address()), job, move |status, body| {
        counter.fetch_add(1, Ordering::Relaxed);
        let result: Value = serde_json::from_slice(body).unwrap_or_default();
        status == StatusCode::OK
            && result["agent_id"] == WORKER
            && result["status"] == "SUCCESS"
            && result["output_data"] == json!({"text": "Revenue rose."})
            && result["execution_cost"] == 0.10
            && result["timestamp_utc"] == "2026-02-11T14:15:09Z"
    })
    .unwrap();
    assert_eq!(measured.errors.total(), 0, "{}", measured.errors);
    assert!(measured.good > 0);
    assert!(measured.good <= checked.load(Ordering::Relaxed), "counted more than answered");
    assert_eq!(measured.seconds, 0.5);
    let latency = measured.latency;
    assert!(latency.p50_us > 0.0 && latency.p50_us <= latency.p99_us);
    assert!(latency.p99_us <= latency.max_us);
    assert_eq!((measured.planned_per_second, measured.unsent), (None, 0));
}

#[test]
fn messages_over_raw_connections_are_answered_as_a_hub_would() {
    let echo = echo();
    let agent = |name: &str| RelayAgent::new(name.to_owned(), "ca_0f".to_owned());
    let senders: Vec<_> = (0..4).map(|at| agent(&format!("from-{at}@chorus"))).collect();
    let messages = Messages::new(echo.address(), &senders, &[agent("away@chorus")], 10_000);
    let request_for = move |at: usize, n: u64| messages.nth(at, n);
    let measured = load::run(&brief(echo.address()), request_for, |status, body| {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        status == StatusCode::ACCEPTED
            && answer["success"] == true
            && answer["data"]["delivery"] == "queued"
    })
    .unwrap();
    assert_eq!(measured.errors.total(), 0, "{}", measured.errors);
    assert!(measured.good > 0);
}

#[test]
fn raw_connections_are_opened_again_and_time_out_like_the_others() {
    let raw = |_, _| RawRequest("GET / HTTP/1.1\r\nhost: x\r\n\r\n".into());
    let plan = |address| LoadPlan { connections: 1, threads: 1, ..brief(address) };
    let address = server(|_| "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
    let measured = load::run(&plan(address), raw, |_, body| body == b"ok").unwrap();
    assert!(measured.good >= 2, "{measured:?}");

    let silent = LoadPlan { answer_timeout: Duration::from_millis(50), ..plan(server(|_| "")) };
    let measured = load::run(&silent, raw, |_, _| true).unwrap();
    assert!(measured.good == 0 && measured.errors.timed_out > 0, "{measured:?}");
}

#[test]
fn every_pair_of_connection_and_number_is_sent_once() {
    let echo = echo();
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let request_for = move |connection, n| {
        seen.lock().unwrap().push((connection, n));
        job(connection, n)
    };
    load::run(&brief(echo.address()), request_for, |_, _| true).unwrap();
    let mut sent = sent.lock().unwrap().clone();
    let all = sent.len();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), all);
    assert_eq!(sent.iter().map(|(connection, _)| *connection).max(), Some(3));
}

#[test]
fn the_connections_of_one_load_are_spread_over_all_servers() {
    let seen = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let targets = seen.clone().map(|count| {
        let address = server(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        });
        Target::new(address)
    });
    let plan = LoadPlan { connections: 3, ..brief(targets[0].address) };
    let run = load::run_spread(&plan, &targets, |_, _| Request::get("/"), |_, body| body == b"ok");
    let measured = run.unwrap().measured;
    assert_eq!((measured.connections, measured.errors.total()), (3, 0), "{}", measured.errors);
    let seen = seen.map(|count| count.load(Ordering::Relaxed));
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    assert!(measured.good <= seen.iter().sum(), "{seen:?}");
}

#[test]
fn an_open_loop_sends_no_more_often_than_planned() {
    let echo = echo();
    let plan = LoadPlan { pace: Pace::Open { per_second: 100.0 }, ..brief(echo.address()) };
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let request_for = move |connection, n| {
        counter.fetch_add(1, Ordering::Relaxed);
        job(connection, n)
    };
    let measured = load::run(&plan, request_for, |status, _| status == StatusCode::OK).unwrap();
    // 550 ms at 100 per second: 55 are due, and each is either sent or counted as unsent.
    assert_eq!(sent.load(Ordering::Relaxed) + measured.unsent, 55);
    assert_eq!(measured.planned_per_second, Some(100.0));
    assert_eq!(measured.errors.total(), 0, "{}", measured.errors);
}

#[test]
fn bad_answers_are_counted_by_status_and_the_first_is_shown() {
    let echo = echo();
    let request_for = |_, _| Request::post("/registry/jobs", "{\"job_id\":7}");
    let measured =
        load::run(&brief(echo.address()), request_for, |status, _| status == StatusCode::OK)
            .unwrap();
    assert_eq!(measured.good, 0);
    assert!(measured.latency.p50_us.is_nan(), "a refused request has no latency");
    assert!(measured.errors.by_status[&400] > 0);
    assert!(measured.errors.first.unwrap().starts_with("400 invalid type"));
}

#[test]
fn a_stall_shows_in_every_request_that_was_due() {
    // Answers each request at once, except the fifth, which takes 200 ms.
    let address = server(|n| {
        if n == 4 {
            thread::sleep(Duration::from_millis(200));
        }
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    });
    let plan = LoadPlan {
        connections: 1,
        threads: 1,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        pace: Pace::Open { per_second: 100.0 },
        ..LoadPlan::new(address)
    };
    let measured = load::run(&plan, |_, _| Request::get("/"), |_, body| body == b"ok").unwrap();
    // In 200 ms, 20 more requests were due while the connection was busy.
    assert!(measured.queued + measured.unsent >= 15, "{measured:?}");
    assert!(measured.latency.max_us >= 200_000.0, "{measured:?}");
}

#[test]
fn a_connection_that_is_closed_after_each_answer_is_opened_again() {
    let address = server(|_| "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
    let plan = LoadPlan { connections: 1, threads: 1, warm_up: Duration::ZERO, ..brief(address) };
    let measured = load::run(&plan, |_, _| Request::get("/"), |_, body| body == b"ok").unwrap();
    assert!(measured.good >= 2, "{measured:?}");
    assert_eq!(measured.errors.total(), 0, "{}", measured.errors);
}

#[test]
fn an_answer_that_never_comes_is_a_timeout() {
    let address = server(|_| "");
    let plan = LoadPlan {
        connections: 1,
        threads: 1,
        warm_up: Duration::ZERO,
        answer_timeout: Duration::from_millis(50),
        ..brief(address)
    };
    let measured = load::run(&plan, |_, _| Request::get("/"), |_, _| true).unwrap();
    assert_eq!(measured.good, 0);
    assert!(measured.errors.timed_out > 0, "{measured:?}");
}

#[test]
fn an_absent_server_and_an_invalid_plan_are_refused_at_once() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let run = |plan: &LoadPlan| load::run(plan, job, |_, _| true);
    assert!(run(&brief(gone)).is_err());

    let echo = echo();
    let good = brief(echo.address());
    assert!(run(&LoadPlan { connections: 0, ..good }).is_err());
    assert!(run(&LoadPlan { threads: 0, ..good }).is_err());
    assert!(run(&LoadPlan { duration: Duration::ZERO, ..good }).is_err());
    assert!(run(&LoadPlan { pace: Pace::Open { per_second: f64::NAN }, ..good }).is_err());
}

/// A server that answers the `n`th request with the given bytes and closes the connection if they
/// contain `close`.
pub(crate) fn server(answer: impl Fn(usize) -> &'static str + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut n = 0;
        let mut buffer = [0; 4096];
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // The requests are small and come one at a time, so one read is one request.
            while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                let bytes = answer(n);
                n += 1;
                if stream.write_all(bytes.as_bytes()).is_err() || bytes.contains("close") {
                    break;
                }
            }
        }
    });
    address
}
