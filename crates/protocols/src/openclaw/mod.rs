//! openclaw: the adapter of Chimera–OpenClaw integration 1.0.0. Content agents publish capabilities
//! with schemas, report their status, and accept requests with deadlines.

pub mod wire;

#[cfg(feature = "server")]
mod auth;
#[cfg(feature = "server")]
mod collaboration;
#[cfg(feature = "server")]
mod delivery;
#[cfg(feature = "server")]
mod directory;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod fields;
#[cfg(feature = "server")]
mod matching;
#[cfg(feature = "server")]
mod operations;
#[cfg(feature = "server")]
mod reputation;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

#[cfg(feature = "server")]
use settings::Settings;
pub use wire::error::{Code, Failure, Rejected};
pub use wire::reputation::Score;
pub use wire::{AnyMessage, Kind, Message};

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;
#[cfg(feature = "server")]
use {
    self::delivery::update_poster::UpdatePoster,
    self::fields::OpenclawFieldMap,
    self::operations::operations,
    self::reputation::PublishedScore,
    self::wire::Identity,
    crate::adapter::fidelity::{FieldMap, JobMessages},
    crate::adapter::idempotency::IdempotencyResponses,
    crate::adapter::operation::{ErrorInfo, bind_operations, describe_operations},
    crate::adapter::profile::{ChangedProfile, ProfileChange},
    crate::adapter::settings::ProtocolSettings,
    crate::adapter::{
        Api, BackgroundTask, EdgeError, HubContext, NewAgent, OpenProtocol, Operation,
        OperationInfo, ProtocolAdapter, ProtocolContext, ScoreFuture, naming,
    },
    crate::kit::fields::Malformed,
    crate::kit::ijson,
    crate::kit::object::ObjectWriter,
    axum::response::Response,
    rialto_config::Layers,
    rialto_core::agent::{Agent, AgentState},
    rialto_core::id::AgentId,
    rialto_core::refusal::Refusal,
    rialto_engine::Engine,
    rialto_engine::delivery::DeliveryEncoder,
    rialto_engine::secret::HubSecret,
    serde_json::value::to_raw_value,
    std::collections::HashMap,
    std::sync::{Arc, RwLock},
    uuid::Uuid,
};

/// The protocol's id.
pub const ID: Protocol = Protocol::new("openclaw");
/// The version that every message of the hub declares (R75).
pub const VERSION: &str = "1.0.0";
/// The largest body, in bytes (C1).
pub const BODY_MAX: usize = 1_048_576;
/// The most decimals of a price or budget, by value (C6).
pub const DECIMALS: usize = 6;
/// The most characters of a name or a capability id. The spec has no limit; the hub needs one.
pub const NAME_MAX: usize = 256;
/// The most characters of an idempotency key.
pub const KEY_MAX: usize = 256;
/// The most characters of a reason, an error message or an error code.
pub const TEXT_MAX: usize = 10_000;
/// The most bytes of a status or reputation message, and of a request or result without its input
/// or output.
pub const MEMBERS_BYTES_MAX: usize = 65_536;
/// The most bytes of an identity, because the hub keeps it in memory. One schema of the largest
/// size fits.
pub const IDENTITY_MAX: usize = 96 << 10;
/// A status update is late if it is written more than this after the status changed (R32).
pub const LATE_AFTER: Millis = Millis::seconds(5);
/// The priority of a request that has none.
pub const PRIORITY: u8 = 5;

/// The adapter of this protocol.
#[cfg(feature = "server")]
pub struct Openclaw;

#[cfg(feature = "server")]
impl ProtocolAdapter for Openclaw {
    fn id(&self) -> Protocol {
        ID
    }

    fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings> {
        Arc::new(Settings::read(layers))
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, operations())
    }

    fn score_rule(&self) -> Option<&'static str> {
        Some(reputation::RULE)
    }

    fn errors(&self) -> ErrorInfo {
        errors::error_info()
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &OpenclawFieldMap
    }

    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        Some(naming::alias_text(secret, new, taken))
    }

    fn checks_input(&self) -> bool {
        true
    }

    fn change_profile(
        &self,
        agent: &Agent,
        change: &ProfileChange,
    ) -> Result<ChangedProfile, Malformed> {
        translate::change_profile(agent, change)
    }
}

#[cfg(feature = "server")]
impl Api for OpenclawContext {
    fn prefix(&self) -> &str {
        ID.as_str()
    }

    fn operations(&self) -> Vec<Operation<()>> {
        bind_operations(ID, operations(), self)
    }

    fn error_response(&self, error: EdgeError) -> Response {
        errors::error_response(self, &errors::from_edge(error))
    }

    fn body_max(&self) -> usize {
        BODY_MAX
    }

    fn idempotency(&self) -> Option<&dyn IdempotencyResponses> {
        Some(self)
    }
}

#[cfg(feature = "server")]
impl IdempotencyResponses for OpenclawContext {
    fn context(&self) -> &HubContext {
        self
    }

    fn invalid_key(&self) -> Response {
        let wrong = "Idempotency-Key must have 1 to 256 characters".to_owned();
        errors::error_response(self, &Failure::with_violations(vec![wrong]))
    }

    fn body_mismatch(&self, body: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        let failure = Failure::new(Code::IdempotencyConflict, text);
        errors::error_response(
            self,
            &match ijson::read(body) {
                Ok(json) => failure.in_answer_to(&json),
                Err(_) => failure,
            },
        )
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        errors::error_response(self, &errors::from_refusal(refusal))
    }

    fn redact_secrets(&self, body: &str) -> String {
        const SECRETS: [&str; 2] = ["api_key", "webhook_secret"];
        let Ok(json) = ijson::read(body.as_bytes()) else { return body.to_owned() };
        if SECRETS.iter().any(|name| json.get(name).is_some()) {
            ObjectWriter::copy_without(&json, &SECRETS).finish()
        } else {
            body.to_owned()
        }
    }

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["requester_agent_id", "responder_agent_id", "agent_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}

/// The most bytes of all cached identities. Compiled, they take about forty times as much. A
/// pattern may take more, so it is counted separately.
#[cfg(feature = "server")]
const WEIGHT_MAX: usize = 4 << 20;
#[cfg(feature = "server")]
const PATTERN_WEIGHT: usize = 2_048;

/// The state of the protocol, shared by all its operations.
#[cfg(feature = "server")]
pub struct OpenclawState {
    pub settings: Settings,
    /// The responder's id when no agent could be found (R84). It stays the same as long as the hub
    /// has the same secret.
    pub hub_id: Uuid,
    kept: RwLock<IdentityCache>,
}

#[cfg(feature = "server")]
#[derive(Default)]
struct IdentityCache {
    identities: HashMap<AgentId, (Arc<Agent>, Arc<Identity>)>,
    weight: usize,
}

#[cfg(feature = "server")]
impl OpenclawState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&secret.derive("rialto openclaw hub v1", "hub")[..16]);
        let hub_id = uuid::Builder::from_random_bytes(id).into_uuid();
        Self { settings, hub_id, kept: RwLock::default() }
    }

    /// The published identity of an agent of this protocol, with its schemas compiled. `None` for
    /// agents of other protocols.
    pub fn identity(&self, agent: &Arc<Agent>) -> Option<Arc<Identity>> {
        if agent.home != ID {
            return None;
        }
        let known = self.kept.read().ok().and_then(|kept| {
            let (of, identity) = kept.identities.get(&agent.id)?;
            // A newer version of the agent may have another identity.
            Arc::ptr_eq(of, agent).then(|| identity.clone())
        });
        known.or_else(|| self.compile(agent))
    }

    fn compile(&self, agent: &Arc<Agent>) -> Option<Arc<Identity>> {
        let message = wire::read::<Identity>(agent.card.as_bytes()).ok()?;
        let identity = Arc::new(message.body);
        let weight = agent.card.len() + identity.patterns() * PATTERN_WEIGHT;
        if let Ok(mut kept) = self.kept.write() {
            // Clearing the cache when it is full is cheaper than tracking recency.
            if kept.weight + weight > WEIGHT_MAX {
                *kept = IdentityCache::default();
            }
            kept.weight += weight;
            kept.identities.insert(agent.id, (agent.clone(), identity.clone()));
        }
        Some(identity)
    }
}

/// What the operations of this protocol get.
#[cfg(feature = "server")]
pub type OpenclawContext = ProtocolContext<OpenclawState>;

#[cfg(feature = "server")]
impl OpenProtocol for OpenclawState {
    fn adapter(&self) -> &'static dyn ProtocolAdapter {
        &Openclaw
    }

    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
        Arc::new(ProtocolContext::new(context, self))
    }

    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        delivery::delivery_encoder(&ProtocolContext::new(context, self))
    }

    fn run_background_tasks(self: Arc<Self>, context: &HubContext) -> BackgroundTask {
        Box::pin(UpdatePoster::new(ProtocolContext::new(context, self)).run())
    }

    fn published_score<'a>(&'a self, _: &'a Engine, agent: &'a AgentState) -> ScoreFuture<'a> {
        let score = PublishedScore::new(agent, self.settings.response_scale);
        Box::pin(std::future::ready(Ok(to_raw_value(&score).ok())))
    }

    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
        Box::new(ProtocolContext::new(context, self))
    }

    fn input_error(&self, agent: &Arc<Agent>, skill: &str, input: &str) -> Option<String> {
        let violations = translate::input_violations(self, agent, skill, input);
        (!violations.is_empty()).then(|| violations.join("; "))
    }
}
