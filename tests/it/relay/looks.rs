//! Queries of the delivery tests: the state of a message, open inboxes, pending deliveries.

use rialto_core::id::AgentId;
use rialto_core::notice::Delivery;
use rialto_protocols::relay::ID;

use super::kit::Peer;
use crate::kit::{Got, Reply, TestHub, eventually};

impl TestHub {
    /// The state of a message, as one of its parties sees it.
    pub async fn standing(&self, peer: &Peer, trace_id: &str) -> Reply {
        self.get(&format!("/relay/messages/{trace_id}"), Some(&peer.key)).await
    }

    /// The state of a message.
    pub async fn state_of(&self, peer: &Peer, trace_id: &str) -> String {
        self.standing(peer, trace_id).await.expect(200).str("/data/state")
    }

    /// Waits until this many inboxes are open: a closed connection is noticed after a moment.
    pub async fn heard_by(&self, readers: usize) {
        eventually(async || self.engine.inbox_reader_count() == readers).await;
    }

    /// Pending and failed deliveries.
    pub fn pushes(&self) -> Vec<Delivery> {
        self.engine
            .with_world(|world| world.deliveries().map(|push| Delivery::clone(push)).collect())
    }

    /// The hub's internal id of an agent.
    pub fn number(&self, peer: &Peer) -> AgentId {
        let found = self.engine.with_world(|world| world.agent_by_alias(ID, &peer.id));
        found.expect("a registered agent")
    }

    /// Acknowledges an inbox up to a position.
    pub async fn ack(&self, peer: &Peer, up_to: u64) -> Reply {
        let body = serde_json::json!({"up_to": up_to});
        self.post("/relay/agent/inbox/ack", Some(&peer.key), &body).await
    }
}

/// The trace id of an accepted message.
#[track_caller]
pub fn trace(reply: &Reply) -> String {
    reply.str("/data/trace_id")
}

/// A header of a request that an endpoint received.
#[track_caller]
pub fn header<'a>(got: &'a Got, name: &str) -> &'a str {
    got.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("text")
}
