//! Tallies: what agents of a market have asked for, were given, have done and have earned.

use serde::{Deserialize, Serialize};

use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::Job;
use crate::money::Credits;

/// How many declined jobs are kept for an agent.
const DECLINED_MAX: usize = 64;

/// Counts over a life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub asked: u64,
    pub given: u64,
    pub done: u64,
    pub earned: Credits,
}

impl Tally {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether anybody keeps count of this agent.
fn counts(draft: &Draft<'_>, agent: AgentId) -> bool {
    let market = draft.world.market.as_ref().map(|market| market.protocol);
    market.is_some() && draft.agent(agent).map(|agent| agent.home) == market
}

/// Counts for an agent of the market; others have no tally.
pub fn count(draft: &mut Draft<'_>, agent: AgentId, add: impl FnOnce(&mut Tally)) {
    if counts(draft, agent) {
        add(&mut draft.desk_mut(agent).tally);
    }
}

/// Notes that an agent of the market will not do a job.
pub fn declined(draft: &mut Draft<'_>, agent: AgentId, job: &Job) {
    if counts(draft, agent) {
        let declined = &mut draft.desk_mut(agent).declined;
        declined.push(job.foreign.clone());
        if declined.len() > DECLINED_MAX {
            declined.remove(0);
        }
    }
}
