//! The operator's own keys.

use axum::extract::State;
use http::StatusCode;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::OperatorCaller;
use crate::v1::response::{HandlerResult, json_response};

#[derive(Serialize, JsonSchema)]
pub struct IssueKeyResponse {
    /// Shown once; the saved answer of a repeated request omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    others_retired: bool,
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/operator/keys`.
    KeyBody {
        /// Whether all other operator keys stop working.
        retire_others: Option<bool>,
    }
}

/// `POST /v1/operator/keys`: issues another key; with `retire_others` all other keys stop working.
pub async fn issue_key(
    State(context): State<HubContext>,
    by: OperatorCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let retire_others = parse_retire_others(&body)?;
    let key = Key::from_random(KeyPrefix::OPERATOR, context.engine.random().new_key_bytes());
    let (holder, hash) = (Holder::Operator, key.hash());
    let command = Command::IssueKey { holder, hash, retire_others, by_operator: true };
    let ran = context.engine.run_once(command, by.once).await?;
    let fresh = (!ran.replayed).then(|| key.expose().to_owned());
    Ok(json_response(
        StatusCode::CREATED,
        &IssueKeyResponse { key: fresh, others_retired: retire_others },
    ))
}

fn parse_retire_others(body: &[u8]) -> Result<bool, Malformed> {
    let json = ijson::read(body)?;
    Ok(Fields::read(&json, "")?.flag("retire_others")?.unwrap_or(false))
}
