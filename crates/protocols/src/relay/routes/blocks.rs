//! Senders that an agent has blocked (R90).

use axum::extract::State;
use axum::response::Response;
use rialto_core::command::Command;
use rialto_core::id::AgentId;

use super::{HandlerResult, engine_error, error_response, read_address, success};
use crate::adapter::HubContext;
use crate::relay::proof::{AgentCaller, PathParam};
use crate::relay::shape::write_json_string;
use crate::relay::{ID, record, refusals};

/// `GET /agent/blocks`: the blocked ids.
pub async fn list(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    Ok(blocked(&context, by.id))
}

/// `PUT /agent/blocks/{id}`: their messages are refused from now on.
pub async fn add(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set(&context, by, &id, true).await
}

/// `DELETE /agent/blocks/{id}`: their messages are accepted again.
pub async fn remove(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set(&context, by, &id, false).await
}

async fn set(context: &HubContext, by: AgentCaller, id: &str, blocked_now: bool) -> HandlerResult {
    // An agent that has left may come back, so it can be blocked as well.
    let whom = read_address(context, id).and_then(|address| {
        context.engine.with_world(|world| world.agent_by_alias(ID, address.canonical()))
    });
    let whom = whom.ok_or_else(|| error_response(context, refusals::agent_not_found()))?;
    let order = Command::SetBlocked { agent: by.id, other: whom, blocked: blocked_now };
    context
        .engine
        .run_once(order, by.once)
        .await
        .map_err(|failure| engine_error(context, failure))?;
    Ok(blocked(context, by.id))
}

fn blocked(context: &HubContext, agent: AgentId) -> Response {
    success(context, 200, |out| {
        context.engine.with_world(|world| {
            let ids = world.agent(agent).map_or(&[][..], |agent| &agent.blocked);
            out.push(b'[');
            for (at, id) in ids.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                write_json_string(out, &record::address_of(world, Some(*id)));
            }
            out.push(b']');
        });
    })
}
