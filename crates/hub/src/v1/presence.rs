//! Presence: an agent sets its availability or unregisters.

use axum::extract::State;
use rialto_core::agent::presence::Stance;
use rialto_core::agent::status::Condition;
use rialto_core::command::Command;
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use serde::Serialize;

use super::response::{Answered, ok};
use super::strict_fields;
use super::auth::{AsAgent, Sent};

#[derive(Serialize)]
struct Stands {
    status: &'static str,
}

/// `POST /v1/me/status`: sets the availability. An offline agent gets no new work but keeps its
/// assigned jobs. A busy agent is online, and new work may have to wait.
pub async fn stand(State(floor): State<Floor>, by: AsAgent, Sent(body): Sent) -> Answered {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::fields(&json, &["status"])?;
    let (stance, status) = match f.required("status", f.text("status")?)? {
        "online" => (Stance::Idle, "online"),
        "busy" => (Stance::Busy, "busy"),
        "offline" => (Stance::Offline, "offline"),
        _ => return Err(f.fail("status", "must be online, busy or offline").into()),
    };
    let told = Condition { stance, until: None, words: None };
    floor.engine.run_once(Command::Stand { agent: by.id, told }, by.once).await?;
    Ok(ok(&Stands { status }))
}

/// `DELETE /v1/me`: unregisters the caller. Its id stays reserved, and it may register again with
/// this key; its assigned jobs fail.
pub async fn leave(State(floor): State<Floor>, by: AsAgent) -> Answered {
    let command = Command::Remove { agent: by.id, by_operator: false };
    floor.engine.run_once(command, by.once).await?;
    Ok(ok(&Stands { status: "unregistered" }))
}
