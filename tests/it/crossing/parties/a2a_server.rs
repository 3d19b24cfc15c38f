//! The server of an A2A agent. It keeps every text as it came, so that tests can compare digits.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::crossing::raw::{raw, text};

/// The path of the card.
const CARD: &str = "/.well-known/agent-card.json";

/// The text of every error.
pub const REFUSAL: &str = "not on this road";

/// A task of the server.
#[derive(Clone)]
pub struct ServedTask {
    pub id: String,
    /// The parameters of the send that began it, as they came.
    pub params: String,
    /// The status: JSON text.
    status: String,
    /// The parts of its artifact: JSON text.
    parts: Option<String>,
    streams: Vec<UnboundedSender<String>>,
}

#[derive(Default)]
struct Inner {
    card: Value,
    tasks: Vec<ServedTask>,
    is_away: bool,
    /// The code of the error that the next request gets.
    refusal: Option<i32>,
}

type Shared = Arc<Mutex<Inner>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Inner> {
    shared.lock().expect("no panic")
}

/// The server; it stops when dropped.
pub struct Server {
    url: String,
    shared: Shared,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    /// A server whose card has this name and one skill.
    pub async fn start(name: &str, skill: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let skill = json!({"id": skill, "name": skill, "description": skill, "tags": [skill]});
        let card = json!({
            "name": name, "description": "Plans", "version": "1.0",
            "supportedInterfaces": [interface], "capabilities": {"streaming": true},
            "defaultInputModes": ["application/json", "text/plain"],
            "defaultOutputModes": ["application/json"], "skills": [skill],
        });
        let shared: Shared = Arc::new(Mutex::new(Inner { card, ..Inner::default() }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { url, shared, serving }
    }

    /// Where its card is.
    pub fn card_url(&self) -> String {
        format!("{}{CARD}", self.url)
    }

    /// Changes the card.
    pub fn change_card(&self, change: impl FnOnce(&mut Value)) {
        change(&mut lock(&self.shared).card);
    }

    /// From now on nothing is there, or everything is there again.
    pub fn be_away(&self, is_away: bool) {
        lock(&self.shared).is_away = is_away;
    }

    /// The next request gets an error with this code.
    pub fn refuse(&self, code: i32) {
        lock(&self.shared).refusal = Some(code);
    }

    /// The tasks that have not ended, oldest first.
    pub fn open_tasks(&self) -> Vec<ServedTask> {
        let inner = lock(&self.shared);
        inner.tasks.iter().filter(|task| !task.is_over()).cloned().collect()
    }

    /// Gives a task an artifact with these parts; returns the event.
    pub fn artifact(&self, task: &str, parts: &str) -> String {
        let mut inner = lock(&self.shared);
        let task = find(&mut inner, task).expect("a task of the server");
        task.parts = Some(parts.to_owned());
        let event = format!(
            r#"{{"artifactUpdate":{{{},"artifact":{}}}}}"#,
            task.ids("taskId"),
            artifact(parts)
        );
        task.tell(&event);
        event
    }

    /// Gives a task a state, with a message that has this text; returns the event.
    pub fn state(&self, task: &str, state: &str, words: Option<&str>) -> String {
        let mut inner = lock(&self.shared);
        let task = find(&mut inner, task).expect("a task of the server");
        let message = words.map(|words| {
            let message =
                json!({"messageId": "s-1", "role": "ROLE_AGENT", "parts": [{"text": words}]});
            format!(r#","message":{message}"#)
        });
        task.set(&format!(r#"{{"state":"{state}"{}}}"#, message.unwrap_or_default()))
    }
}

fn find<'i>(inner: &'i mut Inner, id: &str) -> Option<&'i mut ServedTask> {
    inner.tasks.iter_mut().find(|task| task.id == id)
}

fn artifact(parts: &str) -> String {
    format!(r#"{{"artifactId":"a1","parts":{parts}}}"#)
}

impl ServedTask {
    fn is_over(&self) -> bool {
        let state = text(&self.status, "/state").expect("a state");
        let live = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"];
        !live.contains(&state.as_str())
    }

    fn ids(&self, name: &str) -> String {
        format!(r#""{name}":"{}","contextId":"{}-context""#, self.id, self.id)
    }

    /// As GetTask returns it.
    fn write(&self) -> String {
        let artifacts = self.parts.as_deref().map(artifact).unwrap_or_default();
        let message = raw(&self.params, "/message").expect("a message");
        format!(
            r#"{{{},"status":{},"artifacts":[{artifacts}],"history":[{message}]}}"#,
            self.ids("id"),
            self.status
        )
    }

    fn tell(&mut self, event: &str) {
        self.streams.retain(|stream| stream.send(event.to_owned()).is_ok());
    }

    /// Another status; returns the event. All streams end with the task.
    fn set(&mut self, status: &str) -> String {
        status.clone_into(&mut self.status);
        let event = format!(r#"{{"statusUpdate":{{{},"status":{status}}}}}"#, self.ids("taskId"));
        self.tell(&event);
        if self.is_over() {
            self.streams.clear();
        }
        event
    }
}

async fn answer(State(shared): State<Shared>, uri: Uri, body: Bytes) -> Response {
    let mut inner = lock(&shared);
    if inner.is_away {
        return StatusCode::NOT_FOUND.into_response();
    }
    if uri.path() == CARD {
        return axum::Json(inner.card.clone()).into_response();
    }
    let body = String::from_utf8(body.to_vec()).expect("text");
    let result = |result: &str| rpc(&format!(r#""result":{result}"#));
    let error = |code: i32| rpc(&format!(r#""error":{{"code":{code},"message":"{REFUSAL}"}}"#));
    let method = text(&body, "/method").expect("a method");
    match method.as_str() {
        "SendMessage" | "SendStreamingMessage" => {
            if let Some(code) = inner.refusal.take() {
                return error(code);
            }
            let params = raw(&body, "/params").expect("parameters");
            let id = format!("remote-{}", inner.tasks.len() + 1);
            let status = r#"{"state":"TASK_STATE_SUBMITTED"}"#.to_owned();
            let mut task = ServedTask { id, params, status, parts: None, streams: Vec::new() };
            let response = match method.as_str() {
                "SendMessage" => result(&format!(r#"{{"task":{}}}"#, task.write())),
                _ => stream(&mut task),
            };
            inner.tasks.push(task);
            response
        }
        "ListTasks" => {
            let tasks: Vec<String> = inner.tasks.iter().map(ServedTask::write).collect();
            let tasks = tasks.join(",");
            result(&format!(r#"{{"tasks":[{tasks}],"nextPageToken":"","pageSize":100}}"#))
        }
        _ => {
            let id = text(&body, "/params/id").unwrap_or_default();
            match (find(&mut inner, &id), method.as_str()) {
                (None, _) => error(-32_001),
                (Some(task), "GetTask") => result(&task.write()),
                (Some(task), "CancelTask" | "SubscribeToTask") if task.is_over() => error(-32_004),
                (Some(task), "SubscribeToTask") => stream(task),
                (Some(task), "CancelTask") => {
                    task.set(r#"{"state":"TASK_STATE_CANCELED"}"#);
                    result(&task.write())
                }
                _ => error(-32_601),
            }
        }
    }
}

/// A JSON-RPC answer.
fn rpc(member: &str) -> Response {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,{member}}}"#);
    ([("content-type", "application/json")], body).into_response()
}

/// The events of a task from now on; the first one is the task.
fn stream(task: &mut ServedTask) -> Response {
    let (sender, events) = unbounded_channel();
    sender.send(format!(r#"{{"task":{}}}"#, task.write())).expect("it is open");
    task.streams.push(sender);
    let frames = stream::unfold(events, async |mut events| {
        let event: String = events.recv().await?;
        let frame = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{event}}}\n\n");
        Some((Ok::<_, std::convert::Infallible>(frame), events))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(frames)).into_response()
}
