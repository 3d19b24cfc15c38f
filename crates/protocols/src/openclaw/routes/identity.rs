//! Publishes identities.

use std::net::SocketAddr;

use axum::extract::State;
use axum::response::Response;
use rialto_core::agent::Liveness;
use rialto_core::answer::Answer;
use rialto_engine::keys::{Key, KeyKind};

use super::aside::run_blocking_limited;
use super::{about, failed};
use crate::adapter::{HubContext, NewAgent, make_aliases};
use crate::openclaw::answers::Published;
use crate::openclaw::codes::Code;
use crate::openclaw::common::CommonMembers;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Identity, Message};
use crate::openclaw::proof::{BodyBytes, OptionalCaller};
use crate::openclaw::refusals;
use crate::openclaw::say::{self, ErrorResponse, HandlerResult};
use crate::openclaw::translate::{self, Publication};
use crate::openclaw::{ID, IDENTITY_MAX};

/// `POST /identity`.
pub async fn publish_identity(
    State(context): State<HubContext>,
    anyone: OptionalCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let read = run_blocking_limited(move || message::read(&body)).await;
    let read = read.unwrap_or_else(|| Err(Failure::internal("reading")));
    let message = read.map_err(|bad| ErrorResponse::new(&context, bad))?;
    publish(&context, anyone, &message).await
}

/// The same from `POST /messages`. A new agent counts against the registration limits.
pub async fn publish_from_messages(
    context: &HubContext,
    anyone: OptionalCaller,
    from: Option<SocketAddr>,
    message: &Message<Identity>,
) -> HandlerResult {
    let named = message.body.agent_id.to_string();
    if context.engine.with_world(|world| world.agent_by_alias(ID, &named).is_none()) {
        let counted = context.write_limiter.count_new_sender(from);
        counted.map_err(|error| ErrorResponse::new(context, refusals::from_edge(&error)))?;
    }
    publish(context, anyone, message).await
}

/// Registers a new agent, or updates a known one (R24).
async fn publish(
    context: &HubContext,
    anyone: OptionalCaller,
    message: &Message<Identity>,
) -> HandlerResult {
    let correlation_id = message.correlation_id;
    if message.raw.len() > IDENTITY_MAX {
        let text = format!(
            "the identity has more than {IDENTITY_MAX} bytes; shorten the descriptions and schemas in \
             capabilities"
        );
        return Err(about(context, Failure::new(Code::TooLarge, text), correlation_id));
    }
    if let Some(url) = &message.body.endpoint {
        context.egress.check_url(url).map_err(|why| {
            let failure = Failure::with_violations(vec![format!("endpoint {why}")]);
            about(context, failure, correlation_id)
        })?;
    }
    let engine = &context.engine;
    let key = Key::from_random(KeyKind::Registry, engine.random().new_key_bytes());
    let native = message.body.agent_id.to_string();
    let new_agent = NewAgent { home: ID, native: &native, name: &message.body.agent_name };
    let common = say::common_members(context, correlation_id);
    let publication = Publication {
        actor: anyone.actor(),
        aliases: make_aliases(engine, new_agent),
        key: key.hash(),
        correlation_id: common.correlation_id,
        at: common.timestamp,
    };
    let ran = engine
        .run_once(translate::publish_identity(message, publication), anyone.idempotency)
        .await;
    let ran = ran.map_err(|failure| failed(context, &failure, correlation_id))?;
    let Answer::Agent { agent, new, .. } = ran.answer else {
        return Err(about(context, Failure::not_found("agent"), correlation_id));
    };
    // After a crash, a repeat finds the agent registered, but its key can no longer be shown.
    let api_key = (new && !ran.replayed).then(|| key.expose().to_owned());
    let webhook_secret = (agent.liveness == Liveness::ByEndpoint)
        .then(|| engine.hub_secret().webhook_secret(agent.id, agent.secret_generation).to_text());
    let status = Published::STATUS.to_owned();
    let common = CommonMembers { timestamp: engine.now(), ..common };
    // The same time as in the directory (R23).
    let at = Published::format_time(if new { agent.registered_at } else { common.timestamp });
    let body = Published::new(common, status, native, api_key, webhook_secret, at);
    let answer: Response = say::json_response(if new { 201 } else { 200 }, &body);
    Ok(answer)
}
