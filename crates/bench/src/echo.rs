//! The bare echo server: the least a server can do with a registry job, a relay message or a
//! SendMessage of A2A, which is to parse it and answer.
//!
//! It parses the same body as the hub into a type and answers with a body of the same shape and
//! size, over the same HTTP library, on the same number of threads. It verifies, decides and stores
//! nothing: the difference between it and the hub is the cost of the hub's guarantees. It can also
//! stand in for a worker that a hub sends jobs to, since its answer is a job's result.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::load::Target;
use crate::process::ServerProcess;

/// The argument that makes this program an echo server.
pub const SERVE_ECHO: &str = "serve-echo";
/// Where it answers a SendMessage of A2A.
pub const A2A_PATH: &str = "/a2a";
/// Where it is a worker that costs nothing.
pub const FREE_WORKER_PATH: &str = "/free/jobs";
/// Time limit for its start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The timestamp of an answer if the job has none.
const DEFAULT_TIME: &str = "2026-01-01T00:00:00Z";
/// As long as the hub's own trace id.
const DEFAULT_TRACE: &str = "6f1c2d3e-4a5b-4c6d-8e7f-901234567890";
const DEFAULT_RELAY_TIME: &str = "2026-01-01T00:00:00.000Z";

/// A running echo server; it ends when this is dropped.
#[derive(Debug)]
pub struct EchoServer {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

/// The worker id and price that the echo reports.
#[derive(Clone, Debug)]
pub struct EchoWorker {
    /// The worker's id, a UUID.
    pub agent_id: String,
    /// Price of one job.
    pub cost: f64,
}

impl Default for EchoWorker {
    fn default() -> Self {
        Self { agent_id: Uuid::nil().to_string(), cost: 0.01 }
    }
}

impl EchoServer {
    /// Starts listening on a free port of the loopback interface, with a runtime of its own that
    /// has `threads` worker threads.
    pub fn start(threads: usize, worker: EchoWorker) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("echo")
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        // An answer must not wait for the acknowledgement of the previous one. If this fails, the
        // figures get worse but stay valid.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let router = Router::new()
            .route("/jobs", post(finish_job))
            .route("/registry/jobs", post(finish_job))
            .route(FREE_WORKER_PATH, post(finish_free_job))
            .route(A2A_PATH, post(complete_task))
            .route("/relay/messages", post(accept_message))
            .with_state(Arc::new(worker));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, runtime: Some(runtime) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// An echo server in a process of its own, like the hub beside which it is measured.
pub struct EchoProcess {
    address: SocketAddr,
    server: ServerProcess,
}

impl EchoProcess {
    /// Starts this program as an echo server.
    pub fn start() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let server = ServerProcess::spawn(command.arg(SERVE_ECHO))?;
        let address = server.next_line(START_TIMEOUT).and_then(|line| line.parse().ok());
        let address = address.ok_or_else(|| io::Error::other("the echo did not start"))?;
        Ok(Self { address, server })
    }

    /// This echo as the target of a load.
    pub fn target(&self) -> Target {
        Target { pid: Some(self.server.pid()), ..Target::new(self.address) }
    }
}

/// Runs an echo server in this process until standard input is closed, and prints its address.
pub fn serve(threads: usize) -> io::Result<()> {
    let echo = EchoServer::start(threads, EchoWorker::default())?;
    println!("{}", echo.address());
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        // Not the runtime's own drop: that one blocks and therefore panics inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A registry job, as far as the echo has to parse it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Job {
    job_id: String,
    /// The worker, if the job is for a certain one.
    agent_id: Option<String>,
    orchestrator_id: String,
    skill_name: String,
    input_data: Value,
    budget: f64,
    currency: Option<String>,
    callback_url: Option<String>,
    timestamp_utc: Option<String>,
}

/// A registry job's result.
#[derive(Serialize)]
struct JobResult<'a> {
    job_id: &'a str,
    agent_id: &'a str,
    status: &'a str,
    output_data: &'a Value,
    execution_cost: f64,
    execution_time_ms: u64,
    error_message: Option<&'a str>,
    error_code: Option<&'a str>,
    timestamp_utc: &'a str,
}

async fn finish_job(worker: State<Arc<EchoWorker>>, body: Bytes) -> Response {
    finish(&worker, &body)
}

async fn finish_free_job(worker: State<Arc<EchoWorker>>, body: Bytes) -> Response {
    finish(&EchoWorker { cost: 0.0, ..EchoWorker::clone(&worker) }, &body)
}

fn finish(worker: &EchoWorker, body: &[u8]) -> Response {
    let job: Job = match serde_json::from_slice(body) {
        Ok(job) => job,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let outcome = JobResult {
        job_id: &job.job_id,
        agent_id: job.agent_id.as_deref().unwrap_or(&worker.agent_id),
        status: "SUCCESS",
        output_data: &job.input_data,
        execution_cost: worker.cost,
        execution_time_ms: 1,
        error_message: None,
        error_code: None,
        timestamp_utc: job.timestamp_utc.as_deref().unwrap_or(DEFAULT_TIME),
    };
    match serde_json::to_vec(&outcome) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// A message to send, as far as the echo has to parse it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Message {
    receiver_id: String,
    envelope: Envelope,
    stream: Option<bool>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Envelope {
    chorus_version: String,
    sender_id: String,
    original_text: String,
    sender_culture: String,
    cultural_context: Option<String>,
    conversation_id: Option<String>,
    turn_number: Option<u64>,
}

#[derive(Serialize)]
struct QueuedResponse {
    success: bool,
    data: DeliveryBody,
    metadata: Metadata,
}

#[derive(Serialize)]
struct DeliveryBody {
    delivery: &'static str,
    trace_id: &'static str,
}

#[derive(Serialize)]
struct Metadata {
    timestamp: &'static str,
}

/// `POST /relay/messages`, without any of the hub's work.
async fn accept_message(body: Bytes) -> Response {
    match serde_json::from_slice::<Message>(&body) {
        Ok(_) => {
            let data = DeliveryBody { delivery: "queued", trace_id: DEFAULT_TRACE };
            let metadata = Metadata { timestamp: DEFAULT_RELAY_TIME };
            (StatusCode::ACCEPTED, Json(QueuedResponse { success: true, data, metadata }))
                .into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// A call of A2A, as far as the echo has to parse it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Call {
    jsonrpc: String,
    id: Value,
    method: String,
    params: SendParams,
}

#[derive(Deserialize)]
struct SendParams {
    message: UserMessage,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserMessage {
    message_id: String,
    role: String,
    parts: Vec<Value>,
}

#[derive(Serialize)]
struct CallResponse<'a> {
    jsonrpc: &'a str,
    id: &'a Value,
    result: SentTask<'a>,
}

#[derive(Serialize)]
struct SentTask<'a> {
    task: EndedTask<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EndedTask<'a> {
    id: &'a str,
    context_id: &'a str,
    status: EndedStatus<'a>,
    artifacts: [Artifact<'a>; 1],
    history: [&'a UserMessage; 1],
}

#[derive(Serialize)]
struct EndedStatus<'a> {
    state: &'a str,
    timestamp: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'a str,
    parts: &'a [Value],
}

/// `SendMessage` of A2A, without any of the hub's work.
async fn complete_task(body: Bytes) -> Response {
    let call: Call = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let message = &call.params.message;
    let task = EndedTask {
        id: DEFAULT_TRACE,
        context_id: DEFAULT_TRACE,
        status: EndedStatus { state: "TASK_STATE_COMPLETED", timestamp: DEFAULT_RELAY_TIME },
        artifacts: [Artifact { artifact_id: "result", parts: &message.parts }],
        history: [message],
    };
    let result = SentTask { task };
    Json(CallResponse { jsonrpc: "2.0", id: &call.id, result }).into_response()
}
