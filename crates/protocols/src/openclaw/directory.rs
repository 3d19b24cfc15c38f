//! Directory entries of agents, whatever their home protocol.

use std::sync::Arc;

use rialto_core::agent::presence::Availability;
use rialto_core::agent::{Agent, AgentState, Skill};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;

use super::ID;
use super::wire::directory::AgentInfo;
use super::wire::reputation::Score;
use super::wire::status::StatusDetails;
use super::wire::words::{Category, Status};
use super::wire::{self, ReportedStatus, ReputationMetrics, StatusUpdate, identity};
use crate::adapter::naming;
use crate::adapter::skill_schema::to_json_schema;
use crate::kit::object::ObjectWriter;

/// The rank of agents without a finished collaboration (R87).
const UNKNOWN: i64 = 500_000;

/// The hub's own score of an agent; `None` before the first finished collaboration.
pub fn score(agent_state: &AgentState, scale: Millis) -> Option<Score> {
    let millionths = agent_state.window.score(scale)?;
    u32::try_from(millionths).ok().and_then(Score::new)
}

/// The value by which agents are ranked.
pub fn rank(agent_state: &AgentState, scale: Millis) -> i64 {
    agent_state.window.score(scale).unwrap_or(UNKNOWN)
}

/// The figures of the score: rates over the last hundred collaborations, counts over all (R44).
pub fn metrics(agent_state: &AgentState) -> ReputationMetrics {
    let whole = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    let rates = agent_state.window.rates();
    let rate = |n: i64| u32::try_from(n).ok().and_then(Score::new);
    ReputationMetrics {
        total_collaborations: whole(agent_state.standing.settled_jobs()),
        successful_collaborations: whole(agent_state.standing.successes),
        failed_collaborations: whole(agent_state.standing.failures),
        success_rate: rates.and_then(|rates| rate(rates.success)),
        average_response_time_ms: rates.map(|rates| rates.average_duration.0),
        on_time_completion_rate: rates.and_then(|rates| rate(rates.on_time)),
    }
}

/// The status that counts, with running work taken into account.
pub fn effective_status(world: &World, agent: &Agent) -> Status {
    let availability = world
        .agent_state(agent.id)
        .map_or(Availability::Idle, |agent_state| agent_state.presence.availability);
    let works = world.assigned_jobs(agent.id).any(|job| job.is_in_progress());
    match availability {
        Availability::Error | Availability::Broken if agent.home == ID => Status::Error,
        Availability::Maintenance if agent.home == ID => Status::Maintenance,
        Availability::Busy => Status::Busy,
        // An error or maintenance is never invented for agents of other protocols
        // (docs/requirements.md, section 7).
        _ if works => Status::Busy,
        _ => Status::Idle,
    }
}

/// Whether an agent that must report has not done so in time (R33).
pub fn is_stale(world: &World, agent: &Agent, now: Timestamp) -> bool {
    let away = matches!(effective_status(world, agent), Status::Error | Status::Maintenance);
    !away && !world.is_online(agent.id, now)
}

/// The number of running collaborations of an agent.
pub fn count_active(world: &World, agent: &Agent) -> u64 {
    world.assigned_jobs(agent.id).filter(|job| job.is_in_progress()).count() as u64
}

/// An agent's status as the hub reports it.
pub fn hub_reported_status(world: &World, agent: &Agent, since: Timestamp) -> ReportedStatus {
    let status = effective_status(world, agent);
    let busy = (status == Status::Busy).then(|| count_active(world, agent).max(1));
    let active_tasks = busy.and_then(|n| i64::try_from(n).ok());
    let details = StatusDetails { active_tasks, ..StatusDetails::default() };
    ReportedStatus { status, at: since, details }
}

/// The last status that the agent reported.
pub fn last_reported_status(agent_state: &AgentState) -> Option<ReportedStatus> {
    let words = &agent_state.status.as_ref()?.text;
    let update = wire::read::<StatusUpdate>(words.as_bytes()).ok()?;
    Some(update.body.report)
}

/// An agent's data at one moment. Its own text is parsed later, without holding a lock.
pub struct AgentSnapshot {
    pub agent: Arc<Agent>,
    agent_state: Arc<AgentState>,
    effective: Status,
    stale: bool,
    active: u64,
    /// The status as the hub reports it.
    report: ReportedStatus,
    name: String,
}

impl AgentSnapshot {
    pub fn of(world: &World, agent: &Arc<Agent>, now: Timestamp) -> Option<Self> {
        let agent_state = world.agent_state(agent.id)?.clone();
        let began =
            world.assigned_jobs(agent.id).filter_map(|job| job.acceptance.accepted_at).max();
        let said_at =
            || agent_state.status.as_ref().map_or(agent_state.presence.last_seen, |said| said.at);
        let since = began.unwrap_or_else(said_at);
        Some(Self {
            effective: effective_status(world, agent),
            stale: is_stale(world, agent, now),
            active: count_active(world, agent),
            report: hub_reported_status(world, agent, since),
            name: world.alias_of(agent.id, ID)?.to_owned(),
            agent: agent.clone(),
            agent_state,
        })
    }

    /// What the hub knows about the agent.
    pub fn info(&self, scale: Millis) -> AgentInfo<'_> {
        let last = last_reported_status(&self.agent_state)
            .filter(|report| report.status == self.effective);
        let Agent { home, native_id: native, .. } = &*self.agent;
        AgentInfo {
            report: Some(last.unwrap_or_else(|| self.report.clone())),
            effective_status: self.effective,
            stale: self.stale,
            active_collaborations: self.active,
            score: score(&self.agent_state, scale),
            metrics: metrics(&self.agent_state),
            registered_at: self.agent.registered_at,
            native: (*home != ID).then_some((home.as_str(), native.as_str())),
        }
    }

    /// The published identity, or for a bridged agent an equivalent one.
    pub fn identity(&self) -> String {
        identity(&self.agent, &self.name)
    }
}

/// Whether an agent can be shown as an identity, which needs at least one capability (R12).
pub fn has_identity(agent: &Agent) -> bool {
    agent.home == ID || agent.skills_for_other_protocols().next().is_some()
}

/// The identity of an agent: as published, or for a bridged agent an equivalent one.
fn identity(agent: &Agent, id: &str) -> String {
    if agent.home == ID && agent.card.len() > 2 {
        return agent.card.clone();
    }
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    let name = format!("chimera-bridge-{}-{digits}", naming::slug(agent.original_name()));
    let listed: Vec<_> = agent.skills_for_other_protocols().map(capability).collect();
    let schemas = |of: fn(&Skill) -> &str| {
        let all = agent.skills_for_other_protocols();
        all.fold(ObjectWriter::new(), |map, skill| map.raw(&skill.name, &to_json_schema(of(skill))))
            .finish()
    };
    let capabilities = ObjectWriter::new()
        .raw("advertised_capabilities", &format!("[{}]", listed.join(",")))
        .raw("input_schemas", &schemas(|skill| &skill.input))
        .raw("output_schemas", &schemas(|skill| &skill.output))
        .finish();
    let identity = ObjectWriter::new()
        .text("agent_id", id)
        .text("agent_name", &name)
        .text("agent_type", identity::AGENT_TYPE)
        .text("version", "0.0.0")
        .raw("capabilities", &capabilities);
    identity.finish()
}

fn capability(skill: &Skill) -> String {
    let about: String = skill.description.chars().take(1_000).collect();
    ObjectWriter::new()
        .text("capability_id", &skill.name)
        .text("capability_name", &skill.name)
        .text("description", &about)
        .text("category", Category::guess_from_name(&skill.name).as_str())
        .maybe_integer("estimated_duration_ms", skill.expected_duration.map(|takes| takes.0))
        .flag("requires_approval", skill.needs_approval)
        .credits("price", skill.price)
        .maybe_raw("price_by", skill.by_offer.then_some("\"offer\""))
        .finish()
}

/// The category of a skill: as its agent states it, or guessed from its name.
pub fn category_of(skill: &Skill) -> Category {
    let said = skill.category.as_deref().and_then(Category::read);
    said.unwrap_or_else(|| Category::guess_from_name(&skill.name))
}
