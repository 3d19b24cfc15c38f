//! `POST /v1/webhooks/secret`: a new secret for what the hub sends to the caller.

use axum::extract::State;
use rialto_core::command::Command;
use rialto_protocols::face::Floor;
use serde::Serialize;

use crate::v1::answer::{Answered, ok, time};
use crate::v1::problem::Problem;
use crate::v1::proof::AsAgent;

#[derive(Serialize)]
struct Renewed {
    /// Shown once and never again; a repeat of the request does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
    /// Until when everything is also signed with the one before.
    others_until: Option<String>,
}

/// A new one now; until the others run out each call is signed with all of them, so that a running
/// receiver can change over.
pub async fn renew(State(floor): State<Floor>, by: AsAgent) -> Answered {
    let ran = floor.engine.run_once(Command::RenewSecret { agent: by.id }, by.once).await?;
    let agent = floor.engine.look(|world| world.agent(by.id).cloned());
    let agent = agent.ok_or_else(Problem::not_found)?;
    let secret = floor.engine.secret().webhook_secret(by.id, agent.secret_generation);
    let webhook_secret = (!ran.replayed).then(|| secret.text());
    let others_until = agent.old_secrets.last().map(|old| time(old.until));
    Ok(ok(&Renewed { webhook_secret, others_until }))
}
