//! Status and reputation updates that the hub publishes about agents.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::event::{Event as Fact, HistoryLine};
use rialto_core::id::{AgentId, JobId};
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::WatchFilter;
use uuid::Uuid;

use crate::kit::ijson;
use crate::openclaw::OpenclawContext;
use crate::openclaw::wire::stream::{self, Event};
use crate::openclaw::wire::words::{Status, UpdateType};
use crate::openclaw::wire::{ReputationUpdate, StatusUpdate};
use crate::openclaw::{ID, collaboration, directory};

/// How often a reputation update is published when nothing has changed (R45).
const PERIOD: Millis = Millis::hours(24);

/// An event's name and its message body.
pub type AgentUpdate = (Event, String);

/// The updates about watched agents in one history line.
pub async fn updates_in_line(
    context: &OpenclawContext,
    line: &HistoryLine,
    watched: &WatchFilter,
) -> Vec<AgentUpdate> {
    let mut told = Vec::new();
    for fact in &line.events {
        let Some(agent) = fact.watched_agent().filter(|agent| watched.contains(*agent)) else {
            continue;
        };
        let one = match fact {
            Fact::AgentStatusReported { .. } => stood(context, agent, line.at),
            Fact::AgentAtWork { .. } => turned(context, agent, line, Status::Busy),
            Fact::AgentFree { .. } => turned(context, agent, line, Status::Idle),
            Fact::AgentOutcomeRecorded { job, ok, .. } => {
                judged(context, agent, *job, *ok, line).await
            }
            _ => None,
        };
        told.extend(one);
    }
    told
}

/// The agent's own status message, unless the agent has reported a newer one since.
fn stood(context: &OpenclawContext, agent: AgentId, at: Timestamp) -> Option<AgentUpdate> {
    let words = context.engine.with_world(|world| {
        let said = world.agent_state(agent)?.status.clone()?;
        (said.at == at).then_some(said.text)
    })?;
    let json = ijson::read(words.as_bytes()).ok()?;
    Some((Event::Status, stream::write_message(&json)))
}

/// The hub saw the agent start or finish its work (R68).
fn turned(
    context: &OpenclawContext,
    agent: AgentId,
    line: &HistoryLine,
    status: Status,
) -> Option<AgentUpdate> {
    context.engine.with_world(|world| {
        let agent = world.agent(agent)?;
        let mut report = directory::hub_reported_status(world, agent, line.at);
        report.status = status;
        report.details.active_tasks = match status {
            Status::Busy => Some(report.details.active_tasks.unwrap_or(1)),
            _ => None,
        };
        let previous = if status == Status::Busy { Status::Idle } else { Status::Busy };
        let update = StatusUpdate {
            agent_id: world.alias_of(agent.id, ID)?.parse().ok()?,
            report,
            previous_status: Some(previous),
            correlation_id: update_correlation_id(agent.id, line.id.0),
            timestamp: line.at,
        };
        Some((Event::Status, update.write()))
    })
}

/// A periodic status update about a bridged agent (R33).
pub fn bridged_status_update(
    context: &OpenclawContext,
    agent: &Agent,
    now: Timestamp,
) -> Option<AgentUpdate> {
    context.engine.with_world(|world| {
        let update = StatusUpdate {
            agent_id: world.alias_of(agent.id, ID)?.parse().ok()?,
            report: directory::hub_reported_status(world, agent, now),
            previous_status: None,
            correlation_id: update_correlation_id(agent.id, now.0.unsigned_abs()),
            timestamp: now,
        };
        world.is_online(agent.id, now).then(|| (Event::Status, update.write()))
    })
}

async fn judged(
    context: &OpenclawContext,
    agent: AgentId,
    job: JobId,
    ok: bool,
    line: &HistoryLine,
) -> Option<AgentUpdate> {
    let job = context.engine.load_job(job).await.ok().flatten()?;
    let collaboration_id = Some(collaboration::ids(&job).collaboration_id);
    let update_type = if ok { UpdateType::Completed } else { UpdateType::Failed };
    let why = UpdateReason { update_type, collaboration_id, at: line.at };
    Some((Event::Reputation, reputation(context, agent, &why)?.write()))
}

/// The daily reputation update of an agent, if one of its days ended since `last`.
pub fn daily_reputation_update(
    context: &OpenclawContext,
    agent: &Arc<Agent>,
    last: Timestamp,
    now: Timestamp,
) -> Option<AgentUpdate> {
    let day = |at: Timestamp| at.since(agent.registered_at).0 / PERIOD.0;
    if day(now) <= day(last) {
        return None;
    }
    let why = UpdateReason { update_type: UpdateType::Periodic, collaboration_id: None, at: now };
    Some((Event::Reputation, reputation(context, agent.id, &why)?.write()))
}

/// Why and when a reputation update is published.
struct UpdateReason {
    update_type: UpdateType,
    collaboration_id: Option<Uuid>,
    at: Timestamp,
}

/// The hub's figures as an update; `None` before the first finished collaboration (R87).
fn reputation(
    context: &OpenclawContext,
    agent: AgentId,
    why: &UpdateReason,
) -> Option<ReputationUpdate> {
    let scale = context.state.settings.response_scale;
    context.engine.with_world(|world| {
        let agent_state = world.agent_state(agent)?;
        Some(ReputationUpdate {
            agent_id: world.alias_of(agent, ID)?.parse().ok()?,
            update_type: why.update_type,
            score: directory::score(agent_state, scale)?,
            at: why.at,
            metrics: Some(directory::metrics(agent_state)),
            collaboration_id: why.collaboration_id,
            correlation_id: update_correlation_id(agent, why.at.0.unsigned_abs()),
            timestamp: why.at,
        })
    })
}

/// The last reputation update about an agent: of its last collaboration, or of its last full day.
pub async fn last_reputation(
    context: &OpenclawContext,
    agent: &Arc<Agent>,
) -> Option<ReputationUpdate> {
    let now = context.engine.now();
    let newest = context.engine.with_world(|world| world.agent_state(agent.id)?.last_outcome);
    let newest = context.engine.outcomes_of(newest, 1).await.ok()?.rows.into_iter().next();
    let days = now.since(agent.registered_at).0 / PERIOD.0;
    let day = agent.registered_at.plus(Millis(days.saturating_mul(PERIOD.0)));
    let why = match newest {
        Some(outcome) if outcome.ended_at >= day || days == 0 => {
            let job = context.engine.load_job(outcome.job).await.ok().flatten();
            let update_type = if outcome.ok { UpdateType::Completed } else { UpdateType::Failed };
            let collaboration_id = job.map(|job| collaboration::ids(&job).collaboration_id);
            UpdateReason { update_type, collaboration_id, at: outcome.ended_at }
        }
        _ => UpdateReason { update_type: UpdateType::Periodic, collaboration_id: None, at: day },
    };
    reputation(context, agent.id, &why)
}

/// The correlation id of an update that answers no request. It is the same each time the update is
/// sent.
pub fn update_correlation_id(agent: AgentId, number: u64) -> Uuid {
    const SPACE: Uuid = Uuid::from_u128(0x3c1d_55a8_9f6e_5a0b_8d1c_a60a_70c1_e002);
    let mut bytes = agent.0.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    Uuid::new_v5(&SPACE, &bytes)
}
