//! Agents and owners for the operator: list, suspend, resume.

use axum::extract::{RawQuery, State};
use rialto_core::command::{Command, SuspensionTarget};
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::adapter::{HubContext, naming};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::OperatorCaller;
use crate::v1::page::{self, Cursor, Page, parse_choice};
use crate::v1::params::{PageCursor, PageLimit};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_time, ok_response};
use crate::v1::{agent_names, errors};

/// The list's tag in cursors.
const AGENT_LIST: char = 'A';
/// Agents read at once; between two slices the commit lane may publish.
const SLICE: u64 = 10_000;

/// An agent as the operator sees it.
#[derive(Serialize, JsonSchema)]
pub struct OperatorAgentView {
    id: u64,
    name: String,
    owner: String,
    protocol: String,
    #[schemars(with = "AgentStatusName")]
    state: &'static str,
    online: bool,
    score: Number,
    jobs_in_hand: usize,
    registered_at: Time,
}

/// The status of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentStatus {
    Active,
    Suspended,
    OwnerSuspended,
    Removed,
}

impl AgentStatus {
    fn of(world: &World, id: AgentId) -> Option<Self> {
        let agent = world.agent(id)?;
        Some(match agent.active {
            _ if agent.suspended => Self::Suspended,
            _ if world.is_suspended(id) => Self::OwnerSuspended,
            true => Self::Active,
            false => Self::Removed,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::OwnerSuspended => "owner_suspended",
            Self::Removed => "removed",
        }
    }
}

impl OperatorAgentView {
    fn of(world: &World, id: AgentId, now: Timestamp) -> Option<Self> {
        let agent = world.agent(id)?;
        Some(Self {
            id: id.0,
            name: agent.name.clone(),
            owner: world.owner(agent.owner).map(|owner| owner.name.clone()).unwrap_or_default(),
            protocol: agent.home.to_string(),
            state: AgentStatus::of(world, id)?.as_str(),
            online: world.is_online(id, now),
            score: raw_json::score(world.agent_state(id)?.standing.score.millionths()),
            jobs_in_hand: world.assigned_job_count(id),
            registered_at: format_time(agent.registered_at),
        })
    }
}

rialto_protocols::words! {
    /// The status of an agent.
    AgentStatusName: "active" | "suspended" | "owner_suspended" | "removed"
}

rialto_protocols::request_members! {
    /// Which agents to list.
    OperatorAgentsQuery {
        state: Option<AgentStatusName>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/operator/agents`: all agents that ever registered, in that order.
pub async fn list_agents(
    State(context): State<HubContext>,
    _by: OperatorCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), OperatorAgentsQuery::MEMBERS)?;
    let all = [
        AgentStatus::Active,
        AgentStatus::Suspended,
        AgentStatus::OwnerSuspended,
        AgentStatus::Removed,
    ];
    let wanted = parse_choice(&query, "state", &all.map(|one| (one.as_str(), one)))?;
    let limit = page::parse_limit(&query)?;
    let after = page::parse_cursor(&query, AGENT_LIST)?.map_or(0, |[after]| after);
    let mut items = load_agents(&context.engine, after, wanted, limit + 1).await;
    let more = items.len() > limit;
    items.truncate(limit);
    let next_cursor = items.last().filter(|_| more).map(|last| Cursor::new(AGENT_LIST, [last.id]));
    Ok(ok_response(&Page { items, next_cursor }))
}

/// The first agents after a number. Numbers are assigned in order and never reused.
async fn load_agents(
    engine: &Engine,
    after: u64,
    wanted: Option<AgentStatus>,
    count: usize,
) -> Vec<OperatorAgentView> {
    let (mut rows, now) = (Vec::new(), engine.now());
    let mut first = after + 1;
    loop {
        let end = engine.with_world(|world| {
            let end = world.next.agent.0;
            let ids = (first..end.min(first.saturating_add(SLICE))).map(AgentId);
            let fits = |id: &AgentId| wanted.is_none() || AgentStatus::of(world, *id) == wanted;
            let fitting = ids.filter(fits).filter_map(|id| OperatorAgentView::of(world, id, now));
            rows.extend(fitting.take(count - rows.len()));
            end
        });
        first = first.saturating_add(SLICE);
        if rows.len() == count || first >= end {
            return rows;
        }
        tokio::task::yield_now().await;
    }
}

/// Finds an agent by any of its names.
pub fn find(context: &HubContext, id: &str) -> Result<AgentId, Problem> {
    let found = context.engine.with_world(|world| agent_names::find_agent(world, id, "agent"));
    found.map_err(|problem| match problem.kind == &errors::NOT_FOUND {
        true => Problem::no_such("agent"),
        false => problem,
    })
}

#[derive(Serialize, JsonSchema)]
pub struct SuspensionResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    suspended: bool,
}

/// `POST /v1/operator/agents/{id}/suspend`: its keys are refused and it gets no work.
pub async fn suspend_agent(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set_agent_suspended(&context, by, &id, true).await
}

/// `POST /v1/operator/agents/{id}/resume`: ends the suspension.
pub async fn resume_agent(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set_agent_suspended(&context, by, &id, false).await
}

async fn set_agent_suspended(
    context: &HubContext,
    by: OperatorCaller,
    id: &str,
    suspended: bool,
) -> HandlerResult {
    let agent = find(context, id)?;
    let command = Command::SetSuspended { subject: SuspensionTarget::Agent(agent), suspended };
    context.engine.run_once(command, by.once).await?;
    Ok(ok_response(&SuspensionResponse { agent: Some(agent.0), owner: None, suspended }))
}

/// `POST /v1/operator/owners/{name}/suspend`: the owner with all its agents.
pub async fn suspend_owner(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(name): PathParam,
) -> HandlerResult {
    set_owner_suspended(&context, by, name, true).await
}

/// `POST /v1/operator/owners/{name}/resume`; agents that were suspended individually stay
/// suspended.
pub async fn resume_owner(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(name): PathParam,
) -> HandlerResult {
    set_owner_suspended(&context, by, name, false).await
}

async fn set_owner_suspended(
    context: &HubContext,
    by: OperatorCaller,
    name: String,
    suspended: bool,
) -> HandlerResult {
    let found = context.engine.with_world(|world| {
        let name = naming::canonical_owner_name(world, name);
        world.owner_by_name(&name).map(|id| (id, name))
    });
    let (owner, name) = found.ok_or_else(|| Problem::no_such("owner"))?;
    let command = Command::SetSuspended { subject: SuspensionTarget::Owner(owner), suspended };
    context.engine.run_once(command, by.once).await?;
    Ok(ok_response(&SuspensionResponse { agent: None, owner: Some(name), suspended }))
}
