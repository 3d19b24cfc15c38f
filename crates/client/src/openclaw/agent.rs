//! An agent at a hub: its id, its key, its publication, and the messages about itself.

use reqwest::StatusCode;
use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::answers::{ClaimRecorded, Published, StatusTaken};
use rialto_protocols::openclaw::wire::reputation::Score;
use rialto_protocols::openclaw::wire::words::{Status, UpdateType};
use rialto_protocols::openclaw::wire::{
    CommonMembers, Identity, ReportedStatus, ReputationMetrics, ReputationUpdate, StatusUpdate,
};
use uuid::Uuid;

use super::request::RequestRetryPolicy;
use super::response::check_message;
use super::server::{Server, new_common_fields};
use crate::call::CallError;
use crate::key::Key;
use crate::origin_client::Reply;
use crate::webhook_signature::WebhookSecret;

/// An identity at a hub, with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    id: Uuid,
    server: Server,
    retry: RequestRetryPolicy,
}

/// A published identity.
#[derive(Clone, Debug)]
pub struct PublishedAgent {
    /// The agent, with its current key.
    pub agent: Agent,
    /// Its new key, returned only once: store it. `None` for an agent that has one.
    pub key: Option<Key>,
    /// The secret that signs its webhooks, returned only once.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether the agent is new.
    pub is_new: bool,
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
    pub fn with_retry(&self, retry: RequestRetryPolicy) -> Self {
        Self { retry, ..self.clone() }
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
        let CommonMembers { correlation_id, timestamp } = new_common_fields()?;
        let update = StatusUpdate {
            agent_id: self.id,
            report,
            previous_status: previous,
            correlation_id,
            timestamp,
        };
        let text = update.write();
        check_message::<StatusUpdate>(&text)?;
        self.server.post(self.server.url(&["status"]), text).await?.json()
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
        let CommonMembers { correlation_id, timestamp } = new_common_fields()?;
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
        check_message::<ReputationUpdate>(&text)?;
        self.server.post(self.server.url(&["reputation"]), text).await?.json()
    }
}

impl PublishedAgent {
    /// Parses the response of `server` to the identity of `id`.
    pub(super) fn read(server: &Server, id: Uuid, reply: &Reply) -> Result<Self, CallError> {
        let published: Published = reply.json()?;
        if published.agent_id.parse() != Ok(id) {
            return Err(CallError::unreadable("it is about another agent"));
        }
        let key = published.api_key.map(Key::new);
        let server = key.as_ref().map_or(server.clone(), |key| server.with_key(key.clone()));
        let secret = published.webhook_secret.as_deref().map(WebhookSecret::read);
        if secret == Some(None) {
            return Err(CallError::unreadable("its webhook secret is not valid"));
        }
        Ok(Self {
            agent: Agent::with_server(server, id),
            key,
            webhook_secret: secret.flatten(),
            is_new: reply.status == StatusCode::CREATED,
        })
    }
}
