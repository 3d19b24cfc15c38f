//! The mark on what the hub says for somebody of another protocol (B3).

use rialto_core::agent::Agent;
use rialto_core::job::{Job, Requester};
use rialto_core::world::World;

use crate::kit::object::Object;

/// What it is called wherever messages may have members of ours.
pub const MEMBER: &str = "bridge";

/// For whom the hub speaks: the protocol it is at home in, and its name there.
pub fn of_agent(agent: &Agent) -> String {
    Object::new().text("protocol", agent.home.as_str()).text("agent", &agent.native).finish()
}

/// For whom the hub asks: whoever wants the job. A guest has no name that anybody proved.
pub fn of_requester(world: &World, job: &Job) -> String {
    let agent = match job.requester {
        Requester::Agent(agent) => world.agent(agent),
        Requester::Guest(_) => None,
    };
    let guest = || Object::new().text("protocol", job.origin.as_str()).finish();
    agent.map_or_else(guest, |agent| of_agent(agent))
}
