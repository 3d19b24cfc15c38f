//! What agents publish about themselves: identity, status and claimed reputation.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use rialto_core::agent::Liveness;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_engine::keys::{Key, KeyPrefix};

use super::{about, failed, run_blocking_limited};
use crate::adapter::caller::{KnownCaller, OptionalCaller};
use crate::adapter::request::BodyBytes;
use crate::adapter::{NewAgent, make_aliases};
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{acting_agent, listed_agent};
use crate::openclaw::errors::{self, ErrorResponse, HandlerResult};
use crate::openclaw::translate::{self, Publication};
use crate::openclaw::wire::answers::{ClaimRecorded, Published, StatusTaken};
use crate::openclaw::wire::error::{Code, Failure};
use crate::openclaw::wire::words::Status;
use crate::openclaw::wire::{
    self, CommonMembers, Identity, Message, ReputationUpdate, StatusUpdate,
};
use crate::openclaw::{ID, IDENTITY_MAX, MEMBERS_BYTES_MAX, directory};

/// `POST /identity`.
pub async fn publish_identity(
    State(context): State<OpenclawContext>,
    anyone: OptionalCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let read = run_blocking_limited(move || wire::read(&body)).await;
    let read = read.unwrap_or_else(|| Err(Failure::internal("reading")));
    let message = read.map_err(|bad| ErrorResponse::new(&context, bad))?;
    publish(&context, anyone, &message).await
}

/// The same from `POST /messages`. A new agent counts against the registration limits.
pub async fn publish_from_messages(
    context: &OpenclawContext,
    anyone: OptionalCaller,
    from: Option<SocketAddr>,
    message: &Message<Identity>,
) -> HandlerResult {
    let named = message.body.agent_id.to_string();
    if context.engine.with_world(|world| world.agent_by_alias(ID, &named).is_none()) {
        let counted = context.write_limiter.count_new_sender(from);
        counted.map_err(|error| ErrorResponse::new(context, errors::from_edge(error)))?;
    }
    publish(context, anyone, message).await
}

/// Registers a new agent, or updates a known one (R24).
async fn publish(
    context: &OpenclawContext,
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
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let native = message.body.agent_id.to_string();
    let new_agent = NewAgent { home: ID, native: &native, name: &message.body.agent_name };
    let common = errors::common_members(context, correlation_id);
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
    let answer: Response = errors::json_response(if new { 201 } else { 200 }, &body);
    Ok(answer)
}

/// `POST /status`.
pub async fn post_status(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_status(&context, known, &message).await
}

/// `POST /reputation`.
pub async fn post_reputation(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_reputation(&context, known, &message).await
}

/// A report is kept in memory and sent to all watchers, so its size is limited.
fn check_size(raw: &str) -> Result<(), Failure> {
    if raw.len() > MEMBERS_BYTES_MAX {
        let text = format!("a status or reputation has at most {MEMBERS_BYTES_MAX} bytes");
        return Err(Failure::new(Code::TooLarge, text));
    }
    Ok(())
}

/// The reporting agent: it must be registered (R37), and only it may report for itself.
fn reporter(
    context: &OpenclawContext,
    known: KnownCaller,
    named: uuid::Uuid,
) -> Result<AgentId, Failure> {
    context.engine.with_world(|world| {
        listed_agent(world, named).ok_or_else(|| Failure::not_found("agent"))?;
        acting_agent(known, world, named)
    })
}

/// Handles a status update.
pub async fn handle_status(
    context: &OpenclawContext,
    known: KnownCaller,
    message: &Message<StatusUpdate>,
) -> HandlerResult {
    let (said, id) = (&message.body, message.correlation_id);
    check_size(&message.raw).map_err(|bad| about(context, bad, id))?;
    let agent = reporter(context, known, said.agent_id).map_err(|bad| about(context, bad, id))?;
    let warnings = strange(context, agent, said.previous_status);
    let words: Arc<str> = message.raw.as_ref().into();
    let told = translate::availability(&said.report, words.clone());
    let ran = context
        .engine
        .run_once(Command::ReportStatus { agent, status: told }, known.0.idempotency)
        .await;
    let answer = ran.map_err(|failure| failed(context, &failure, id))?.answer;
    let applied = match answer {
        Answer::Agent { state: agent_state, .. } => {
            agent_state.status.as_ref().is_some_and(|now| now.text == words)
        }
        _ => false,
    };
    let common = errors::common_members(context, id);
    let (status, agent_id) = (StatusTaken::STATUS.to_owned(), said.agent_id.to_string());
    let taken = StatusTaken::new(common, status, agent_id, applied, said.is_late(), warnings);
    Ok(errors::json_response(200, &taken))
}

/// Contradictions to the hub's own data (R36).
fn strange(context: &OpenclawContext, agent: AgentId, previous: Option<Status>) -> Vec<String> {
    let Some(previous) = previous else { return Vec::new() };
    let held = context.engine.with_world(|world| {
        let said = world
            .agent_state(agent)
            .and_then(|agent_state| directory::last_reported_status(agent_state));
        let counts = world.agent(agent).map(|agent| directory::effective_status(world, agent));
        (counts, said.map(|report| report.status))
    });
    match held {
        (Some(counts), said) if counts != previous && said != Some(previous) => {
            vec![format!("previous_status is {previous}, but the hub has {counts}")]
        }
        _ => Vec::new(),
    }
}

/// Handles a reputation update. It is kept as a claim of the agent (R48).
pub async fn handle_reputation(
    context: &OpenclawContext,
    known: KnownCaller,
    message: &Message<ReputationUpdate>,
) -> HandlerResult {
    let (said, id) = (&message.body, message.correlation_id);
    check_size(&message.raw).map_err(|bad| about(context, bad, id))?;
    let agent = reporter(context, known, said.agent_id).map_err(|bad| about(context, bad, id))?;
    let command = Command::ReportReputation { agent, text: message.raw.as_ref().into() };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    ran.map_err(|failure| failed(context, &failure, id))?;
    let scale = context.state.settings.response_scale;
    let hub = context.engine.with_world(|world| directory::score(world.agent_state(agent)?, scale));
    let (common, agent_id) = (errors::common_members(context, id), said.agent_id.to_string());
    Ok(errors::json_response(200, &ClaimRecorded::of(common, agent_id, said.score, hub)))
}
