//! An agent at a hub: its id, its key, and the messages about itself.

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::answers::{ClaimRecorded, StatusTaken};
use rialto_protocols::openclaw::wire::reputation::Score;
use rialto_protocols::openclaw::wire::words::{Status, UpdateType};
use rialto_protocols::openclaw::wire::{
    CommonMembers, Identity, ReportedStatus, ReputationMetrics, ReputationUpdate, StatusUpdate,
};
use uuid::Uuid;

use super::published_agent::PublishedAgent;
use super::response;
use super::retry::RequestRetryPolicy;
use super::server::{self, Server};
use crate::call::CallError;
use crate::key::Key;

/// An identity at a hub, with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    id: Uuid,
    server: Server,
    retry: RequestRetryPolicy,
}

impl Agent {
    /// An agent that was published earlier. Sends nothing.
    pub fn new(server: &Server, id: Uuid, key: Key) -> Self {
        Self::with_server(server.with_key(key), id)
    }

    /// The agent for which the server already has the key.
    pub(super) fn with_server(server: Server, id: Uuid) -> Self {
        Self { id, server, retry: RequestRetryPolicy::default() }
    }

    /// Sets the retry policy for requests.
    pub fn with_retry(&self, timeout: RequestRetryPolicy) -> Self {
        Self { retry: timeout, ..self.clone() }
    }

    /// The agent's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The hub, called with the agent's key.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The retry policy.
    pub fn retry(&self) -> RequestRetryPolicy {
        self.retry
    }

    /// Publishes the identity again, after a change of its skills.
    pub async fn publish(&self, identity: &Identity) -> Result<PublishedAgent, CallError> {
        if identity.agent_id != self.id {
            return Err(CallError::invalid("the identity is another agent's", None));
        }
        let mut published = self.server.publish(identity).await?;
        published.agent.retry = self.retry;
        Ok(published)
    }

    /// Unregisters the agent; `false` if it was not registered.
    pub async fn unregister(&self) -> Result<bool, CallError> {
        self.server.unregister(self.id).await
    }

    /// Sends the agent's current and previous status. A [`super::Presence`] does this by itself.
    pub async fn send_status(
        &self,
        report: ReportedStatus,
        previous: Option<Status>,
    ) -> Result<StatusTaken, CallError> {
        let CommonMembers { correlation_id, timestamp } = server::new_common_fields()?;
        let update = StatusUpdate {
            agent_id: self.id,
            report,
            previous_status: previous,
            correlation_id,
            timestamp,
        };
        let text = update.write();
        response::check_message::<StatusUpdate>(&text)?;
        self.server.post(self.server.url(&["status"]), text).await?.value()
    }

    /// Claims a reputation, which the hub shows next to its own figures. A [`super::Presence`] does
    /// this by itself.
    pub async fn claim_reputation(
        &self,
        update_type: UpdateType,
        collaboration_id: Option<Uuid>,
        score: Score,
        metrics: ReputationMetrics,
        at: Timestamp,
    ) -> Result<ClaimRecorded, CallError> {
        let CommonMembers { correlation_id, timestamp } = server::new_common_fields()?;
        let update = ReputationUpdate {
            agent_id: self.id,
            update_type,
            score,
            at,
            metrics: Some(metrics),
            collaboration_id,
            correlation_id,
            timestamp,
        };
        let text = update.write();
        response::check_message::<ReputationUpdate>(&text)?;
        self.server.post(self.server.url(&["reputation"]), text).await?.value()
    }
}
