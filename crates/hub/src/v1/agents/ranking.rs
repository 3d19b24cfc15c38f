//! The hub's own ranking of agents for a skill.
//!
//! Agents that have finished jobs for other owners come before all others, so that a new identity
//! is never better than a proven one (T36). Then come the rank score (see `rialto_protocols::adapter::rank`), more
//! counterparties, more credits paid by them, the higher score, more jobs, and the earlier
//! registration. Only online agents are ranked: no others can be hired now.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::world::World;
use rialto_engine::Engine;

use rialto_protocols::adapter::rank::{Experience, RankPosition, RankRecord};

use super::search::{AgentFilter, AgentPage, CANDIDATES_MAX};
use crate::v1::page::Cursor;

/// The list's tag in cursors.
pub const RANKED_LIST: char = 'r';

/// A position as the numbers of a cursor.
type CursorNumbers = [u64; 7];

/// The position as numbers.
fn to_cursor(place: RankPosition) -> CursorNumbers {
    let known = match place.experience {
        Experience::Proven => 0,
        Experience::New => 1,
        Experience::Penalized => 2,
    };
    [
        known,
        place.rank_score.0.millionths().unsigned_abs(),
        place.counterparties.0,
        place.paid.0.micros().unsigned_abs(),
        place.score.0.millionths().unsigned_abs(),
        place.jobs_settled.0,
        place.agent.0,
    ]
}

/// The position that numbers mean.
fn from_cursor(
    [known, weight, patrons, paid, score, settled, agent]: CursorNumbers,
) -> RankPosition {
    let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
    RankPosition {
        experience: match known {
            0 => Experience::Proven,
            1 => Experience::New,
            _ => Experience::Penalized,
        },
        rank_score: Reverse(Score::from_millionths(signed(weight))),
        counterparties: Reverse(patrons),
        paid: Reverse(Credits::from_micros(signed(paid))),
        score: Reverse(Score::from_millionths(signed(score))),
        jobs_settled: Reverse(settled),
        agent: AgentId(agent),
    }
}

/// Online agents with the skill, best first, after a position.
pub fn rank_agents(
    engine: &Engine,
    skill: &str,
    wanted: &AgentFilter,
    after: Option<CursorNumbers>,
    limit: usize,
) -> AgentPage {
    let after = after.map(from_cursor);
    let now = engine.now();
    let (mut places, looked_at) = engine.with_world(|world| {
        let fits = |id| {
            let agent = world.agent(id).filter(|_| world.is_online(id, now));
            agent.is_some_and(|agent| wanted.fits(world, agent, now))
        };
        candidates(world, skill, after, limit, fits)
    });
    places.sort_unstable();
    places.dedup();
    let more = places.len() > limit;
    places.truncate(limit);
    let cursor = |place: &RankPosition| Cursor::new(RANKED_LIST, to_cursor(*place));
    let next = places.last().filter(|_| more).map(cursor);
    let agents = places.iter().map(|place| (place.agent, cursor(place))).collect();
    AgentPage { agents, next, rows_read: looked_at }
}

/// All agents that may be on the page after a position, unordered, and how many rows were read.
fn candidates(
    world: &World,
    skill: &str,
    after: Option<RankPosition>,
    limit: usize,
    fits: impl Fn(AgentId) -> bool,
) -> (Vec<RankPosition>, usize) {
    // The page begins among the proven agents, unless the cursor is already past them.
    let known = after.map_or(Experience::Proven, |after| after.experience);
    let (mut found, mut best, mut looked_at) = (Vec::new(), BinaryHeap::new(), 0);
    let offers = |id: &AgentId| world.agent(*id).is_some_and(|agent| agent.skill(skill).is_some());
    let underrated = world.underrated_agents().filter(offers).take(CANDIDATES_MAX);
    found.extend(underrated.filter(|id| fits(*id)).filter_map(|id| {
        let place = RankPosition::new(id, &RankRecord::load(world, id)?);
        (after.is_none_or(|after| place > after)).then_some(place)
    }));
    for one in world.skills.online_by_rank(skill, None).take(CANDIDATES_MAX) {
        looked_at += 1;
        let Some(rank_record) = RankRecord::load(world, one.agent) else { continue };
        // The index is ordered by score, and only underrated agents have a rank score above their
        // score. So once `limit` agents have a rank score above this agent's score, no later agent
        // belongs on the page.
        let full = best.len() > limit;
        if full && best.peek().is_some_and(|Reverse(least)| rank_record.score < *least) {
            break;
        }
        let place = RankPosition::new(one.agent, &rank_record);
        if after.is_some_and(|after| place <= after) || !fits(one.agent) {
            continue;
        }
        if place.experience == known {
            best.push(place.rank_score);
            if best.len() > limit + 1 {
                best.pop();
            }
        }
        found.push(place);
    }
    (found, looked_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best() -> RankRecord {
        let (score, paid) = (Score::from_millionths(60_000_000), Credits::from_micros(900));
        RankRecord {
            score,
            weighted_score: score,
            jobs_settled: 9,
            counterparties: 4,
            credits_paid: paid,
            owner_failures: 0,
        }
    }

    fn place(agent: u64, rank_record: RankRecord) -> RankPosition {
        RankPosition::new(AgentId(agent), &rank_record)
    }

    #[test]
    fn proven_comes_before_new_then_what_the_score_is_worth_then_all_that_was_shown_by_others() {
        let fewer = RankRecord { counterparties: 3, ..best() };
        let poorer = RankRecord { credits_paid: Credits::from_micros(899), ..fewer };
        let idler = RankRecord { jobs_settled: 8, ..poorer };
        let ring = RankRecord {
            score: Score::MAX,
            weighted_score: Score::MAX,
            jobs_settled: 99,
            counterparties: 1,
            ..best()
        };
        let new = RankRecord {
            score: Score::START,
            weighted_score: Score::START,
            jobs_settled: 0,
            counterparties: 0,
            credits_paid: Credits::ZERO,
            ..best()
        };
        let best_first = [
            place(9, best()),
            place(8, fewer),
            place(7, poorer),
            place(6, idler),
            place(10, idler),
            place(1, ring),
            place(2, RankRecord { owner_failures: 5, ..best() }),
            place(3, RankRecord { score: Score::MIN, weighted_score: Score::MIN, ..best() }),
            place(4, new),
            place(5, new),
            place(0, RankRecord { owner_failures: 1, ..new }),
        ];
        assert!(best_first.is_sorted(), "{best_first:#?}");
    }

    #[test]
    fn a_place_survives_its_cursor() {
        let new = RankRecord { jobs_settled: 0, counterparties: 0, ..best() };
        let shaded = RankRecord { owner_failures: 2, ..new };
        for place in [place(4, best()), place(u64::MAX, new), place(1, shaded)] {
            assert_eq!(from_cursor(to_cursor(place)), place);
        }
    }
}
