//! The caller's own keys: a new one, or none any more.

use axum::extract::State;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::keys::Key;
use rialto_protocols::face::Floor;
use serde::Serialize;

use super::answer::{Answered, ok, time};
use super::proof::AsAgent;

#[derive(Serialize)]
struct Rotated {
    /// Shown once and never again; a repeat of the request does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// When the last of the other keys stops working.
    others_until: Option<String>,
}

/// `POST /v1/keys/rotate`: a new key now; the others run out, so that a running agent can change
/// over.
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

/// `DELETE /v1/keys`: every key of the caller stops working, this one too.
pub async fn revoke(State(floor): State<Floor>, by: AsAgent) -> Answered {
    floor.engine.run(Command::RevokeKeys { agent: by.id, by_operator: false }).await?;
    Ok(ok(&Revoked { revoked: true }))
}
