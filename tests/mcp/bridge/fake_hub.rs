//! A hub that answers what a test wants, and remembers what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};

/// A request that was heard.
#[derive(Clone, Debug)]
pub struct Heard {
    pub path: String,
    pub headers: axum::http::HeaderMap,
    pub text: String,
    pub json: Value,
}

impl Heard {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// What the hub answers.
pub enum Answer {
    /// One message: the text as it stands.
    Text(String),
    /// Messages of a stream, which then stays open without an end.
    Open(Vec<Value>),
    /// Messages of a stream that ends with the last one.
    Stream(Vec<Value>),
}

type Script = dyn Fn(&Heard) -> Answer + Send + Sync;

/// The hub.
#[derive(Clone)]
pub struct FakeHub {
    pub url: String,
    state: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    heard: Mutex<Vec<Heard>>,
    /// Streams that were hung up before their end.
    hung_up: Arc<Mutex<usize>>,
}

/// Counts when it is dropped.
struct HangUp(Arc<Mutex<usize>>);

impl Drop for HangUp {
    fn drop(&mut self) {
        *self.0.lock().expect("no panic") += 1;
    }
}

impl FakeHub {
    pub async fn start(script: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        let (heard, hung_up) = (Mutex::default(), Arc::default());
        let state = Arc::new(Shared { script: Box::new(script), heard, hung_up });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(answer).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, state }
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().expect("no panic").clone()
    }

    pub fn hung_up(&self) -> usize {
        *self.state.hung_up.lock().expect("no panic")
    }
}

/// The result of a request, as the new era has it.
pub fn result(heard: &Heard, result: Value) -> Answer {
    let mut whole = json!({"resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}}});
    for (name, value) in result.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    Answer::Text(json!({"jsonrpc": "2.0", "id": heard.json["id"], "result": whole}).to_string())
}

/// What it answers to `server/discover`.
pub fn discovered(heard: &Heard) -> Answer {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true},
        "prompts": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    result(
        heard,
        json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "instructions": "hello", "ttlMs": 1, "cacheScope": "public"}),
    )
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("UTF-8");
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let json = serde_json::from_str(&text).unwrap_or_default();
    let heard = Heard { path, headers: parts.headers, text, json };
    shared.heard.lock().expect("no panic").push(heard.clone());
    let (kind, body) = match (shared.script)(&heard) {
        Answer::Text(text) => ("application/json", Body::from(text)),
        Answer::Stream(messages) => ("text/event-stream", Body::from(frames(&messages))),
        Answer::Open(messages) => {
            let first = frames(&messages);
            let open = (Some(first), HangUp(shared.hung_up.clone()));
            let stream = stream::unfold(open, async |(first, guard)| {
                let bytes = match first {
                    Some(first) => Bytes::from(first),
                    None => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        Bytes::from(": waiting\n\n")
                    }
                };
                Some((Ok::<_, Infallible>(bytes), (None, guard)))
            });
            ("text/event-stream", Body::from_stream(stream))
        }
    };
    Response::builder().header("content-type", kind).body(body).expect("a response")
}

fn frames(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("event: message\ndata: {message}\n\n")).collect()
}
