//! Our own ranking for a skill.
//!
//! It puts whoever has finished jobs for other owners before whoever has not, so that a fresh
//! identity is never better than a proven one (T36); then the higher score, then more jobs, then
//! who came first. It is made among the online agents: nobody else can be hired now.

use std::cmp::Reverse;

use rialto_core::agent::Desk;
use rialto_core::id::AgentId;
use rialto_core::reputation::Score;
use rialto_core::world::World;
use rialto_engine::Engine;

use super::search::{CANDIDATES_MAX, Found, Wanted};
use crate::v1::page::Cursor;

/// The list, as its cursors name it.
pub const RANKED: char = 'r';

/// Place in our ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    unproven: bool,
    score: Reverse<Score>,
    settled: Reverse<u64>,
    agent: AgentId,
}

impl Place {
    fn of(desk: &Desk) -> Self {
        let settled = desk.standing.settled();
        let score = Reverse(desk.standing.score);
        Self { unproven: settled == 0, score, settled: Reverse(settled), agent: desk.agent }
    }

    fn numbers(self) -> [u64; 4] {
        let score = self.score.0.millionths().unsigned_abs();
        [u64::from(self.unproven), score, self.settled.0, self.agent.0]
    }

    fn read([unproven, score, settled, agent]: [u64; 4]) -> Self {
        let score = i64::try_from(score).unwrap_or(i64::MAX);
        Self {
            unproven: unproven != 0,
            score: Reverse(Score::from_millionths(score)),
            settled: Reverse(settled),
            agent: AgentId(agent),
        }
    }
}

/// Online agents with the skill, best first, from after a place.
pub fn ranked(
    engine: &Engine,
    skill: &str,
    wanted: &Wanted,
    after: Option<[u64; 4]>,
    limit: usize,
) -> Found {
    let after = after.map(Place::read);
    let now = engine.now();
    let mut places = engine.look(|world| {
        let online = |id| world.is_online(id, now);
        let fits = |id| online(id) && world.agent(id).is_some_and(|agent| wanted.fits(agent));
        candidates(world, skill, after, limit, fits)
    });
    places.sort_unstable();
    places.dedup();
    let more = places.len() > limit;
    places.truncate(limit);
    let next = places.last().filter(|_| more).map(|last| Cursor::new(RANKED, last.numbers()));
    Found { agents: places.into_iter().map(|place| place.agent).collect(), next }
}

/// Everybody who may stand on the page after a place, in no order.
fn candidates(
    world: &World,
    skill: &str,
    after: Option<Place>,
    limit: usize,
    fits: impl Fn(AgentId) -> bool,
) -> Vec<Place> {
    // The page begins among the proven, unless the last one has passed them.
    let unproven = after.is_some_and(|after| after.unproven);
    let (mut found, mut enough, mut border) = (Vec::new(), 0, None);
    for one in world.skills.ranked(skill, None).take(CANDIDATES_MAX) {
        let Some(place) = world.desk(one.agent).map(|desk| Place::of(desk)) else { continue };
        // The index is in order of scores: once the page is full, no lower score belongs on it.
        if enough > limit && border.is_some_and(|border| place.score > border) {
            break;
        }
        if after.is_some_and(|after| place <= after) || !fits(one.agent) {
            continue;
        }
        if place.unproven == unproven {
            enough += 1;
            border = Some(place.score);
        }
        found.push(place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(settled: u64, score: i64, agent: u64) -> Place {
        Place {
            unproven: settled == 0,
            score: Reverse(Score::from_millionths(score)),
            settled: Reverse(settled),
            agent: AgentId(agent),
        }
    }

    #[test]
    fn proven_comes_before_new_then_score_then_jobs_then_age() {
        let best_first = [
            place(3, 60_000_000, 9),
            place(9, 51_000_000, 8),
            place(2, 51_000_000, 1),
            place(2, 51_000_000, 2),
            place(1, 20_000_000, 3),
            place(0, 50_000_000, 4),
        ];
        assert!(best_first.is_sorted());
    }

    #[test]
    fn a_place_survives_its_cursor() {
        for place in [place(0, 50_000_000, 4), place(7, 99_999_999, u64::MAX)] {
            assert_eq!(Place::read(place.numbers()), place);
        }
    }
}
