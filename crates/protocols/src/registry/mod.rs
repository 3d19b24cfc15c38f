//! registry: Chorus Protocol 0.1. Agents sell skills; orchestrators hire them by the job.
//!
//! The protocol's own terms stay in this folder. It shares a word in its name with the relay
//! protocol, and nothing else.

pub mod wire;

#[cfg(feature = "server")]
mod auth;
#[cfg(feature = "server")]
mod delivery;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod fields;
#[cfg(feature = "server")]
mod operations;
#[cfg(feature = "server")]
mod owners;
#[cfg(feature = "server")]
mod reputation;
#[cfg(feature = "server")]
mod settings;
#[cfg(all(test, feature = "server"))]
mod tests;
#[cfg(feature = "server")]
mod translate;

use rialto_core::alias::Protocol;
#[cfg(feature = "server")]
use {
    self::delivery::RegistryEncoder,
    self::errors::Failure,
    self::fields::RegistryFieldMap,
    self::operations::operations,
    self::reputation::PublishedScore,
    crate::adapter::fidelity::{FieldMap, JobMessages},
    crate::adapter::idempotency::{IdempotencyResponses, idempotent_router},
    crate::adapter::operation::describe_operations,
    crate::adapter::settings::ProtocolSettings,
    crate::adapter::{
        EdgeError, HubContext, NewAgent, OpenProtocol, OperationInfo, ProtocolAdapter,
        ProtocolContext, ScoreFuture, naming,
    },
    crate::kit::ijson::{self, Json, JsonValue},
    axum::Router,
    axum::response::{IntoResponse, Response},
    rialto_config::Layers,
    rialto_core::agent::AgentState,
    rialto_core::job::Cause,
    rialto_core::refusal::Refusal,
    rialto_engine::Engine,
    rialto_engine::delivery::DeliveryEncoder,
    rialto_engine::secret::HubSecret,
    serde_json::value::{RawValue, to_raw_value},
    std::collections::BTreeMap,
    std::sync::Arc,
};

#[cfg(feature = "server")]
use settings::Settings;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("registry");

/// The adapter of this protocol.
#[cfg(feature = "server")]
pub struct Registry;

#[cfg(feature = "server")]
impl ProtocolAdapter for Registry {
    fn id(&self) -> Protocol {
        ID
    }

    fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings> {
        Arc::new(Settings::read(layers))
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, operations())
    }

    fn recognizes_registration(&self, body: &Json<'_>) -> bool {
        let named =
            ["agent_name", "owner_id", "skills"].iter().any(|name| body.get(name).is_some());
        let by_uuid = body.get("agent_id").is_some_and(|id| match id.value() {
            JsonValue::String(text) => text.parse::<uuid::fmt::Hyphenated>().is_ok(),
            _ => false,
        });
        named || by_uuid
    }

    fn registration_example(&self) -> Option<&'static str> {
        Some(errors::REGISTRATION_EXAMPLE)
    }

    fn is_api_protocol(&self) -> bool {
        true
    }

    fn cause_of_code(&self, code: &str) -> Cause {
        errors::cause_of_code(code)
    }

    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        Some(naming::alias_text(secret, new, taken))
    }

    fn owner_skeletons(&self, name: &str) -> Vec<String> {
        owners::owner_skeletons(name)
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &RegistryFieldMap
    }
}

/// The protocol's own state, shared by all its operations.
#[cfg(feature = "server")]
pub struct RegistryState {
    pub settings: Settings,
}

/// What the operations of this protocol get.
#[cfg(feature = "server")]
pub type RegistryContext = ProtocolContext<RegistryState>;

#[cfg(feature = "server")]
impl OpenProtocol for RegistryState {
    fn adapter(&self) -> &'static dyn ProtocolAdapter {
        &Registry
    }

    fn routes(self: Arc<Self>, context: &HubContext) -> Router {
        idempotent_router(operations().into_iter(), &ProtocolContext::new(context, self), &Registry)
    }

    fn root_routes(self: Arc<Self>, context: &HubContext) -> Router {
        // Two protocols register at the root. The hub tells their registrations apart.
        let rows =
            operations().into_iter().filter(|row| row.at_root && row.info.path != "/register");
        idempotent_router(rows, &ProtocolContext::new(context, self), &Registry)
    }

    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(RegistryEncoder { context: ProtocolContext::new(context, self) })
    }

    fn edge_error_response(self: Arc<Self>, _: &HubContext, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn published_score<'a>(&'a self, engine: &'a Engine, agent: &'a AgentState) -> ScoreFuture<'a> {
        Box::pin(async move {
            let score = PublishedScore::load(engine, agent).await?;
            Ok(to_raw_value(&score).ok())
        })
    }

    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
        Box::new(ProtocolContext::new(context, self))
    }
}

#[cfg(feature = "server")]
impl IdempotencyResponses for Registry {
    fn namespace(&self) -> &'static str {
        "registry"
    }

    fn invalid_key(&self) -> Response {
        let message = "Idempotency-Key must have 1 to 256 characters";
        Failure::field("Idempotency-Key", message).into_response()
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        Failure::new(422, "IDEMPOTENCY_CONFLICT", text).into_response()
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        let failure = errors::from_refusal(refusal, errors::RequestKind::Other);
        Failure { field: Some("Idempotency-Key".to_owned()), ..failure }.into_response()
    }

    fn edge_error(&self, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
        // Raw members keep every digit of every amount.
        type Members = BTreeMap<String, Box<RawValue>>;
        let Ok(mut members) = serde_json::from_str::<Members>(body) else { return body.to_owned() };
        let had =
            ["api_key", "webhook_secret"].iter().filter(|name| members.remove(**name).is_some());
        if had.count() == 0 {
            return body.to_owned();
        }
        serde_json::to_string(&members).unwrap_or_default()
    }

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["orchestrator_id", "from_owner", "agent_id", "owner_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}
