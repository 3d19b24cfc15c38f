//! An agent at a hub: its id, its key, and the messages about itself.

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::answers::{ClaimRecorded, StatusTaken};
use rialto_protocols::openclaw::common::Common;
use rialto_protocols::openclaw::message::{Identity, Metrics, Report, Reputation, StatusUpdate};
use rialto_protocols::openclaw::score::Score;
use rialto_protocols::openclaw::state::{Status, UpdateType};
use uuid::Uuid;

use super::response;
use super::retry::Patience;
use super::published_agent::Published;
use super::server::{self, Server};
use crate::call::CallError;
use crate::key::Key;

/// An identity at a hub, with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    id: Uuid,
    server: Server,
    patience: Patience,
}

impl Agent {
    /// An agent that was published earlier. Sends nothing.
    pub fn new(server: &Server, id: Uuid, key: Key) -> Self {
        Self::at(server.with_key(key), id)
    }

    /// The agent for which the server already has the key.
    pub(super) fn at(server: Server, id: Uuid) -> Self {
        Self { id, server, patience: Patience::default() }
    }

    /// Sets the retry policy for requests.
    pub fn with_patience(&self, patience: Patience) -> Self {
        Self { patience, ..self.clone() }
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
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Publishes the identity again, after a change of its skills.
    pub async fn publish(&self, identity: &Identity) -> Result<Published, CallError> {
        if identity.agent_id != self.id {
            return Err(CallError::invalid("the identity is another agent's", None));
        }
        let mut published = self.server.publish(identity).await?;
        published.agent.patience = self.patience;
        Ok(published)
    }

    /// Unregisters the agent; `false` if it was not registered.
    pub async fn unregister(&self) -> Result<bool, CallError> {
        self.server.unregister(self.id).await
    }

    /// Sends the agent's current and previous status. A [`super::Duty`] does this by itself.
    pub async fn tell(
        &self,
        report: Report,
        previous: Option<Status>,
    ) -> Result<StatusTaken, CallError> {
        let Common { correlation_id, timestamp } = server::common()?;
        let update =
            StatusUpdate { agent_id: self.id, report, previous, correlation_id, timestamp };
        let text = update.write();
        response::check::<StatusUpdate>(&text)?;
        self.server.post(self.server.at(&["status"]), text).await?.value()
    }

    /// Claims a reputation, which the hub shows next to its own figures. A [`super::Duty`] does
    /// this by itself.
    pub async fn claim(
        &self,
        update_type: UpdateType,
        collaboration_id: Option<Uuid>,
        score: Score,
        metrics: Metrics,
        at: Timestamp,
    ) -> Result<ClaimRecorded, CallError> {
        let Common { correlation_id, timestamp } = server::common()?;
        let update = Reputation {
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
        response::check::<Reputation>(&text)?;
        self.server.post(self.server.at(&["reputation"]), text).await?.value()
    }
}
