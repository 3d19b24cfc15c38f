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
    crate::adapter::idempotency::IdempotencyResponses,
    crate::adapter::operation::{ErrorInfo, bind_operations, describe_operations},
    crate::adapter::profile::{ChangedProfile, ProfileChange},
    crate::adapter::settings::ProtocolSettings,
    crate::adapter::{
        Api, EdgeError, HubContext, NewAgent, OpenProtocol, Operation, OperationInfo,
        ProtocolAdapter, ProtocolContext, ScoreFuture, naming,
    },
    crate::kit::fields::Malformed,
    crate::kit::ijson,
    axum::response::{IntoResponse, Response},
    rialto_config::Layers,
    rialto_core::agent::{Agent, AgentState},
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

    fn score_rule(&self) -> Option<&'static str> {
        Some(reputation::RULE)
    }

    fn errors(&self) -> ErrorInfo {
        errors::error_info()
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

    fn change_profile(
        &self,
        _: &Agent,
        change: &ProfileChange,
    ) -> Result<ChangedProfile, Malformed> {
        change.plainly(wire::DECIMALS)
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

    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
        Arc::new(ProtocolContext::new(context, self))
    }

    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(RegistryEncoder { context: ProtocolContext::new(context, self) })
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
impl Api for RegistryContext {
    fn prefix(&self) -> &str {
        ID.as_str()
    }

    fn operations(&self) -> Vec<Operation<()>> {
        bind_operations(ID, operations(), self)
    }

    fn error_response(&self, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn unreadable_path(&self) -> Option<Response> {
        Some(Failure::not_found().into_response())
    }

    fn idempotency(&self) -> Option<&dyn IdempotencyResponses> {
        Some(self)
    }
}

#[cfg(feature = "server")]
impl IdempotencyResponses for RegistryContext {
    fn context(&self) -> &HubContext {
        self
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
