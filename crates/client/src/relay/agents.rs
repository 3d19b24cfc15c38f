//! Agents: registering one, and the agents that a server lists.

use rialto_protocols::relay::EnvelopeFormat;
use rialto_protocols::relay::wire::agent_card;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::CallError;
use crate::json;
use crate::key::Key;
use crate::webhook_signature::WebhookSecret;

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
        serde_json::to_string(&body).map_err(CallError::unreadable)
    }
}

impl RegisteredAgent {
    pub(super) fn read(wire: RegisterResponse) -> Result<Self, CallError> {
        let secret = wire.webhook_secret.as_deref().map(|text| {
            let invalid = || CallError::unreadable("webhook_secret is not valid");
            WebhookSecret::read(text).ok_or_else(invalid)
        });
        Ok(Self {
            agent_id: wire.agent_id,
            api_key: Key::new(wire.api_key),
            webhook_secret: secret.transpose()?,
            record: wire.registration.map(ListedAgent::read).transpose()?,
        })
    }
}

/// One agent's public record.
#[derive(Clone, Debug)]
pub struct ListedAgent {
    /// Its address.
    pub agent_id: String,
    /// The culture on its card.
    pub culture: Option<String>,
    /// The languages on its card.
    pub languages: Vec<String>,
    /// Whether it is listening now, if the server says.
    pub online: Option<bool>,
    /// The protocol it uses, if the server supports several.
    pub protocol: Option<String>,
    /// Its endpoint, if the server shows it.
    pub endpoint: Option<String>,
    /// When it first registered.
    pub registered_at: Option<String>,
    raw: Box<RawValue>,
}

/// Which agents to list; an empty filter matches all.
#[derive(Clone, Debug, Default)]
pub struct AgentFilter {
    /// Only agents of this culture.
    pub culture: Option<String>,
    /// Only agents that understand this language.
    pub language: Option<String>,
    /// Only agents that are listening now, or only those that are not.
    pub online: Option<bool>,
    /// Only agents of this protocol.
    pub protocol: Option<String>,
    /// Only agents whose record contains this text.
    pub q: Option<String>,
}

#[derive(Deserialize)]
struct AgentBody {
    agent_id: String,
    agent_card: Option<AgentCardBody>,
    online: Option<bool>,
    protocol: Option<String>,
    endpoint: Option<String>,
    registered_at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentCardBody {
    user_culture: Option<String>,
    supported_languages: Vec<String>,
}

impl ListedAgent {
    /// Parses a record.
    pub(super) fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        let wire: AgentBody = json::parse(raw.get().as_bytes())?;
        let card = wire.agent_card.unwrap_or_default();
        Ok(Self {
            agent_id: wire.agent_id,
            culture: card.user_culture,
            languages: card.supported_languages,
            online: wire.online,
            protocol: wire.protocol,
            endpoint: wire.endpoint,
            registered_at: wire.registered_at,
            raw,
        })
    }

    /// The whole record as received: JSON text.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl AgentFilter {
    /// The query parameters.
    pub(super) fn query(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("culture", self.culture.clone()),
            ("language", self.language.clone()),
            ("online", self.online.map(|online| online.to_string())),
            ("protocol", self.protocol.clone()),
            ("q", self.q.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use rialto_protocols::kit::ijson;
    use rialto_protocols::relay::wire::registration as wire;

    use super::*;
    use crate::origin_client::add_query;

    #[test]
    fn a_registration_is_what_servers_read() {
        let mut registration = Registration::new("alice", "en", &["en".into(), "fr".into()]);
        registration.endpoint = Some("https://alice.example/receive".to_owned());
        registration.format = Some(EnvelopeFormat::A2a10);
        registration.rotate_key = true;
        let body = registration.body().expect("JSON");
        let json = ijson::read(body.as_bytes()).expect("JSON");
        let read = wire::RegisterBody::read(&json, wire::RegisteredBy::Agent, "chorus")
            .expect("a registration");
        assert_eq!(read.address.display(), "alice@chorus");
        assert_eq!(read.card.expect("a card").languages(), ["en", "fr"]);
        assert_eq!(read.endpoint, Some("https://alice.example/receive"));
        assert_eq!((read.format, read.rotate_key), (Some(EnvelopeFormat::A2a10), true));
    }

    #[test]
    fn what_is_not_set_is_not_sent() {
        let mut registration = Registration::new("alice@chorus", "en", &[]);
        registration.card = None;
        assert_eq!(registration.body().expect("JSON"), r#"{"agent_id":"alice@chorus"}"#);
    }

    fn record(text: &str) -> Result<ListedAgent, CallError> {
        ListedAgent::read(RawValue::from_string(text.to_owned()).expect("JSON"))
    }

    #[test]
    fn a_record_is_read_in_part_and_kept_whole() {
        let text = r#"{"agent_id":"a@b","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en","fr"]},"online":true,"x":1.0}"#;
        let read = record(text).expect("a record");
        assert_eq!(read.agent_id, "a@b");
        assert_eq!(read.culture.as_deref(), Some("en"));
        assert_eq!((read.languages, read.online), (vec!["en".into(), "fr".into()], Some(true)));
        assert_eq!(read.raw.get(), text);
    }

    #[test]
    fn agents_without_card_are_agents_too() {
        for text in [r#"{"agent_id":"a@b"}"#, r#"{"agent_id":"a@b","agent_card":null}"#] {
            assert_eq!(record(text).expect("a record").culture, None);
        }
        assert!(record(r#"{"id":"a@b"}"#).is_err());
    }

    #[test]
    fn a_filter_names_only_what_is_set() {
        assert!(AgentFilter::default().query().iter().all(|(_, value)| value.is_none()));
        let filter =
            AgentFilter { online: Some(true), q: Some("x y".into()), ..AgentFilter::default() };
        let mut url = url::Url::parse("http://h/agents").expect("a URL");
        add_query(&mut url, filter.query());
        assert_eq!(url.query(), Some("online=true&q=x+y"));
    }
}
