//! Selection: which worker gets the job.
//!
//! Every strategy picks from the same candidates: online, with the skill, within budget, not the
//! requester itself, and not an agent that already declined. The skills index has them in the order
//! of each strategy, so a choice reads as many entries as there are different prices within the
//! budget, plus the candidates in front of the chosen one that cannot take this job: agents at
//! capacity are not among them, but those that declined it, block its requester, need longer than
//! it allows, await approval, have a full inbox or reached their start rate are.

#[cfg(test)]
pub mod oracle;

use std::collections::BTreeSet;

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
use crate::world::skills::{ANY_PRICE, Candidate};

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

/// The highest listed price of a candidate. If workers name their own price, the listed one does
/// not matter.
pub fn price_limit(job: &Job) -> Credits {
    if job.selection.is_by_offers() { ANY_PRICE } else { job.max_payment() }
}

/// The possible workers for this job now, in discovery order.
///
/// An agent written by this command is not in the index yet and comes last.
pub fn candidates<'d>(
    draft: &'d Draft<'_>,
    job: &'d Job,
    ready: Readiness,
) -> impl Iterator<Item = Candidate> {
    let search = Search { draft, job, ready, limit: price_limit(job) };
    let skills = &draft.world.skills;
    // An agent that this command has freed is still at capacity for the index.
    let freed = draft.load_changes().iter().any(|(id, change)| *change < 0 && search.is_full(*id));
    let listed = job.skill_names().flat_map(move |name| {
        let all = freed.then(|| skills.online_by_rank(name, Some(search.limit)));
        let available = (!freed).then(|| skills.available_by_rank(name, search.limit));
        let both = all.into_iter().flatten().chain(available.into_iter().flatten());
        both.filter(move |one| search.is_listed_as(one.agent, name))
    });
    listed.chain(search.unindexed()).filter_map(move |one| search.check(one))
}

/// What a choice is made by.
#[derive(Clone, Copy)]
struct Search<'d, 'w> {
    draft: &'d Draft<'w>,
    job: &'d Job,
    ready: Readiness,
    limit: Credits,
}

impl<'d> Search<'d, '_> {
    /// A candidate with the price its requester pays, if it can take the job.
    fn check(self, one: Candidate) -> Option<Candidate> {
        let Self { draft, job, .. } = self;
        let agreed = job.agreed_price_with(one.agent).map(|agreed| agreed.price);
        let price = agreed.unwrap_or_else(|| job.payment.price_step.round_price(one.price));
        let shut_out = || {
            job.candidates.declined.contains(&one.agent)
                || blocks(draft, job, one.agent)
                || job.is_requested_by(one.agent)
        };
        let fits = price <= self.limit
            && !shut_out()
            && draft.is_online(one.agent)
            && readiness::can_start(draft, job, one.agent, self.ready);
        fits.then_some(Candidate { price, ..one })
    }

    /// Whether the entry of an agent under a name is its entry for this job: its rows are those of
    /// the index, and of several names of the skill this is the first it offers.
    fn is_listed_as(self, agent: AgentId, name: &str) -> bool {
        let first = |agent: &Agent| agent.skill_for(self.job).is_some_and(|own| own.name == name);
        let only = self.job.request.alternative_skills.is_empty();
        !self.draft.has_written(agent) && (only || self.draft.agent(agent).is_some_and(first))
    }

    /// Whether the index lists the agent as online and at capacity.
    fn is_full(self, agent: AgentId) -> bool {
        let load = self.draft.world.assigned_job_count(agent);
        let full = |agent: &Agent| !agent.terms.has_capacity(load);
        self.draft.world.is_listed(agent)
            && self.draft.world.agent(agent).is_some_and(|agent| full(agent))
    }

    /// Agents the index does not list, because this command wrote them or brought them back.
    fn unindexed(self) -> impl Iterator<Item = Candidate> {
        self.draft.unindexed_agents().filter_map(move |agent| {
            let price = agent.skill_for(self.job)?.price;
            Some(Candidate { agent: agent.id, price })
        })
    }

    /// Agents whose position in the index may differ from their position for this job, because this
    /// command has changed their load or the job has a price agreed with them.
    fn moved_agents(self) -> BTreeSet<AgentId> {
        let agreed = self.job.payment.agreed_prices.iter().map(|agreed| agreed.worker);
        self.draft.load_changes().keys().copied().chain(agreed).collect()
    }

    /// All that are not read in the order of the index: moved agents that it lists, and agents that
    /// it does not list. Only those that can take the job.
    fn unordered(self, moved: &'d BTreeSet<AgentId>) -> impl Iterator<Item = Candidate> {
        let listed = moved
            .iter()
            .filter(move |id| self.draft.world.is_listed(**id) && !self.draft.has_written(**id));
        let listed = listed.filter_map(move |id| {
            let price = self.draft.agent(*id)?.skill_for(self.job)?.price;
            (price <= self.limit).then_some(Candidate { agent: *id, price })
        });
        listed.chain(self.unindexed()).filter_map(move |one| self.check(one))
    }

    /// The first of a list of the index, under a name of the skill, that can take the job.
    fn first_of<K>(
        self,
        name: &str,
        moved: &BTreeSet<AgentId>,
        mut list: impl Iterator<Item = (K, Candidate)>,
    ) -> Option<(K, Candidate)> {
        list.find_map(|(key, one)| {
            let ordered = !moved.contains(&one.agent) && self.is_listed_as(one.agent, name);
            ordered.then(|| self.check(one)).flatten().map(|one| (key, one))
        })
    }

    /// The lowest price; among equal prices the agent that registered first. Prices that are named
    /// for each job are unknown and come last.
    fn cheapest(self) -> Option<Candidate> {
        let Self { draft, job, .. } = self;
        let by_offer = |agent| {
            let skill = draft.agent(agent).and_then(|agent| agent.skill_for(job));
            skill.is_some_and(|skill| skill.by_offer)
        };
        let moved = self.moved_agents();
        let step = job.payment.price_step;
        let listed = job.skill_names().filter_map(|name| {
            let kinds = [false, true].map(|by_offer| {
                draft.world.skills.available_by_price(name, self.limit, step, by_offer)
            });
            let list = kinds.into_iter().flatten().map(|one| ((), one));
            self.first_of(name, &moved, list).map(|(_, one)| one)
        });
        let all = listed.chain(self.unordered(&moved));
        let affordable = all.filter(|one| one.price <= job.max_payment());
        affordable.min_by_key(|one| (by_offer(one.agent), one.price, one.agent))
    }

    /// The fewest assigned jobs; among equals the agent that registered first.
    fn least_occupied(self) -> Option<Candidate> {
        let moved = self.moved_agents();
        let listed = self.job.skill_names().filter_map(|name| {
            let list = self.draft.world.skills.available_by_load(name, self.limit);
            self.first_of(name, &moved, list).map(|(_, one)| one)
        });
        let all = listed.chain(self.unordered(&moved));
        all.min_by_key(|one| (self.draft.assigned_job_count(one.agent), one.agent))
    }

    /// The candidate whose turn it is, and its owner. Owners are in order of their first agent's
    /// registration; the one after the last served is next. Of an owner's agents the one after its
    /// last served is next.
    fn next_in_rotation(self) -> Option<(OwnerId, Candidate)> {
        let moved = self.moved_agents();
        let place = |one: Candidate| {
            let owner = self.draft.agent(one.agent).map(|agent| agent.owner);
            let first = owner.and_then(|owner| self.draft.world.first_agent_of(owner));
            (first.unwrap_or(one.agent), one)
        };
        let unordered: Vec<(AgentId, Candidate)> = self.unordered(&moved).map(place).collect();
        // The first candidate from a place and agent on.
        let first_from = |from: (AgentId, AgentId)| {
            let listed = self.job.skill_names().filter_map(|name| {
                let list = self.draft.world.skills.available_by_turn(name, self.limit, from);
                self.first_of(name, &moved, list)
            });
            let others = unordered.iter().copied();
            let others = others.filter(|(place, one)| (*place, one.agent) >= from);
            listed.chain(others).min_by_key(|(place, one)| (*place, one.agent))
        };
        let turn = self.draft.rotation(&self.job.request.skill);
        let last = turn.as_ref().and_then(|turn| self.draft.world.first_agent_of(turn.owner));
        let after = |last: AgentId| first_from((last.next(), AgentId(0)));
        let (place, first) =
            last.and_then(after).or_else(|| first_from((AgentId(0), AgentId(0))))?;
        let owner = self.draft.agent(first.agent)?.owner;
        let served = turn.as_ref().and_then(|turn| turn.agents.iter().find(|(o, _)| *o == owner));
        let next = served.and_then(|(_, last)| first_from((place, last.next())));
        let next = next.filter(|(of, _)| *of == place).map(|(_, one)| one);
        Some((owner, next.unwrap_or(first)))
    }
}

/// The next worker by the job's own strategy, or why there is none.
pub fn next_worker(
    draft: &mut Draft<'_>,
    job: &Job,
    ready: Readiness,
) -> Result<Candidate, Refusal> {
    #[cfg(test)]
    oracle::check(draft, job, ready);
    let search = Search { draft, job, ready, limit: price_limit(job) };
    let chosen = match job.selection {
        Selection::Direct(agent) => return check_named_worker(draft, job, agent, ready),
        Selection::BestReputation => candidates(draft, job, ready).next(),
        Selection::Cheapest => search.cheapest(),
        Selection::LeastOccupied => search.least_occupied(),
        Selection::RoundRobin => {
            let next = search.next_in_rotation();
            next.map(|(owner, chosen)| {
                draft.advance_rotation(&job.request.skill, owner, chosen.agent);
                chosen
            })
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
        let candidate = Candidate { agent: agent.id, price };
        let there = draft.is_online(agent.id) && message::can_receive_work(draft, agent.id, job);
        (affordable && there).then(|| (first.name.clone(), candidate))
    };
    let of_home = |id: AgentId| draft.agent(id).filter(|agent| agent.home == job.request.origin);
    let ids = (1..draft.next.agent.0).map(AgentId);
    ids.filter_map(of_home).filter(|agent| agent.active).filter_map(one).collect()
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
    let of_others = |(price, count): &(Credits, usize)| {
        *count > usize::from(own_price.is_some_and(|own| own.price == *price))
    };
    // Rounding keeps the order of prices.
    let lowest = job.skill_names().filter_map(|name| world.skills.prices(name).find(of_others));
    let bids = job.selection.is_by_offers();
    match lowest.map(|(price, _)| job.payment.price_step.round_price(price)).min() {
        None => Refusal::NoSuchSkill,
        Some(price) if price > job.payment.budget && !bids => Refusal::BudgetTooLow { price },
        Some(price) if price > job.max_payment() && !bids => Refusal::GuestCannotPay,
        Some(_) => Refusal::Offline,
    }
}

/// The price an agent asks for a skill now.
pub fn price_of(world: &World, agent: AgentId, skill: &str) -> Option<Credits> {
    world.agent(agent).and_then(|agent| agent.skill(skill).map(|skill| skill.price))
}
