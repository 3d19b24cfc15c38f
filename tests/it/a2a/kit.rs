//! Shared by the tests of A2A: clients, calls over both bindings, and event streams.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Reply, TestHub};
use crate::relay::kit::{Event, events};

/// Our extension for hiring.
pub const HIRE: &str = "urn:rialto:a2a:hire:v1";
/// The path of the hub itself.
pub const HUB: &str = "/a2a";
/// Long enough for a busy disk.
const DEADLINE: Duration = Duration::from_secs(60);

/// A registered client and its key.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: String,
    pub key: String,
}

/// A message with one text part.
pub fn text_message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// The same with metadata for hiring.
pub fn hire_message(id: &str, text: &str, hire: Value) -> Value {
    let mut message = text_message(id, text);
    message["metadata"] = json!({ HIRE: hire });
    message
}

/// A JSON-RPC call.
pub fn rpc(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

impl TestHub {
    /// Registers a client.
    pub async fn a2a_client(&self, name: &str) -> Client {
        let reply = self.post("/a2a/agents", None, &json!({"name": name})).await.expect(201);
        Client { name: name.to_owned(), key: reply.str("/api_key") }
    }

    /// The path at which an agent of another protocol is called, by its id there.
    pub fn a2a_path(&self, protocol: &'static str, native: &str) -> String {
        let protocol = rialto_core::alias::Protocol::new(protocol);
        let name = self.engine.with_world(|world| {
            let agent = world.agent_by_alias(protocol, native).expect("a known agent");
            world.alias_of(agent, rialto_protocols::a2a::ID).expect("an alias").to_owned()
        });
        format!("/a2a/agents/{name}")
    }

    /// A JSON-RPC call of version 1.0.
    pub async fn rpc(&self, base: &str, key: &str, method: &str, params: Value) -> Reply {
        let key = Some(key).filter(|key| !key.is_empty());
        self.post(base, key, &rpc(1, method, params)).await
    }

    /// Any call with headers; no key without one among them.
    pub async fn a2a_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        self.send(method, path, headers, body.as_bytes()).await
    }

    /// Opens a stream and reads its headers.
    pub async fn a2a_stream(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TaskEvents {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await.expect("an answer");
        TaskEvents::of(answer).await
    }
}

/// The events of a task as they come. Dropping it closes the connection.
pub struct TaskEvents {
    answer: reqwest::Response,
    bytes: Vec<u8>,
    events: VecDeque<Event>,
    /// Everything read so far.
    pub raw: String,
}

impl TaskEvents {
    /// A response that is a stream.
    pub async fn of(answer: reqwest::Response) -> Self {
        if answer.status() != 200 || answer.headers()["content-type"] != "text/event-stream" {
            let status = answer.status();
            panic!("no stream but {status} {}", answer.text().await.unwrap_or_default());
        }
        Self { answer, bytes: Vec::new(), events: VecDeque::new(), raw: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                crate::kit::API_DOC.check_event(self.answer.url().path(), &event.text);
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

    /// The next event, which must come.
    pub async fn event(&mut self) -> Event {
        self.next().await.expect("the stream goes on")
    }

    /// All events until the hub closes the stream.
    pub async fn rest(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
