//! Shared by the relay's tests: agents with addresses, envelopes, and inboxes.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Reply, Snapshot, TestHub, snapshot};

/// The two prefixes of every path.
pub const BOTH: [&str; 2] = ["", "/relay"];
/// Long enough for a busy disk.
const DEADLINE: Duration = Duration::from_secs(60);

/// A registered agent and its key.
#[derive(Clone, Debug)]
pub struct Peer {
    pub id: String,
    pub key: String,
}

/// The card of the spec's Quick Start.
pub fn card() -> Value {
    json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]})
}

pub fn registration(id: &str) -> Value {
    json!({"agent_id": id, "agent_card": card()})
}

pub fn envelope(from: &str, text: &str) -> Value {
    json!({"chorus_version": "0.4", "sender_id": from, "original_text": text, "sender_culture": "en"})
}

/// An envelope with its position in a conversation.
pub fn turn(from: &str, text: &str, conversation: &str, number: u64) -> Value {
    let mut envelope = envelope(from, text);
    envelope["conversation_id"] = conversation.into();
    envelope["turn_number"] = number.into();
    envelope
}

/// The body of `POST /messages`.
pub fn message(from: &str, to: &str, text: &str) -> Value {
    json!({"receiver_id": to, "envelope": envelope(from, text)})
}

/// The same body with the value at a JSON pointer replaced, added, or removed.
pub fn with(body: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    match (body.pointer_mut(parent).expect("a parent"), value) {
        (Value::Object(members), Some(value)) => drop(members.insert(last.to_owned(), value)),
        (Value::Object(members), None) => drop(members.remove(last)),
        (Value::Array(items), Some(value)) => {
            items[last.parse::<usize>().expect("a number")] = value
        }
        (other, _) => panic!("{pointer} is not in {other}"),
    }
    body
}

/// An id escaped for a path.
pub fn escaped(id: &str) -> String {
    id.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Checks for UTC with milliseconds and `Z`.
#[track_caller]
pub fn assert_stamp(text: &str) {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{text}");
}

/// Checks the response envelope and its timestamp.
#[track_caller]
pub fn assert_wrapped(reply: &Reply, success: bool) {
    assert_eq!(reply.header("content-type"), Some("application/json"), "{}", reply.text);
    assert_eq!(reply.at("/success"), success, "{}", reply.text);
    assert_stamp(&reply.str("/metadata/timestamp"));
    let body = reply.json();
    assert_eq!(body.get("data").is_some(), success || body.pointer("/data/delivery").is_some());
    assert_eq!(body.get("error").is_some(), !success, "{}", reply.text);
}

/// A refusal for which a retry does not help.
#[track_caller]
pub fn assert_error(reply: &Reply, status: u16, code: &str) {
    assert_code(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), false, "{}", reply.text);
    assert!(reply.json().pointer("/error/retry_after_seconds").is_none(), "{}", reply.text);
    assert_eq!(reply.header("retry-after"), None);
}

/// A refusal that says when to retry.
#[track_caller]
pub fn assert_later(reply: &Reply, status: u16, code: &str) {
    assert_code(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), true, "{}", reply.text);
    let seconds = reply.at("/error/retry_after_seconds").as_u64().expect("a number");
    assert!(seconds > 0);
    assert_eq!(reply.header("retry-after"), Some(seconds.to_string().as_str()));
}

#[track_caller]
fn assert_code(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert_wrapped(reply, false);
    assert_eq!(reply.str("/error/code"), code, "{}", reply.text);
    assert!(!reply.str("/error/message").is_empty());
}

/// A 400 that names the first invalid field, in its sentence too, and shows a valid value.
#[track_caller]
pub fn assert_bad(reply: &Reply, field: &str) {
    assert_error(reply, 400, "ERR_VALIDATION");
    assert_eq!(reply.str("/error/field"), field, "{}", reply.text);
    let message = reply.str("/error/message");
    assert!(message.contains(field), "{message} does not name {field}");
    let example = reply.at("/error/example");
    assert!(example.is_object() || example.is_string(), "no example: {}", reply.text);
}

/// The same for a message that was neither stored nor delivered (R43).
#[track_caller]
pub fn assert_rejected(reply: &Reply, status: u16, code: &str) {
    assert_error(reply, status, code);
    assert_eq!(reply.at("/data"), json!({"delivery": "rejected"}), "{}", reply.text);
}

/// Everything a refused request could have changed.
pub async fn state(hub: &TestHub) -> (Snapshot, Value, String) {
    let snapshot = snapshot(hub).await;
    let agents = hub.get("/relay/agents", Some(&hub.operator)).await.expect(200).at("/data");
    let boxes = hub.engine.with_world(|world| {
        let mut all: Vec<_> =
            world.agents().map(|agent| format!("{:?}", world.inbox(agent.id))).collect();
        all.sort_unstable();
        all.join("\n")
    });
    (snapshot, agents, boxes)
}

impl TestHub {
    /// Registers an agent that reads its inbox.
    pub async fn join(&self, id: &str) -> Peer {
        self.join_with(&registration(id)).await
    }

    /// Registers an agent with an endpoint.
    pub async fn join_at(&self, id: &str, endpoint: &str) -> Peer {
        self.join_with(&with(&registration(id), "/endpoint", Some(endpoint.into()))).await
    }

    pub async fn join_with(&self, body: &Value) -> Peer {
        let reply = self.post("/relay/register", None, body).await.expect(201);
        Peer { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") }
    }

    /// Sends a text.
    pub async fn say(&self, from: &Peer, to: &Peer, text: &str) -> Reply {
        self.post("/relay/messages", Some(&from.key), &message(&from.id, &to.id, text)).await
    }

    /// Sends an envelope.
    pub async fn mail(&self, from: &Peer, to: &Peer, envelope: &Value) -> Reply {
        let body = json!({"receiver_id": to.id, "envelope": envelope});
        self.post("/relay/messages", Some(&from.key), &body).await
    }

    /// Posts with an idempotency key.
    pub async fn post_once(
        &self,
        path: &str,
        key: Option<&str>,
        once: &str,
        body: &Value,
    ) -> Reply {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers = vec![("idempotency-key", once)];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        self.send("POST", path, &headers, body.to_string().as_bytes()).await
    }

    /// The public record of an agent.
    pub async fn record(&self, id: &str) -> Value {
        self.get(&format!("/relay/agents/{}", escaped(id)), None).await.expect(200).at("/data")
    }

    /// Opens an inbox and reads `connected`.
    pub async fn inbox(&self, peer: &Peer) -> Inbox {
        self.inbox_at(peer, "", None).await
    }

    /// Opens an inbox with a query (`?after=3`) or a `Last-Event-ID`, and reads `connected`.
    pub async fn inbox_at(&self, peer: &Peer, query: &str, last: Option<&str>) -> Inbox {
        let mut inbox = self.inbox_of(&peer.key, query, last).await;
        let hello = inbox.next().await;
        assert_eq!(hello.event, "connected");
        assert_eq!(hello.data["agent_id"], peer.id);
        inbox.hello = Some(hello);
        inbox
    }

    /// Opens an inbox with a key; nothing is read yet.
    pub async fn inbox_of(&self, key: &str, query: &str, last: Option<&str>) -> Inbox {
        self.inbox_from(&format!("/relay/agent/inbox{query}"), key, last).await
    }

    /// Opens the inbox at this path.
    pub async fn inbox_from(&self, path: &str, key: &str, last: Option<&str>) -> Inbox {
        let mut request = self.http.get(format!("{}{path}", self.url)).bearer_auth(key);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Inbox {
            answer,
            bytes: Vec::new(),
            events: VecDeque::new(),
            raw: String::new(),
            hello: None,
        }
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub event: String,
    /// The data verbatim; several lines are joined as the SSE standard says.
    pub text: String,
    /// The same as JSON; `null` if it is not valid JSON.
    pub data: Value,
}

impl Event {
    pub fn said(&self) -> &str {
        self.data["envelope"]["original_text"].as_str().expect("a text")
    }

    pub fn position(&self) -> u64 {
        self.id.as_deref().expect("an id").parse().expect("digits")
    }
}

/// An open inbox. Dropping it closes the connection.
pub struct Inbox {
    answer: reqwest::Response,
    bytes: Vec<u8>,
    events: VecDeque<Event>,
    /// Everything read so far.
    pub raw: String,
    /// The first event, once it was read.
    pub hello: Option<Event>,
}

impl Inbox {
    /// The next event; comments are skipped.
    pub async fn next(&mut self) -> Event {
        self.read().await.expect("the stream goes on")
    }

    /// The next event of that name; others before it are skipped.
    pub async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await;
            if event.event == name {
                return event;
            }
        }
    }

    /// The next event, which is a message.
    pub async fn message(&mut self) -> Event {
        let event = self.next().await;
        assert_eq!(event.event, "message", "{event:?}");
        event
    }

    /// The texts of the next messages.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(self.message().await.said().to_owned());
        }
        texts
    }

    /// Reads to the end of the stream, and returns the events before it.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.read().await {
            all.push(event);
        }
        all
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                let path = self.answer.url().path();
                crate::kit::schemas::check_answer(path, &event.text);
                crate::kit::API_DOC.check_event(path, &event.text);
                return Some(event);
            }
            let more = tokio::time::timeout(DEADLINE, self.answer.chunk()).await;
            // An aborted stream has ended as well.
            let more = more.expect("bytes, or an end").ok().flatten()?;
            self.raw.push_str(&String::from_utf8_lossy(&more));
            self.bytes.extend_from_slice(&more);
            self.events.extend(events(&mut self.bytes));
        }
    }
}

/// Takes the complete events out of a buffer, as the HTML standard parses them.
pub fn events(bytes: &mut Vec<u8>) -> Vec<Event> {
    let mut found = Vec::new();
    // The lines of the event so far, and the start of the next one.
    let (mut lines, mut start, mut done) = (Vec::new(), 0, 0);
    while let Some(end) =
        bytes[start..].iter().position(|b| b"\r\n".contains(b)).map(|at| start + at)
    {
        let after = match &bytes[end..] {
            // Possibly the first half of a line break.
            [b'\r'] => break,
            [b'\r', b'\n', ..] => end + 2,
            _ => end + 1,
        };
        let line = String::from_utf8(bytes[start..end].to_vec()).expect("text");
        start = after;
        if line.is_empty() {
            found.extend(event(&std::mem::take(&mut lines)));
            done = start;
        } else {
            lines.push(line);
        }
    }
    bytes.drain(..done);
    found
}

fn event(lines: &[String]) -> Option<Event> {
    let field = |name: &str| {
        let of = |line: &'_ String| {
            let rest = line.strip_prefix(name)?.strip_prefix(':')?;
            Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned())
        };
        lines.iter().filter_map(of).collect::<Vec<_>>()
    };
    let data = field("data");
    if data.is_empty() {
        return None;
    }
    let text = data.join("\n");
    let event = field("event").pop().unwrap_or_else(|| "message".to_owned());
    let data = serde_json::from_str(&text).unwrap_or_default();
    Some(Event { id: field("id").pop(), event, text, data })
}
