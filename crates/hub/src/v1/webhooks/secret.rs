//! `POST /v1/webhooks/secret`: a new secret for the caller's webhooks.

use axum::extract::State;
use rialto_core::command::Command;
use rialto_protocols::adapter::Floor;
use serde::Serialize;

use crate::v1::response::{Answered, ok, time};
use crate::v1::problem::Problem;
use crate::v1::auth::AsAgent;

#[derive(Serialize)]
struct Renewed {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
    /// Until when every delivery is also signed with the previous secret.
    others_until: Option<String>,
}

/// Issues a new secret now. Until the others expire each delivery is signed with all of them, so
/// that a running receiver can switch.
pub async fn renew(State(floor): State<Floor>, by: AsAgent) -> Answered {
    let ran = floor.engine.run_once(Command::RenewSecret { agent: by.id }, by.once).await?;
    let agent = floor.engine.look(|world| world.agent(by.id).cloned());
    let agent = agent.ok_or_else(Problem::not_found)?;
    let secret = floor.engine.secret().webhook_secret(by.id, agent.secret_generation);
    let webhook_secret = (!ran.replayed).then(|| secret.text());
    let others_until = agent.old_secrets.last().map(|old| time(old.until));
    Ok(ok(&Renewed { webhook_secret, others_until }))
}
