//! Agent names: an agent has a number, and a name in every protocol.

use std::collections::BTreeMap;

use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::number;
use rialto_core::world::World;
use rialto_protocols::ALL;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::JsonValue;

use super::problem::Problem;

/// Finds an agent by name: `17`, `<protocol>:a3b8…`, or just `a3b8…` if only one agent matches.
///
/// A bare number is always the hub's own; an agent that a protocol calls `17` is `<protocol>:17`
/// here. `field` is the field the name came from.
pub fn find_agent(world: &World, text: &str, field: &str) -> Result<AgentId, Problem> {
    let number = text.parse().ok().map(AgentId).filter(|id| id.to_string() == text);
    if let Some(id) = number {
        return world.agent(id).map(|agent| agent.id).ok_or_else(Problem::not_found);
    }
    let prefixed = text.split_once(':').and_then(|(id, name)| Some((find_protocol(id)?, name)));
    if let Some((protocol, name)) = prefixed {
        return find_in_protocol(world, protocol, name).ok_or_else(Problem::not_found);
    }
    let mut fitting = find_all(world, text);
    let first = fitting.next().ok_or_else(Problem::not_found)?;
    match fitting.any(|other| other != first) {
        false => Ok(first),
        // Two agents in two protocols may have the same name, and guessing could pick the wrong
        // one.
        true => {
            let text = "several agents have this name: write it as protocol:name";
            Err(Problem::invalid_field(field, text))
        }
    }
}

/// The agents that have this id in some protocol. One agent may be there several times.
pub fn find_all<'w>(world: &'w World, text: &'w str) -> impl Iterator<Item = AgentId> + 'w {
    ALL.iter().filter_map(move |adapter| find_in_protocol(world, adapter.id(), text))
}

/// A member that names an agent: its number as a number or text, or any of its names.
pub fn parse_agent_name(f: &Fields<'_, '_>, member: &str) -> Result<Option<String>, Malformed> {
    let Some(given) = f.get(member) else { return Ok(None) };
    match given.value() {
        JsonValue::String(name) => Ok(Some(name.to_string())),
        JsonValue::Number(digits) => match number::parse_integer(digits) {
            Ok(id) => Ok(Some(id.to_string())),
            Err(_) => Err(f.malformed(member, "must be an agent's number or name")),
        },
        _ => Err(f.malformed(member, "must be an agent's number or name")),
    }
}

fn find_in_protocol(world: &World, protocol: Protocol, name: &str) -> Option<AgentId> {
    // UUIDs and addresses are stored in lower case and accepted in any case.
    let caseless = name.parse::<uuid::fmt::Hyphenated>().is_ok() || name.contains('@');
    let folded = || name.to_lowercase();
    let exact = world.agent_by_alias(protocol, name);
    exact.or_else(|| world.agent_by_alias(protocol, &folded()).filter(|_| caseless))
}

/// The agent's name in each protocol.
pub fn names_of(world: &World, agent: AgentId) -> BTreeMap<String, String> {
    let name = |protocol: Protocol| world.alias_of(agent, protocol).map(str::to_owned);
    ALL.iter().filter_map(|adapter| Some((adapter.id().to_string(), name(adapter.id())?))).collect()
}

/// The id of a protocol that the hub supports.
pub fn find_protocol(text: &str) -> Option<Protocol> {
    ALL.iter().map(|adapter| adapter.id()).find(|id| id.as_str() == text)
}
