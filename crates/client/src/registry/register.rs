//! Registration: an agent's name, skills and owner, and the hub's response.

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::{DECIMALS, RegisterBody, VERSION};
use serde::Deserialize;
use uuid::Uuid;

use super::decimals;
use super::server::{Call, Server};
use crate::call::CallError;
use crate::clock;
use crate::json::check_object;
use crate::key::Key;
use crate::origin_client::refusal_from_body;
use crate::webhook_signature::WebhookSecret;

/// One skill of an agent, with its price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillListing {
    name: String,
    about: String,
    price: Credits,
    input: String,
    output: String,
}

/// The data an agent registers or updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    agent_id: Option<Uuid>,
    name: String,
    owner: String,
    endpoint: Option<String>,
    skills: Vec<SkillListing>,
    rotate_key: bool,
}

/// A registered agent.
#[derive(Clone, Debug)]
pub struct RegisteredAgent {
    /// Its id.
    pub agent_id: Uuid,
    /// Its score.
    pub score: Score,
    /// Its key. The hub returns a new one only here.
    pub key: Option<Key>,
    /// The secret with which the hub signs its webhooks, for agents with an endpoint.
    pub webhook_secret: Option<WebhookSecret>,
    /// Whether the agent is new.
    pub is_new: bool,
    /// The hub, called with that key.
    pub server: Server,
}

#[derive(Deserialize)]
struct RegisterResponse {
    agent_id: Uuid,
    #[serde(deserialize_with = "decimals::score")]
    reputation_score: Score,
    api_key: Option<String>,
    webhook_secret: Option<String>,
}

#[derive(Deserialize)]
struct UnregisterResponse {}

impl SkillListing {
    /// A skill with a price per call.
    pub fn new(name: impl Into<String>, price: Credits) -> Self {
        let (input, output) = ("{}".to_owned(), "{}".to_owned());
        Self { name: name.into(), about: String::new(), price, input, output }
    }

    /// Sets the description.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.about = text.into();
        self
    }

    /// Sets the input schema: a JSON object as text, names to types such as `{"text":"string"}`.
    pub fn input_schema(mut self, schema: impl Into<String>) -> Self {
        self.input = schema.into();
        self
    }

    /// Sets the output schema, in the same form.
    pub fn output_schema(mut self, schema: impl Into<String>) -> Self {
        self.output = schema.into();
        self
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .text("skill_name", &self.name)
            .text("description", &self.about)
            .raw("cost_per_call", &self.price.to_text(DECIMALS))
            .raw("input_schema", &self.input)
            .raw("output_schema", &self.output)
            .finish()
    }
}

impl Registration {
    /// An agent with a name and an owner.
    pub fn new(name: impl Into<String>, owner: impl Into<String>) -> Self {
        Self {
            agent_id: None,
            name: name.into(),
            owner: owner.into(),
            endpoint: None,
            skills: Vec::new(),
            rotate_key: false,
        }
    }

    /// Sets an id it had before. By default the hub creates one.
    pub fn id(mut self, id: Uuid) -> Self {
        self.agent_id = Some(id);
        self
    }

    /// Sets the URL the hub calls. By default the agent fetches its jobs.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Adds a skill.
    pub fn skill(mut self, offer: SkillListing) -> Self {
        self.skills.push(offer);
        self
    }

    /// Requests a new key; the old one stays valid for a while.
    pub fn rotate_key(mut self) -> Self {
        self.rotate_key = true;
        self
    }

    fn write(&self) -> Result<String, CallError> {
        for offer in &self.skills {
            check_object("the input schema", &offer.input)?;
            check_object("the output schema", &offer.output)?;
        }
        let offers: Vec<_> = self.skills.iter().map(SkillListing::write).collect();
        let body = ObjectWriter::new()
            .maybe_uuid("agent_id", self.agent_id)
            .text("agent_name", &self.name)
            .text("owner_id", &self.owner)
            .maybe_text("api_endpoint", self.endpoint.as_deref())
            .raw("skills", &format!("[{}]", offers.join(",")))
            .text("version", VERSION)
            .text("timestamp_utc", &rfc3339::format_seconds(clock::now()));
        let body = if self.rotate_key { body.flag("rotate_key", true) } else { body }.finish();
        // Checked like at the hub, so that an invalid one is not sent.
        let invalid =
            |bad: Malformed| CallError::invalid(bad.message, Some(format!("see {}", bad.field)));
        RegisterBody::read(body.as_bytes()).map(|_| body).map_err(invalid)
    }
}

impl Server {
    /// Registers an agent: without a key as a new one, with a key as an update. There are no
    /// retries: the key of a new agent is only in the first response.
    pub async fn register(
        &self,
        registration: &Registration,
    ) -> Result<RegisteredAgent, CallError> {
        let call = Call::post(self.url(&["register"]), registration.write()?);
        let reply = self.call_once(&call).await?.accepted(refusal_from_body)?;
        let wire: RegisterResponse = reply.json()?;
        let key = wire.api_key.map(Key::new);
        let server = key.clone().map_or_else(|| self.clone(), |key| self.with_key(key));
        let secret = wire.webhook_secret.as_deref().and_then(WebhookSecret::read);
        Ok(RegisteredAgent {
            agent_id: wire.agent_id,
            score: wire.reputation_score,
            key,
            webhook_secret: secret,
            is_new: reply.status == 201,
            server,
        })
    }

    /// Unregisters an agent, with its own key or an operator's. `false` if it was not there.
    pub async fn unregister(&self, agent_id: Uuid) -> Result<bool, CallError> {
        let url = self.url(&["agents", &agent_id.to_string()]);
        match self.call(Call { method: Method::DELETE, ..Call::get(url) }).await {
            Ok(UnregisterResponse {}) => Ok(true),
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
