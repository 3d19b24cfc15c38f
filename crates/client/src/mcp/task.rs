//! Calls that a server answers with a task, which is asked for until it has ended.

use std::time::Duration;

use rialto_protocols::kit::object::ObjectWriter;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::connection::{CallEvent, Connection};
use super::message::{McpError, Request, ServerError};

/// How long to wait before a task is asked for, whatever the server says.
const POLL_MIN: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_secs(30);
const POLL_DEFAULT: Duration = Duration::from_secs(1);

/// A task as a server describes it.
#[derive(Deserialize)]
struct TaskState<'a> {
    #[serde(rename = "taskId", default)]
    id: String,
    status: String,
    #[serde(rename = "statusMessage")]
    message: Option<String>,
    #[serde(rename = "pollIntervalMs")]
    poll_interval_ms: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<TaskError>,
}

#[derive(Deserialize)]
struct TaskError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

impl TaskState<'_> {
    fn poll_interval(&self) -> Duration {
        let asked = self.poll_interval_ms.map(Duration::from_millis);
        asked.unwrap_or(POLL_DEFAULT).clamp(POLL_MIN, POLL_MAX)
    }
}

fn read(text: &str) -> Result<TaskState<'_>, McpError> {
    let unreadable = |error| McpError::Unreadable(format!("the task cannot be read: {error}"));
    serde_json::from_str(text).map_err(unreadable)
}

/// A task that is wanted. Dropping it before its end cancels it.
struct WantedTask<'c> {
    connection: &'c Connection,
    id: String,
    is_over: bool,
}

impl WantedTask<'_> {
    fn request(&self, method: &'static str) -> Request {
        let params = ObjectWriter::new().text("taskId", &self.id).finish();
        Request::new(method, params).header("Mcp-Name", &self.id)
    }
}

impl Drop for WantedTask<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.send_detached(self.request("tasks/cancel"));
        }
    }
}

/// Follows a task from the result that created it to its own result.
pub(super) async fn follow(
    connection: &Connection,
    created: &str,
    on_event: &mut (dyn FnMut(CallEvent) + Send),
) -> Result<String, McpError> {
    let first = read(created)?;
    if first.id.is_empty() {
        return Err(McpError::Unreadable("the task has no taskId".to_owned()));
    }
    let mut pause = first.poll_interval();
    let mut task = WantedTask { connection, id: first.id.clone(), is_over: false };
    on_event(CallEvent::Working(first.message));
    loop {
        sleep(pause).await;
        let answer = connection.request(task.request("tasks/get"), &mut |_| {}).await;
        let text = match answer {
            Ok(text) => text,
            // A task outlives the connection it was made on, but not its server's process.
            Err(McpError::NotSent(_) | McpError::Lost(_) | McpError::Refused(_))
                if connection.is_http() =>
            {
                continue;
            }
            Err(McpError::Server(error)) => {
                task.is_over = true;
                return Err(McpError::Lost(format!("the server has lost the task: {error}")));
            }
            Err(error) => {
                task.is_over = true;
                return Err(McpError::Lost(error.to_string()));
            }
        };
        let state = read(&text)?;
        pause = state.poll_interval();
        match state.status.as_str() {
            "working" => on_event(CallEvent::Working(state.message)),
            "input_required" => return Err(McpError::InputRequired),
            "completed" => {
                task.is_over = true;
                let no_result = || McpError::Unreadable("the task has no result".to_owned());
                return state.result.map(|result| result.get().to_owned()).ok_or_else(no_result);
            }
            other => {
                task.is_over = true;
                let why = state.message.unwrap_or_else(|| format!("the task is {other}"));
                let TaskError { code, message } =
                    state.error.unwrap_or(TaskError { code: 0, message: why });
                return Err(McpError::Server(ServerError { code, message, data: None }));
            }
        }
    }
}
