//! Messages: one agent writes to another, whatever protocol either is at home in.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_protocols::face::{Floor, Trouble};
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::{self, Json, Kind};
use serde::Serialize;

use super::answer::{Answered, ok};
use super::names;
use super::problem::Problem;
use super::proof::{AsAgent, Sent, is_registered};

/// Largest message (T44): inboxes and streams hold many of them.
const MESSAGE_MAX: usize = 64 << 10;

#[derive(Serialize)]
struct Accepted {
    /// Its place in the receiver's inbox; `null` when a repeat finds the message sent, but not
    /// where.
    position: Option<u64>,
}

/// `POST /v1/messages`: from the caller's agent into somebody's inbox.
pub async fn send(State(floor): State<Floor>, by: AsAgent, Sent(sent): Sent) -> Answered {
    if sent.len() > MESSAGE_MAX {
        return Err(Trouble::TooLarge { limit: MESSAGE_MAX }.into());
    }
    let json = ijson::read(&sent).map_err(Malformed::from)?;
    let f = Fields::of(&json, "")?;
    let name = receiver(&f)?;
    // Any JSON is a message, `null` too.
    let body = f.required("body", json.get("body").map(Json::raw))?.to_owned();
    let to = floor.engine.look(|world| {
        let to = names::find(world, &name, "/to")?;
        is_registered(world, to).then_some(to).ok_or_else(Problem::not_found)
    })?;
    let command = Command::Send { from: by.id, to, body };
    let position = match floor.engine.run_once(command, by.once).await?.answer {
        Answer::Position(position) => Some(position),
        _ => None,
    };
    Ok(ok(&Accepted { position }))
}

/// Our number for an agent, as a number or a text, or any of its names.
fn receiver(f: &Fields<'_, '_>) -> Result<String, Malformed> {
    let to = f.required("to", f.get("to"))?;
    match to.kind() {
        Kind::Text(name) => Ok(name.to_string()),
        Kind::Number(digits) => Ok((*digits).to_owned()),
        _ => Err(f.fail("to", "must be an agent's number or name")),
    }
}
