//! clara: the adapter of the C.L.A.R.A. Marketplace on the AO wire. Agents register with a topic
//! and a fee, requesters register tasks with a reward, and the market chooses the agent for each
//! task.

pub mod wire;

#[cfg(feature = "server")]
mod auth;
#[cfg(feature = "server")]
mod delivery;
#[cfg(feature = "server")]
mod directory;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod fields;
#[cfg(feature = "server")]
mod operations;
#[cfg(feature = "server")]
mod read_orders;
#[cfg(feature = "server")]
mod record_writer;
#[cfg(feature = "server")]
mod results;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod task;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

#[cfg(feature = "server")]
use settings::Settings;
pub use wire::action::{Action, BridgedTopics, Strategy, Topics};
pub use wire::error::{Failure, OrderError};
pub use wire::message::{Dialect, IncomingMessage, Processes};
pub use wire::order::Order;
pub use wire::outgoing::OutgoingMessage;
pub use wire::result::{Paging, ResultCursor};

#[cfg(feature = "server")]
use std::sync::Arc;

#[cfg(feature = "server")]
use axum::response::{IntoResponse, Response};
#[cfg(feature = "server")]
use rialto_config::Layers;
use rialto_core::alias::Protocol;
#[cfg(feature = "server")]
use rialto_core::market::MarketRecorder;
#[cfg(feature = "server")]
use rialto_engine::{delivery::DeliveryEncoder, secret::HubSecret};

#[cfg(feature = "server")]
use crate::adapter::{
    Api, EdgeError, HubContext, NewAgent, OpenProtocol, Operation, OperationInfo, ProtocolAdapter,
    ProtocolContext,
    fidelity::{FieldMap, JobMessages},
    naming,
    operation::{bind_operations, describe_operations},
    settings::ProtocolSettings,
};
use crate::kit::ans104;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("clara");
/// The process id under which the market was published. Many hubs answer to it, so orders that move
/// money need a hub's own process id (R67).
pub const PROCESS: &str = "CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc";
/// The value of the tag `Protocol` (R2).
pub const PROTOCOL: &str = "C.L.A.R.A.";
/// The largest body in bytes, of an item or a dry-run.
pub const BODY_MAX: usize = ans104::ITEM_MAX;
/// The most characters of an agent's id (R5).
pub const AGENT_ID_MAX: usize = 128;
/// The most bytes of an agent's metadata, because the hub keeps it in memory.
pub const METADATA_MAX: usize = 64 << 10;
/// The most characters of the id and the owner that a dry-run claims.
pub const CLAIM_MAX: usize = 128;
/// The largest fee or reward, in credits (R4).
pub const PRICE_MAX: i64 = 1_000_000_000;
/// The topics that agents can always have (R3).
pub const TOPICS: [&str; 4] = ["tweet", "discord", "telegram", "nft"];
/// The topic of tasks for all agents (R34).
pub const BROADCAST: &str = "broadcast";
/// The topics that are also known in the dialect of the deployed processes.
pub const TOPICS_DEPLOYED: [&str; 2] = ["chat", "none"];
/// The default number of results on a page.
pub const PAGE: usize = 25;
/// The most results on a page.
pub const PAGE_MAX: usize = 1_000;
/// The protocols of the hub. An agent's id must not start with one of them and a slash, because
/// agents of other protocols are listed that way (R5, R79).
pub const PROTOCOLS: [&str; 6] = ["registry", "relay", "openclaw", "clara", "agora", "a2a"];

/// The adapter of this protocol.
#[cfg(feature = "server")]
pub struct Clara;

#[cfg(feature = "server")]
impl ProtocolAdapter for Clara {
    fn id(&self) -> Protocol {
        ID
    }

    fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings> {
        Arc::new(Settings::read(layers))
    }

    fn market_recorder(&self) -> Option<Arc<dyn MarketRecorder>> {
        Some(Arc::new(record_writer::RecordWriter))
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, operations::operations())
    }

    fn errors(&self) -> crate::adapter::operation::ErrorInfo {
        let statuses = [400, 401, 403, 404, 405, 408, 413, 415, 421, 429, 500, 503, 507];
        crate::adapter::operation::ErrorInfo::json::<wire::api_doc::ErrorBody>(
            statuses.map(|status| (status, "error")),
        )
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &fields::ClaraFieldMap
    }

    fn alias(&self, _: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        let digits = naming::alias_digits(new.home, new.native, taken);
        Some(format!("{}/{}-{digits}", new.home, naming::slug(new.name)))
    }

    fn agent_skeletons(&self, native: &str) -> Vec<String> {
        auth::id_skeletons(native)
    }
}

/// The protocol's own state, shared by all its operations.
#[cfg(feature = "server")]
pub struct ClaraState {
    pub settings: Settings,
    /// The process ids that the market answers to.
    pub processes: Processes,
    /// The keys of senders.
    pub known_keys: ans104::KnownKeys,
}

#[cfg(feature = "server")]
impl ClaraState {
    /// Unless one is configured, the process id is derived from the hub's secret, so it is unique
    /// to the hub and stays the same across restarts.
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        let own = || ans104::ItemId(secret.derive("rialto clara process v1", "hub"));
        let processes = Processes {
            spec: settings.process_id.unwrap_or_else(own),
            deployed: settings.deployed_process_id,
        };
        Self { settings, processes, known_keys: ans104::KnownKeys::default() }
    }
}

/// What the operations of this protocol get.
#[cfg(feature = "server")]
pub type ClaraContext = ProtocolContext<ClaraState>;

#[cfg(feature = "server")]
impl OpenProtocol for ClaraState {
    fn adapter(&self) -> &'static dyn ProtocolAdapter {
        &Clara
    }

    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
        Arc::new(ProtocolContext::new(context, self))
    }

    fn delivery_encoder(self: Arc<Self>, _: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(delivery::NoDeliveries)
    }

    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
        Box::new(ProtocolContext::new(context, self))
    }
}

#[cfg(feature = "server")]
impl Api for ClaraContext {
    fn prefix(&self) -> &str {
        ID.as_str()
    }

    fn operations(&self) -> Vec<Operation<()>> {
        bind_operations(ID, operations::operations(), self)
    }

    fn error_response(&self, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn body_max(&self) -> usize {
        BODY_MAX
    }

    fn allows_any_origin(&self) -> bool {
        true
    }
}
