//! Index of confusable owner names and agent ids, by the digest of their skeletons.
//!
//! Only digests are kept: the skeletons of a name are computed once, when it is new.

use super::World;
use super::id_map::IdMap;
use crate::agent::Agent;
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, OwnerId};
use crate::owner::Owner;

/// The first holder of each skeleton. Holders that share one registered before this check existed.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfusableIndex {
    owners: IdMap<Digest, OwnerId>,
    agents: IdMap<Digest, AgentId>,
}

impl World {
    /// The owner whose name is confusable with this one.
    pub fn confusable_owner(&self, name: &str) -> Option<OwnerId> {
        let mut looks = (self.rules.confusables.owner_skeletons)(name).into_iter();
        looks.find_map(|look| self.confusables.owners.get(&owner_digest(&look)).copied())
    }

    /// The agent of that protocol whose native id is confusable with this one, including
    /// unregistered agents.
    pub fn confusable_agent(&self, home: Protocol, native: &str) -> Option<AgentId> {
        let mut looks = (self.rules.confusables.agent_skeletons)(home, native).into_iter();
        looks.find_map(|look| self.confusables.agents.get(&agent_digest(home, &look)).copied())
    }

    pub(super) fn index_owner_skeletons(&mut self, owner: &Owner) {
        for look in (self.rules.confusables.owner_skeletons)(&owner.name) {
            self.confusables.owners.entry(owner_digest(&look)).or_insert(owner.id);
        }
    }

    pub(super) fn index_agent_skeletons(&mut self, agent: &Agent) {
        for look in (self.rules.confusables.agent_skeletons)(agent.home, &agent.native_id) {
            self.confusables.agents.entry(agent_digest(agent.home, &look)).or_insert(agent.id);
        }
    }
}

fn owner_digest(look: &str) -> Digest {
    Digest::of(&[look.as_bytes()])
}

fn agent_digest(home: Protocol, look: &str) -> Digest {
    Digest::of(&[home.as_str().as_bytes(), look.as_bytes()])
}
