//! `POST /v1/webhooks/secret`: a new secret for the caller's webhooks.

use axum::extract::State;
use rialto_core::command::Command;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_time, ok_response};

#[derive(Serialize, JsonSchema)]
pub struct SecretResponse {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
    /// Until when every delivery is also signed with the previous secret.
    others_until: Option<Time>,
}

/// Issues a new secret now. Until the others expire each delivery is signed with all of them, so
/// that a running receiver can switch.
pub async fn renew_secret(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let ran = context.engine.run_once(Command::RenewSecret { agent: by.id }, by.once).await?;
    let agent = context.engine.with_world(|world| world.agent(by.id).cloned());
    let agent = agent.ok_or_else(Problem::not_found)?;
    let secret = context.engine.hub_secret().webhook_secret(by.id, agent.secret_generation);
    let webhook_secret = (!ran.replayed).then(|| secret.to_text());
    let others_until = agent.old_secrets.last().map(|old| format_time(old.until));
    Ok(ok_response(&SecretResponse { webhook_secret, others_until }))
}
