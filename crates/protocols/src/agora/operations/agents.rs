//! Directory operations.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::agent::Agent;
use rialto_core::id::AgentId;
use rialto_core::world::World;

use super::envelopes::agent_not_found;
use super::{json_response, malformed, query};
use crate::adapter::request::PathParam;
use crate::agora::AgoraContext;
use crate::agora::errors::{ErrorResponse, HandlerResult};
use crate::agora::wire::responses::{AgentEntry, CapabilityEntry, DirectoryPage};
use crate::agora::{ID, directory};
use crate::kit::budget::ByteBudget;
use crate::kit::ed25519::PublicKey;

/// The default number of agents on one page.
const PAGE: i64 = 50;
const PAGE_MAX: i64 = 200;
/// The most bytes of one page, unless its first entry alone is longer.
const PAGE_BYTES: usize = 256 << 10;
/// The most agents scanned for one page, so that a sparse directory still answers in time.
const SCAN_MAX: u64 = 10_000;

/// `GET /agents`: all agents, or those that support a resource, best first.
pub async fn list(State(context): State<AgoraContext>, RawQuery(raw): RawQuery) -> HandlerResult {
    let query = query(&context, raw.as_deref())?;
    let bad = |bad| malformed(&context, bad);
    let limit = query.integer("limit", 1..=PAGE_MAX).map_err(bad)?.unwrap_or(PAGE);
    let limit = usize::try_from(limit).unwrap_or(1);
    let cursor = query.integer("cursor", 0..=i64::MAX).map_err(bad)?.unwrap_or(0).unsigned_abs();
    let (hub, now) = (context.state.signer.did(), context.engine.now());
    let (found, rest) = context.engine.with_world(|world| match query.text("resource") {
        Some(resource) => supporting(world, resource, cursor, limit),
        None => everybody(world, cursor, limit),
    });
    let (mut agents, mut budget, mut next, mut last) =
        (Vec::new(), ByteBudget::new(PAGE_BYTES), rest, cursor);
    for (place, id) in found {
        // One at a time, so that writers do not wait for a long list.
        let entry = context.engine.with_world(|world| {
            let agent = world.agent(id).filter(|agent| agent.active)?;
            directory::agent_entry(world, agent, hub, now)
        });
        if let Some(entry) = entry {
            if !budget.take(size(&entry)) {
                next = Some(last);
                break;
            }
            agents.push(entry);
        }
        last = place;
    }
    let page = DirectoryPage { agents, next_cursor: next.map(|next| next.to_string()) };
    Ok(json_response(200, serde_json::to_string(&page).unwrap_or_default()))
}

/// Agents with their positions in a list, and the last position scanned if there are more.
type AgentPlaces = (Vec<(u64, AgentId)>, Option<u64>);

fn supporting(world: &World, resource: &str, cursor: u64, limit: usize) -> AgentPlaces {
    let skip = usize::try_from(cursor).unwrap_or(usize::MAX);
    let listed = |id: &AgentId| {
        let is_it = |agent: &Arc<Agent>| {
            let mut own = agent.skills.iter().filter(|skill| skill.native_name.is_none());
            own.any(|skill| directory::resource_of_skill(agent.home, skill) == resource)
        };
        world.agent(*id).is_some_and(is_it)
    };
    let all = || world.skills.all_by_rank(directory::skill_name(resource)).filter(listed);
    // Agents that use this name natively come first.
    let of_others = |id: &AgentId| world.agent(*id).is_some_and(|agent| agent.home != ID);
    let own = all().filter(|id| !of_others(id));
    let found = own.chain(all().filter(of_others)).skip(skip).take(limit.saturating_add(1));
    let mut found: Vec<(u64, AgentId)> = (cursor.saturating_add(1)..).zip(found).collect();
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().map(|(place, _)| *place).filter(|_| more);
    (found, last)
}

/// All agents in the order of registration, which never changes.
fn everybody(world: &World, cursor: u64, limit: usize) -> AgentPlaces {
    let (mut found, mut at) = (Vec::new(), cursor);
    let end = world.next.agent.0;
    let last = end.min(cursor.saturating_add(SCAN_MAX));
    let is_listed = |id| {
        let active = world.agent(id).is_some_and(|agent| agent.active);
        active && world.alias_of(id, ID).is_some()
    };
    while at.saturating_add(1) < last && found.len() < limit {
        at += 1;
        found.extend(Some((at, AgentId(at))).filter(|(_, id)| is_listed(*id)));
    }
    (found, (at.saturating_add(1) < end).then_some(at))
}

/// The approximate size of an entry in bytes.
fn size(entry: &AgentEntry) -> usize {
    let each = |listed: &CapabilityEntry| {
        64 + listed.resource.len() + listed.description.as_ref().map_or(0, String::len)
    };
    256 + entry.name.len() + entry.capabilities.iter().map(each).sum::<usize>()
}

/// `GET /agents/{id}`: one agent.
pub async fn show(State(context): State<AgoraContext>, PathParam(id): PathParam) -> HandlerResult {
    let key = PublicKey::parse(&id).ok();
    let (hub, now) = (context.state.signer.did(), context.engine.now());
    let found = key.and_then(|key| {
        context.engine.with_world(|world| {
            let agent = world.agent(world.agent_by_alias(ID, &key.did())?)?;
            directory::agent_entry(world, agent, hub, now).filter(|_| agent.active)
        })
    });
    let entry = found.ok_or_else(|| ErrorResponse::new(&context, agent_not_found()))?;
    Ok(json_response(200, serde_json::to_string(&entry).unwrap_or_default()))
}
