//! The `bridge` member: marks a message that the hub writes for a party of another protocol (B3).

use rialto_core::agent::Agent;
use rialto_core::job::{Job, Requester};
use rialto_core::world::World;

use crate::kit::object::ObjectWriter;

/// Its name in every message that may have members of ours.
pub const MEMBER: &str = "bridge";

/// The agent the hub writes for: its home protocol and its name there.
pub fn bridge_of_agent(agent: &Agent) -> String {
    ObjectWriter::new()
        .text("protocol", agent.home.as_str())
        .text("agent", &agent.native_id)
        .finish()
}

/// The requester the hub writes for. A guest has no proven name.
pub fn bridge_of_requester(world: &World, job: &Job) -> String {
    let agent = match job.request.requester {
        Requester::Agent(agent) => world.agent(agent),
        Requester::Guest(_) => None,
    };
    let guest = || ObjectWriter::new().text("protocol", job.request.origin.as_str()).finish();
    agent.map_or_else(guest, |agent| bridge_of_agent(agent))
}
