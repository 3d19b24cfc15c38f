//! Whether an input is what an agent says it takes, whichever protocol either comes from.

use std::sync::Arc;

use rialto_core::agent::Agent;

use super::{ID, record};
use crate::face::Floor;
use crate::kit::schema::{Schema, Violation};

/// What an input breaks of the schema under which a capability is listed; may be slow.
pub fn violations(floor: &Floor, agent: &Arc<Agent>, capability: &str, input: &str) -> Vec<String> {
    let checked = match agent.home == ID {
        true => native(floor, agent, capability, input),
        false => listed(agent, capability, input),
    };
    checked.unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// By the schema the agent published.
fn native(
    floor: &Floor,
    agent: &Arc<Agent>,
    capability: &str,
    input: &str,
) -> Option<Vec<Violation>> {
    let identity = floor.openclaw.identity(agent)?;
    identity.capability(capability)?.input.as_ref()?.check(input).err()
}

/// By the schema that is shown for an agent of another protocol; they are small.
fn listed(agent: &Agent, capability: &str, input: &str) -> Option<Vec<Violation>> {
    let schema = record::schema(&agent.skill(capability)?.input);
    Schema::compile(&schema).ok()?.check(input).err()
}
