//! Index of confusable owner names and agent ids, by the digest of their skeletons.
//!
//! Only digests are kept: the skeletons of a name are computed once, when it is new.

use super::World;
use super::id_map::QuickMap;
use crate::agent::Agent;
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, OwnerId};
use crate::owner::Owner;

/// The first holder of each skeleton. Holders that share one registered before this check existed.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    owners: QuickMap<Digest, OwnerId>,
    agents: QuickMap<Digest, AgentId>,
}

impl World {
    /// The owner whose name is confusable with this one.
    pub fn owner_like(&self, name: &str) -> Option<OwnerId> {
        let mut looks = (self.rules.likeness.owner)(name).into_iter();
        looks.find_map(|look| self.looks.owners.get(&of_owner(&look)).copied())
    }

    /// The agent of that protocol whose native id is confusable with this one, including
    /// unregistered agents.
    pub fn agent_like(&self, home: Protocol, native: &str) -> Option<AgentId> {
        let mut looks = (self.rules.likeness.native)(home, native).into_iter();
        looks.find_map(|look| self.looks.agents.get(&of_agent(home, &look)).copied())
    }

    pub(super) fn note_owner_looks(&mut self, owner: &Owner) {
        for look in (self.rules.likeness.owner)(&owner.name) {
            self.looks.owners.entry(of_owner(&look)).or_insert(owner.id);
        }
    }

    pub(super) fn note_agent_looks(&mut self, agent: &Agent) {
        for look in (self.rules.likeness.native)(agent.home, &agent.native) {
            self.looks.agents.entry(of_agent(agent.home, &look)).or_insert(agent.id);
        }
    }
}

fn of_owner(look: &str) -> Digest {
    Digest::of(&[look.as_bytes()])
}

fn of_agent(home: Protocol, look: &str) -> Digest {
    Digest::of(&[home.as_str().as_bytes(), look.as_bytes()])
}
