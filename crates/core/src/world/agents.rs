//! Online agents, kept in step with the skills index.
//!
//! An agent goes offline when there is no more activity, so the end of each agent's online time is
//! kept in order, and `expire_online` removes those whose time has passed.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::agent_table::Listed;
use super::skills::{Listing, Rank};
use crate::agent::presence::online_until;
use crate::agent::{Agent, AgentState};
use crate::command::Timer;
use crate::id::{AgentId, OwnerId};
use crate::time::Timestamp;

/// The agents of one owner. Most owners have one.
#[derive(Clone, Debug)]
pub(super) enum OwnerAgents {
    One(AgentId),
    #[expect(
        clippy::box_collection,
        reason = "the set itself would double the size of all entries"
    )]
    Several(Box<BTreeSet<AgentId>>),
}

impl OwnerAgents {
    pub(super) fn first(&self) -> Option<AgentId> {
        match self {
            Self::One(id) => Some(*id),
            Self::Several(ids) => ids.first().copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Several(ids) => ids.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = AgentId> {
        let (one, several) = match self {
            Self::One(id) => (Some(*id), None),
            Self::Several(ids) => (None, Some(ids)),
        };
        one.into_iter().chain(several.into_iter().flat_map(|ids| ids.iter().copied()))
    }

    fn insert(&mut self, id: AgentId) {
        match self {
            Self::One(known) if *known == id => {}
            Self::One(known) => *self = Self::Several(Box::new(BTreeSet::from([*known, id]))),
            Self::Several(ids) => drop(ids.insert(id)),
        }
    }
}

impl World {
    /// Whether the agent counts as online now.
    pub fn is_online(&self, agent: AgentId, now: Timestamp) -> bool {
        let (Some(agent), Some(agent_state)) = (self.agents.row(agent), self.agents.state(agent))
        else {
            return false;
        };
        self.online_until(agent, agent_state).is_some_and(|until| now <= until)
    }

    /// Whether the agent or its owner is suspended.
    pub fn is_suspended(&self, agent: AgentId) -> bool {
        self.agents.row(agent).is_some_and(|agent| self.is_agent_suspended(agent))
    }

    /// Whether the agent is registered and not suspended, so that its credential is valid.
    pub fn may_act(&self, agent: AgentId) -> bool {
        self.agents.row(agent).is_some_and(|agent| agent.active && !self.is_agent_suspended(agent))
    }

    /// Whether this agent or its owner is suspended.
    pub fn is_agent_suspended(&self, agent: &Agent) -> bool {
        agent.suspended || self.suspended_owners.contains(&agent.owner)
    }

    fn online_until(&self, agent: &Agent, agent_state: &AgentState) -> Option<Timestamp> {
        let until = online_until(agent, agent_state, self.rules.presence_ttl);
        until.filter(|_| !self.is_agent_suspended(agent))
    }

    /// Lists or unlists an owner's agents when its suspension begins or ends.
    pub(super) fn reindex_agents_of(&mut self, owner: OwnerId) {
        let agents: Vec<Arc<Agent>> =
            self.agents_of(owner).filter_map(|id| self.agents.row(id).cloned()).collect();
        for agent in agents {
            self.unlist_agent(&agent);
            self.list_agent(&agent);
        }
    }

    /// Whether the agent is listed as online, as of the last expiry run.
    pub fn is_listed(&self, agent: AgentId) -> bool {
        matches!(self.agents.listed(agent), Listed::Online(_))
    }

    /// How many agents are online, as of the last expiry run.
    pub fn online_count(&self) -> usize {
        self.agents.online_count()
    }

    /// When the next agent goes offline without further activity.
    pub fn next_offline_at(&self) -> Option<Timestamp> {
        self.presence_ends.first().map(|(at, _)| at)
    }

    /// Removes agents from the index whose last activity is too old.
    pub fn expire_online(&mut self, now: Timestamp) {
        while let Some((until, id)) = self.presence_ends.first() {
            if now <= until {
                return;
            }
            // Removed here unconditionally, so that the loop ends.
            self.presence_ends.remove((until, id));
            if let Some(agent) = self.agents.row(id).cloned() {
                self.unlist_agent(&agent);
                self.list_offline(&agent);
            }
        }
    }

    /// Records an activity that is not worth a write of its own.
    pub fn record_activity(&mut self, id: AgentId, now: Timestamp) {
        let Some(agent_state) = self.agents.state(id) else { return };
        let is_called = self.agents.row(id).is_some_and(|agent| agent.is_called_by_protocol());
        let unreachable = agent_state.presence.unreachable && is_called;
        if agent_state.presence.last_seen >= now && agent_state.presence.unreachable == unreachable
        {
            return;
        }
        let mut agent_state = AgentState::clone(agent_state);
        agent_state.presence.last_seen = agent_state.presence.last_seen.max(now);
        agent_state.presence.unreachable = unreachable;
        self.set_agent_state(Arc::new(agent_state));
    }

    pub(super) fn set_agent(&mut self, agent: Arc<Agent>, agent_state: Option<Arc<AgentState>>) {
        let old = self.agents.row(agent.id).cloned();
        if !agent.active && old.is_some() {
            // Later commands of this batch may need the full row, and the store does not have it
            // yet.
            self.cold_rows.agents.insert(agent.id, agent.clone());
        }
        let agent = agent.hot_row();
        // An agent state that exists before its agent belongs to no owner yet.
        let failures = if old.is_some() { self.failures_of(agent.id) } else { 0 };
        if let Some(old) = old {
            self.unlist_agent(&old);
            if old.active {
                self.skills.set_listed(&old, false);
            }
            if let Some(until) = old.probation {
                self.timers.remove(&(until, Timer::Probation(old.id)));
            }
        } else {
            self.index_agent_skeletons(&agent);
        }
        if agent.active {
            self.skills.set_listed(&agent, true);
            self.timers.extend(agent.probation.map(|until| (until, Timer::Probation(agent.id))));
        }
        self.add_agent_of_owner(agent.owner, agent.id);
        self.agents.set_row(agent.clone());
        if let Some(agent_state) = agent_state {
            self.put_agent_state(agent_state);
        }
        self.update_owner_failures(agent.owner, failures, self.failures_of(agent.id));
        self.list_agent(&agent);
    }

    /// Adds an agent to those of its owner. The first of them is the owner's place in the rotation.
    fn add_agent_of_owner(&mut self, owner: OwnerId, id: AgentId) {
        let Some(known) = self.agents_by_owner.get_mut(&owner) else {
            self.agents_by_owner.insert(owner, OwnerAgents::One(id));
            return;
        };
        if known.first().is_none_or(|first| first <= id) {
            known.insert(id);
            return;
        }
        let others: Vec<Arc<Agent>> =
            self.agents_of(owner).filter_map(|id| self.agents.row(id).cloned()).collect();
        others.iter().for_each(|other| self.unlist_agent(other));
        if let Some(known) = self.agents_by_owner.get_mut(&owner) {
            known.insert(id);
        }
        others.iter().for_each(|other| self.list_agent(other));
    }

    /// The first agent an owner registered.
    pub(crate) fn first_agent_of(&self, owner: OwnerId) -> Option<AgentId> {
        self.agents_by_owner.get(&owner).and_then(OwnerAgents::first)
    }

    pub(super) fn set_agent_state(&mut self, agent_state: Arc<AgentState>) {
        let id = agent_state.agent;
        let Some(agent) = self.agents.row(id).cloned() else {
            self.put_agent_state(agent_state);
            return;
        };
        let until = self.online_until(&agent, &agent_state);
        let same_rank = self.agents.state(id).is_some_and(|old| rank(old) == rank(&agent_state));
        self.update_owner_failures(
            agent.owner,
            self.failures_of(id),
            agent_state.ranking_standing().failures,
        );
        match (self.agents.listed(id), until) {
            // The common case: for the index, only the end of the online time changed.
            (Listed::Online(old), Some(until)) if same_rank => {
                self.put_agent_state(agent_state);
                self.extend_online(id, old, until);
            }
            _ => {
                self.unlist_agent(&agent);
                self.put_agent_state(agent_state);
                self.list_agent(&agent);
            }
        }
    }

    fn extend_online(&mut self, id: AgentId, old: Timestamp, until: Timestamp) {
        if old != until {
            self.presence_ends.remove((old, id));
            self.set_online(id, until);
        }
    }

    fn set_online(&mut self, id: AgentId, until: Timestamp) {
        self.agents.set_listed(id, Listed::Online(until));
        if until != Timestamp::NEVER {
            self.presence_ends.insert((until, id));
        }
    }

    /// How the index lists an online agent. All of it follows from rows, so an agent is unlisted
    /// before its rows change.
    fn listing(&self, agent: &Agent) -> Option<Listing> {
        let rank = rank(self.agents.state(agent.id)?);
        let load = self.assigned_job_count(agent.id);
        let has_capacity = agent.terms.has_capacity(load);
        let place = self.first_agent_of(agent.owner).unwrap_or(agent.id);
        Some(Listing { rank, load, has_capacity, place })
    }

    fn list_agent(&mut self, agent: &Agent) {
        let Some(agent_state) = self.agents.state(agent.id) else { return };
        let Some(until) = self.online_until(agent, agent_state) else {
            return self.list_offline(agent);
        };
        let Some(listing) = self.listing(agent) else { return };
        self.skills.insert_online(agent, listing);
        self.set_online(agent.id, until);
        self.update_servable_agent(agent.id);
    }

    fn unlist_agent(&mut self, agent: &Agent) {
        let Some(listing) = self.listing(agent) else { return };
        match self.agents.set_listed(agent.id, Listed::No) {
            Listed::Online(until) => {
                self.skills.remove_online(agent, listing);
                self.presence_ends.remove((until, agent.id));
            }
            Listed::Offline => self.skills.remove_offline(agent, listing.rank),
            Listed::No => {}
        }
        self.update_servable_agent(agent.id);
    }

    /// Lists a registered agent that is offline, so that it can still be found.
    fn list_offline(&mut self, agent: &Agent) {
        let Some(agent_state) = self.agents.state(agent.id).filter(|_| agent.active) else {
            return;
        };
        self.skills.insert_offline(agent, rank(agent_state));
        self.agents.set_listed(agent.id, Listed::Offline);
        self.update_servable_agent(agent.id);
    }

    /// Updates the index when the number of jobs assigned to an agent has changed.
    pub(super) fn update_load(&mut self, id: AgentId, before: usize) {
        let after = self.assigned_job_count(id);
        let Some(agent) = self.agents.row(id).cloned() else { return };
        let terms = agent.terms;
        if let Listed::Online(_) = self.agents.listed(id)
            && let Some(listing) = self.listing(&agent)
        {
            let old = Listing { load: before, has_capacity: terms.has_capacity(before), ..listing };
            if old.has_capacity && listing.has_capacity {
                self.skills.move_load(&agent, before, after);
            } else if old.has_capacity != listing.has_capacity {
                self.skills.remove_online(&agent, old);
                self.skills.insert_online(&agent, listing);
            }
        }
        self.update_servable_agent(id);
    }
}

fn rank(agent_state: &AgentState) -> Rank {
    Rank {
        score: Reverse(agent_state.standing.score),
        unproven: agent_state.standing.settled_jobs() == 0,
        agent: agent_state.agent,
    }
}
