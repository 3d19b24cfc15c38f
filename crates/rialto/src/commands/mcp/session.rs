//! One client from its first message to the end of its input.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rialto_hub::mcp::fixed::FixedCatalogue;
use rialto_hub::mcp::tools::ToolGroups;
use rialto_hub::mcp::wire::error::{INVALID_REQUEST, RpcError};
use rialto_hub::mcp::wire::version::Era;
use rialto_hub::shutdown::Shutdown;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::hub::{Headers, HubDoor, HubError};
use super::lines::{LINE_BYTES_MAX, Line, Output};
use super::message::{ClientMessage, Members, Refused, Request};
use super::offline;
use super::old_era::OldEra;

/// How many requests may run at once.
const RUNNING_MAX: usize = 256;
/// How long requests may still take when the input has ended.
const FINISH_TIME_MAX: Duration = Duration::from_millis(1_500);
/// How long a refusal waits for a client that does not read.
const REFUSAL_TIME_MAX: Duration = Duration::from_millis(500);
/// The code for more requests at once than the bridge runs.
const TOO_MANY: i64 = -32000;

/// What all requests of a client share.
pub struct Connection {
    pub hub: Arc<HubDoor>,
    pub fixed: FixedCatalogue,
    pub output: Output,
}

/// A request to the hub.
#[derive(Clone, Copy, Debug)]
pub struct HubRequest<'a> {
    /// JSON text.
    pub id: &'a str,
    pub method: &'a str,
    pub name: Option<&'a str>,
    pub version: &'a str,
    /// The whole message.
    pub text: &'a str,
}

impl Connection {
    /// The response of the new era to a request. What the hub sends before it goes to the client.
    pub async fn call(&self, request: HubRequest<'_>) -> String {
        match self.call_hub(request).await {
            Ok(response) => response,
            Err(error) => {
                let HubRequest { method, id, .. } = request;
                offline::answer(&self.fixed, self.hub.base(), &error, method, id)
            }
        }
    }

    async fn call_hub(&self, request: HubRequest<'_>) -> Result<String, HubError> {
        let HubRequest { id, method, name, version, text } = request;
        let headers = Headers { method, name, version };
        let mut replies = self.hub.post(text, headers, needs_key(method)).await?;
        loop {
            let message = replies.next().await?;
            let members = Members::read(&message).unwrap_or_default();
            if members.get("method").is_some() {
                self.output.send(message).await;
            } else if members.get("id").is_some() {
                return Ok(message);
            } else {
                // The hub refused the request before it read its id.
                let begun = Members::default().begin().text("jsonrpc", "2.0").raw("id", id);
                let rest = members.without(&["jsonrpc"]);
                let whole =
                    rest.iter().fold(begun, |object, (name, value)| object.raw(name, value));
                return Ok(whole.finish());
            }
        }
    }
}

/// Whether a method is of no use without the key of an agent.
fn needs_key(method: &str) -> bool {
    matches!(method, "tools/call" | "resources/read" | "subscriptions/listen")
        || method.starts_with("tasks/")
}

/// One client.
pub struct Session {
    connection: Arc<Connection>,
    old: Arc<OldEra>,
    /// That of the first message.
    era: Option<Era>,
    /// The requests that are not answered yet, each as a task that returns its id.
    tasks: JoinSet<String>,
    running: HashMap<String, AbortHandle>,
    /// Whether the last refusal was dropped, because the client does not read.
    is_stalled: bool,
}

impl Session {
    pub fn new(hub: Arc<HubDoor>, groups: ToolGroups, output: Output) -> Self {
        let fixed = FixedCatalogue { groups, is_for_agents: hub.is_for_agents() };
        let connection = Arc::new(Connection { hub, fixed, output });
        let old = Arc::new(OldEra::new(connection.clone()));
        let (tasks, running) = (JoinSet::new(), HashMap::new());
        Self { connection, old, era: None, tasks, running, is_stalled: false }
    }

    /// Serves until the input ends, the client closes its end, or the process is told to stop.
    pub async fn serve(mut self, mut lines: mpsc::Receiver<Line>, stop: &Shutdown) {
        loop {
            // The end comes first, however much there is to read.
            tokio::select! {
                biased;
                () = stop.wait() => break,
                () = self.connection.output.closed() => break,
                Some(done) = self.tasks.join_next() => {
                    if let Ok(id) = done {
                        self.forget(&id);
                    }
                }
                line = lines.recv() => match line {
                    Some(line) => self.read(line).await,
                    None => {
                        self.finish(stop).await;
                        break;
                    }
                },
            }
        }
        self.tasks.shutdown().await;
        self.old.stop();
    }

    /// Waits for requests that are almost done, if the client reads their answers.
    async fn finish(&mut self, stop: &Shutdown) {
        if self.is_stalled {
            return;
        }
        let end = Instant::now() + FINISH_TIME_MAX;
        let all = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = stop.wait() => {}
            _ = timeout_at(end, all) => {}
        }
    }

    fn forget(&mut self, id: &str) {
        // The client may have used the id again.
        if self.running.get(id).is_some_and(AbortHandle::is_finished) {
            self.running.remove(id);
        }
    }

    async fn read(&mut self, line: Line) {
        let message = match line {
            Line::Bytes(bytes) => ClientMessage::read(&bytes),
            Line::TooLong => {
                let text = format!("Invalid Request: a line has at most {LINE_BYTES_MAX} bytes");
                Err(Refused(RpcError::new(INVALID_REQUEST, text).write(None)))
            }
        };
        match message {
            Err(Refused(answer)) => self.refuse(answer).await,
            Ok(ClientMessage::Request(request)) => self.start(request).await,
            Ok(ClientMessage::Response { id, result }) => self.old.answered(&id, result),
            Ok(ClientMessage::Notification { method, request_id }) => {
                self.era.get_or_insert(Era::Old);
                if method == "notifications/cancelled"
                    && let Some(running) = request_id.and_then(|id| self.running.remove(&id))
                {
                    // Dropping the call hangs up.
                    running.abort();
                }
            }
        }
    }

    /// Answers without a call. The next lines are read even if the client does not read this: the end
    /// of the input stands behind them.
    async fn refuse(&mut self, answer: String) {
        let output = &self.connection.output;
        // Even the shortest wait is too long for each of very many lines.
        let was_sent = match self.is_stalled {
            true => output.try_send(answer),
            false => output.send_within(answer, REFUSAL_TIME_MAX).await,
        };
        self.is_stalled = !was_sent;
    }

    async fn start(&mut self, request: Request) {
        let era = *self.era.get_or_insert(if request.is_new { Era::New } else { Era::Old });
        let refuse = |code, text: &str| RpcError::new(code, text).write(Some(&request.id));
        if self.running.get(&request.id).is_some_and(|running| !running.is_finished()) {
            let refusal = refuse(INVALID_REQUEST, "Invalid Request: a request with this id runs");
            return self.refuse(refusal).await;
        }
        if self.tasks.len() >= RUNNING_MAX {
            let refusal = refuse(TOO_MANY, "too many requests at once; wait until one is answered");
            return self.refuse(refusal).await;
        }
        let id = request.id.clone();
        let (connection, old) = (self.connection.clone(), self.old.clone());
        if era == Era::Old && request.method == "initialize" {
            old.open(&request.params);
        }
        let task = self.tasks.spawn(async move {
            let response = match era {
                Era::New => pass_on(&connection, &request).await,
                Era::Old => old.respond(&request).await,
            };
            connection.output.send(response).await;
            request.id
        });
        self.running.insert(id, task);
    }
}

/// Sends the request of a new client to the hub as it stands.
async fn pass_on(connection: &Connection, request: &Request) -> String {
    let params = Members::read(&request.params).unwrap_or_default();
    let meta = params.members("_meta").unwrap_or_default();
    let version = meta.text(&super::message::meta_name("protocolVersion"));
    connection
        .call(HubRequest {
            id: &request.id,
            method: &request.method,
            name: request.name.as_deref(),
            // A request without a version is refused by the hub, whatever the header says.
            version: version.as_deref().unwrap_or(super::hub::SPOKEN),
            text: &request.text,
        })
        .await
}
