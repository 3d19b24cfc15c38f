//! The operator's own keys.

use axum::extract::State;
use http::StatusCode;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::keys::{Key, Kind};
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson;
use serde::Serialize;

use crate::v1::response::{Answered, json};
use crate::v1::auth::{AsOperator, Sent};

#[derive(Serialize)]
struct Issued {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    others_retired: bool,
}

/// `POST /v1/operator/keys`: issues another key; with `retire_others` all other keys stop working.
pub async fn issue(State(floor): State<Floor>, by: AsOperator, Sent(body): Sent) -> Answered {
    let retire_others = retires_others(&body)?;
    let key = Key::make(Kind::Operator, floor.engine.ids().key_bits());
    let (holder, hash) = (Holder::Operator, key.hash());
    let command = Command::IssueKey { holder, hash, retire_others, by_operator: true };
    let ran = floor.engine.run_once(command, by.once).await?;
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    Ok(json(StatusCode::CREATED, &Issued { key: fresh, others_retired: retire_others }))
}

fn retires_others(body: &[u8]) -> Result<bool, Malformed> {
    let json = ijson::read(body)?;
    Ok(Fields::of(&json, "")?.flag("retire_others")?.unwrap_or(false))
}
