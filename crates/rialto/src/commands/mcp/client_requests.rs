//! Requests of the bridge to its client: what an old client asks its user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rialto_protocols::kit::object::ObjectWriter;
use tokio::sync::oneshot;

use super::lines::Output;
use super::message::notification;

/// The result of a request, as JSON text; `None` if the client answered with an error.
type ClientResult = Option<String>;
type Waiting = HashMap<String, oneshot::Sender<ClientResult>>;

/// What the client has not answered yet.
pub struct ClientRequests {
    output: Output,
    last_id: AtomicU64,
    waiting: Mutex<Waiting>,
}

impl ClientRequests {
    pub fn new(output: Output) -> Self {
        Self { output, last_id: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Sends a request and waits for its result. If the wait ends early, the client is told.
    pub async fn ask(&self, method: &str, params: &str) -> ClientResult {
        let number = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        // The client's own ids may be numbers, and its strings may be anything.
        let id = format!("\"rialto-{number}\"");
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        let wait = Wait { requests: self, id: &id };
        let request = ObjectWriter::new()
            .text("jsonrpc", "2.0")
            .raw("id", &id)
            .text("method", method)
            .raw("params", params);
        self.output.send(request.finish()).await;
        let result = receiver.await.ok().flatten();
        drop(wait);
        result
    }

    /// Hands a response to the request that waits for it. Others are ignored.
    pub fn answer(&self, id: &str, result: ClientResult) {
        if let Some(waiting) = self.waiting().remove(id) {
            let _ = waiting.send(result);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is waited for.
struct Wait<'a> {
    requests: &'a ClientRequests,
    id: &'a str,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.requests.waiting().remove(self.id).is_some() {
            let params = ObjectWriter::new().raw("requestId", self.id).finish();
            self.requests.output.try_send(notification("notifications/cancelled", &params));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::lines::write_lines;

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_any_more_is_taken_back() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let (output, _written) = write_lines(writer);
        let lines = crate::commands::mcp::lines::read_lines(reader);
        let requests = ClientRequests::new(output);
        let ask = requests.ask("elicitation/create", "{}");
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), ask).await;
        assert!(waited.is_err());
        drop(requests);
        let mut lines = lines;
        let mut told = Vec::new();
        while let Some(crate::commands::mcp::lines::Line::Bytes(line)) = lines.recv().await {
            told.push(String::from_utf8(line).expect("UTF-8"));
        }
        assert_eq!(
            told,
            [
                r#"{"jsonrpc":"2.0","id":"rialto-1","method":"elicitation/create","params":{}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"rialto-1"}}"#,
            ]
        );
    }
}
