//! The state of this protocol in memory: the hub's own id, and a cache of compiled identities.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use rialto_core::agent::Agent;
use rialto_core::id::AgentId;
use rialto_engine::secret::HubSecret;
use uuid::Uuid;

use super::ID;
use super::message::{self, Identity};
use super::settings::Settings;

/// The most bytes of all cached identities. Compiled, they take about forty times as much. A
/// pattern may take more, so it is counted separately.
const WEIGHT_MAX: usize = 4 << 20;
const PATTERN_WEIGHT: usize = 2_048;

/// The state of the protocol, shared by all its operations.
pub struct OpenclawState {
    pub settings: Settings,
    /// The responder's id when no agent could be found (R84). It stays the same as long as the hub
    /// has the same secret.
    pub hub_id: Uuid,
    kept: RwLock<IdentityCache>,
}

#[derive(Default)]
struct IdentityCache {
    identities: HashMap<AgentId, (Arc<Agent>, Arc<Identity>)>,
    weight: usize,
}

impl OpenclawState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&secret.derive("rialto openclaw hub v1", "hub")[..16]);
        let hub_id = uuid::Builder::from_random_bytes(id).into_uuid();
        Self { settings, hub_id, kept: RwLock::default() }
    }

    /// The published identity of an agent of this protocol, with its schemas compiled. `None` for
    /// agents of other protocols.
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
        let identity = Arc::new(message.body);
        let weight = agent.card.len() + identity.patterns() * PATTERN_WEIGHT;
        if let Ok(mut kept) = self.kept.write() {
            // Clearing the cache when it is full is cheaper than tracking recency.
            if kept.weight + weight > WEIGHT_MAX {
                *kept = IdentityCache::default();
            }
            kept.weight += weight;
            kept.identities.insert(agent.id, (agent.clone(), identity.clone()));
        }
        Some(identity)
    }
}
