//! Shared by openclaw's tests: agents, requests, and streams.

#![allow(dead_code)]

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use rialto_core::time::{Millis, Timestamp};
use rialto_engine::clock::Clock;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kit::{Reply, TestHub};
use crate::relay::kit::Inbox;

/// A hub as this protocol's tests use it.
pub struct Hub(pub TestHub);

impl Deref for Hub {
    type Target = TestHub;

    fn deref(&self) -> &TestHub {
        &self.0
    }
}

/// A published agent.
#[derive(Clone, Debug)]
pub struct Node {
    pub id: String,
    pub key: String,
    /// What it published.
    pub identity: Value,
}

/// A UUID that is unique in this process.
pub fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(std::process::id());
    Uuid::from_u64_pair(process << 32 | 0x4000, 0x8000_0000_0000_0000 | number).to_string()
}

/// Members of `more` over those of `body`; `null` removes one.
pub fn with(body: &Value, more: Value) -> Value {
    let mut body = body.clone();
    let members = body.as_object_mut().expect("an object");
    for (name, value) in more.as_object().expect("an object") {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    body
}

/// An identity with one capability called `sum`, whose input has a number `a` from 0 to 1 and whose
/// output has an `r`.
pub fn identity(name: &str, at: Timestamp) -> Value {
    json!({
        "agent_id": fresh_id(),
        "agent_name": format!("chimera-{name}"),
        "agent_type": "autonomous_content_node",
        "version": "1.0.0",
        "capabilities": {
            "advertised_capabilities": [capability("sum", json!({}))],
            "input_schemas": {"sum": {
                "type": "object",
                "properties": {"a": {"type": "number", "minimum": 0, "maximum": 1}},
                "required": ["a"],
            }},
            "output_schemas": {"sum": {"type": "object", "required": ["r"]}},
        },
        "status": {"current_status": "idle", "status_timestamp": rfc3339::format_millis(at)},
    })
}

/// A capability with these members besides the required ones.
pub fn capability(id: &str, more: Value) -> Value {
    let needed = json!({"capability_id": id, "capability_name": id, "description": "does it",
        "category": "content_generation"});
    with(&needed, more)
}

/// An identity whose capability `sum` has these further members.
pub fn able(identity: &Value, more: Value) -> Value {
    let mut identity = identity.clone();
    identity["capabilities"]["advertised_capabilities"][0] = capability("sum", more);
    identity
}

impl Hub {
    /// A hub that requires keys.
    pub async fn serve(flags: &[(&str, &str)]) -> Self {
        Self(TestHub::serve(flags).await)
    }

    /// A hub that accepts claimed identities.
    pub async fn open(flags: &[(&str, &str)]) -> Self {
        Self(TestHub::open(flags).await)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time of any hub.
    pub fn time_of(hub: &TestHub) -> Timestamp {
        hub.clock.now()
    }

    pub fn stamp_of(hub: &TestHub) -> String {
        rfc3339::format_millis(hub.clock.now())
    }

    /// A time this many milliseconds from now, as text.
    pub fn time(&self, from_now: i64) -> String {
        rfc3339::format_millis(self.now().plus(Millis(from_now)))
    }

    /// Publishes an agent.
    pub async fn publish(&self, identity: &Value) -> Node {
        let reply = self.post("/openclaw/identity", None, identity).await.expect(201);
        let (id, key) = (reply.str("/agent_id"), reply.str("/api_key"));
        Node { id, key, identity: identity.clone() }
    }

    /// An agent with the capability `sum`.
    pub async fn node(&self, name: &str) -> Node {
        self.publish(&identity(name, self.now())).await
    }

    /// The same with members of the identity changed.
    pub async fn node_with(&self, name: &str, more: Value) -> Node {
        self.publish(&with(&identity(name, self.now()), more)).await
    }

    /// The same with members of its capability changed.
    pub async fn able_node(&self, name: &str, more: Value) -> Node {
        self.publish(&able(&identity(name, self.now()), more)).await
    }

    /// A request of `by` for a `sum`, not posted yet.
    pub fn request(&self, by: &Node, more: Value) -> Value {
        let request = json!({
            "request_id": fresh_id(), "requester_agent_id": by.id, "capability_id": "sum",
            "input_data": {"a": 0.5}, "correlation_id": fresh_id(), "timestamp": self.time(0),
        });
        with(&request, more)
    }

    /// Posts a request.
    pub async fn ask(&self, by: &Node, request: &Value) -> Reply {
        self.post("/openclaw/collaborations", Some(&by.key), request).await
    }

    /// A request of `by` to `of`, and its answer.
    pub async fn hire(&self, by: &Node, of: &Node, more: Value) -> Reply {
        let request = self.request(by, with(&json!({"responder_agent_id": of.id}), more));
        self.ask(by, &request).await
    }

    /// An accepted request: the request, and the collaboration's id.
    pub async fn accepted(&self, by: &Node, of: &Node, more: Value) -> Work {
        let request = self.request(by, with(&json!({"responder_agent_id": of.id}), more));
        let reply = self.ask(by, &request).await.expect(200);
        assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
        Work { id: reply.str("/collaboration_id"), request, by: of.clone() }
    }

    /// Posts the result of a collaboration, as its responder.
    pub async fn result(&self, work: &Work, more: Value) -> Reply {
        let path = format!("/openclaw/collaborations/{}/result", work.id);
        self.post(&path, Some(&work.by.key), &self.done(work, more)).await
    }

    /// A result of a collaboration: completed by default.
    pub fn done(&self, work: &Work, more: Value) -> Value {
        let done = json!({
            "collaboration_id": work.id, "request_id": work.request["request_id"],
            "responder_agent_id": work.by.id, "result_status": "completed",
            "output_data": {"r": 1}, "correlation_id": work.request["correlation_id"],
            "timestamp": self.time(0),
        });
        with(&done, more)
    }

    /// The state of a collaboration, for one of its parties.
    pub async fn view(&self, by: &Node, id: &str) -> Value {
        let path = format!("/openclaw/collaborations/{id}");
        self.get(&path, Some(&by.key)).await.expect(200).json()
    }

    /// The directory entry of an agent.
    pub async fn entry(&self, id: &str) -> Value {
        self.get(&format!("/openclaw/agents/{id}"), None).await.expect(200).json()
    }

    /// Reports an agent's status.
    pub async fn report(&self, of: &Node, status: &str, details: Value) -> Reply {
        let update = json!({"current_status": status, "status_timestamp": self.time(0),
            "status_details": details});
        let body = json!({"agent_id": of.id, "status_update": update,
            "correlation_id": fresh_id(), "timestamp": self.time(0)});
        self.post("/openclaw/status", Some(&of.key), &body).await
    }

    /// Opens an agent's stream and reads its first event, `connected`.
    pub async fn stream(&self, of: &Node, query: &str) -> Inbox {
        let mut stream = self.resume(of, query, None).await;
        assert_eq!(stream.next().await.event, "connected");
        stream
    }

    /// The same after an event, without reading anything.
    pub async fn resume(&self, of: &Node, query: &str, after: Option<&str>) -> Inbox {
        self.inbox_from(&format!("/openclaw/stream{query}"), &of.key, after).await
    }
}

/// An accepted collaboration.
#[derive(Clone, Debug)]
pub struct Work {
    pub id: String,
    pub request: Value,
    /// Its responder.
    pub by: Node,
}

/// A refusal in the protocol's error object.
#[track_caller]
pub fn assert_error(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert_eq!(reply.str("/error/code"), code, "{}", reply.text);
    assert_eq!(reply.str("/protocol_version"), "1.0.0");
    assert!(reply.str("/correlation_id").parse::<Uuid>().is_ok(), "{}", reply.text);
    assert!(!reply.str("/error/message").is_empty());
    let retryable = reply.at("/error/retryable").as_bool().expect("a flag");
    let kind = if retryable { "transient" } else { "permanent" };
    assert_eq!(reply.str("/error/error_type"), kind, "{}", reply.text);
}

/// A 400 that lists this violation.
#[track_caller]
pub fn assert_violation(reply: &Reply, says: &str) {
    assert_error(reply, 400, "VALIDATION_ERROR");
    let listed = reply.at("/error/details/validation_errors");
    let listed = listed.as_array().expect("a list");
    assert!(listed.iter().any(|one| one == says), "{says:?} is not in {listed:?}");
}

/// A rejection with this code, which says whether to retry.
#[track_caller]
pub fn assert_rejected(reply: &Reply, code: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.str("/response_status"), "rejected", "{}", reply.text);
    assert_eq!(reply.str("/rejection_reason/code"), code, "{}", reply.text);
    assert!(!reply.str("/rejection_reason/message").is_empty());
    let retryable = code == "resource_exhausted";
    assert_eq!(reply.at("/rejection_reason/retryable"), retryable, "{}", reply.text);
    let seconds = reply.json().pointer("/rejection_reason/retry_after_seconds").cloned();
    assert_eq!(seconds.is_some_and(|n| n.as_u64() > Some(0)), retryable, "{}", reply.text);
}
