//! Jobs that wait for a worker, by the agents that could take them.
//!
//! When an agent registers or returns, waiting jobs are tried again. Most of them cannot have found
//! a worker meanwhile, so only those are tried that have a skill, capacity and a price in common
//! with some online agent, or that an agent this command has changed could take.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::agent_table::Listed;
use super::id_map::IdMap;
use crate::agent::Agent;
use crate::id::{AgentId, JobId};
use crate::job::select::price_limit;
use crate::job::{Job, Selection, State};

/// All waiting jobs. Those that any agent with a skill may take are in the skills index.
#[derive(Clone, Default)]
pub(super) struct WaitingJobs {
    all: BTreeSet<JobId>,
    /// Jobs for one named agent.
    named: IdMap<AgentId, NamedJobs>,
    /// Named agents that may be able to take their jobs now.
    servable: BTreeSet<AgentId>,
    /// Auctions with offers. The maker of an offer may do the work whatever else it offers.
    with_offers: BTreeSet<JobId>,
}

/// The jobs that wait for one named agent.
#[derive(Clone, Default)]
struct NamedJobs {
    jobs: BTreeSet<JobId>,
    /// How many of them the agent may take without being online.
    taken_offline: usize,
}

#[cfg(test)]
impl WaitingJobs {
    /// Whether nothing is left of any waiting job.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
            && self.named.is_empty()
            && self.servable.is_empty()
            && self.with_offers.is_empty()
    }
}

impl World {
    /// Jobs waiting for a worker, oldest first.
    pub fn queued_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.waiting.all.iter().filter_map(|id| self.jobs.get(id))
    }

    /// Jobs waiting for this agent and no other, oldest first.
    pub fn jobs_waiting_for(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.named_jobs(agent).filter_map(|id| self.jobs.get(&id))
    }

    /// Waiting jobs that an agent could take once it has capacity: those that name it, and those
    /// that wait for one of its skills.
    pub fn waiting_jobs_for(&self, agent: &Agent) -> impl Iterator<Item = JobId> {
        let skills = agent.skills.iter().flat_map(|skill| self.skills.waiting(&skill.name));
        self.named_jobs(agent.id).chain(skills)
    }

    /// Waiting jobs that an agent may be able to take now, as far as the indexes know: every job
    /// that would find a worker is one of them.
    pub fn servable_jobs(&self) -> impl Iterator<Item = JobId> {
        let named = self.waiting.servable.iter().flat_map(|agent| self.named_jobs(*agent));
        let offered = self.waiting.with_offers.iter().copied();
        self.skills.servable_jobs().chain(named).chain(offered)
    }

    /// Whether waiting jobs must be tried again when this agent is online again.
    pub fn has_jobs_to_dispatch(&self, agent: AgentId) -> bool {
        let agent = self.agents.row(agent);
        let own = agent.is_some_and(|agent| self.waiting_jobs_for(agent).next().is_some());
        own || self.servable_jobs().next().is_some()
    }

    fn named_jobs(&self, agent: AgentId) -> impl Iterator<Item = JobId> {
        let named = self.waiting.named.get(&agent).into_iter();
        named.flat_map(|named| named.jobs.iter().copied())
    }

    pub(super) fn index_waiting(&mut self, job: &Job) {
        if job.state != State::Queued {
            return;
        }
        self.waiting.all.insert(job.id);
        if let Selection::Direct(agent) = job.selection {
            let named = self.waiting.named.entry(agent).or_default();
            named.jobs.insert(job.id);
            named.taken_offline += usize::from(may_be_taken_offline(job));
            self.update_servable_agent(agent);
        }
        if waits_for_skill(job) {
            for name in job.skill_names() {
                self.skills.insert_waiting(name, price_limit(job), job.id);
            }
        }
        if has_offers(job) {
            self.waiting.with_offers.insert(job.id);
        }
    }

    pub(super) fn unindex_waiting(&mut self, job: &Job) {
        if job.state != State::Queued {
            return;
        }
        self.waiting.all.remove(&job.id);
        if let Selection::Direct(agent) = job.selection
            && let Some(named) = self.waiting.named.get_mut(&agent)
        {
            named.jobs.remove(&job.id);
            named.taken_offline -= usize::from(may_be_taken_offline(job));
            if named.jobs.is_empty() {
                self.waiting.named.remove(&agent);
                self.waiting.servable.remove(&agent);
            } else {
                self.update_servable_agent(agent);
            }
        }
        if waits_for_skill(job) {
            for name in job.skill_names() {
                self.skills.remove_waiting(name, price_limit(job), job.id);
            }
        }
        if has_offers(job) {
            self.waiting.with_offers.remove(&job.id);
        }
    }

    /// Updates whether an agent may be able to take the jobs that name it.
    pub(super) fn update_servable_agent(&mut self, id: AgentId) {
        let Some(named) = self.waiting.named.get(&id) else { return };
        let load = self.assigned_job_count(id);
        let online = matches!(self.agents.listed(id), Listed::Online(_));
        let able = |agent: &Arc<Agent>| {
            let fetches = named.taken_offline > 0 && !agent.is_called_by_protocol();
            agent.active && agent.terms.has_capacity(load) && (online || fetches)
        };
        if self.agents.row(id).is_some_and(able) {
            self.waiting.servable.insert(id);
        } else {
            self.waiting.servable.remove(&id);
        }
    }
}

/// Whether any agent with the skill may take the job.
fn waits_for_skill(job: &Job) -> bool {
    use Selection::*;
    matches!(job.selection, BestReputation | RoundRobin | Cheapest | LeastOccupied | Auction { .. })
}

fn has_offers(job: &Job) -> bool {
    job.selection.is_by_offers() && !job.candidates.offers.is_empty()
}

/// Whether the named agent may take the job without being online: the requester allows it, or the
/// agent has made an offer.
fn may_be_taken_offline(job: &Job) -> bool {
    job.policy.named_worker.may_be_offline || !job.candidates.offers.is_empty()
}
