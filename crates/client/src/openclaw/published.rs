//! What a hub gives an agent that publishes its identity.

use rialto_protocols::openclaw::answers;
use uuid::Uuid;

use super::agent::Agent;
use super::answer::Answer;
use super::server::Server;
use crate::call::CallError;
use crate::key::Key;
use crate::signature::WebhookSecret;

/// Status of the answer to an identity that was not there before.
const CREATED: u16 = 201;

/// An identity that is on the hub.
#[derive(Clone, Debug)]
pub struct Published {
    /// The agent, with the key it has from now on.
    pub agent: Agent,
    /// Its new key, shown once: keep it. `None` for an agent that has one.
    pub key: Option<Key>,
    /// What pushes to its endpoint are signed with, shown once.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether it was not there before.
    pub is_new: bool,
}

impl Published {
    /// Reads the answer of `server` to the identity of `id`.
    pub(super) fn read(server: &Server, id: Uuid, answer: &Answer) -> Result<Self, CallError> {
        let said: answers::Published = answer.value()?;
        if said.agent_id.parse() != Ok(id) {
            return Err(CallError::Unreadable("it is about another agent".to_owned()));
        }
        let key = said.api_key.map(Key::new);
        let server = key.as_ref().map_or(server.clone(), |key| server.with_key(key.clone()));
        let secret = said.webhook_secret.as_deref().map(WebhookSecret::read);
        if secret == Some(None) {
            return Err(CallError::Unreadable("its webhook secret makes no sense".to_owned()));
        }
        Ok(Self {
            agent: Agent::at(server, id),
            key,
            webhook_secret: secret.flatten(),
            is_new: answer.status == CREATED,
        })
    }
}
