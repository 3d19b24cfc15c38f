//! HELLO: what an agent announces about itself, the server's WELCOME, and the inbox token in it.

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::wire::hello::{Capability, Hello, Welcome};
use rialto_protocols::agora::{Envelope, Failure, MessageType, prove};

use super::identity::SignedEnvelope;
use super::incoming::TrustContext;
use crate::call::CallError;
use crate::key::Key;
use crate::webhook_signature::WebhookSecret;

/// How long before its end a token counts as expired, so that it does not expire during a call.
const EXPIRY_MARGIN: Millis = Millis::minutes(5);

/// What an agent announces about itself. A field that is left out stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The display name.
    pub name: Option<String>,
    /// The skills.
    pub skills: Option<Vec<Skill>>,
    /// The URL to which the hub posts envelopes while no inbox is open.
    pub endpoint: Option<String>,
}

/// One skill of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name, such as `agora:search:v1`.
    pub resource: String,
    /// The fixed price, without a negotiation.
    pub price: Option<Credits>,
    /// The description, for people.
    pub description: Option<String>,
}

/// A verified WELCOME to this agent's HELLO.
#[derive(Clone, Debug)]
pub struct WelcomeResponse {
    /// The hub's did:key.
    pub hub: String,
    /// Until when the inbox can be read, if requested.
    pub inbox_expires_at: Option<Timestamp>,
    /// The secret with which the hub signs its webhooks.
    pub webhook_secret: Option<WebhookSecret>,
    /// The WELCOME as received, including its secrets.
    pub raw: String,
    pub(super) token: Option<Token>,
}

impl Skill {
    /// A skill without a price.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: resource.into(), price: None, description: None }
    }

    /// Sets a price.
    pub fn with_price(self, price: Credits) -> Self {
        Self { price: Some(price), ..self }
    }

    fn capability(&self) -> Capability<'_> {
        let description = self.description.as_deref();
        Capability { resource: &self.resource, price: self.price, description }
    }
}

/// These skills as `capabilities` members.
pub(super) fn capabilities(skills: &[Skill]) -> Vec<Capability<'_>> {
    skills.iter().map(Skill::capability).collect()
}

impl Profile {
    /// The payload of a HELLO.
    pub(super) fn payload(&self, nonce: &str, inbox: bool) -> String {
        let capabilities = self.skills.as_deref().map(capabilities);
        let (name, endpoint) = (self.name.as_deref(), self.endpoint.as_deref());
        Hello { nonce: Some(nonce), name, capabilities, endpoint, inbox }.write()
    }
}

impl WelcomeResponse {
    /// Reads the response to a HELLO. It must be the server's own, fresh, and about this HELLO.
    pub(super) fn read(
        text: &str,
        hello: &SignedEnvelope,
        nonce: &str,
        now: Timestamp,
        reader: TrustContext,
    ) -> Result<Self, CallError> {
        let wrong = |why: &str| CallError::unreadable(format!("the WELCOME {why}"));
        let refused = |failure: Failure| wrong(&failure.message);
        let json = envelope::read_json(text.as_bytes()).map_err(refused)?;
        let envelope = Envelope::read(&json).map_err(refused)?;
        let proof = prove(&envelope, now, reader.window).map_err(refused)?;
        if proof.key != reader.hub {
            return Err(wrong("is not signed by the hub"));
        }
        if envelope.message_type != MessageType::Welcome
            || envelope.recipient.is_some_and(|to| to != reader.me)
        {
            return Err(wrong("is not a WELCOME, or is addressed to another recipient"));
        }
        let welcome = Welcome::read(envelope.payload).map_err(refused)?;
        let me = reader.me.did();
        let is_for_hello = welcome.nonce == Some(nonce)
            && welcome.hello_id == Some(&hello.id)
            && welcome.hello_sender == Some(&me);
        if !is_for_hello {
            return Err(wrong("is about another HELLO"));
        }
        let until = welcome.inbox_token_expires_at;
        Ok(Self {
            hub: proof.key.did(),
            inbox_expires_at: welcome.inbox_token.and(until),
            webhook_secret: welcome.webhook_secret.and_then(WebhookSecret::read),
            raw: text.to_owned(),
            token: welcome
                .inbox_token
                .map(|token| Token { key: Key::new(token), expires_at: until }),
        })
    }
}

/// A token and its expiry time.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) key: Key,
    pub(super) expires_at: Option<Timestamp>,
}

impl Token {
    /// Whether it will be valid for a while.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|until| now.plus(EXPIRY_MARGIN) < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_replaced_before_it_ends() {
        let until = Some(Timestamp(3_600_000));
        let token = Token { key: Key::new("at_1"), expires_at: until };
        assert!(token.is_valid(Timestamp(3_299_999)));
        assert!(!token.is_valid(Timestamp(3_300_000)));
        assert!(Token { expires_at: None, ..token }.is_valid(Timestamp(i64::MAX)));
    }
}
