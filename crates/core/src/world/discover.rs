//! Discovery: the agents with a skill, best first.

use super::World;
use super::skills::Candidate;
use crate::money::Credits;
use crate::reputation::Score;
use crate::time::Timestamp;

/// What to search for.
#[derive(Clone, Debug)]
pub struct DiscoveryQuery<'a> {
    pub skill: &'a str,
    pub min_score: Score,
    pub max_price: Option<Credits>,
    /// Completed jobs for other owners.
    pub min_jobs: u64,
    pub limit: usize,
    pub offset: usize,
}

/// One page of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryPage {
    pub agents: Vec<Candidate>,
    /// All matches, not only those of this page.
    pub total: usize,
}

impl World {
    /// Finds online agents by skill, score and price, in discovery order.
    pub fn discover(&self, wanted: &DiscoveryQuery<'_>, now: Timestamp) -> DiscoveryPage {
        let good = |one: &Candidate| {
            self.agents
                .state(one.agent)
                .is_some_and(|agent_state| agent_state.standing.score >= wanted.min_score)
        };
        let fits = |one: &Candidate| {
            let settled = self
                .agents
                .state(one.agent)
                .map_or(0, |agent_state| agent_state.standing.settled_jobs());
            settled >= wanted.min_jobs && self.is_online(one.agent, now)
        };
        let all = self.skills.online_by_rank(wanted.skill, wanted.max_price).take_while(good);
        // The index can count by itself unless it still holds an agent that has just gone offline.
        let swept = self.next_offline_at().is_none_or(|at| now <= at);
        if wanted.min_jobs == 0 && swept {
            let page = all.skip(wanted.offset).take(wanted.limit).collect();
            let total = self.skills.count_online(wanted.skill, wanted.max_price, wanted.min_score);
            return DiscoveryPage { agents: page, total };
        }
        let mut found = DiscoveryPage { agents: Vec::new(), total: 0 };
        for one in all.filter(fits) {
            if found.total >= wanted.offset && found.agents.len() < wanted.limit {
                found.agents.push(one);
            }
            found.total += 1;
        }
        found
    }
}
