//! How callers name agents, and how agents are shown.

use std::collections::BTreeSet;

use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_protocols::adapter;

use super::error::ToolError;
use super::stranger_text::quote;
use crate::v1::agent_names;
use crate::v1::errors;

/// Agents looked at under one lock; between two slices the commit lane may publish.
const SLICE: u64 = 4_096;
/// Addresses that an error shows.
const ADDRESSES_SHOWN: usize = 5;
/// How much of an unknown name an error repeats.
const SHOWN_MAX: usize = 80;

/// Finds an agent by its address, its number, `protocol:id`, another of its ids, or a display name
/// that only one registered agent has.
pub fn find_agent(engine: &Engine, text: &str) -> Result<AgentId, ToolError> {
    let by_id = engine.with_world(|world| agent_names::find_agent(world, text, "/agent"));
    let mut found = BTreeSet::new();
    match by_id {
        Ok(id) if is_id(text) => return Ok(id),
        Ok(id) => drop(found.insert(id)),
        Err(problem) if *problem.kind == errors::NOT_FOUND => {}
        // Several protocols have such an id.
        Err(_) => engine.with_world(|world| found.extend(agent_names::find_all(world, text))),
    }
    find_by_display_name(engine, text, &mut found);
    let mut all = found.iter();
    match (all.next(), all.next()) {
        (Some(id), None) => Ok(*id),
        (Some(_), Some(_)) => Err(ambiguous(engine, text, &found)),
        _ => {
            let what = format!("no agent is called {}", quote(text, SHOWN_MAX));
            Err(ToolError::of("not_found", what))
        }
    }
}

/// Whether a text has the form of an id, which no display name can take away from its agent.
fn is_id(text: &str) -> bool {
    text.contains(['@', ':', '/'])
        || text.bytes().all(|byte| byte.is_ascii_digit())
        || text.parse::<uuid::fmt::Hyphenated>().is_ok()
}

fn find_by_display_name(engine: &Engine, name: &str, found: &mut BTreeSet<AgentId>) {
    let mut first = 0_u64;
    loop {
        let end = engine.with_world(|world| {
            // Numbers are assigned in order and never reused.
            let end = world.next.agent.0;
            let last = first.saturating_add(SLICE).min(end);
            let agents = (first..last).filter_map(|id| world.agent(AgentId(id)));
            found.extend(
                agents.filter(|agent| agent.active && agent.name == name).map(|agent| agent.id),
            );
            end
        });
        first = first.saturating_add(SLICE);
        // One more than are shown proves that it is ambiguous.
        if first >= end || found.len() > ADDRESSES_SHOWN {
            return;
        }
    }
}

fn ambiguous(engine: &Engine, text: &str, found: &BTreeSet<AgentId>) -> ToolError {
    let shown: Vec<String> = engine.with_world(|world| {
        found.iter().take(ADDRESSES_SHOWN).map(|id| address_of(world, *id)).collect()
    });
    let what = format!("several agents are called {}", quote(text, SHOWN_MAX));
    let fix = format!("name the agent by its address, one of: {}", shown.join(", "));
    ToolError::new("ambiguous", what, fix)
}

/// The address by which an agent is shown.
pub fn address_of(world: &World, id: AgentId) -> String {
    let protocol = adapter::address_protocol().id();
    world.alias_of(id, protocol).map_or_else(|| id.to_string(), str::to_owned)
}
