//! What this protocol keeps at hand while the hub runs: its own id, and identities that are compiled.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use rialto_core::agent::Agent;
use rialto_core::id::AgentId;
use rialto_engine::secret::HubSecret;
use uuid::Uuid;

use super::ID;
use super::message::{self, Identity};
use super::settings::Settings;

/// Bytes of all identities that are kept compiled, which takes some forty times as much; a pattern may
/// take more, and counts for itself.
const WEIGHT_MAX: usize = 4 << 20;
const PATTERN_WEIGHT: usize = 2_048;

/// The protocol's own things, one set for all its routes.
pub struct Room {
    pub settings: Settings,
    /// Who answers when nobody could be found (R84): the same for as long as the hub has its secret.
    pub hub_id: Uuid,
    kept: RwLock<Kept>,
}

#[derive(Default)]
struct Kept {
    identities: HashMap<AgentId, (Arc<Agent>, Arc<Identity>)>,
    weight: usize,
}

impl Room {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&secret.derive("rialto openclaw hub v1", "hub")[..16]);
        let hub_id = uuid::Builder::from_random_bytes(id).into_uuid();
        Self { settings, hub_id, kept: RwLock::default() }
    }

    /// The identity an agent of this protocol published, its schemas compiled. `None` for anybody
    /// else.
    pub fn identity(&self, agent: &Arc<Agent>) -> Option<Arc<Identity>> {
        if agent.home != ID {
            return None;
        }
        let known = self.kept.read().ok().and_then(|kept| {
            let (of, identity) = kept.identities.get(&agent.id)?;
            // A newer version of the agent may have another identity.
            Arc::ptr_eq(of, agent).then(|| identity.clone())
        });
        known.or_else(|| self.compile(agent))
    }

    fn compile(&self, agent: &Arc<Agent>) -> Option<Arc<Identity>> {
        let message = message::read::<Identity>(agent.card.as_bytes()).ok()?;
        let identity = Arc::new(message.said);
        let weight = agent.card.len() + identity.patterns() * PATTERN_WEIGHT;
        if let Ok(mut kept) = self.kept.write() {
            // Clearing the cache when it is full is cheaper than tracking recency.
            if kept.weight + weight > WEIGHT_MAX {
                *kept = Kept::default();
            }
            kept.weight += weight;
            kept.identities.insert(agent.id, (agent.clone(), identity.clone()));
        }
        Some(identity)
    }
}
