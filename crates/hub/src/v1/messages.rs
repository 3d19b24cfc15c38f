//! Messages from one agent to another, whatever the home protocol of each.

use axum::extract::State;
use rialto_core::alias::Protocol;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, SendMessage};
use rialto_core::id::AgentId;
use rialto_core::time::Millis;
use rialto_engine::Failure;
use rialto_engine::store::{Row, RowKey};
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::adapter::{EdgeError, HubContext};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson::{self, Json};
use schemars::JsonSchema;
use serde::Serialize;

use super::agent_names;
use super::auth::{AgentCaller, is_registered};
use super::problem::Problem;
use super::response::{HandlerResult, ok_response};
use super::strict_fields;
use crate::v1::params::AgentName;

/// Largest message (T44): inboxes and streams hold many of them.
const MESSAGE_MAX: usize = 64 << 10;

/// The protocol recorded for messages sent here: any JSON.
const V1_PROTOCOL: Protocol = Protocol::new("v1");

#[derive(Serialize, JsonSchema)]
pub struct SendResponse {
    /// Its position in the receiver's inbox.
    position: u64,
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/messages`.
    #[schemars(deny_unknown_fields)]
    MessageBody {
        /// The receiver, by number or any of its names.
        to: AgentName,
        /// Any JSON, at most 64 KiB with its surroundings.
        body: serde_json::Value,
    }
}

/// `POST /v1/messages`: from the caller's agent to another agent's inbox.
pub async fn send_message(
    State(context): State<HubContext>,
    by: AgentCaller,
    BodyBytes(sent): BodyBytes,
) -> HandlerResult {
    if sent.len() > MESSAGE_MAX {
        return Err(EdgeError::TooLarge { limit: MESSAGE_MAX }.into());
    }
    let json = ijson::read(&sent).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, MessageBody::MEMBERS)?;
    let name = f.required("to", agent_names::parse_agent_name(&f, "to")?)?;
    // Any JSON is a valid message, `null` too.
    let body = f.required("body", json.get("body").map(Json::raw))?.to_owned();
    let to = context.engine.with_world(|world| {
        let to = agent_names::find_agent(world, &name, "/to")?;
        is_registered(world, to).then_some(to).ok_or_else(Problem::not_found)
    })?;
    let SentMessage { position, .. } = store_message(&context, by, to, body).await?;
    Ok(ok_response(&SendResponse { position }))
}

/// A message in its receiver's inbox.
pub struct SentMessage {
    pub position: u64,
    /// It was sent before, with the same idempotency key.
    pub repeated: bool,
}

/// Stores a message, any JSON text, for its receiver.
pub async fn store_message(
    context: &HubContext,
    by: AgentCaller,
    to: AgentId,
    body: String,
) -> Result<SentMessage, Problem> {
    let order = SendMessage {
        from: Some(by.id),
        to,
        protocol: V1_PROTOCOL,
        body,
        url: None,
        first_try: Millis(0),
        identity: None,
        by_operator: false,
    };
    let sent = context.engine.run_once(Command::SendMessage(Box::new(order)), by.once).await?;
    let Answer::Message { notice, repeated } = sent.answer else {
        return Err(Failure::Fault.into());
    };
    match context.engine.load_row(RowKey::Notice(notice)).await? {
        Some(Row::Notice(notice)) => {
            Ok(SentMessage { position: notice.position, repeated: repeated || sent.replayed })
        }
        _ => Err(Failure::Fault.into()),
    }
}
