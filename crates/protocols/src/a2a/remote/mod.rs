//! Agents with a server of their own: what the hub knows of them, and how it hires them.

pub mod access_token;
pub mod agent_watch;
pub mod callback;
pub mod card_fetch;
pub mod client;
pub mod credentials;
pub mod follower;
pub mod handover_state;
pub mod outgoing;
pub mod refresh;
pub mod reported;
pub mod supervisor;

use std::collections::BTreeMap;

use rialto_core::agent::{Agent, Skill};
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_engine::secret::HubSecret;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::credentials::SealedCredentials;
use super::ID;
use super::wire::Version;
use super::wire::agent_card::Extension;
use super::wire::content::is_type_allowed;
use super::wire::message::JSON_TYPE;
use super::wire::remote_card::{Binding, Interface, RemoteCard, RemoteExtension};
use crate::adapter::own_server::{FetchProblemView, InterfaceView, OwnServerView};
use crate::kit::api_doc::Time;
use crate::kit::object::ObjectWriter;
use crate::kit::{base64url, raw_json};

/// The extension with which an owner shows that a card is its own.
pub const OWNER: &str = "urn:rialto:a2a:owner:v1";
/// The bytes of an owner's token.
const TOKEN_BYTES: usize = 18;

/// What is kept of an agent with a server of its own, in its card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteAgent {
    pub card_url: String,
    pub interface: StoredInterface,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streaming: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub push: bool,
    /// What it takes and gives. Stored beside all this, as for other agents.
    #[serde(skip)]
    pub input_modes: Vec<String>,
    #[serde(skip)]
    pub output_modes: Vec<String>,
    /// The input modes of skills that have their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skill_modes: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<StoredExtension>,
    /// What its owner asks for each skill.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: BTreeMap<String, Credits>,
    /// Whether the card has a good signature; otherwise it has none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
    /// Whether the card shows the owner's token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SealedCredentials>,
    /// When the card was fetched.
    pub fetched_at: Timestamp,
    /// Why the card could not be fetched since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<FetchProblem>,
}

/// Why a card was not renewed, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchProblem {
    pub at: Timestamp,
    pub text: String,
}

/// An interface as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredInterface {
    pub url: String,
    pub binding: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// An extension of an agent's own card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredExtension {
    pub uri: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawText>>,
}

/// JSON text that can be compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawText(Box<RawValue>);

impl RawText {
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawText {}

/// The card of an agent of this protocol, as its row has it.
#[derive(Serialize, Deserialize)]
struct StoredCard {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    input_modes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    output_modes: Vec<String>,
    /// The URIs of extensions that callers must name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    required_extensions: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteAgent>,
}

impl StoredCard {
    fn new(description: String, version: String, remote: &RemoteAgent) -> Self {
        let required = remote.extensions.iter().filter(|one| one.required);
        Self {
            description,
            version,
            input_modes: remote.input_modes.clone(),
            output_modes: remote.output_modes.clone(),
            required_extensions: required.map(|one| one.uri.clone()).collect(),
            remote: Some(remote.clone()),
        }
    }
}

/// Whether an agent has a server that the hub calls.
pub fn is_remote(agent: &Agent) -> bool {
    agent.home == ID && agent.active && agent.is_called_by_protocol()
}

impl From<&Interface> for StoredInterface {
    fn from(interface: &Interface) -> Self {
        Self {
            url: interface.url.clone(),
            binding: interface.binding.name().to_owned(),
            version: version_text(interface.version).to_owned(),
            tenant: interface.tenant.clone(),
        }
    }
}

impl StoredInterface {
    /// The interface; `None` for one that this hub does not speak.
    pub fn read(&self) -> Option<Interface> {
        Some(Interface {
            url: self.url.clone(),
            binding: Binding::parse(&self.binding)?,
            version: Version::parse(&self.version)?,
            tenant: self.tenant.clone(),
        })
    }

    /// As callers are shown it.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("url", &self.url)
            .text("binding", &self.binding)
            .text("version", &self.version)
            .finish()
    }
}

/// A version as cards name it.
pub fn version_text(version: Version) -> &'static str {
    match version {
        Version::V1 => "1.0",
        Version::V03 => "0.3",
    }
}

impl From<&RemoteExtension> for StoredExtension {
    fn from(extension: &RemoteExtension) -> Self {
        Self {
            uri: extension.uri.clone(),
            description: extension.description.clone(),
            required: extension.required,
            params: extension
                .params
                .as_deref()
                .map(|text| Box::new(RawText(raw_json::verbatim(text)))),
        }
    }
}

impl RemoteAgent {
    /// What is kept of an agent, if it has a server of its own.
    pub fn of(agent: &Agent) -> Option<Self> {
        if !is_remote(agent) {
            return None;
        }
        let StoredCard { input_modes, output_modes, remote, .. } =
            serde_json::from_str(&agent.card).ok()?;
        Some(Self { input_modes, output_modes, ..remote? })
    }

    /// Whether a skill takes JSON (R96).
    pub fn takes_json(&self, skill: &str) -> bool {
        let modes = self.skill_modes.get(skill).unwrap_or(&self.input_modes);
        modes.is_empty() || is_type_allowed(modes, JSON_TYPE)
    }

    /// Whether a card has another content than the one that is kept.
    pub fn has_same_card(&self, other: &Self) -> bool {
        let shown =
            |agent: &Self| Self { fetched_at: Timestamp(0), problem: None, ..agent.clone() };
        shown(self) == shown(other)
    }

    /// The signature of the card, in a word.
    pub fn signature(&self) -> &'static str {
        if self.verified { "verified" } else { "unsigned" }
    }

    /// The extensions of its own card, for the card that the hub shows (section 2.3).
    pub fn card_extensions(&self) -> impl Iterator<Item = Extension> + '_ {
        self.extensions.iter().map(|one| Extension {
            uri: one.uri.clone(),
            description: one.description.clone(),
            required: one.required,
            params: one.params.as_ref().map(|params| params.get().to_owned()),
        })
    }

    /// What callers of the hub's own API are shown (R107).
    pub fn view(&self) -> OwnServerView {
        let StoredInterface { url, binding, version, .. } = self.interface.clone();
        let problem = self.problem.as_ref().map(|problem| FetchProblemView {
            at: Time::millis(problem.at),
            text: problem.text.clone(),
        });
        OwnServerView {
            card_url: self.card_url.clone(),
            interface: InterfaceView { url, binding, version },
            signature: self.signature(),
            proven: self.proven,
            fetched_at: Time::millis(self.fetched_at),
            problem,
        }
    }

    /// Its skills at the prices that count, each with what its owner asks.
    pub fn write_skills(&self, skills: &[Skill]) -> String {
        let write = |skill: &Skill| {
            let asks = self.asks.get(&skill.name).copied().unwrap_or_default();
            ObjectWriter::new()
                .text("id", &skill.name)
                .text("price", &super::translate::price_text(skill.price))
                .text("asks", &super::translate::price_text(asks))
                .finish()
        };
        super::wire::message::write_array(skills.iter().map(write))
    }
}

/// What a card makes of an agent: its row's card and its skills.
pub struct AgentContent {
    pub name: String,
    pub card: String,
    pub skills: Vec<Skill>,
}

/// The row's card and the skills of an agent with this card.
pub fn agent_content(card: &RemoteCard, remote: &RemoteAgent) -> AgentContent {
    let stored = StoredCard::new(card.description.clone(), card.version.clone(), remote);
    let skill = |id: &str, description: &str| Skill {
        name: id.to_owned(),
        price: remote.asks.get(id).copied().filter(|_| remote.proven).unwrap_or_default(),
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        description: description.to_owned(),
        category: None,
        native_name: None,
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    AgentContent {
        name: card.name.clone(),
        card: serde_json::to_string(&stored).unwrap_or_default(),
        skills: card.skills.iter().map(|one| skill(&one.id, &one.description)).collect(),
    }
}

/// A card with another `problem` and time.
pub fn card_with(agent: &Agent, remote: &RemoteAgent) -> String {
    let stored = serde_json::from_str::<StoredCard>(&agent.card).ok();
    let (description, version) =
        stored.map_or_else(Default::default, |stored| (stored.description, stored.version));
    let stored = StoredCard::new(description, version, remote);
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Whether two cards of rows have one description and version.
pub fn has_same_text(one: &str, other: &str) -> bool {
    let text = |card: &str| {
        let stored = serde_json::from_str::<StoredCard>(card).ok();
        stored.map(|stored| (stored.description, stored.version))
    };
    text(one) == text(other)
}

/// The token that an owner puts into its card. It is derived from the agent's name, so it stays the
/// same, and is stored nowhere.
pub fn owner_token(secret: &HubSecret, name: &str) -> String {
    let bytes = secret.derive("rialto a2a owner v1", name);
    format!("po_{}", base64url::encode(&bytes[..TOKEN_BYTES]))
}
