//! Checks an input against a capability's schema, whatever the home protocol of either agent.

use std::sync::Arc;

use rialto_core::agent::Agent;

use super::{ID, record};
use crate::adapter::HubContext;
use crate::kit::schema::{Schema, Violation};

/// The violations of the schema under which a capability is listed. May be slow.
pub fn input_violations(
    context: &HubContext,
    agent: &Arc<Agent>,
    capability: &str,
    input: &str,
) -> Vec<String> {
    let checked = match agent.home == ID {
        true => native(context, agent, capability, input),
        false => listed(agent, capability, input),
    };
    checked.unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Checks against the schema that the agent published.
fn native(
    context: &HubContext,
    agent: &Arc<Agent>,
    capability: &str,
    input: &str,
) -> Option<Vec<Violation>> {
    let identity = context.openclaw.identity(agent)?;
    identity.capability(capability)?.input.as_ref()?.check(input).err()
}

/// Checks against the schema shown for a bridged agent. These schemas are small.
fn listed(agent: &Agent, capability: &str, input: &str) -> Option<Vec<Violation>> {
    let schema = record::to_json_schema(&agent.skill(capability)?.input);
    Schema::compile(&schema).ok()?.check(input).err()
}
