//! Short answers of the message unit, and the market's overview (2.1).

use serde::Deserialize;

use crate::kit::ans104::Id;
use crate::kit::object::Object;

/// The part of the message unit's answer that a client reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Taken {
    /// The id of the message.
    pub id: String,
}

/// 202: the message was evaluated and stored.
pub fn taken(id: Id) -> String {
    processing("Processing DataItem", id)
}

/// 202: a known message was assigned again, which changes nothing.
pub fn assigned(id: Id) -> String {
    processing("Processing Assignment", id)
}

/// 200: monitoring was switched on or off. It has no effect: every process here runs by itself.
pub fn monitored() -> String {
    Object::new().text("message", "ok").finish()
}

/// 200: the process id of the market and the paths of its units.
pub fn overview(process: Id) -> String {
    Object::new()
        .text("process", &process.to_string())
        .text("mu", "/clara/mu")
        .text("cu", "/clara/cu")
        .finish()
}

fn processing(message: &str, id: Id) -> String {
    Object::new().text("message", message).text("id", &id.to_string()).finish()
}
