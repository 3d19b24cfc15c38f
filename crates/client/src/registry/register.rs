//! Registering: who an agent is, what it sells, and what it gets in return.

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_protocols::kit::object::Object;
use rialto_protocols::kit::stamp;
use rialto_protocols::registry::wire::{DECIMALS, Register, VERSION};
use serde::Deserialize;
use uuid::Uuid;

use super::server::{Call, Server};
use super::{figures, object};
use crate::call::CallError;
use crate::clock;
use crate::key::Key;
use crate::signature::WebhookSecret;

/// One thing an agent sells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    name: String,
    about: String,
    price: Credits,
    input: String,
    output: String,
}

/// An agent that is to be registered, or registered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    agent_id: Option<Uuid>,
    name: String,
    owner: String,
    endpoint: Option<String>,
    offers: Vec<Offer>,
    rotate_key: bool,
}

/// An agent that is registered.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Its id.
    pub agent_id: Uuid,
    /// Its score.
    pub score: Score,
    /// Its key. The hub shows a new one only here.
    pub key: Option<Key>,
    /// What the hub signs its calls with, for agents that are called.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether it was not there before.
    pub new: bool,
    /// The hub, called with that key.
    pub server: Server,
}

#[derive(Deserialize)]
struct Wire {
    agent_id: Uuid,
    #[serde(deserialize_with = "figures::score")]
    reputation_score: Score,
    api_key: Option<String>,
    webhook_secret: Option<String>,
}

#[derive(Deserialize)]
struct Gone {}

impl Offer {
    /// Something for a price per call.
    pub fn new(name: impl Into<String>, price: Credits) -> Self {
        let (input, output) = ("{}".to_owned(), "{}".to_owned());
        Self { name: name.into(), about: String::new(), price, input, output }
    }

    /// Says what it is.
    pub fn about(mut self, text: impl Into<String>) -> Self {
        self.about = text.into();
        self
    }

    /// Says what it takes: JSON text of an object, names to types such as `{"text":"string"}`.
    pub fn takes(mut self, schema: impl Into<String>) -> Self {
        self.input = schema.into();
        self
    }

    /// Says what it gives, in the same way.
    pub fn gives(mut self, schema: impl Into<String>) -> Self {
        self.output = schema.into();
        self
    }

    fn write(&self) -> String {
        Object::new()
            .text("skill_name", &self.name)
            .text("description", &self.about)
            .raw("cost_per_call", &self.price.text(DECIMALS))
            .raw("input_schema", &self.input)
            .raw("output_schema", &self.output)
            .finish()
    }
}

impl Registration {
    /// An agent by its name, and whose it is.
    pub fn new(name: impl Into<String>, owner: impl Into<String>) -> Self {
        Self {
            agent_id: None,
            name: name.into(),
            owner: owner.into(),
            endpoint: None,
            offers: Vec::new(),
            rotate_key: false,
        }
    }

    /// The same under an id it had before. Without, the hub makes one.
    pub fn id(mut self, id: Uuid) -> Self {
        self.agent_id = Some(id);
        self
    }

    /// The same, called at a URL. Without, it fetches its work.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// The same, selling one thing more.
    pub fn sells(mut self, offer: Offer) -> Self {
        self.offers.push(offer);
        self
    }

    /// The same with a new key; the old one is good for a little longer.
    pub fn rotate_key(mut self) -> Self {
        self.rotate_key = true;
        self
    }

    fn write(&self) -> Result<String, CallError> {
        for offer in &self.offers {
            object::check("what it takes", &offer.input)?;
            object::check("what it gives", &offer.output)?;
        }
        let offers: Vec<_> = self.offers.iter().map(Offer::write).collect();
        let body = Object::new()
            .maybe_id("agent_id", self.agent_id)
            .text("agent_name", &self.name)
            .text("owner_id", &self.owner)
            .maybe_text("api_endpoint", self.endpoint.as_deref())
            .raw("skills", &format!("[{}]", offers.join(",")))
            .text("version", VERSION)
            .text("timestamp_utc", &stamp::seconds(clock::now()));
        let body = match self.rotate_key {
            true => body.flag("rotate_key", true).finish(),
            false => body.finish(),
        };
        // Checked as the hub will, so that a bad one is not sent.
        let wrong = |bad: rialto_protocols::kit::fields::Malformed| {
            CallError::invalid(bad.message, Some(format!("see {}", bad.field)))
        };
        Register::read(body.as_bytes()).map(|_| body).map_err(wrong)
    }
}

impl Server {
    /// Registers an agent: a new one without a key, one that is there with its own. This is tried
    /// once: the key of a new one is in the first answer only.
    pub async fn register(&self, registration: &Registration) -> Result<Registered, CallError> {
        let (url, body) = (self.at(&["register"]), Some(registration.write()?));
        let reply = self.once(&Call { method: Method::POST, url, body, once: None }).await?;
        let wire: Wire = reply.value()?;
        let key = wire.api_key.map(Key::new);
        let server = key.clone().map_or_else(|| self.clone(), |key| self.with_key(key));
        let secret = wire.webhook_secret.as_deref().and_then(WebhookSecret::read);
        Ok(Registered {
            agent_id: wire.agent_id,
            score: wire.reputation_score,
            key,
            webhook_secret: secret,
            new: reply.status == 201,
            server,
        })
    }

    /// Takes an agent off the lists: with its own key or an operator's. `false` if it was not there.
    pub async fn unregister(&self, agent_id: Uuid) -> Result<bool, CallError> {
        let url = self.at(&["agents", &agent_id.to_string()]);
        let call = Call { method: Method::DELETE, url, body: None, once: None };
        let gone = super::retry::again(self.retry(), || async { self.once(&call).await?.value() });
        match gone.await {
            Ok(Gone {}) => Ok(true),
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
