//! Registration records: an agent's public data.

use std::borrow::Cow;

use rialto_core::agent::{Agent, Liveness};
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::Engine;

use super::ID;
use super::a2a::EnvelopeFormat;
use super::shape::write_json_string;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::rfc3339;

/// What the relay stores with an agent, as JSON: its address as registered, its card, its format.
pub fn write_stored_card(
    address: &str,
    card: Option<&str>,
    format: Option<EnvelopeFormat>,
) -> String {
    let mut out = Vec::with_capacity(address.len() + card.map_or(4, str::len) + 64);
    out.extend_from_slice(b"{\"agent_id\":");
    write_json_string(&mut out, address);
    out.extend_from_slice(b",\"agent_card\":");
    out.extend_from_slice(card.unwrap_or("null").as_bytes());
    if let Some(format) = format {
        out.extend_from_slice(b",\"envelope_format\":");
        write_json_string(&mut out, format.as_str());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// How an agent wants its envelopes wrapped.
pub fn envelope_format(agent: &Agent) -> Option<EnvelopeFormat> {
    if agent.home != ID || !agent.card.contains("\"envelope_format\"") {
        return None;
    }
    let kept = ijson::read(agent.card.as_bytes()).ok()?;
    match kept.get("envelope_format")?.value() {
        JsonValue::String(name) => EnvelopeFormat::read(name),
        _ => None,
    }
}

/// An agent's address: as registered, or the alias of an agent of another protocol.
pub fn address<'w>(world: &'w World, agent: &'w Agent) -> Cow<'w, str> {
    if agent.home != ID {
        return world.alias_of(agent.id, ID).unwrap_or_default().into();
    }
    // Addresses need no escapes, so the text can be used as it is.
    let shown = agent.card.strip_prefix("{\"agent_id\":\"").and_then(|rest| rest.split('"').next());
    // The card of an agent that has left is not in memory; it adds only how the host was spelled.
    let host = || agent.native_id.split_once('@').map_or("", |(_, host)| host);
    shown.map_or_else(|| format!("{}@{}", agent.name, host()).into(), Cow::Borrowed)
}

/// The address of an agent that may have left.
pub fn address_of(world: &World, agent: Option<AgentId>) -> Cow<'_, str> {
    agent.and_then(|id| world.agent(id)).map_or("".into(), |agent| address(world, agent))
}

/// Whether messages reach the agent now.
pub fn is_online(engine: &Engine, world: &World, agent: &Agent) -> bool {
    if engine.has_inbox_reader(agent.id) {
        return true;
    }
    match agent.home == ID {
        true => {
            let agent_state = world.agent_state(agent.id);
            agent.liveness == Liveness::ByEndpoint
                && agent_state.is_some_and(|d| !d.presence.unreachable)
        }
        false => world.is_online(agent.id, engine.now()),
    }
}

/// The agent's endpoint, if the relay may post to it.
pub fn callable_endpoint(agent: &Agent) -> Option<&str> {
    let called = agent.home == ID && agent.liveness == Liveness::ByEndpoint;
    agent.endpoint.as_deref().filter(|_| called)
}

/// The card of agents without one: those of other protocols, and those that registered without one.
/// Clients read every listed card, so there must always be one.
const DEFAULT_CARD: &str =
    r#"{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}"#;

/// The card's JSON text.
pub fn public_card(agent: &Agent) -> String {
    if agent.home != ID {
        return DEFAULT_CARD.to_owned();
    }
    let kept = ijson::read(agent.card.as_bytes());
    let card = kept.as_ref().ok().and_then(|kept| kept.get("agent_card"));
    let card = card.filter(|card| *card.value() != JsonValue::Null);
    card.map_or(DEFAULT_CARD, Json::raw).to_owned()
}

/// The culture in an agent's card.
pub fn culture(agent: &Agent) -> Option<String> {
    let card = public_card(agent);
    let card = ijson::read(card.as_bytes()).ok()?;
    match card.get("user_culture")?.value() {
        JsonValue::String(culture) => Some(culture.clone().into_owned()),
        _ => None,
    }
}

/// Writes a record. The endpoint is included for callers that may see it.
pub fn write_record(
    out: &mut Vec<u8>,
    engine: &Engine,
    world: &World,
    agent: &Agent,
    endpoints: bool,
) {
    out.extend_from_slice(b"{\"agent_id\":");
    write_json_string(out, &address(world, agent));
    out.extend_from_slice(b",\"agent_card\":");
    out.extend_from_slice(public_card(agent).as_bytes());
    out.extend_from_slice(b",\"registered_at\":");
    write_json_string(out, &rfc3339::format_millis(agent.registered_at));
    out.extend_from_slice(b",\"online\":");
    let online = is_online(engine, world, agent);
    out.extend_from_slice(if online { b"true" } else { b"false" });
    out.extend_from_slice(b",\"protocol\":");
    write_json_string(out, agent.home.as_str());
    if agent.home != ID {
        out.extend_from_slice(b",\"native_id\":");
        write_json_string(out, &agent.native_id);
    }
    if let Some(format) = envelope_format(agent) {
        out.extend_from_slice(b",\"envelope_format\":");
        write_json_string(out, format.as_str());
    }
    if let Some(url) = agent.endpoint.as_deref().filter(|_| endpoints && agent.home == ID) {
        out.extend_from_slice(b",\"endpoint\":");
        write_json_string(out, url);
    }
    out.push(b'}');
}
