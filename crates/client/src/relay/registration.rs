//! Registration of an agent, and the server's response.

use rialto_protocols::relay::EnvelopeFormat;
use rialto_protocols::relay::wire::agent_card;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::key::Key;
use super::listed_agent::ListedAgent;
use super::webhook_signature::WebhookSecret;
use crate::call::CallError;

/// The data an agent registers.
#[derive(Clone, Debug)]
pub struct Registration {
    /// `name@host`, or a short name on the server's own host.
    pub agent_id: String,
    /// Its agent card, if it has one.
    pub card: Option<Value>,
    /// The URL for deliveries; without one, it listens to its inbox.
    pub endpoint: Option<String>,
    /// The format of delivered envelopes.
    pub format: Option<EnvelopeFormat>,
    /// Whether to issue a new key if it already has one.
    pub rotate_key: bool,
}

/// A registered agent.
#[derive(Clone, Debug)]
pub struct RegisteredAgent {
    /// The agent's full address.
    pub agent_id: String,
    /// Its key. The server cannot show it again.
    pub api_key: Key,
    /// The secret with which the server signs deliveries, if there is an endpoint.
    pub webhook_secret: Option<WebhookSecret>,
    /// The agent's public record, if the server returns it.
    pub record: Option<ListedAgent>,
}

#[derive(Serialize)]
struct RegisterBody<'a> {
    agent_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_card: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope_format: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rotate_key: bool,
}

#[derive(Deserialize)]
pub(super) struct RegisterResponse {
    agent_id: String,
    api_key: String,
    webhook_secret: Option<String>,
    registration: Option<Box<RawValue>>,
}

impl Registration {
    /// An agent that listens to its inbox, with a minimal card.
    pub fn new(agent_id: impl Into<String>, culture: &str, languages: &[String]) -> Self {
        let card = json!({
            "card_version": agent_card::VERSION,
            "user_culture": culture,
            "supported_languages": languages,
        });
        let agent_id = agent_id.into();
        Self { agent_id, card: Some(card), endpoint: None, format: None, rotate_key: false }
    }

    /// The request body.
    pub(super) fn body(&self) -> Result<String, CallError> {
        let body = RegisterBody {
            agent_id: &self.agent_id,
            agent_card: self.card.as_ref(),
            endpoint: self.endpoint.as_deref(),
            envelope_format: self.format.map(EnvelopeFormat::as_str),
            rotate_key: self.rotate_key,
        };
        serde_json::to_string(&body).map_err(|error| CallError::Unreadable(error.to_string()))
    }
}

impl RegisteredAgent {
    pub(super) fn read(wire: RegisterResponse) -> Result<Self, CallError> {
        let secret = wire.webhook_secret.as_deref().map(|text| {
            let unreadable = || CallError::Unreadable("webhook_secret is not valid".to_owned());
            WebhookSecret::read(text).ok_or_else(unreadable)
        });
        Ok(Self {
            agent_id: wire.agent_id,
            api_key: Key::new(wire.api_key),
            webhook_secret: secret.transpose()?,
            record: wire.registration.map(ListedAgent::read).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_protocols::kit::ijson;
    use rialto_protocols::relay::wire::registration::{RegisterBody, RegisteredBy};

    #[test]
    fn an_announcement_is_what_servers_read() {
        let mut announcement = Registration::new("alice", "en", &["en".into(), "fr".into()]);
        announcement.endpoint = Some("https://alice.example/receive".to_owned());
        announcement.format = Some(EnvelopeFormat::A2a10);
        announcement.rotate_key = true;
        let body = announcement.body().expect("JSON");
        let json = ijson::read(body.as_bytes()).expect("JSON");
        let read =
            RegisterBody::read(&json, RegisteredBy::Agent, "chorus").expect("a registration");
        assert_eq!(read.address.display(), "alice@chorus");
        assert_eq!(read.card.expect("a card").languages(), ["en", "fr"]);
        assert_eq!(read.endpoint, Some("https://alice.example/receive"));
        assert_eq!((read.format, read.rotate_key), (Some(EnvelopeFormat::A2a10), true));
    }

    #[test]
    fn what_is_not_said_is_not_sent() {
        let mut announcement = Registration::new("alice@chorus", "en", &[]);
        announcement.card = None;
        assert_eq!(announcement.body().expect("JSON"), r#"{"agent_id":"alice@chorus"}"#);
    }
}
