//! An A2A server in this process that a test controls step by step, for what no honest SDK does.
//! It speaks JSON-RPC of 1.0, and of 0.3 if its card says so.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::kit::eventually;

/// The path of the card.
pub const CARD: &str = "/.well-known/agent-card.json";

/// One request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    /// The JSON-RPC method.
    pub fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether it brings a message.
    pub fn is_send(&self) -> bool {
        matches!(
            self.rpc(),
            "SendMessage" | "SendStreamingMessage" | "message/send" | "message/stream"
        )
    }
}

/// What happens to the next call of a kind.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, headers and body.
    Status(u16, &'static [(&'static str, &'static str)], String),
    /// A JSON-RPC error.
    Refuse(i64, &'static str),
    /// The task begins, and the connection breaks before any answer.
    BreakAfter,
    /// The connection breaks, and nothing begins.
    BreakBefore,
    /// The answer of a send is this message.
    Message(Value),
    /// The body is this text.
    Text(&'static str, String),
}

/// A task of the server.
#[derive(Debug)]
struct PuppetTask {
    task: Value,
    streams: Vec<mpsc::UnboundedSender<Value>>,
}

#[derive(Default)]
struct Inner {
    card: Value,
    seen: Vec<Seen>,
    tasks: Vec<PuppetTask>,
    /// What happens to the next sends.
    send_faults: VecDeque<Fault>,
    /// What happens to the next other calls, by method.
    faults: VecDeque<(String, Fault)>,
    /// What every call must present.
    wanted: Option<(String, String)>,
    /// Whether a subscription begins with the task.
    has_snapshots: bool,
    /// Whether the tasks have a history.
    has_history: bool,
    /// Whether the server has a list of tasks.
    has_list: bool,
    taken: usize,
}

#[derive(Clone)]
struct Shared {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic")
    }
}

/// The server; it stops when dropped.
pub struct Puppet {
    pub url: String,
    shared: Shared,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A card of 1.0 with one skill, for a server at a URL.
pub fn card(url: &str) -> Value {
    json!({
        "name": "Geo Route Planner", "description": "Plans routes", "version": "2.1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "route", "name": "Route", "description": "Plans a route", "tags": ["geo"]}],
    })
}

/// A card of 0.3.
pub fn old_card(url: &str) -> Value {
    json!({
        "name": "Old Planner", "description": "Plans routes", "version": "1.0",
        "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "route", "name": "Route", "description": "Plans a route", "tags": ["geo"]}],
    })
}

impl Puppet {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/rpc", listener.local_addr().expect("an address"));
        let inner = Inner {
            card: card(&url),
            has_snapshots: true,
            has_history: true,
            has_list: true,
            ..Inner::default()
        };
        let shared = Shared { inner: Arc::new(Mutex::new(inner)), changed: Arc::default() };
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { url, shared, server }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }

    /// Where its card is.
    pub fn card_url(&self) -> String {
        self.url.replace("/rpc", CARD)
    }

    pub fn set_card(&self, card: Value) {
        self.lock().card = card;
    }

    /// Changes members of the card.
    pub fn change_card(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.lock().card);
    }

    /// Without streams.
    pub fn without_streams(self) -> Self {
        self.change_card(|card| card["capabilities"]["streaming"] = false.into());
        self
    }

    /// Like some servers of older SDKs.
    pub fn without_snapshots(self) -> Self {
        self.lock().has_snapshots = false;
        self
    }

    pub fn without_history(self) -> Self {
        self.lock().has_history = false;
        self
    }

    pub fn without_list(self) -> Self {
        self.lock().has_list = false;
        self
    }

    /// Every call must have this header from now on.
    pub fn want(&self, header: &str, value: &str) {
        self.lock().wanted = Some((header.to_owned(), value.to_owned()));
    }

    /// What happens to the next send.
    pub fn fault(&self, fault: Fault) {
        self.lock().send_faults.push_back(fault);
    }

    /// What happens to the next call of another method.
    pub fn fault_of(&self, method: &str, fault: Fault) {
        self.lock().faults.push_back((method.to_owned(), fault));
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// Calls of a JSON-RPC method.
    pub fn calls(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.rpc() == method).collect()
    }

    /// The messages that came, in order.
    pub fn messages(&self) -> Vec<Value> {
        let sends = self.seen().into_iter().filter(Seen::is_send);
        sends.map(|seen| seen.body["params"]["message"].clone()).collect()
    }

    /// The ids of the messages that came.
    pub fn message_ids(&self) -> Vec<String> {
        let id = |message: &Value| message["messageId"].as_str().expect("an id").to_owned();
        self.messages().iter().map(id).collect()
    }

    /// The next task that was not taken yet.
    pub async fn task(&self) -> String {
        let is_there = |inner: &Inner| inner.tasks.len() > inner.taken;
        eventually(async || is_there(&self.lock())).await;
        let mut inner = self.lock();
        inner.taken += 1;
        inner.tasks[inner.taken - 1].task["id"].as_str().expect("an id").to_owned()
    }

    /// How many tasks there are.
    pub fn task_count(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Waits until a call of a method came so many times.
    pub async fn called(&self, method: &str, count: usize) {
        eventually(async || self.calls(method).len() >= count).await;
    }

    /// Waits until so many streams of a task are open.
    pub async fn streamed(&self, task: &str, count: usize) {
        eventually(async || {
            let inner = self.lock();
            let found = inner.tasks.iter().find(|one| one.task["id"] == task);
            found.is_some_and(|one| {
                one.streams.iter().filter(|stream| !stream.is_closed()).count() >= count
            })
        })
        .await;
    }

    /// A status of a task.
    pub fn status(&self, task: &str, state: &str, message: Option<Value>) {
        let mut inner = self.lock();
        let has_history = inner.has_history;
        let one = find(&mut inner, task);
        let before = one.task["status"]["message"].clone();
        if !before.is_null() && has_history {
            one.task["history"].as_array_mut().expect("a list").push(before);
        }
        one.task["status"] = json!({"state": state});
        if let Some(message) = message {
            one.task["status"]["message"] = message;
        }
        let (id, context) = (one.task["id"].clone(), one.task["contextId"].clone());
        let update = json!({"taskId": id, "contextId": context, "status": one.task["status"]});
        one.send(json!({"statusUpdate": update}));
        self.shared.changed.notify_waiters();
    }

    /// A status with a text.
    pub fn says(&self, task: &str, state: &str, id: &str, text: &str) {
        let message = json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": text}]});
        self.status(task, state, Some(message));
    }

    /// A piece of an artifact.
    pub fn artifact(&self, task: &str, artifact: Value, append: bool) {
        let mut inner = self.lock();
        let one = find(&mut inner, task);
        let artifacts = one.task["artifacts"].as_array_mut().expect("a list");
        let known = artifacts.iter_mut().find(|one| one["artifactId"] == artifact["artifactId"]);
        match known {
            Some(known) if append => {
                let parts = artifact["parts"].as_array().expect("a list").clone();
                known["parts"].as_array_mut().expect("a list").extend(parts);
            }
            Some(known) => *known = artifact.clone(),
            None => artifacts.push(artifact.clone()),
        }
        let (id, context) = (one.task["id"].clone(), one.task["contextId"].clone());
        let mut update = json!({"taskId": id, "contextId": context, "artifact": artifact});
        if append {
            update["append"] = true.into();
        }
        one.send(json!({"artifactUpdate": update}));
    }

    /// A piece with one text.
    pub fn text(&self, task: &str, artifact: &str, text: &str, append: bool) {
        self.artifact(task, json!({"artifactId": artifact, "parts": [{"text": text}]}), append);
    }

    /// An event that changes nothing of the task.
    pub fn event(&self, task: &str, event: Value) {
        find(&mut self.lock(), task).send(event);
    }

    /// Ends a task with a text as its result.
    pub fn complete(&self, task: &str, text: &str) {
        self.text(task, "x", text, false);
        self.status(task, "TASK_STATE_COMPLETED", None);
    }

    /// Cuts all streams of a task.
    pub fn cut(&self, task: &str) {
        find(&mut self.lock(), task).streams.clear();
    }

    /// Loses a task.
    pub fn forget(&self, task: &str) {
        self.lock().tasks.retain(|one| one.task["id"] != task);
    }

    /// The task as the server has it.
    pub fn snapshot(&self, task: &str) -> Value {
        find(&mut self.lock(), task).task.clone()
    }
}

fn find<'i>(inner: &'i mut Inner, task: &str) -> &'i mut PuppetTask {
    inner.tasks.iter_mut().find(|one| one.task["id"] == task).expect("a task of the server")
}

impl PuppetTask {
    fn send(&mut self, event: Value) {
        self.streams.retain(|stream| stream.send(event.clone()).is_ok());
    }
}

async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let seen = Seen {
        method: method.to_string(),
        path: uri.path().to_owned(),
        headers: headers.clone(),
        body: body.clone(),
    };
    let is_send = seen.is_send();
    let rpc = seen.rpc().to_owned();
    let mut inner = shared.lock();
    inner.seen.push(seen);
    if uri.path() == CARD {
        let fault = inner.faults.iter().position(|(of, _)| of == "card");
        return match fault.and_then(|at| inner.faults.remove(at)) {
            Some((_, fault)) => fault_response(&fault, &Value::Null),
            None => axum::Json(inner.card.clone()).into_response(),
        };
    }
    if let Some((name, value)) = &inner.wanted
        && headers.get(name.as_str()).and_then(|value| value.to_str().ok()) != Some(value)
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let id = body["id"].clone();
    let fault = match is_send {
        true => inner.send_faults.pop_front(),
        false => {
            let at = inner.faults.iter().position(|(of, _)| *of == rpc);
            at.and_then(|at| inner.faults.remove(at)).map(|(_, fault)| fault)
        }
    };
    match &fault {
        Some(Fault::BreakAfter) => {
            let message = body["params"]["message"].clone();
            begin(&mut inner, &message);
            return broken();
        }
        Some(Fault::BreakBefore) => return broken(),
        Some(fault) => return fault_response(fault, &id),
        None => {}
    }
    let task = body["params"]["id"].as_str().unwrap_or_default().to_owned();
    let result = |result: Value| {
        axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
    };
    let error = |code: i64, text: &str| {
        let error = json!({"code": code, "message": text});
        axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
    };
    let at = inner.tasks.iter().position(|one| one.task["id"] == task);
    match rpc.as_str() {
        "SendMessage" | "message/send" => {
            let at = take(&mut inner, &body["params"]["message"]);
            let task = inner.tasks[at].task.clone();
            let is_old = rpc.contains('/');
            result(if is_old { as_old(&json!({"task": task})) } else { json!({"task": task}) })
        }
        "SendStreamingMessage" | "message/stream" => {
            let at = take(&mut inner, &body["params"]["message"]);
            stream(&mut inner.tasks[at], &id, true, rpc.contains('/'))
        }
        "SubscribeToTask" | "tasks/resubscribe" => match at {
            Some(at) if !is_over(&inner.tasks[at].task) => {
                let has_snapshots = inner.has_snapshots;
                stream(&mut inner.tasks[at], &id, has_snapshots, rpc.contains('/'))
            }
            Some(_) => error(-32004, "the task has ended"),
            None => error(-32001, "task not found"),
        },
        "GetTask" => match at {
            Some(at) => result(inner.tasks[at].task.clone()),
            None => error(-32001, "task not found"),
        },
        "tasks/get" => match at {
            Some(at) => result(as_old(&json!({"task": inner.tasks[at].task}))),
            None => error(-32001, "task not found"),
        },
        "ListTasks" if inner.has_list => {
            let tasks: Vec<Value> = inner.tasks.iter().rev().map(|one| one.task.clone()).collect();
            let count = tasks.len();
            result(
                json!({"tasks": tasks, "nextPageToken": "", "pageSize": 100, "totalSize": count}),
            )
        }
        "CancelTask" | "tasks/cancel" => match at {
            Some(at) => {
                let one = &mut inner.tasks[at];
                one.task["status"] = json!({"state": "TASK_STATE_CANCELED"});
                one.streams.clear();
                result(one.task.clone())
            }
            None => error(-32001, "task not found"),
        },
        _ => error(-32601, "method not found"),
    }
}

fn is_over(task: &Value) -> bool {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state.ends_with(end))
}

/// Begins a task with a message; returns its place.
fn begin(inner: &mut Inner, message: &Value) -> usize {
    let number = inner.tasks.len() + 1;
    let context = message["contextId"].as_str().map(str::to_owned);
    let context = context.unwrap_or_else(|| format!("remote-c{number}"));
    let history = if inner.has_history { json!([message]) } else { json!([]) };
    let task = json!({
        "id": format!("remote-{number}"), "contextId": context,
        "status": {"state": "TASK_STATE_SUBMITTED"}, "artifacts": [], "history": history,
    });
    inner.tasks.push(PuppetTask { task, streams: Vec::new() });
    inner.tasks.len() - 1
}

/// The task that a message begins or goes on with.
fn take(inner: &mut Inner, message: &Value) -> usize {
    let Some(task) = message["taskId"].as_str() else { return begin(inner, message) };
    let at = inner.tasks.iter().position(|one| one.task["id"] == task).expect("a known task");
    if inner.has_history {
        let status = inner.tasks[at].task["status"]["message"].take();
        let history = inner.tasks[at].task["history"].as_array_mut().expect("a list");
        history.extend(Some(status).filter(|status| !status.is_null()));
        history.push(message.clone());
    }
    let one = &mut inner.tasks[at];
    one.task["status"] = json!({"state": "TASK_STATE_WORKING"});
    let (id, context) = (one.task["id"].clone(), one.task["contextId"].clone());
    let update = json!({"taskId": id, "contextId": context, "status": one.task["status"]});
    one.send(json!({"statusUpdate": update}));
    at
}

/// A stream of a task's events.
fn stream(one: &mut PuppetTask, id: &Value, has_snapshot: bool, is_old: bool) -> Response {
    let (sender, mut events) = mpsc::unbounded_channel();
    if has_snapshot {
        let _ = sender.send(json!({"task": one.task}));
    }
    one.streams.push(sender);
    let id = id.clone();
    let (mut out, body) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        while let Some(event) = events.recv().await {
            let event = if is_old { as_old(&event) } else { event };
            let data = json!({"jsonrpc": "2.0", "id": id, "result": event});
            if out.write_all(format!("data: {data}\n\n").as_bytes()).await.is_err() {
                return;
            }
            let state =
                event.pointer("/statusUpdate/status/state").or(event.pointer("/status/state"));
            let state = state.and_then(Value::as_str).unwrap_or_default().to_uppercase();
            let ends = ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED"];
            if ends.iter().any(|end| state.replace('-', "_").ends_with(end)) {
                return;
            }
        }
    });
    let stream = tokio_util_stream(body);
    let headers = [("content-type", "text/event-stream")];
    (headers, Body::from_stream(stream)).into_response()
}

/// The bytes of a pipe as a stream.
fn tokio_util_stream(
    body: tokio::io::DuplexStream,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    use tokio::io::AsyncReadExt;
    futures_util::stream::unfold(body, async |mut body| {
        let mut bytes = vec![0; 8_192];
        match body.read(&mut bytes).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                bytes.truncate(count);
                Some((Ok(Bytes::from(bytes)), body))
            }
        }
    })
}

/// An event as 0.3 has it.
fn as_old(event: &Value) -> Value {
    let (name, inner) = event.as_object().and_then(|all| all.iter().next()).expect("one member");
    let mut old = inner.clone();
    let kind = match name.as_str() {
        "task" => "task",
        "statusUpdate" => "status-update",
        "artifactUpdate" => "artifact-update",
        _ => "message",
    };
    old["kind"] = kind.into();
    old_names(&mut old);
    if kind == "status-update" {
        old["final"] = is_over(inner).into();
    }
    old
}

fn old_names(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.contains_key("parts") && members.contains_key("role") {
                members.insert("kind".to_owned(), "message".into());
            }
            if members.contains_key("text") && !members.contains_key("kind") {
                members.insert("kind".to_owned(), "text".into());
            }
            members.values_mut().for_each(old_names);
        }
        Value::Array(items) => items.iter_mut().for_each(old_names),
        Value::String(text) => {
            if let Some(state) = text.strip_prefix("TASK_STATE_") {
                *text = state.to_lowercase().replace('_', "-");
            } else if let Some(role) = text.strip_prefix("ROLE_") {
                *text = role.to_lowercase();
            }
        }
        _ => {}
    }
}

fn fault_response(fault: &Fault, id: &Value) -> Response {
    match fault {
        Fault::Status(status, headers, body) => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let mut response = (status, body.clone()).into_response();
            for (name, value) in *headers {
                response.headers_mut().insert(*name, value.parse().expect("a value"));
            }
            response
        }
        Fault::Refuse(code, text) => {
            let error = json!({"code": code, "message": text});
            axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
        Fault::Message(message) => {
            let result = json!({ "message": message });
            axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
        }
        Fault::Text(content_type, text) => {
            ([("content-type", *content_type)], text.clone()).into_response()
        }
        Fault::BreakAfter | Fault::BreakBefore => broken(),
    }
}

/// A response whose body breaks off.
fn broken() -> Response {
    let error = std::io::Error::other("cut");
    let cut = futures_util::stream::once(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Err::<Bytes, _>(error)
    });
    ([("content-type", "text/event-stream")], Body::from_stream(cut)).into_response()
}
