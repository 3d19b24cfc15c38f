//! Directory operations: list agents, show one with its status or reputation, and unregister.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::agent::Agent;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::{about, failed, query};
use crate::adapter::caller::{Caller, KnownCaller};
use crate::kit::budget::ByteBudget;
use crate::kit::object::ObjectWriter;
use crate::kit::{ijson, raw_json};
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{PathUuid, listed_agent, native_agent};
use crate::openclaw::delivery::agent_updates;
use crate::openclaw::directory::{self, AgentSnapshot};
use crate::openclaw::errors::{self, ErrorResponse, HandlerResult};
use crate::openclaw::wire::answers::Unregistered;
use crate::openclaw::wire::directory::{Page, write_agent, write_entry, write_reputation};
use crate::openclaw::wire::error::{Code, Failure};
use crate::openclaw::wire::words::{Category, Status};
use crate::openclaw::wire::{StatusUpdate, stream};
use crate::openclaw::{ID, VERSION};

/// The default number of agents on one page.
const PAGE: i64 = 50;
const PAGE_MAX: i64 = 200;
/// The most agents scanned for one page, so that a sparse directory still answers in time.
const SCAN_MAX: usize = 5_000;

/// The filter of a list.
struct AgentFilter {
    category: Option<Category>,
    status: Option<Status>,
}

/// `GET /agents?capability=&category=&status=&limit=&cursor=`.
pub async fn list(
    State(context): State<OpenclawContext>,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = query(&context, raw.as_deref())?;
    let refuse = |failure| about(&context, failure, None);
    let bad = |bad| refuse(Failure::from(bad));
    let one_of = |name: &str, all: Vec<&str>| {
        refuse(Failure::with_violations(vec![format!("{name} must be one of {}", all.join(", "))]))
    };
    let category = match query.text("category").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(Category::read(text).ok_or_else(|| {
            one_of("category", Category::ALL.iter().map(|one| one.as_str()).collect())
        })?),
    };
    let status = match query.text("status").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(Status::read(text).ok_or_else(|| {
            one_of("status", Status::ALL.iter().map(|one| one.as_str()).collect())
        })?),
    };
    let limit = query.integer("limit", 1..=PAGE_MAX).map_err(bad)?.unwrap_or(PAGE);
    let cursor = query.integer("cursor", 0..=i64::MAX).map_err(bad)?.unwrap_or(0);
    let (limit, cursor) = (usize::try_from(limit).unwrap_or(1), cursor.unsigned_abs());
    let wanted = AgentFilter { category, status };
    let capability = query.text("capability").filter(|text| !text.is_empty());
    let (found, rest) = context.engine.with_world(|world| match capability {
        Some(capability) => {
            let skip = usize::try_from(cursor).unwrap_or(usize::MAX);
            let found = world.skills.all_by_rank(capability).skip(skip);
            let places = (cursor + 1..).zip(found);
            gather(world, &wanted, places, limit, context.engine.now())
        }
        // In the order of registration, which never changes.
        None => {
            let all = cursor + 1..world.next.agent.0;
            let places = all.map(|id| (id, AgentId(id)));
            gather(world, &wanted, places, limit, context.engine.now())
        }
    });
    // The agents' own text is parsed here, without holding a lock.
    let (mut agents, mut budget, mut next) = (Vec::new(), ByteBudget::default(), rest);
    let mut last = cursor;
    for (place, glimpse) in &found {
        let Some(text) = entry(&context, glimpse) else { continue };
        if !budget.take(text.len()) {
            next = Some(last);
            break;
        }
        agents.push(raw_json::verbatim(&text));
        last = *place;
    }
    let common = errors::common_members(&context, None);
    Ok(errors::json_response(200, &Page::new(common, agents, next.map(|next| next.to_string()))))
}

/// The agents that match, each with its position, and the last position scanned if there are more.
fn gather(
    world: &World,
    wanted: &AgentFilter,
    mut places: impl Iterator<Item = (u64, AgentId)>,
    limit: usize,
    now: Timestamp,
) -> (Vec<(u64, AgentSnapshot)>, Option<u64>) {
    let (mut found, mut last) = (Vec::new(), 0);
    for (place, id) in places.by_ref().take(SCAN_MAX) {
        last = place;
        let shown = |agent: &&Arc<Agent>| {
            agent.active && directory::has_identity(agent) && fits(world, agent, wanted)
        };
        let agent = world.agent(id).filter(shown);
        found.extend(agent.and_then(|agent| Some((place, AgentSnapshot::of(world, agent, now)?))));
        if found.len() >= limit {
            break;
        }
    }
    let more = places.next().is_some();
    (found, more.then_some(last))
}

fn fits(world: &World, agent: &Agent, wanted: &AgentFilter) -> bool {
    let status =
        wanted.status.is_none_or(|status| directory::effective_status(world, agent) == status);
    let category = wanted.category.is_none_or(|wanted| {
        agent.skills.iter().any(|skill| directory::category_of(skill) == wanted)
    });
    status && category
}

fn entry(context: &OpenclawContext, glimpse: &AgentSnapshot) -> Option<String> {
    let standing = glimpse.info(context.state.settings.response_scale);
    let identity = glimpse.identity();
    let json = ijson::read(identity.as_bytes()).ok()?;
    let shown = write_entry(&json, &standing).text("protocol_version", VERSION);
    Some(shown.finish())
}

fn known_agent(context: &OpenclawContext, id: Option<Uuid>) -> Result<Arc<Agent>, ErrorResponse> {
    let found = context.engine.with_world(|world| world.agent(listed_agent(world, id?)?).cloned());
    found.ok_or_else(|| about(context, Failure::not_found("agent"), None))
}

/// `GET /agents/{id}`.
pub async fn show(State(context): State<OpenclawContext>, PathUuid(id): PathUuid) -> HandlerResult {
    let agent = known_agent(&context, id)?;
    if !directory::has_identity(&agent) {
        let text = "this agent offers no capability and therefore has no identity; \
                    its status and its reputation can be read";
        return Err(about(&context, Failure::new(Code::NotFound, text), None));
    }
    let (scale, now) = (context.state.settings.response_scale, context.engine.now());
    let common = errors::common_members(&context, None);
    let glimpse = context.engine.with_world(|world| AgentSnapshot::of(world, &agent, now));
    let shown = glimpse.and_then(|glimpse| {
        let identity = glimpse.identity();
        let json = ijson::read(identity.as_bytes()).ok()?;
        Some(write_agent(&json, &glimpse.info(scale), common))
    });
    shown
        .map(|text| errors::text_response(200, text))
        .ok_or_else(|| about(&context, Failure::not_found("agent"), None))
}

/// `GET /agents/{id}/status`: the last update, the agent's own or the hub's.
pub async fn status(
    State(context): State<OpenclawContext>,
    PathUuid(id): PathUuid,
) -> HandlerResult {
    let agent = known_agent(&context, id)?;
    let last_job = context.engine.with_world(|world| world.agent_state(agent.id)?.last_worked);
    let ended = match last_job {
        Some(job) => context.engine.load_job(job).await.ok().flatten().and_then(|job| job.ended_at),
        None => None,
    };
    let now = context.engine.now();
    let text = context.engine.with_world(|world| {
        let agent_state = world.agent_state(agent.id)?;
        let counts = directory::effective_status(world, &agent);
        let words = agent_state.status.as_ref().map(|said| said.text.clone());
        let own = directory::last_reported_status(agent_state)
            .filter(|report| report.status == counts)
            .and(words);
        if let Some(words) = own {
            let json = ijson::read(words.as_bytes()).ok()?;
            return Some(stream::write_message(&json));
        }
        let began =
            world.assigned_jobs(agent.id).filter_map(|job| job.acceptance.accepted_at).max();
        let since = began.or(ended).unwrap_or(agent_state.presence.last_seen);
        let update = StatusUpdate {
            agent_id: world.alias_of(agent.id, ID)?.parse().ok()?,
            report: directory::hub_reported_status(world, &agent, since),
            previous_status: None,
            correlation_id: agent_updates::update_correlation_id(agent.id, since.0.unsigned_abs()),
            timestamp: since,
        };
        Some(update.write())
    });
    let text = text.ok_or_else(|| about(&context, Failure::not_found("agent"), None))?;
    let stale = context.engine.with_world(|world| directory::is_stale(world, &agent, now));
    let shown = match ijson::read(text.as_bytes()) {
        Ok(json) => ObjectWriter::copy_without(&json, &["stale"]).flag("stale", stale).finish(),
        Err(_) => text,
    };
    Ok(errors::text_response(200, shown))
}

/// `GET /agents/{id}/reputation`: the hub's last update, and the agent's own last one as a claim.
pub async fn reputation(
    State(context): State<OpenclawContext>,
    PathUuid(id): PathUuid,
) -> HandlerResult {
    let agent = known_agent(&context, id)?;
    let claimed =
        context.engine.with_world(|world| world.agent_state(agent.id)?.claimed_reputation.clone());
    let update = match agent_updates::last_reputation(&context, &agent).await {
        Some(update) => update.write(),
        None => unscored(&context, &agent),
    };
    let claimed = claimed.as_ref().and_then(|words| ijson::read(words.as_bytes()).ok());
    let shown = ijson::read(update.as_bytes())
        .map(|json| write_reputation(&json, claimed.as_ref()))
        .unwrap_or(update.clone());
    Ok(errors::text_response(200, shown))
}

/// Before the first finished collaboration there is no score (R87), and no update without one.
fn unscored(context: &OpenclawContext, agent: &Agent) -> String {
    let name = context.engine.with_world(|world| world.alias_of(agent.id, ID).map(str::to_owned));
    let object = ObjectWriter::new().text("agent_id", &name.unwrap_or_default());
    errors::common_members(context, None).write_to(object).finish()
}

/// `DELETE /agents/{id}`: removes the agent from the directory. Its id stays reserved.
pub async fn remove(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
) -> HandlerResult {
    let unknown = || about(&context, Failure::not_found("agent"), None);
    let id = id.ok_or_else(unknown)?;
    let (agent, by_operator) = context
        .engine
        .with_world(|world| {
            let agent = native_agent(world, id)?;
            match known.0.caller {
                Caller::Operator => Some((agent, true)),
                // Other callers get the same answer as for an unknown agent.
                Caller::Agent(own) => (own == agent).then_some((agent, false)),
                Caller::Anonymous | Caller::FormerAgent(_) => Some((agent, false)),
            }
        })
        .ok_or_else(unknown)?;
    let done = context.engine.run(Command::Remove { agent, by_operator }).await;
    done.map_err(|failure| failed(&context, &failure, None))?;
    let (status, agent_id) = (Unregistered::STATUS.to_owned(), id.to_string());
    Ok(errors::json_response(
        200,
        &Unregistered::new(errors::common_members(&context, None), status, agent_id),
    ))
}
