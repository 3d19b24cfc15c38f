//! An A2A server in this process that a test controls step by step, for what no honest SDK does.
//! It speaks both bindings of 1.0, and JSON-RPC of 0.3, whatever its card says.

#![allow(dead_code)]

mod wire;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

pub use self::wire::Dialect;
use crate::kit::eventually;

/// The path of the card.
pub const CARD: &str = "/.well-known/agent-card.json";
/// The path of the keys that sign the card.
pub const KEYS: &str = "/keys";
/// The path at which clients get access tokens.
pub const TOKEN: &str = "/token";

/// One request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub raw: String,
    /// A call of HTTP+JSON has its operation and parameters here, as JSON-RPC would have them.
    pub body: Value,
}

impl Seen {
    /// The operation, by its name in JSON-RPC.
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
    /// No answer ever comes.
    Silence,
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
    keys: Value,
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
    /// The tasks on a page of that list.
    page_size: usize,
    taken: usize,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Inner>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic")
    }
}

/// The server; it stops when dropped.
pub struct Puppet {
    pub url: String,
    shared: Shared,
    server: tokio::task::JoinHandle<()>,
    ends: Arc<Notify>,
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
        Self::again("127.0.0.1:0").await
    }

    /// Stops once its connections are idle; returns where it was.
    pub async fn stop(mut self) -> String {
        self.ends.notify_one();
        crate::kit::in_time(&mut self.server).await.expect("it ends");
        let url = self.url.trim_start_matches("http://");
        url.trim_end_matches("/rpc").to_owned()
    }

    /// A server at an address, which knows nothing of an earlier one.
    pub async fn again(address: impl tokio::net::ToSocketAddrs) -> Self {
        let listener = tokio::net::TcpListener::bind(address).await.expect("a port");
        let url = format!("http://{}/rpc", listener.local_addr().expect("an address"));
        let inner = Inner {
            card: card(&url),
            has_snapshots: true,
            has_history: true,
            has_list: true,
            page_size: 100,
            ..Inner::default()
        };
        let shared = Shared(Arc::new(Mutex::new(inner)));
        let router = Router::new().fallback(wire::answer).with_state(shared.clone());
        let ends = Arc::<Notify>::default();
        let ended = ends.clone().notified_owned();
        let server = tokio::spawn(async move {
            let serving = axum::serve(listener, router).with_graceful_shutdown(ended);
            serving.await.expect("it serves");
        });
        Self { url, shared, server, ends }
    }

    /// The same with a card that names this dialect.
    pub async fn speaking(dialect: Dialect) -> Self {
        let puppet = Self::start().await;
        match dialect {
            Dialect::JsonRpc => {}
            Dialect::HttpJson => puppet.change_card(|card| {
                card["supportedInterfaces"][0]["protocolBinding"] = "HTTP+JSON".into();
            }),
            Dialect::Old => puppet.set_card(old_card(&puppet.url)),
        }
        puppet
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }

    /// Where its keys and its access tokens are.
    pub fn at(&self, path: &str) -> String {
        self.url.replace("/rpc", path)
    }

    /// The keys that sign its card.
    pub fn set_keys(&self, keys: Value) {
        self.lock().keys = keys;
    }

    /// Where its card is.
    pub fn card_url(&self) -> String {
        self.at(CARD)
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

    /// With pages of one task.
    pub fn with_short_pages(self) -> Self {
        self.lock().page_size = 1;
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

    /// Calls of an operation, by its name in 1.0 or 0.3.
    pub fn calls(&self, method: &str) -> Vec<Seen> {
        let old = match method {
            "SendMessage" => "message/send",
            "SendStreamingMessage" => "message/stream",
            "GetTask" => "tasks/get",
            "CancelTask" => "tasks/cancel",
            "SubscribeToTask" => "tasks/resubscribe",
            _ => method,
        };
        let is_it = |seen: &Seen| seen.rpc() == method || seen.rpc() == old;
        self.seen().into_iter().filter(is_it).collect()
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

    /// Keeps an artifact that no stream shows.
    pub fn keep(&self, task: &str, artifact: Value) {
        let mut inner = self.lock();
        let artifacts = &mut find(&mut inner, task).task["artifacts"];
        artifacts.as_array_mut().expect("a list").push(artifact);
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
