//! Accepts what agents report about themselves: status and claimed reputation.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;

use super::{about, failed};
use crate::adapter::HubContext;
use crate::openclaw::answers::{ClaimRecorded, StatusTaken};
use crate::openclaw::codes::Code;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Message, ReputationUpdate, StatusUpdate};
use crate::openclaw::proof::{BodyBytes, KnownCaller, listed_agent};
use crate::openclaw::say::{self, ErrorResponse, HandlerResult};
use crate::openclaw::state::Status;
use crate::openclaw::{MEMBERS_BYTES_MAX, record, translate};

/// `POST /status`.
pub async fn post_status(
    State(context): State<HubContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = message::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_status(&context, known, &message).await
}

/// `POST /reputation`.
pub async fn post_reputation(
    State(context): State<HubContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = message::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_reputation(&context, known, &message).await
}

/// A report is kept in memory and sent to all watchers, so its size is limited.
fn short(raw: &str) -> Result<(), Failure> {
    match raw.len() > MEMBERS_BYTES_MAX {
        true => {
            let text = format!("a status or reputation has at most {MEMBERS_BYTES_MAX} bytes");
            Err(Failure::new(Code::TooLarge, text))
        }
        false => Ok(()),
    }
}

/// The reporting agent: it must be registered (R37), and only it may report for itself.
fn reporter(
    context: &HubContext,
    known: KnownCaller,
    named: uuid::Uuid,
) -> Result<AgentId, Failure> {
    context.engine.with_world(|world| {
        listed_agent(world, named).ok_or_else(|| Failure::not_found("agent"))?;
        known.acting_agent(world, named)
    })
}

/// Handles a status update.
pub async fn handle_status(
    context: &HubContext,
    known: KnownCaller,
    message: &Message<StatusUpdate>,
) -> HandlerResult {
    let (said, id) = (&message.body, message.correlation_id);
    short(&message.raw).map_err(|bad| about(context, bad, id))?;
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
    let common = say::common_members(context, id);
    let (status, agent_id) = (StatusTaken::STATUS.to_owned(), said.agent_id.to_string());
    let taken = StatusTaken::new(common, status, agent_id, applied, said.is_late(), warnings);
    Ok(say::json_response(200, &taken))
}

/// Contradictions to the hub's own data (R36).
fn strange(context: &HubContext, agent: AgentId, previous: Option<Status>) -> Vec<String> {
    let Some(previous) = previous else { return Vec::new() };
    let held = context.engine.with_world(|world| {
        let said = world
            .agent_state(agent)
            .and_then(|agent_state| record::last_reported_status(agent_state));
        let counts = world.agent(agent).map(|agent| record::effective_status(world, agent));
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
    context: &HubContext,
    known: KnownCaller,
    message: &Message<ReputationUpdate>,
) -> HandlerResult {
    let (said, id) = (&message.body, message.correlation_id);
    short(&message.raw).map_err(|bad| about(context, bad, id))?;
    let agent = reporter(context, known, said.agent_id).map_err(|bad| about(context, bad, id))?;
    let command = Command::ReportReputation { agent, text: message.raw.as_ref().into() };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    ran.map_err(|failure| failed(context, &failure, id))?;
    let scale = context.openclaw.settings.response_scale;
    let hub = context.engine.with_world(|world| record::score(world.agent_state(agent)?, scale));
    let (common, agent_id) = (say::common_members(context, id), said.agent_id.to_string());
    Ok(say::json_response(200, &ClaimRecorded::of(common, agent_id, said.score, hub)))
}
