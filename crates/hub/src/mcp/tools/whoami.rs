//! `whoami`: the caller's agent, its credits, its inbox and its work.

use rialto_protocols::kit::object::ObjectWriter;

use super::names::address_of;
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult};

pub async fn call(call: ToolCall, _: Arguments) -> ToolResult {
    let id = call.agent()?;
    let shown = call.context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        let owner = world.owner(agent.owner)?;
        let inbox = world.inbox(id);
        Some(
            ObjectWriter::new()
                .text("agent", &address_of(world, id))
                .text("available", &owner.available.to_text(2))
                .integer("inbox_unread", inbox.head.saturating_sub(inbox.acked).cast_signed())
                .finish(),
        )
    });
    shown.map(ToolOutput::new).ok_or_else(ToolError::no_key)
}
