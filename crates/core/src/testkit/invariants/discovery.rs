//! Discovery by a full scan, which the indexes must agree with.

use std::cmp::Reverse;

use crate::id::AgentId;
use crate::money::Credits;
use crate::reputation::Score;
use crate::time::Timestamp;
use crate::world::World;
use crate::world::discover::DiscoveryQuery;
use crate::world::skills::Candidate;

/// Pages and totals equal a full scan.
pub fn discovery_is_a_sorted_scan(world: &World, skill: &str, now: Timestamp) {
    let context = Score::from_millionths(50_500_000);
    let cheap = Some(Credits::from_micros(200_000));
    let questions =
        [(Score::MIN, None, 0), (context, None, 0), (Score::MIN, cheap, 0), (context, cheap, 1)];
    for (min_score, max_price, min_jobs) in questions {
        let wanted = DiscoveryQuery { skill, min_score, max_price, min_jobs, limit: 3, offset: 1 };
        let found = world.discover(&wanted, now);
        let all = discover_by_scan(world, &wanted, now);
        assert_eq!(found.total, all.len(), "{wanted:?}");
        let page: Vec<Candidate> = all.into_iter().skip(1).take(3).collect();
        assert_eq!(found.agents, page, "{wanted:?}");
    }
}

/// Discovery by a full scan: by score, then proven before new, then price, then seniority.
pub fn discover_by_scan(
    world: &World,
    wanted: &DiscoveryQuery<'_>,
    now: Timestamp,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    for agent in world.agents() {
        let Some(skill) = agent.skill(wanted.skill) else { continue };
        let agent_state = world.agent_state(agent.id).expect("every agent has a state");
        let standing = agent_state.standing;
        let settled = standing.successes + standing.failures;
        let affordable = wanted.max_price.is_none_or(|max| skill.price <= max);
        let good = standing.score >= wanted.min_score && settled >= wanted.min_jobs;
        if affordable && good && world.is_online(agent.id, now) {
            let score = Reverse(standing.score);
            all.push((score, settled == 0, skill.price, agent.id));
        }
    }
    all.sort();
    all.into_iter().map(|(_, _, price, agent)| Candidate { agent, price }).collect()
}

/// The order in which to invite, by a full scan: online, then by score, then proven, then
/// seniority.
pub fn rank_by_scan(world: &World, skill: &str, now: Timestamp) -> Vec<AgentId> {
    let able = world.agents().filter(|agent| agent.active && agent.skill(skill).is_some());
    let mut all: Vec<_> = able
        .map(|agent| {
            let standing = world.agent_state(agent.id).expect("every agent has a state").standing;
            let (away, score) = (!world.is_online(agent.id, now), Reverse(standing.score));
            (away, score, standing.settled_jobs() == 0, agent.id)
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, _, _, agent)| agent).collect()
}
