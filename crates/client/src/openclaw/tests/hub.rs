//! A test hub: it accepts everything, and sends what the test specifies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_protocols::kit::sse;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::key::Key;
use crate::openclaw::{
    Agent, Presence, PresenceOptions, RequestRetryPolicy, RetryPolicy, Server, WorkHistory,
};
use crate::testing::{RecordedRequest, TestServer, answer, stream};

pub(super) const ME: Uuid = Uuid::from_u128(1);
pub(super) const YOU: Uuid = Uuid::from_u128(2);

/// Called for each request: returns the test's own response, or `None` for the default one.
type React = dyn Fn(&Hub, &Ask) -> Option<Vec<u8>> + Send + Sync;

/// One request, with its body parsed.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) method: String,
    /// The path below the protocol's path, with its query.
    pub(super) path: String,
    pub(super) body: Value,
    /// Its number among the requests to the same path, from 0.
    pub(super) number: usize,
    pub(super) key: Option<String>,
}

/// The state of the test hub.
#[derive(Default)]
pub(super) struct Hub {
    /// Events of the only stream; an event's position is its number, from 1.
    events: Mutex<Vec<(String, String)>>,
    asks: Mutex<Vec<Ask>>,
    /// The collaborations in a listing of this agent's work.
    pub(super) running: Mutex<Vec<Value>>,
}

impl Hub {
    /// Adds an event to the stream.
    pub(super) fn put(&self, name: &str, body: &Value) {
        self.events.lock().expect("sound").push((name.to_owned(), body.to_string()));
    }

    /// All bodies posted to a path with this suffix.
    pub(super) fn posted(&self, end: &str) -> Vec<Value> {
        let asks = self.asks.lock().expect("sound");
        let fits = |ask: &&Ask| ask.method == "POST" && ask.path.ends_with(end);
        asks.iter().filter(fits).map(|ask| ask.body.clone()).collect()
    }

    pub(super) fn asks(&self) -> Vec<Ask> {
        self.asks.lock().expect("sound").clone()
    }

    fn hear(&self, heard: &RecordedRequest, number: usize, react: &React) -> Vec<u8> {
        let path = heard.target.strip_prefix("/openclaw").expect("the protocol's path");
        let ask = Ask {
            method: heard.method.clone(),
            path: path.to_owned(),
            body: serde_json::from_str(&heard.body).unwrap_or_default(),
            number,
            key: heard.header("authorization").map(str::to_owned),
        };
        self.asks.lock().expect("sound").push(ask.clone());
        if let Some(own) = react(self, &ask) {
            return own;
        }
        if path.starts_with("/stream") {
            let after = heard.header("last-event-id").map_or(0, |id| id.parse().expect("digits"));
            return stream(&self.events_after(after));
        }
        usual(self, &ask)
    }

    fn events_after(&self, after: usize) -> String {
        let mut out = b"retry: 10\n".to_vec();
        sse::write_frame(&mut out, None, "connected", "{}");
        let events = self.events.lock().expect("sound");
        for (n, (name, body)) in events.iter().enumerate().skip(after) {
            sse::write_frame(&mut out, Some(&(n + 1).to_string()), name, body);
        }
        String::from_utf8(out).expect("text")
    }
}

fn usual(hub: &Hub, ask: &Ask) -> Vec<u8> {
    let last = ask.path.split('?').next().and_then(|path| path.rsplit('/').next());
    let body = match (ask.method.as_str(), last) {
        ("POST", Some("status")) => {
            json!({"status": "accepted", "agent_id": ME, "applied": true, "late": false,
                "warnings": []})
        }
        ("POST", Some("reputation")) => {
            json!({"status": "recorded_as_claim", "agent_id": ME, "claimed_score": 1.0,
                "hub_score": null, "differs": false})
        }
        ("POST", Some("result")) => {
            json!({"status": "published", "collaboration_id": ME, "output_valid": true})
        }
        ("POST", Some("response")) => json!({"status": "delivered"}),
        ("POST", Some("approve")) => json!({"status": "approved"}),
        ("GET", Some("collaborations")) => {
            let running = ask.path.contains("state=running");
            let listed = if running { hub.running.lock().expect("sound").clone() } else { vec![] };
            json!({"collaborations": listed, "next_cursor": null})
        }
        _ => return refuse(404, "NOT_FOUND", false),
    };
    good(&body)
}

/// A successful response with the three common members.
pub(super) fn good(body: &Value) -> Vec<u8> {
    answer(200, "", &with_common(body).to_string())
}

pub(super) fn with_common(body: &Value) -> Value {
    let mut body = body.clone();
    let common = json!({"protocol_version": "1.0.0", "correlation_id": Uuid::from_u128(9),
        "timestamp": "2026-02-06T16:00:00Z"});
    for (name, value) in common.as_object().expect("an object") {
        body.as_object_mut().expect("an object").entry(name).or_insert(value.clone());
    }
    body
}

pub(super) fn refuse(status: u16, code: &str, retryable: bool) -> Vec<u8> {
    let error_type = if retryable { "transient" } else { "permanent" };
    let error =
        json!({"code": code, "message": "no", "error_type": error_type, "retryable": retryable});
    answer(status, "", &with_common(&json!({"error": error})).to_string())
}

/// A request to this agent.
pub(super) fn request(n: u128, capability: &str) -> Value {
    json!({"request_id": Uuid::from_u128(n), "requester_agent_id": YOU,
        "capability_id": capability, "input_data": {"n": 1.50}, "protocol_version": "1.0.0",
        "correlation_id": Uuid::from_u128(n + 1_000), "timestamp": "2026-02-06T16:00:00Z"})
}

/// The same request as a stream event, already accepted.
pub(super) fn accepted(n: u128, capability: &str) -> Value {
    let mut event = request(n, capability);
    event["collaboration_id"] = json!(Uuid::from_u128(n + 2_000));
    event["accepted"] = json!(true);
    event
}

/// A running test hub, and an agent at it with short timeouts.
pub(super) async fn hub(
    react: impl Fn(&Hub, &Ask) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (Arc<Hub>, TestServer, Agent) {
    let hub = Arc::new(Hub::default());
    let inner = Arc::clone(&hub);
    let stage = TestServer::new(move |heard, number| inner.hear(heard, number, &react)).await;
    let server = Server::new(&stage.url).expect("a URL");
    let agent = Agent::new(&server, ME, Key::new("rk_me"));
    let quick = RequestRetryPolicy {
        initial_delay: Duration::from_millis(1),
        ..RequestRetryPolicy::default()
    };
    (hub, stage, agent.with_retry(quick))
}

/// The online agent, with short intervals.
pub(super) fn on_duty(agent: &Agent) -> Presence {
    let first = Duration::from_millis(1);
    let retry = RetryPolicy {
        max_attempts: u32::MAX,
        initial_delay: first,
        max_delay: Duration::from_millis(10),
    };
    let gather = Duration::from_millis(1);
    agent.go_online(
        PresenceOptions { debounce: gather, retry, ..PresenceOptions::default() },
        WorkHistory::default(),
    )
}

/// Waits until a condition holds.
pub(super) async fn eventually(what: &str, so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}
