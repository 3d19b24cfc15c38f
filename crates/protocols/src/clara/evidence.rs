//! Evidence: the signed item that registered a task. It is stored with the job if an agent of
//! another protocol may do the task (B3).
//!
//! The job already stores the payload, so only the bytes before and after it are stored here.

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::world::World;
use serde::{Deserialize, Serialize};

use super::ID;
use super::task::{self, TaskMeta};
use crate::kit::ans104::Item;
use crate::kit::base64url;

/// The most agents considered for a task that names none.
const LOOKED_AT_MAX: usize = 4_096;

/// The bytes of an item before and after its payload, in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemWithoutPayload(String, String);

impl ItemWithoutPayload {
    /// Splits an item around its payload, which the job stores.
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

/// The item that registered a task, byte for byte; `None` for tasks without a stored item.
pub fn signed_item(job: &Job) -> Option<Vec<u8>> {
    let bytes = TaskMeta::of(job)?.item?.whole(&job.input)?;
    let is_it = |item: Item<'_>| item.id().to_string() == task::base_task_id(&job.foreign_id);
    Item::read(&bytes).is_ok_and(is_it).then_some(bytes)
}

/// Whether an agent of another protocol may get the task: the named one, or any that offers the
/// skill.
pub fn may_leave_protocol(world: &World, of: Option<AgentId>, names: &[&str]) -> bool {
    let foreign = |id: AgentId| world.agent(id).is_some_and(|agent| agent.home != ID);
    match of {
        Some(agent) => foreign(agent),
        None => {
            let all = names.iter().flat_map(|name| world.skills.online_by_rank(name, None));
            all.take(LOOKED_AT_MAX).any(|found| foreign(found.agent))
        }
    }
}
