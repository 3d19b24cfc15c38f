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
pub async fn list(State(floor): State<HubContext>, by: AgentCaller) -> HandlerResult {
    Ok(blocked(&floor, by.id))
}

/// `PUT /agent/blocks/{id}`: their messages are refused from now on.
pub async fn add(
    State(floor): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set(&floor, by, &id, true).await
}

/// `DELETE /agent/blocks/{id}`: their messages are accepted again.
pub async fn remove(
    State(floor): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set(&floor, by, &id, false).await
}

async fn set(floor: &HubContext, by: AgentCaller, id: &str, blocked_now: bool) -> HandlerResult {
    // An agent that has left may come back, so it can be blocked as well.
    let whom = read_address(floor, id).and_then(|address| {
        floor.engine.with_world(|world| world.agent_by_alias(ID, address.canonical()))
    });
    let whom = whom.ok_or_else(|| error_response(floor, refusals::agent_not_found()))?;
    let order = Command::SetBlocked { agent: by.id, other: whom, blocked: blocked_now };
    floor.engine.run_once(order, by.once).await.map_err(|failure| engine_error(floor, failure))?;
    Ok(blocked(floor, by.id))
}

fn blocked(floor: &HubContext, agent: AgentId) -> Response {
    success(floor, 200, |out| {
        floor.engine.with_world(|world| {
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
