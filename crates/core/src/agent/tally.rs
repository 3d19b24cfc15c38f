//! Tallies: what agents have asked for, were given, have done and have earned in a market, and all of
//! it for those at home there.

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

/// Whether anybody keeps count of what an agent has to do with a job.
fn counts(draft: &Draft<'_>, agent: AgentId, job: &Job) -> bool {
    let market = draft.world.market.as_ref().map(|market| market.protocol);
    let home = draft.agent(agent).map(|agent| agent.home);
    market.is_some() && (home == market || Some(job.origin) == market)
}

/// Counts for an agent of the market; for others only what they do there.
pub fn count(draft: &mut Draft<'_>, agent: AgentId, job: &Job, add: impl FnOnce(&mut Tally)) {
    if counts(draft, agent, job) {
        add(&mut draft.desk_mut(agent).tally);
    }
}

/// Notes that an agent will not do a job of the market, or, at home there, any job.
pub fn declined(draft: &mut Draft<'_>, agent: AgentId, job: &Job) {
    if counts(draft, agent, job) {
        let declined = &mut draft.desk_mut(agent).declined;
        declined.push(job.foreign.clone());
        if declined.len() > DECLINED_MAX {
            declined.remove(0);
        }
    }
}
