//! The hub context that adapters get, alone and together with a protocol's own state.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use axum::extract::FromRef;
use axum::http::HeaderMap;
use rialto_core::agent::key::KeyHash;
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::Egress;

use super::idempotency::RunningRequests;
use super::settings::HubSettings;
use super::shutdown::Shutdown;
use super::{EdgeError, OpenProtocol, WriteLimiter};

/// What adapters may use of the hub. Cheap to clone: all clones share one value.
#[derive(Clone)]
pub struct HubContext(Arc<HubContextParts>);

/// The parts of a [`HubContext`].
pub struct HubContextParts {
    pub engine: Engine,
    pub egress: Arc<Egress>,
    /// The hub's own base URL, without a trailing slash.
    pub hub_url: String,
    /// The address that this node listens on.
    pub listens_on: SocketAddr,
    pub body_limit: usize,
    pub settings: HubSettings,
    /// The protocols that the hub speaks, in the order of [`crate::ALL`].
    pub protocols: Vec<Arc<dyn OpenProtocol>>,
    /// Rate limits for writes whose credential only the protocol can read.
    pub write_limiter: Arc<dyn WriteLimiter>,
    /// Requests with an idempotency key that are running now.
    pub running_requests: RunningRequests,
    /// How many answers each agent waits for.
    pub pending_waits: Mutex<BTreeMap<AgentId, u32>>,
    /// How many streams of changes each caller of MCP has open.
    pub open_streams: Mutex<BTreeMap<StreamOwner, u32>>,
    /// Agents whose endpoint is being checked.
    pub endpoint_checks: Mutex<BTreeSet<AgentId>>,
    /// Ends long responses when the hub stops.
    pub shutdown: Shutdown,
}

/// Whose streams are counted together: those of a key, or those of a guest, which has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamOwner {
    Key(KeyHash),
    Guest(AgentId),
}

impl HubContext {
    pub fn new(parts: HubContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The opened protocol with this id.
    pub fn protocol(&self, id: Protocol) -> Option<&Arc<dyn OpenProtocol>> {
        self.protocols.iter().find(|protocol| protocol.adapter().id() == id)
    }

    /// Brings this node up to date for a write that is no request of its own, such as a frame on an
    /// open connection. For requests the edge does it.
    pub async fn prepare_write(&self) -> Result<(), EdgeError> {
        let engine = &self.engine;
        if !engine.is_current() {
            return Err(EdgeError::NotCurrent);
        }
        engine.fresh().await.map_err(|_| EdgeError::NotCurrent)
    }

    /// The agent behind a credential of any protocol that permits reading and nothing else.
    pub fn authenticate_reader(&self, headers: &HeaderMap) -> Option<AgentId> {
        let mut opened = self.protocols.iter().cloned();
        opened.find_map(|protocol| protocol.authenticate_reader(self, headers))
    }
}

impl Deref for HubContext {
    type Target = HubContextParts;

    fn deref(&self) -> &HubContextParts {
        &self.0
    }
}

/// What the operations of one protocol get: its own state, and the hub context.
pub struct ProtocolContext<S> {
    hub: HubContext,
    /// What the protocol itself keeps: settings, keys, caches, counters.
    pub state: Arc<S>,
}

impl<S> ProtocolContext<S> {
    pub fn new(hub: &HubContext, state: Arc<S>) -> Self {
        Self { hub: hub.clone(), state }
    }
}

// Derived, it would ask for a state that can be cloned.
impl<S> Clone for ProtocolContext<S> {
    fn clone(&self) -> Self {
        Self { hub: self.hub.clone(), state: self.state.clone() }
    }
}

impl<S> Deref for ProtocolContext<S> {
    type Target = HubContext;

    fn deref(&self) -> &HubContext {
        &self.hub
    }
}

impl<S> FromRef<ProtocolContext<S>> for HubContext {
    fn from_ref(context: &ProtocolContext<S>) -> Self {
        context.hub.clone()
    }
}
