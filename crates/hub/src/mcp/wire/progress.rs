//! Messages that are sent before the response of a request.

use rialto_protocols::kit::object::ObjectWriter;
use tokio::sync::mpsc;

/// How many messages may wait for the connection.
const QUEUED_MAX: usize = 64;

/// Where a call sends what it has to say before its response.
#[derive(Clone, Debug)]
pub struct Outgoing(mpsc::Sender<String>);

/// The messages in their order.
pub type OutgoingMessages = mpsc::Receiver<String>;

impl Outgoing {
    pub fn new() -> (Self, OutgoingMessages) {
        let (sender, receiver) = mpsc::channel(QUEUED_MAX);
        (Self(sender), receiver)
    }

    /// Sends a notification once the connection has room for it. `false` once nobody reads any more.
    pub async fn send(&self, method: &str, params: &str) -> bool {
        self.0.send(write_notification(method, params)).await.is_ok()
    }

    /// Sends a notification unless the client reads too slowly for it.
    fn try_send(&self, method: &str, params: &str) {
        let _ = self.0.try_send(write_notification(method, params));
    }
}

fn write_notification(method: &str, params: &str) -> String {
    ObjectWriter::new().text("jsonrpc", "2.0").text("method", method).raw("params", params).finish()
}

/// How far a call is, for a client that asked to be told.
#[derive(Clone, Debug)]
pub struct Progress {
    /// JSON text; `None` if the client did not ask.
    token: Option<String>,
    outgoing: Outgoing,
    count: u32,
}

impl Progress {
    pub fn new(token: Option<String>, outgoing: Outgoing) -> Self {
        Self { token, outgoing, count: 0 }
    }

    /// Whether the client wants to be told.
    pub fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    /// Reports one more step.
    pub fn report(&mut self, message: &str) {
        self.report_of(message, None);
    }

    /// Reports one more step of so many.
    pub fn report_of(&mut self, message: &str, total: Option<u32>) {
        let Some(token) = &self.token else { return };
        self.count += 1;
        let params = ObjectWriter::new()
            .raw("progressToken", token)
            .integer("progress", i64::from(self.count))
            .maybe_integer("total", total.map(i64::from))
            .text("message", message)
            .finish();
        self.outgoing.try_send("notifications/progress", &params);
    }
}
