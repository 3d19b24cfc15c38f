//! A hub's response to an agent that publishes its identity.

use rialto_protocols::openclaw::wire::answers;
use uuid::Uuid;

use super::agent::Agent;
use super::response::ServerResponse;
use super::server::Server;
use crate::call::CallError;
use crate::key::Key;
use crate::webhook_signature::WebhookSecret;

/// The status for a new identity.
const CREATED: u16 = 201;

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

impl PublishedAgent {
    /// Parses the response of `server` to the identity of `id`.
    pub(super) fn read(
        server: &Server,
        id: Uuid,
        answer: &ServerResponse,
    ) -> Result<Self, CallError> {
        let said: answers::Published = answer.value()?;
        if said.agent_id.parse() != Ok(id) {
            return Err(CallError::Unreadable("it is about another agent".to_owned()));
        }
        let key = said.api_key.map(Key::new);
        let server = key.as_ref().map_or(server.clone(), |key| server.with_key(key.clone()));
        let secret = said.webhook_secret.as_deref().map(WebhookSecret::read);
        if secret == Some(None) {
            return Err(CallError::Unreadable("its webhook secret is not valid".to_owned()));
        }
        Ok(Self {
            agent: Agent::with_server(server, id),
            key,
            webhook_secret: secret.flatten(),
            is_new: answer.status == CREATED,
        })
    }
}
