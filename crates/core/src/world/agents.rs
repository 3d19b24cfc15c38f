//! Online agents, kept in step with the skills index.
//!
//! An agent goes offline when there is no more activity, so the end of each agent's online time is
//! kept in order, and `expire_online` removes those whose time has passed.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::id_map::QuickMap;
use super::skills::Rank;
use crate::agent::presence::online_until;
use crate::agent::{Agent, Desk};
use crate::command::Timer;
use crate::id::{AgentId, OwnerId};
use crate::time::Timestamp;

/// Until when each agent is online, and the rank at which it is listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Online {
    shown: QuickMap<AgentId, (Rank, Timestamp)>,
    ending: BTreeSet<(Timestamp, AgentId)>,
    /// Active agents that are offline, and their rank.
    away: QuickMap<AgentId, Rank>,
}

impl World {
    /// Whether the agent counts as online now.
    pub fn is_online(&self, agent: AgentId, now: Timestamp) -> bool {
        let (Some(agent), Some(desk)) = (self.agents.get(&agent), self.desks.get(&agent)) else {
            return false;
        };
        self.online_until(agent, desk).is_some_and(|until| now <= until)
    }

    /// Whether the agent or its owner is suspended.
    pub fn is_suspended(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|agent| self.suspends(agent))
    }

    /// Whether the agent is registered and not suspended, so that its credential is valid.
    pub fn admits(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|agent| agent.active && !self.suspends(agent))
    }

    /// Whether this agent or its owner is suspended.
    pub fn suspends(&self, agent: &Agent) -> bool {
        agent.suspended || self.suspended_owners.contains(&agent.owner)
    }

    fn online_until(&self, agent: &Agent, desk: &Desk) -> Option<Timestamp> {
        let until = online_until(agent, desk, self.rules.presence_ttl);
        until.filter(|_| !self.suspends(agent))
    }

    /// Lists or unlists an owner's agents when its suspension begins or ends.
    pub(super) fn reindex(&mut self, owner: OwnerId) {
        let agents: Vec<Arc<Agent>> =
            self.agents_of(owner).filter_map(|id| self.agents.get(&id).cloned()).collect();
        for agent in agents {
            self.hide(&agent);
            self.show(&agent);
        }
    }

    /// Whether the agent is listed as online, as of the last expiry run.
    pub fn shows(&self, agent: AgentId) -> bool {
        self.online.shown.contains_key(&agent)
    }

    /// How many agents are online, as of the last expiry run.
    pub fn online_count(&self) -> usize {
        self.online.shown.len()
    }

    /// When the next agent goes offline without further activity.
    pub fn next_offline(&self) -> Option<Timestamp> {
        self.online.ending.first().map(|(at, _)| *at)
    }

    /// Removes agents from the index whose last activity is too old.
    pub fn sweep(&mut self, now: Timestamp) {
        while let Some((until, id)) = self.online.ending.first().copied() {
            if now <= until {
                return;
            }
            // Removed here unconditionally, so that the loop ends.
            self.online.ending.remove(&(until, id));
            if let Some(agent) = self.agents.get(&id).cloned() {
                self.hide(&agent);
                self.keep_away(&agent);
            }
        }
    }

    /// Records an activity that is not worth a write of its own.
    pub fn seen(&mut self, id: AgentId, now: Timestamp) {
        let Some(desk) = self.desks.get(&id) else { return };
        if desk.presence.seen >= now && !desk.presence.unreachable {
            return;
        }
        let mut desk = Desk::clone(desk);
        desk.presence.seen = desk.presence.seen.max(now);
        desk.presence.unreachable = false;
        self.set_desk(Arc::new(desk));
    }

    pub(super) fn set_agent(&mut self, agent: Arc<Agent>, desk: Option<Arc<Desk>>) {
        if !agent.active && self.agents.contains_key(&agent.id) {
            // Later commands of this batch may need the full row, and the store does not have it
            // yet.
            self.visitors.agents.insert(agent.id, agent.clone());
        }
        let agent = agent.at_hand();
        // An agent state that exists before its agent belongs to no owner yet.
        let known = self.agents.contains_key(&agent.id);
        let failures = if known { self.failures_of(agent.id) } else { 0 };
        if let Some(old) = self.agents.get(&agent.id).cloned() {
            self.hide(&old);
            if old.active {
                self.skills.list(&old, false);
            }
            if let Some(until) = old.probation {
                self.timers.remove(&(until, Timer::Agent(old.id)));
            }
        } else {
            self.note_agent_looks(&agent);
        }
        if agent.active {
            self.skills.list(&agent, true);
            self.timers.extend(agent.probation.map(|until| (until, Timer::Agent(agent.id))));
        }
        self.by_owner.entry(agent.owner).or_default().insert(agent.id);
        self.agents.insert(agent.id, agent.clone());
        if let Some(desk) = desk {
            self.put_desk(desk);
        }
        self.blame(agent.owner, failures, self.failures_of(agent.id));
        self.show(&agent);
    }

    pub(super) fn set_desk(&mut self, desk: Arc<Desk>) {
        let id = desk.agent;
        let Some(agent) = self.agents.get(&id).cloned() else {
            self.put_desk(desk);
            return;
        };
        let until = self.online_until(&agent, &desk);
        let rank = rank(&desk);
        self.blame(agent.owner, self.failures_of(id), desk.weighed().failures);
        let same_place = self.online.shown.get(&id).is_some_and(|(shown, _)| *shown == rank);
        self.put_desk(desk);
        match until {
            // The common case: for the index, only the end of the online time changed.
            Some(until) if same_place => self.prolong(id, until),
            _ => {
                self.hide(&agent);
                self.show(&agent);
            }
        }
    }

    fn prolong(&mut self, id: AgentId, until: Timestamp) {
        if let Some((_, old)) = self.online.shown.get_mut(&id)
            && *old != until
        {
            self.online.ending.remove(&(*old, id));
            *old = until;
            if until != Timestamp::NEVER {
                self.online.ending.insert((until, id));
            }
        }
    }

    fn show(&mut self, agent: &Agent) {
        let Some(desk) = self.desks.get(&agent.id) else { return };
        let Some(until) = self.online_until(agent, desk) else {
            return self.keep_away(agent);
        };
        let rank = rank(desk);
        self.skills.show(agent, rank);
        self.online.shown.insert(agent.id, (rank, until));
        if until != Timestamp::NEVER {
            self.online.ending.insert((until, agent.id));
        }
    }

    fn hide(&mut self, agent: &Agent) {
        if let Some((rank, until)) = self.online.shown.remove(&agent.id) {
            self.skills.hide(agent, rank);
            self.online.ending.remove(&(until, agent.id));
        }
        if let Some(rank) = self.online.away.remove(&agent.id) {
            self.skills.unset_away(agent, rank);
        }
    }

    /// Lists a registered agent that is offline, so that it can still be found.
    fn keep_away(&mut self, agent: &Agent) {
        let Some(desk) = self.desks.get(&agent.id).filter(|_| agent.active) else { return };
        let rank = rank(desk);
        self.skills.set_away(agent, rank);
        self.online.away.insert(agent.id, rank);
    }
}

fn rank(desk: &Desk) -> Rank {
    Rank {
        score: Reverse(desk.standing.score),
        unproven: desk.standing.settled() == 0,
        agent: desk.agent,
    }
}
