//! The caller's own keys: rotate or revoke.

use axum::extract::State;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::keys::Key;
use rialto_protocols::adapter::Floor;
use serde::Serialize;

use super::response::{Answered, ok, time};
use super::auth::AsAgent;

#[derive(Serialize)]
struct Rotated {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// When the last of the other keys expires.
    others_until: Option<String>,
}

/// `POST /v1/keys/rotate`: issues a new key now. The other keys expire later, so that a running
/// agent can switch.
pub async fn rotate(State(floor): State<Floor>, by: AsAgent) -> Answered {
    let key = Key::make(by.kind, floor.engine.ids().key_bits());
    let holder = Holder::Agent(by.id);
    let command =
        Command::IssueKey { holder, hash: key.hash(), retire_others: true, by_operator: false };
    let ran = floor.engine.run_once(command, by.once).await?;
    let until =
        floor.engine.look(|world| world.keys_of(by.id).filter_map(|key| key.until).max().map(time));
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    Ok(ok(&Rotated { key: fresh, others_until: until }))
}

#[derive(Serialize)]
struct Revoked {
    revoked: bool,
}

/// `DELETE /v1/keys`: revokes every key of the caller, this one too.
pub async fn revoke(State(floor): State<Floor>, by: AsAgent) -> Answered {
    floor.engine.run(Command::RevokeKeys { agent: by.id, by_operator: false }).await?;
    Ok(ok(&Revoked { revoked: true }))
}
