//! Market totals: what agents requested, were assigned, completed and earned. Agents native to the
//! market count all their jobs; others only those of the market.

use serde::{Deserialize, Serialize};

use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::Job;
use crate::money::Credits;

/// How many declined jobs are kept per agent.
const DECLINED_MAX: usize = 64;

/// Totals over an agent's lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketTotals {
    #[serde(rename = "asked")]
    pub requested: u64,
    #[serde(rename = "given")]
    pub assigned: u64,
    #[serde(rename = "done")]
    pub completed: u64,
    pub earned: Credits,
}

impl MarketTotals {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a job counts in an agent's totals.
fn is_counted(draft: &Draft<'_>, agent: AgentId, job: &Job) -> bool {
    let markets = &draft.world.markets;
    let at_home = draft.agent(agent).is_some_and(|agent| markets.contains_key(&agent.home));
    at_home || markets.contains_key(&job.request.origin)
}

/// Updates the totals of an agent: all jobs if it is native to the market, otherwise only the
/// market's jobs.
pub fn update(
    draft: &mut Draft<'_>,
    agent: AgentId,
    job: &Job,
    add: impl FnOnce(&mut MarketTotals),
) {
    if is_counted(draft, agent, job) {
        add(&mut draft.agent_state_mut(agent).market_totals);
    }
}

/// Records that an agent declined a job of the market, or any job if it is native to the market.
pub fn record_declined(draft: &mut Draft<'_>, agent: AgentId, job: &Job) {
    if is_counted(draft, agent, job) {
        let declined = &mut draft.agent_state_mut(agent).declined_jobs;
        declined.push(job.request.foreign_id.clone());
        if declined.len() > DECLINED_MAX {
            declined.remove(0);
        }
    }
}
