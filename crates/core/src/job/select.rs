//! Selection: which worker gets the job.
//!
//! Every strategy picks from the same candidates: online, with the skill, within budget, not the
//! requester itself, and not an agent that already declined.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::open::HOPS_MAX;
use super::readiness::Readiness;
use super::{Job, Requester, offer, readiness};
use crate::agent::Agent;
use crate::draft::Draft;
use crate::id::{AgentId, OwnerId};
use crate::message;
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
    /// The lowest price; among equal prices the agent that registered first.
    Cheapest,
    /// The fewest assigned jobs; among equals the agent that registered first.
    LeastOccupied,
    /// All candidates, one job each.
    Broadcast,
    /// All agents of the requester's own protocol, whatever their skills, one job each.
    #[serde(rename = "Everybody")]
    BroadcastToProtocol,
    /// The invited agents: they work at once or make an offer, and the requester accepts one.
    #[serde(rename = "Asked")]
    Invited {
        any_price: bool,
        /// The request names neither this hub nor a worker, so nothing is held until an offer is
        /// accepted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        offers_only: bool,
    },
    /// Sealed offers until `closes`, then the lowest wins.
    Auction { closes: Timestamp },
    /// Offers that the requester sees as they come, and accepts one of.
    Offers,
}

impl Selection {
    /// Whether workers name a price for this job, whatever they list.
    pub fn is_by_offers(self) -> bool {
        matches!(self, Self::Auction { .. } | Self::Offers)
    }
}

/// Which owner was served last, per skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    pub skill: String,
    pub owner: OwnerId,
    /// The agent served last of each owner that has several agents.
    pub agents: Vec<(OwnerId, AgentId)>,
}

/// The possible workers for this job now, in discovery order.
///
/// An agent written by this command is not in the index yet and comes last. If workers name their
/// own price, the listed one does not matter.
pub fn candidates<'d>(
    draft: &'d Draft<'_>,
    job: &'d Job,
    ready: Readiness,
) -> impl Iterator<Item = Candidate> {
    let limit = match job.selection.is_by_offers() {
        true => Credits::from_micros(i64::MAX),
        false => job.max_payment(),
    };
    let listed = job.skill_names().flat_map(move |name| listed(draft, job, name, limit));
    let arriving = draft.unindexed_agents().filter_map(move |agent| {
        let price = agent.skill_for(job)?.price;
        Some(Candidate { agent: agent.id, price })
    });
    let all = listed.filter(|one| !draft.has_written(one.agent)).chain(arriving);
    let shown = all.map(|one| {
        let agreed = job.agreed_price_with(one.agent).map(|agreed| agreed.price);
        Candidate {
            price: agreed.unwrap_or_else(|| job.payment.price_step.round_price(one.price)),
            ..one
        }
    });
    let welcome = |one: &Candidate| {
        let shut_out =
            job.candidates.declined.contains(&one.agent) || blocks(draft, job, one.agent);
        !job.is_requested_by(one.agent) && !shut_out
    };
    shown.filter(move |one| {
        let affordable = one.price <= limit && welcome(one);
        affordable
            && draft.is_online(one.agent)
            && readiness::can_start(draft, job, one.agent, ready)
    })
}

/// Agents that offer the work under one of its skill names and are able to do it under that name.
fn listed<'d>(
    draft: &'d Draft<'_>,
    job: &'d Job,
    name: &'d str,
    limit: Credits,
) -> impl Iterator<Item = Candidate> {
    let only = job.request.alternative_skills.is_empty();
    let does = move |agent: &Agent| agent.skill_for(job).is_some_and(|skill| skill.name == name);
    let ranked = draft.world.skills.online_by_rank(name, Some(limit));
    ranked.filter(move |one| only || draft.agent(one.agent).is_some_and(does))
}

/// The next worker by the job's own strategy, or why there is none.
pub fn next_worker(
    draft: &mut Draft<'_>,
    job: &Job,
    ready: Readiness,
) -> Result<Candidate, Refusal> {
    let chosen = match job.selection {
        Selection::Direct(agent) => return check_named_worker(draft, job, agent, ready),
        Selection::BestReputation => candidates(draft, job, ready).next(),
        Selection::Cheapest => cheapest(draft, job, ready),
        Selection::LeastOccupied => candidates(draft, job, ready)
            .min_by_key(|one| (draft.assigned_job_count(one.agent), one.agent)),
        Selection::RoundRobin => {
            let all = candidates(draft, job, ready).collect();
            round_robin(draft, job, all)
        }
        Selection::Auction { .. } => offer::lowest_offer(draft, job, ready),
        // All candidates already have a copy; a returned copy is not reassigned.
        Selection::Broadcast | Selection::BroadcastToProtocol => None,
        // Only the requester chooses.
        Selection::Invited { .. } | Selection::Offers => None,
    };
    chosen.ok_or_else(|| no_candidate_reason(draft.world, job))
}

/// All agents of the job's own protocol that do some work within the budget, in order of
/// registration, each with its skill.
pub fn all_of_protocol(draft: &Draft<'_>, job: &Job) -> Vec<(String, Candidate)> {
    let one = |agent: &Agent| {
        let first = agent.skills.first()?;
        let price = job.payment.price_step.round_price(first.price);
        let affordable = price <= job.max_payment() && !job.is_requested_by(agent.id);
        let whom = Candidate { agent: agent.id, price };
        let there = draft.is_online(agent.id) && message::can_receive_work(draft, agent.id, job);
        (affordable && there).then(|| (first.name.clone(), whom))
    };
    let of_home = |id: AgentId| draft.agent(id).filter(|agent| agent.home == job.request.origin);
    let ids = (1..draft.next.agent.0).map(AgentId);
    ids.filter_map(of_home).filter(|agent| agent.active).filter_map(one).collect()
}

/// The lowest listed price; among equal prices the agent that registered first. Unlisted prices
/// come last.
pub fn cheapest(draft: &Draft<'_>, job: &Job, ready: Readiness) -> Option<Candidate> {
    let affordable = candidates(draft, job, ready).filter(|one| one.price <= job.max_payment());
    // The price of an agent that names one per job is unknown.
    let by_offer = |agent| {
        let skill = draft.agent(agent).and_then(|agent| agent.skill_for(job));
        skill.is_some_and(|skill| skill.by_offer)
    };
    affordable.min_by_key(|one| (by_offer(one.agent), one.price, one.agent))
}

/// The named worker, checked in the order skill, budget, presence.
fn check_named_worker(
    draft: &Draft<'_>,
    job: &Job,
    agent: AgentId,
    ready: Readiness,
) -> Result<Candidate, Refusal> {
    let named = draft.agent(agent).filter(|named| named.active).ok_or(Refusal::NoSuchAgent)?;
    let listed = named.skill_for(job).ok_or(Refusal::SkillNotOffered)?.price;
    let agreed = job.agreed_price_with(agent).map(|agreed| agreed.price);
    let price = agreed.unwrap_or_else(|| job.payment.price_step.round_price(listed));
    if job.is_requested_by(agent) {
        return Err(Refusal::BridgeLoop { max: HOPS_MAX });
    }
    if blocks(draft, job, agent) {
        return Err(Refusal::Blocked);
    }
    let chosen = Candidate { agent, price };
    // An agent that is away for a known time is checked again in full when it is back.
    if job.policy.requester.answered_at_once
        && ready == Readiness::AfterApproval
        && let readiness::StartCondition::OnReturn(_) | readiness::StartCondition::Never =
            readiness::start_condition(draft, job, agent)?
    {
        return Ok(chosen);
    }
    if job.payment.budget < price {
        return Err(Refusal::BudgetTooLow { price });
    }
    let when = readiness::start_condition(draft, job, agent)?;
    if job.max_payment() < price {
        return Err(Refusal::GuestCannotPay);
    }
    if ready == Readiness::Immediate && when != readiness::StartCondition::Now {
        return Err(Refusal::Offline);
    }
    Ok(chosen)
}

/// Whether the agent blocks the requester.
fn blocks(draft: &Draft<'_>, job: &Job, agent: AgentId) -> bool {
    match job.request.requester {
        Requester::Agent(by) => draft.agent(agent).is_some_and(|agent| agent.blocks(by)),
        Requester::Guest(_) => false,
    }
}

/// The most specific reason why there is no candidate: skill before budget before presence.
pub fn no_candidate_reason(world: &World, job: &Job) -> Refusal {
    let own = match job.request.requester {
        Requester::Agent(agent) => world.agent(agent),
        Requester::Guest(_) => None,
    };
    let own_price = own.filter(|own| own.active).and_then(|own| own.skill_for(job));
    let mut prices: Vec<_> = job.skill_names().flat_map(|name| world.skills.prices(name)).collect();
    if let Some(own) = own_price {
        prices.retain_mut(|(price, count)| {
            *count -= usize::from(*price == own.price);
            *count > 0
        });
    }
    let bids = job.selection.is_by_offers();
    match prices.iter().map(|(price, _)| job.payment.price_step.round_price(*price)).min() {
        None => Refusal::NoSuchSkill,
        Some(price) if price > job.payment.budget && !bids => Refusal::BudgetTooLow { price },
        Some(price) if price > job.max_payment() && !bids => Refusal::GuestCannotPay,
        Some(_) => Refusal::Offline,
    }
}

/// Owners in order of their first agent's registration; the one after the last served is next.
fn round_robin(draft: &mut Draft<'_>, job: &Job, all: Vec<Candidate>) -> Option<Candidate> {
    let first_of = |owner| draft.world.agents_of(owner).next();
    let mut round: BTreeMap<AgentId, (OwnerId, Vec<Candidate>)> = BTreeMap::new();
    let mut sorted = all;
    sorted.sort_by_key(|one| one.agent);
    for one in sorted {
        let owner = draft.agent(one.agent)?.owner;
        let place = first_of(owner).unwrap_or(one.agent);
        round.entry(place).or_insert_with(|| (owner, Vec::new())).1.push(one);
    }
    let turn = draft.rotation(&job.request.skill);
    let last = turn.as_ref().and_then(|turn| first_of(turn.owner));
    let after = |last: AgentId| round.range((Bound::Excluded(last), Bound::Unbounded)).next();
    let (_, (owner, agents)) = last.and_then(after).or_else(|| round.first_key_value())?;
    let had = turn.as_ref().and_then(|turn| turn.agents.iter().find(|(o, _)| o == owner));
    let chosen = *agents
        .iter()
        .find(|one| had.is_none_or(|(_, last)| one.agent > *last))
        .or(agents.first())?;
    draft.advance_rotation(&job.request.skill, *owner, chosen.agent);
    Some(chosen)
}

/// The price an agent asks for a skill now.
pub fn price_of(world: &World, agent: AgentId, skill: &str) -> Option<Credits> {
    world.agent(agent).and_then(|agent| agent.skill(skill).map(|skill| skill.price))
}
