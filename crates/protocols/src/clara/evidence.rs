//! Evidence: the signed item that registered a task, kept with it where an agent of another protocol
//! may do it (B3).
//!
//! A job keeps its payload anyway, so of the item only what stands around that is kept.

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::world::World;
use serde::{Deserialize, Serialize};

use super::ID;
use super::task::{self, Meta};
use crate::kit::ans104::Item;
use crate::kit::base64url;

/// Agents looked at for a task that names nobody.
const LOOKED_AT_MAX: usize = 4_096;

/// What stands around the payload of an item, in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around(String, String);

impl Around {
    /// Of an item, and the part of its data that the job keeps.
    pub fn of(item: &[u8], payload: &str) -> Option<Self> {
        let start = (payload.as_ptr() as usize).checked_sub(item.as_ptr() as usize)?;
        let (head, tail) = (item.get(..start)?, item.get(start..)?);
        let tail = tail.strip_prefix(payload.as_bytes())?;
        Some(Self(base64url::encode(head), base64url::encode(tail)))
    }

    fn whole(&self, payload: &str) -> Option<Vec<u8>> {
        let (head, tail) = (base64url::decode(&self.0).ok()?, base64url::decode(&self.1).ok()?);
        Some([&head, payload.as_bytes(), &tail].concat())
    }
}

/// The item a task was registered with, byte for byte; nothing for tasks that have kept none.
pub fn item(job: &Job) -> Option<Vec<u8>> {
    let bytes = Meta::of(job)?.item?.whole(&job.input)?;
    let is_it = |item: Item<'_>| item.id().to_string() == task::plain(&job.foreign);
    Item::read(&bytes).is_ok_and(is_it).then_some(bytes)
}

/// Whether an agent of another protocol may get a task: the one that is named, or one of those who
/// offer what is wanted.
pub fn may_cross(world: &World, of: Option<AgentId>, names: &[&str]) -> bool {
    let foreign = |id: AgentId| world.agent(id).is_some_and(|agent| agent.home != ID);
    match of {
        Some(agent) => foreign(agent),
        None => {
            let all = names.iter().flat_map(|name| world.skills.ranked(name, None));
            all.take(LOOKED_AT_MAX).any(|found| foreign(found.agent))
        }
    }
}
