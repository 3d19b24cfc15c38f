//! `whoami`: the caller's agent, its credits, its inbox and its work.

use rialto_protocols::kit::object::ObjectWriter;

use super::names::address_of;
use super::output::RESULT_MAX;
use super::own_profile::write_skills;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult};
use crate::mcp::limits::write_limits;

/// Decimals that an amount has at least.
const DECIMALS: usize = 2;
/// What everything but the skills needs at most.
const REST_MAX: usize = 2_000;

pub async fn call(call: ToolCall, _: Arguments) -> ToolResult {
    let id = call.agent()?;
    let now = call.context.engine.now();
    let shown = call.context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        let owner = world.owner(agent.owner)?;
        let inbox = world.inbox(id);
        let jobs = i64::try_from(world.assigned_job_count(id)).unwrap_or(i64::MAX);
        Some(
            ObjectWriter::new()
                .text("agent", &address_of(world, id))
                .text("name", &agent.name)
                .text("owner", &owner.name)
                .text("protocol", agent.home.as_str())
                .text("available", &owner.available.to_text(DECIMALS))
                .text("held", &owner.held.to_text(DECIMALS))
                .raw("limits", &write_limits(world, now))
                .integer("inbox_unread", inbox.head.saturating_sub(inbox.acked).cast_signed())
                .integer("jobs_in_hand", jobs)
                .raw("skills", &write_skills(agent, RESULT_MAX - REST_MAX))
                .text("hub", &call.context.hub_url)
                .finish(),
        )
    });
    shown.map(ToolOutput::new).ok_or_else(ToolError::no_key)
}
