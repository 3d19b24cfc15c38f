//! The caller's own keys: rotate or revoke.

use axum::extract::State;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::keys::Key;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;

use super::auth::AgentCaller;
use super::response::{HandlerResult, format_time, ok_response};

#[derive(Serialize, JsonSchema)]
pub struct RotateKeyResponse {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// When the last of the other keys expires.
    others_until: Option<Time>,
}

/// `POST /v1/keys/rotate`: issues a new key now. The other keys expire later, so that a running
/// agent can switch.
pub async fn rotate_key(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let key = Key::from_random(by.prefix, context.engine.random().new_key_bytes());
    let holder = Holder::Agent(by.id);
    let command =
        Command::IssueKey { holder, hash: key.hash(), retire_others: true, by_operator: false };
    let ran = context.engine.run_once(command, by.once).await?;
    let until = context.engine.with_world(|world| {
        world.keys_of(by.id).filter_map(|key| key.valid_until).max().map(format_time)
    });
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    Ok(ok_response(&RotateKeyResponse { key: fresh, others_until: until }))
}

#[derive(Serialize, JsonSchema)]
pub struct RevokeKeysResponse {
    revoked: bool,
}

/// `DELETE /v1/keys`: revokes every key of the caller, this one too.
pub async fn revoke_keys(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    context.engine.run(Command::RevokeKeys { agent: by.id, by_operator: false }).await?;
    Ok(ok_response(&RevokeKeysResponse { revoked: true }))
}
