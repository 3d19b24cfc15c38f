//! Senders that an agent has blocked (R90).

use axum::extract::State;
use axum::response::Response;
use rialto_core::command::Command;
use rialto_core::id::AgentId;

use super::{Answered, address, done, failed, refuse};
use crate::adapter::Floor;
use crate::relay::proof::{AsAgent, Named};
use crate::relay::shape::text;
use crate::relay::{ID, record, refusals};

/// `GET /agent/blocks`: the blocked ids.
pub async fn list(State(floor): State<Floor>, by: AsAgent) -> Answered {
    Ok(blocked(&floor, by.id))
}

/// `PUT /agent/blocks/{id}`: their messages are refused from now on.
pub async fn add(State(floor): State<Floor>, by: AsAgent, Named(id): Named) -> Answered {
    set(&floor, by, &id, true).await
}

/// `DELETE /agent/blocks/{id}`: their messages are accepted again.
pub async fn remove(State(floor): State<Floor>, by: AsAgent, Named(id): Named) -> Answered {
    set(&floor, by, &id, false).await
}

async fn set(floor: &Floor, by: AsAgent, id: &str, blocked_now: bool) -> Answered {
    // An agent that has left may come back, so it can be blocked as well.
    let whom = address(floor, id)
        .and_then(|address| floor.engine.look(|world| world.agent_named(ID, address.canonical())));
    let whom = whom.ok_or_else(|| refuse(floor, refusals::no_such_agent()))?;
    let order = Command::Block { agent: by.id, whom, blocked: blocked_now };
    floor.engine.run_once(order, by.once).await.map_err(|failure| failed(floor, failure))?;
    Ok(blocked(floor, by.id))
}

fn blocked(floor: &Floor, agent: AgentId) -> Response {
    done(floor, 200, |out| {
        floor.engine.look(|world| {
            let ids = world.agent(agent).map_or(&[][..], |agent| &agent.blocked);
            out.push(b'[');
            for (at, id) in ids.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                text(out, &record::address_of(world, Some(*id)));
            }
            out.push(b']');
        });
    })
}
