//! Discovery: the agents with a skill, best first.

use super::World;
use super::skills::Candidate;
use crate::money::Credits;
use crate::reputation::Score;
use crate::time::Timestamp;

/// What to search for.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
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
pub struct Found {
    pub page: Vec<Candidate>,
    /// All matches, not only those of this page.
    pub total: usize,
}

impl World {
    /// Finds online agents by skill, score and price, in discovery order.
    pub fn discover(&self, wanted: &Wanted<'_>, now: Timestamp) -> Found {
        let good = |one: &Candidate| {
            self.desks.get(&one.agent).is_some_and(|desk| desk.standing.score >= wanted.min_score)
        };
        let fits = |one: &Candidate| {
            let settled = self.desks.get(&one.agent).map_or(0, |desk| desk.standing.settled());
            settled >= wanted.min_jobs && self.is_online(one.agent, now)
        };
        let all = self.skills.ranked(wanted.skill, wanted.max_price).take_while(good);
        // The index can count by itself unless it still holds an agent that has just gone offline.
        let swept = self.next_offline().is_none_or(|at| now <= at);
        if wanted.min_jobs == 0 && swept {
            let page = all.skip(wanted.offset).take(wanted.limit).collect();
            let total = self.skills.count(wanted.skill, wanted.max_price, wanted.min_score);
            return Found { page, total };
        }
        let mut found = Found { page: Vec::new(), total: 0 };
        for one in all.filter(fits) {
            if found.total >= wanted.offset && found.page.len() < wanted.limit {
                found.page.push(one);
            }
            found.total += 1;
        }
        found
    }
}
