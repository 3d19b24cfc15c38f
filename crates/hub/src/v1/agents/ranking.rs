//! The hub's own ranking of agents for a skill.
//!
//! Agents that have finished jobs for other owners come before all others, so that a new identity
//! is never better than a proven one (T36). Then come the rank score (see `rank`), more
//! counterparties, more credits paid by them, the higher score, more jobs, and the earlier
//! registration. Only online agents are ranked: no others can be hired now.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::world::World;
use rialto_engine::Engine;

use super::rank::{Known, Merit};
use super::search::{CANDIDATES_MAX, Found, Wanted};
use crate::v1::page::Cursor;

/// The list's tag in cursors.
pub const RANKED: char = 'r';

/// Position in the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    known: Known,
    weight: Reverse<Score>,
    patrons: Reverse<u64>,
    paid: Reverse<Credits>,
    score: Reverse<Score>,
    settled: Reverse<u64>,
    agent: AgentId,
}

/// A position as the numbers of a cursor.
type Numbers = [u64; 7];

impl Place {
    fn of(agent: AgentId, merit: &Merit) -> Self {
        Self {
            known: merit.known(),
            weight: Reverse(merit.weight()),
            patrons: Reverse(merit.patrons),
            paid: Reverse(merit.paid),
            score: Reverse(merit.score),
            settled: Reverse(merit.settled),
            agent,
        }
    }

    fn numbers(self) -> Numbers {
        let known = match self.known {
            Known::Proven => 0,
            Known::New => 1,
            Known::Shaded => 2,
        };
        [
            known,
            self.weight.0.millionths().unsigned_abs(),
            self.patrons.0,
            self.paid.0.micros().unsigned_abs(),
            self.score.0.millionths().unsigned_abs(),
            self.settled.0,
            self.agent.0,
        ]
    }

    fn read([known, weight, patrons, paid, score, settled, agent]: Numbers) -> Self {
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            known: match known {
                0 => Known::Proven,
                1 => Known::New,
                _ => Known::Shaded,
            },
            weight: Reverse(Score::from_millionths(signed(weight))),
            patrons: Reverse(patrons),
            paid: Reverse(Credits::from_micros(signed(paid))),
            score: Reverse(Score::from_millionths(signed(score))),
            settled: Reverse(settled),
            agent: AgentId(agent),
        }
    }
}

/// Online agents with the skill, best first, after a position.
pub fn ranked(
    engine: &Engine,
    skill: &str,
    wanted: &Wanted,
    after: Option<Numbers>,
    limit: usize,
) -> Found {
    let after = after.map(Place::read);
    let now = engine.now();
    let (mut places, looked_at) = engine.look(|world| {
        let online = |id| world.is_online(id, now);
        let fits = |id| online(id) && world.agent(id).is_some_and(|agent| wanted.fits(agent));
        candidates(world, skill, after, limit, fits)
    });
    places.sort_unstable();
    places.dedup();
    let more = places.len() > limit;
    places.truncate(limit);
    let cursor = |place: &Place| Cursor::new(RANKED, place.numbers());
    let next = places.last().filter(|_| more).map(cursor);
    let agents = places.iter().map(|place| (place.agent, cursor(place))).collect();
    Found { agents, next, looked_at }
}

/// All agents that may be on the page after a position, unordered, and how many rows were read.
fn candidates(
    world: &World,
    skill: &str,
    after: Option<Place>,
    limit: usize,
    fits: impl Fn(AgentId) -> bool,
) -> (Vec<Place>, usize) {
    // The page begins among the proven agents, unless the cursor is already past them.
    let known = after.map_or(Known::Proven, |after| after.known);
    let (mut found, mut best, mut looked_at) = (Vec::new(), BinaryHeap::new(), 0);
    let offers = |id: &AgentId| world.agent(*id).is_some_and(|agent| agent.skill(skill).is_some());
    let underrated = world.underrated().filter(offers).take(CANDIDATES_MAX);
    found.extend(underrated.filter(|id| fits(*id)).filter_map(|id| {
        let place = Place::of(id, &Merit::of(world, id)?);
        (after.is_none_or(|after| place > after)).then_some(place)
    }));
    for one in world.skills.ranked(skill, None).take(CANDIDATES_MAX) {
        looked_at += 1;
        let Some(merit) = Merit::of(world, one.agent) else { continue };
        // The index is ordered by score, and only underrated agents have a rank score above their
        // score. So once `limit` agents have a rank score above this agent's score, no later agent
        // belongs on the page.
        let full = best.len() > limit;
        if full && best.peek().is_some_and(|Reverse(least)| merit.score < *least) {
            break;
        }
        let place = Place::of(one.agent, &merit);
        if after.is_some_and(|after| place <= after) || !fits(one.agent) {
            continue;
        }
        if place.known == known {
            best.push(place.weight);
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

    fn best() -> Merit {
        let (score, paid) = (Score::from_millionths(60_000_000), Credits::from_micros(900));
        Merit { score, weighed: score, settled: 9, patrons: 4, paid, inherited: 0 }
    }

    fn place(agent: u64, merit: Merit) -> Place {
        Place::of(AgentId(agent), &merit)
    }

    #[test]
    fn proven_comes_before_new_then_what_the_score_is_worth_then_all_that_was_shown_by_others() {
        let fewer = Merit { patrons: 3, ..best() };
        let poorer = Merit { paid: Credits::from_micros(899), ..fewer };
        let idler = Merit { settled: 8, ..poorer };
        let ring =
            Merit { score: Score::MAX, weighed: Score::MAX, settled: 99, patrons: 1, ..best() };
        let new = Merit {
            score: Score::START,
            weighed: Score::START,
            settled: 0,
            patrons: 0,
            paid: Credits::ZERO,
            ..best()
        };
        let best_first = [
            place(9, best()),
            place(8, fewer),
            place(7, poorer),
            place(6, idler),
            place(10, idler),
            place(1, ring),
            place(2, Merit { inherited: 5, ..best() }),
            place(3, Merit { score: Score::MIN, weighed: Score::MIN, ..best() }),
            place(4, new),
            place(5, new),
            place(0, Merit { inherited: 1, ..new }),
        ];
        assert!(best_first.is_sorted(), "{best_first:#?}");
    }

    #[test]
    fn a_place_survives_its_cursor() {
        let new = Merit { settled: 0, patrons: 0, ..best() };
        let shaded = Merit { inherited: 2, ..new };
        for place in [place(4, best()), place(u64::MAX, new), place(1, shaded)] {
            assert_eq!(Place::read(place.numbers()), place);
        }
    }
}
