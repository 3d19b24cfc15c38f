//! Selection: who gets the job.
//!
//! Every strategy picks from the same candidates: online, with the skill, within budget, not the
//! requester itself, and not somebody who already declined.

use serde::{Deserialize, Serialize};

use super::{Job, Requester};
use crate::draft::Draft;
use crate::id::{AgentId, OwnerId};
use crate::money::Credits;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::world::World;
use crate::world::skills::Candidate;

/// How a worker is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// This agent and no other.
    Direct(AgentId),
    /// The first in discovery order.
    BestReputation,
    /// Owners take turns, and each owner's agents take turns within its turn.
    RoundRobin,
    /// The lowest price; equal prices: who registered first.
    Cheapest,
    /// The fewest jobs in hand; equal: who registered first.
    LeastOccupied,
    /// Everybody at once, a job each.
    Broadcast,
    /// Sealed offers until a moment, then the lowest.
    Auction { closes: Timestamp },
}

/// Whose turn it was last, per skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub skill: String,
    pub owner: OwnerId,
    /// The last agent of each owner that had a turn.
    pub agents: Vec<(OwnerId, AgentId)>,
}

/// Who may be chosen for this job, in discovery order.
pub fn candidates<'w>(world: &'w World, job: &'w Job) -> impl Iterator<Item = Candidate> + 'w {
    world
        .skills
        .ranked(&job.skill, Some(job.budget))
        .filter(|one| !job.asked_by(one.agent) && !job.declined.contains(&one.agent))
}

/// The next worker by the job's own strategy, or why there is none.
pub fn next(draft: &mut Draft<'_>, job: &Job) -> Result<Candidate, Refusal> {
    let world = draft.world;
    let now = draft.now;
    let online = move |one: &Candidate| world.is_online(one.agent, now);
    let earliest = |one: &Candidate| (one.price, one.agent);
    let mut all = candidates(world, job).filter(online);
    let chosen = match job.selection {
        Selection::Direct(agent) => return direct(world, job, agent, now),
        Selection::BestReputation | Selection::Broadcast | Selection::Auction { .. } => all.next(),
        Selection::Cheapest => all.min_by_key(earliest),
        Selection::LeastOccupied => {
            all.min_by_key(|one| (world.jobs_in_hand(one.agent), one.agent))
        }
        Selection::RoundRobin => round_robin(draft, job, all.collect()),
    };
    chosen.ok_or_else(|| why_nobody(world, job))
}

/// The named worker, checked in the order skill, budget, presence.
fn direct(world: &World, job: &Job, agent: AgentId, now: Timestamp) -> Result<Candidate, Refusal> {
    let named = world.agent(agent).filter(|named| named.active).ok_or(Refusal::NoSuchAgent)?;
    let skill = named.skill(&job.skill).ok_or(Refusal::NoSuchSkill)?;
    if job.budget < skill.price {
        return Err(Refusal::BudgetTooLow { price: skill.price });
    }
    if !world.is_online(agent, now) || job.declined.contains(&agent) {
        return Err(Refusal::Offline);
    }
    Ok(Candidate { agent, price: skill.price })
}

/// The most telling reason for an empty choice: skill before budget before presence.
fn why_nobody(world: &World, job: &Job) -> Refusal {
    let own = match job.requester {
        Requester::Agent(agent) => world.agent(agent),
        Requester::Guest(_) => None,
    };
    let own_price = own.filter(|own| own.active).and_then(|own| own.skill(&job.skill));
    let mut prices = world.skills.prices(&job.skill);
    if let Some(own) = own_price {
        prices.retain_mut(|(price, count)| {
            *count -= usize::from(*price == own.price);
            *count > 0
        });
    }
    match prices.iter().map(|(price, _)| *price).min() {
        None => Refusal::NoSuchSkill,
        Some(price) if price > job.budget => Refusal::BudgetTooLow { price },
        Some(_) => Refusal::Offline,
    }
}

/// Owners in order of their oldest agent among the candidates; the one after the last served is next.
fn round_robin(draft: &mut Draft<'_>, job: &Job, all: Vec<Candidate>) -> Option<Candidate> {
    let owner_of = |one: &Candidate| draft.world.agent(one.agent).map(|agent| agent.owner);
    let mut by_owner: Vec<(OwnerId, Vec<Candidate>)> = Vec::new();
    let mut sorted = all;
    sorted.sort_by_key(|one| one.agent);
    for one in sorted {
        let owner = owner_of(&one)?;
        match by_owner.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, agents)) => agents.push(one),
            None => by_owner.push((owner, vec![one])),
        }
    }
    // Owner ids grow in order of first registration, so they are the round's order.
    by_owner.sort_by_key(|(owner, _)| *owner);
    let turn = draft.turn(&job.skill);
    let (owner, agents) = by_owner
        .iter()
        .find(|(owner, _)| turn.as_ref().is_none_or(|turn| *owner > turn.owner))
        .or(by_owner.first())?;
    let last = turn.as_ref().and_then(|turn| turn.agents.iter().find(|(o, _)| o == owner));
    let chosen = *agents
        .iter()
        .find(|one| last.is_none_or(|(_, last)| one.agent > *last))
        .or(agents.first())?;
    draft.take_turn(&job.skill, *owner, chosen.agent);
    Some(chosen)
}

/// The price an agent asks for a skill now.
pub fn price_of(world: &World, agent: AgentId, skill: &str) -> Option<Credits> {
    world.agent(agent).and_then(|agent| agent.skill(skill).map(|skill| skill.price))
}
