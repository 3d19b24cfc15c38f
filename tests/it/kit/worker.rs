//! A worker with an endpoint on loopback and a configured behaviour.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// What the worker answers to a job.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// SUCCESS with this output and cost (decimal text).
    Succeed(Value, &'static str),
    /// FAILURE with this code.
    Fail(Option<&'static str>),
    Pending,
    /// This status and body, verbatim.
    Say(u16, String),
    /// No answer for this long, then SUCCESS.
    Dawdle(Duration),
    /// A redirect to this URL.
    Redirect(String),
}

/// One request the worker received.
#[derive(Clone, Debug)]
pub struct Got {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

#[derive(Clone)]
struct WorkerState {
    behaviour: Arc<Mutex<Behaviour>>,
    got: Arc<Mutex<Vec<Got>>>,
    updates: Arc<Mutex<Vec<Got>>>,
    heard: Arc<tokio::sync::Notify>,
}

/// The worker's server; it stops when dropped.
pub struct Worker {
    pub url: String,
    state: WorkerState,
    task: tokio::task::JoinHandle<()>,
}

impl Worker {
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::at(tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port"), behaviour)
    }

    /// A worker on a listener that is already open.
    pub fn at(listener: tokio::net::TcpListener, behaviour: Behaviour) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = WorkerState {
            behaviour: Arc::new(Mutex::new(behaviour)),
            got: Arc::default(),
            updates: Arc::default(),
            heard: Arc::default(),
        };
        let app = Router::new().fallback(serve).with_state(state.clone());
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url, state, task }
    }

    /// Every request so far, except updates about the worker itself.
    pub fn got(&self) -> Vec<Got> {
        self.state.got.lock().expect("no panic").clone()
    }

    /// Updates about the worker itself: its status and its reputation.
    pub fn updates(&self) -> Vec<Got> {
        self.state.updates.lock().expect("no panic").clone()
    }

    /// Waits for an update that matches.
    pub async fn updated(&self, wanted: impl Fn(&Got) -> bool) -> Got {
        let wait = async {
            loop {
                let told = self.state.heard.notified();
                if let Some(found) = self.updates().into_iter().find(&wanted) {
                    return found;
                }
                told.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.expect("an update")
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.state.behaviour.lock().expect("no panic") = behaviour;
    }

    /// Waits until it has received this many requests.
    pub async fn heard(&self, count: usize) -> Vec<Got> {
        let wait = async {
            loop {
                let told = self.state.heard.notified();
                let got = self.got();
                if got.len() >= count {
                    return got;
                }
                told.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the worker was called")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    State(state): State<WorkerState>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    let job: Value = serde_json::from_str(&body).unwrap_or_default();
    let event = headers.get("rialto-event").and_then(|value| value.to_str().ok());
    let event = event.unwrap_or_default().to_owned();
    super::schemas::check_push(&event, &body);
    let list = if super::schemas::is_update(&event) { &state.updates } else { &state.got };
    list.lock().expect("no panic").push(Got { path: uri.path().to_owned(), headers, body });
    state.heard.notify_waiters();
    let behaviour = state.behaviour.lock().expect("no panic").clone();
    let succeed = |output: Value, cost: &str| {
        let text = format!(
            r#"{{"job_id":{},"status":"SUCCESS","output_data":{output},"execution_cost":{cost},"execution_time_ms":7,"error_message":null}}"#,
            job["job_id"]
        );
        ([("content-type", "application/json")], text).into_response()
    };
    match behaviour {
        Behaviour::Succeed(output, cost) => succeed(output, cost),
        Behaviour::Fail(code) => axum::Json(json!({
            "job_id": job["job_id"], "status": "FAILURE", "output_data": null, "execution_cost": 0,
            "execution_time_ms": 3, "error_message": "it broke", "error_code": code,
        }))
        .into_response(),
        Behaviour::Pending => {
            axum::Json(json!({"job_id": job["job_id"], "status": "PENDING"})).into_response()
        }
        Behaviour::Say(status, text) => {
            (StatusCode::from_u16(status).expect("a status"), text).into_response()
        }
        Behaviour::Dawdle(time) => {
            tokio::time::sleep(time).await;
            succeed(json!({"late": true}), "0.10")
        }
        Behaviour::Redirect(to) => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response()
        }
    }
}
