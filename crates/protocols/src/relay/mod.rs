//! relay: Chorus Transport 0.4. Agents with addresses send each other envelopes.
//!
//! This file has the protocol's adapter and its state. The wire types need no server, so the hub and
//! its clients read and write the same forms. The protocol shares a word in its name with the
//! registry protocol, and nothing else.

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
mod job;
#[cfg(feature = "server")]
mod loop_guard;
#[cfg(feature = "server")]
mod message;
#[cfg(feature = "server")]
mod operations;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

#[cfg(feature = "server")]
use settings::Settings;
pub use wire::a2a::EnvelopeFormat;
pub use wire::address::{Address, BadAddress};
pub use wire::agent_card::AgentCard;
pub use wire::envelope::Envelope;
pub use wire::error::{Code, InvalidBody};
pub use wire::response::{DeliveryOutcome, DeliveryReport, Failure};

use rialto_core::alias::Protocol;
#[cfg(feature = "server")]
use {
    crate::adapter::fidelity::{FieldMap, JobMessages},
    crate::adapter::idempotency::IdempotencyResponses,
    crate::adapter::operation::{ErrorInfo, bind_operations, describe_operations},
    crate::adapter::profile::{ChangedProfile, ProfileChange},
    crate::adapter::settings::ProtocolSettings,
    crate::adapter::{
        Api, EdgeError, HubContext, NewAgent, OpenProtocol, Operation, OperationInfo,
        ProtocolAdapter, ProtocolContext, naming,
    },
    crate::kit::fields::Malformed,
    crate::kit::ijson,
    axum::response::{IntoResponse, Response},
    delivery::RelayEncoder,
    delivery::attempt::RunningAttempts,
    fields::RelayFieldMap,
    loop_guard::LoopGuard,
    message::TraceIds,
    operations::operations,
    rialto_config::Layers,
    rialto_core::agent::Agent,
    rialto_core::notice::Notice,
    rialto_core::refusal::Refusal,
    rialto_core::time::Timestamp,
    rialto_engine::delivery::DeliveryEncoder,
    rialto_engine::keys::KeyPrefix,
    rialto_engine::secret::HubSecret,
    std::sync::Arc,
    std::sync::atomic::{AtomicU64, Ordering},
    std::time::Instant,
    wire::error::example_for,
};

/// The protocol's id.
pub const ID: Protocol = Protocol::new("relay");
/// The version of envelopes and of the transport.
pub const VERSION: &str = "0.4";
/// What the keys of its agents begin with.
#[cfg(feature = "server")]
const KEY_PREFIX: KeyPrefix = KeyPrefix::new(*b"ca_");
/// The longest body (R87).
#[cfg(feature = "server")]
const BODY_MAX: usize = 65_536;
/// The alias namespace of skeletons, so that no two agents have confusable names. It is never used
/// for addressing.
#[cfg(feature = "server")]
const CONFUSABLES: Protocol = Protocol::new("relaylooks");

/// The adapter of this protocol.
#[cfg(feature = "server")]
pub struct Relay;

#[cfg(feature = "server")]
impl ProtocolAdapter for Relay {
    fn id(&self) -> Protocol {
        ID
    }

    fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings> {
        Arc::new(Settings::read(layers))
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, operations())
    }

    fn errors(&self) -> ErrorInfo {
        errors::error_info()
    }

    fn is_address_protocol(&self) -> bool {
        true
    }

    fn held_until(&self, notice: &Notice, now: Timestamp) -> Option<Timestamp> {
        delivery::held_until(&notice.news, notice.at, now)
    }

    fn message_text(&self, body: &str) -> Option<String> {
        translate::message_text(body)
    }

    fn change_profile(
        &self,
        agent: &Agent,
        change: &ProfileChange,
    ) -> Result<ChangedProfile, Malformed> {
        translate::change_profile(agent, change)
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &RelayFieldMap
    }

    fn alias(&self, _: &HubSecret, new: &NewAgent<'_>, long: bool) -> Option<String> {
        let digits = naming::alias_digits(new.home, new.native, long);
        Some(format!("{}-{digits}@{}", naming::slug(new.name), new.home))
    }
}

#[cfg(feature = "server")]
impl Api for RelayContext {
    fn prefix(&self) -> &str {
        ID.as_str()
    }

    fn operations(&self) -> Vec<Operation<()>> {
        bind_operations(ID, operations(), self)
    }

    fn error_response(&self, error: EdgeError) -> Response {
        errors::error_response(self, errors::from_edge(error)).into_response()
    }

    fn body_max(&self) -> usize {
        BODY_MAX
    }

    fn idempotency(&self) -> Option<&dyn IdempotencyResponses> {
        Some(self)
    }

    fn handles_unknown_paths(&self) -> bool {
        true
    }
}

#[cfg(feature = "server")]
impl IdempotencyResponses for RelayContext {
    fn context(&self) -> &HubContext {
        self
    }

    fn invalid_key(&self) -> Response {
        let failure = Failure {
            field: Some("Idempotency-Key".into()),
            example: Some(example_for("Idempotency-Key").into()),
            ..Failure::new(Code::Validation, "Idempotency-Key must have 1 to 256 characters")
        };
        errors::error_response(self, failure).into_response()
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body; use a new one";
        errors::error_response(self, Failure::new(Code::IdempotencyConflict, text)).into_response()
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        let field = Some("Idempotency-Key".into());
        let failure = Failure { field, ..errors::from_refusal(refusal) };
        errors::error_response(self, failure).into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
        use serde_json::value::RawValue;
        type Members = std::collections::BTreeMap<String, Box<RawValue>>;
        let stripped = || {
            let mut answer: Members = serde_json::from_str(body).ok()?;
            let mut data: Members = serde_json::from_str(answer.get("data")?.get()).ok()?;
            let had =
                ["api_key", "webhook_secret"].iter().filter(|name| data.remove(**name).is_some());
            if had.count() == 0 {
                return None;
            }
            let data = RawValue::from_string(serde_json::to_string(&data).ok()?).ok()?;
            answer.insert("data".to_owned(), data);
            serde_json::to_string(&answer).ok()
        };
        stripped().unwrap_or_else(|| body.to_owned())
    }

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        // Unrelated senders that happen to choose the same key must not conflict.
        let json = ijson::read(body).ok()?;
        let sender = || json.get("envelope")?.get("sender_id");
        let named = json.get("agent_id").or_else(sender)?;
        Some(format!("said {}", named.raw()))
    }
}

/// The relay's own state, shared by all its operations.
#[cfg(feature = "server")]
pub struct RelayState {
    pub settings: Settings,
    pub trace_ids: TraceIds,
    pub loop_guard: LoopGuard,
    pub running_attempts: RunningAttempts,
    pub delivery_counts: DeliveryCounts,
    pub started: Instant,
}

#[cfg(feature = "server")]
impl RelayState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        Self {
            settings,
            trace_ids: TraceIds::new(secret.derive("rialto relay trace v1", "hub")),
            loop_guard: LoopGuard::default(),
            running_attempts: RunningAttempts::default(),
            delivery_counts: DeliveryCounts::default(),
            started: Instant::now(),
        }
    }
}

/// What the operations of this protocol get.
#[cfg(feature = "server")]
pub type RelayContext = ProtocolContext<RelayState>;

#[cfg(feature = "server")]
impl OpenProtocol for RelayState {
    fn adapter(&self) -> &'static dyn ProtocolAdapter {
        &Relay
    }

    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
        Arc::new(ProtocolContext::new(context, self))
    }

    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(RelayEncoder { context: ProtocolContext::new(context, self) })
    }

    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
        Box::new(ProtocolContext::new(context, self))
    }
}

/// Outcomes of messages since the hub was started.
#[cfg(feature = "server")]
#[derive(Debug, Default)]
pub struct DeliveryCounts {
    delivered: AtomicU64,
    failed: AtomicU64,
    queued: AtomicU64,
}

#[cfg(feature = "server")]
impl DeliveryCounts {
    pub fn count(&self, outcome: &DeliveryOutcome<'_>) {
        use DeliveryOutcome::{Delivered, Failed, Queued, Streamed};
        let counter = match outcome {
            Streamed | Delivered { .. } => &self.delivered,
            Queued => &self.queued,
            Failed { .. } => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Delivered, failed, queued.
    pub fn read(&self) -> [u64; 3] {
        [&self.delivered, &self.failed, &self.queued].map(|count| count.load(Ordering::Relaxed))
    }
}
