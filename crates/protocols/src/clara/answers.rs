//! Short answers of the message unit, and the market's overview (2.1).

use serde::Deserialize;

use crate::kit::ans104::ItemId;
use crate::kit::object::ObjectWriter;

/// The part of the message unit's answer that a client reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AcceptedMessage {
    /// The id of the message.
    pub id: String,
}

/// 202: the message was evaluated and stored.
pub fn message_accepted_body(id: ItemId) -> String {
    processing("Processing DataItem", id)
}

/// 202: a known message was assigned again, which changes nothing.
pub fn assignment_accepted_body(id: ItemId) -> String {
    processing("Processing Assignment", id)
}

/// 200: monitoring was switched on or off. It has no effect: every process here runs by itself.
pub fn monitor_body() -> String {
    ObjectWriter::new().text("message", "ok").finish()
}

/// 200: the process id of the market and the paths of its units.
pub fn overview_body(process: ItemId) -> String {
    ObjectWriter::new()
        .text("process", &process.to_string())
        .text("mu", "/clara/mu")
        .text("cu", "/clara/cu")
        .finish()
}

fn processing(message: &str, id: ItemId) -> String {
    ObjectWriter::new().text("message", message).text("id", &id.to_string()).finish()
}
