//! Short answers of the message unit, and what the market says about itself (2.1).

use serde::Deserialize;

use crate::kit::ans104::Id;
use crate::kit::object::Object;

/// What a client reads of a message that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Taken {
    /// What the message is called.
    pub id: String,
}

/// 202: a message was evaluated and will not be lost.
pub fn taken(id: Id) -> String {
    processing("Processing DataItem", id)
}

/// 202: a message that is known was assigned, which changes nothing.
pub fn assigned(id: Id) -> String {
    processing("Processing Assignment", id)
}

/// 200: a process is watched, or no longer. Every process here runs by itself.
pub fn monitored() -> String {
    Object::new().text("message", "ok").finish()
}

/// 200: where the market is.
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
