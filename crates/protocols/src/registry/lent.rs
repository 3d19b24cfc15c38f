//! Helpers that the hub's /v1 API shares with this protocol.

use rialto_core::job::{Cause, Job, Requester};
use rialto_core::world::World;

pub use super::translate::JOB_LIFETIME;
use super::{ID, errors, shape, wire};
use crate::kit::ijson;

/// The worker's name for the requested skill.
pub fn skill_name(world: &World, job: &Job) -> String {
    shape::skill_name(world, job)
}

/// The requester's name in this protocol.
pub fn requester_name(world: &World, job: &Job) -> String {
    match &job.requester {
        Requester::Agent(id) => world.alias_of(*id, ID).unwrap_or_default().to_owned(),
        Requester::Guest(name) => name.clone(),
    }
}

/// The cause of a worker's own code; an unknown code is an execution error.
pub fn cause_of_code(code: &str) -> Cause {
    errors::cause_of_code(Some(code))
}

/// The canonical bytes of JSON text: independent of spacing, member order and escapes.
pub fn canonical_bytes(text: &str) -> Vec<u8> {
    let mut meaning = Vec::new();
    match ijson::read(text.as_bytes()) {
        Ok(json) => wire::write_canonical(&json, &mut meaning),
        Err(_) => meaning.extend(text.as_bytes()),
    }
    meaning
}
