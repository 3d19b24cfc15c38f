//! a2a: the adapter of Agent2Agent 1.0 and 0.3. Every agent of the hub is an A2A agent: a card says
//! what it does, a message opens a task, and a task is a job.

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
mod original;
#[cfg(feature = "server")]
mod remote;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod task_log;
#[cfg(feature = "server")]
mod task_stream;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

use rialto_core::alias::Protocol;
#[cfg(feature = "server")]
use {
    self::delivery::{A2aEncoder, PushSecrets, StoredPush},
    self::fields::A2aFieldMap,
    self::operations::operations,
    self::remote::RemoteAgent,
    self::remote::access_token::AccessTokens,
    self::remote::supervisor::{Followers, Supervisor},
    self::settings::Settings,
    self::wire::Version,
    self::wire::error::{A2aError, Reason},
    crate::adapter::fidelity::{FieldMap, JobMessages},
    crate::adapter::idempotency::IdempotencyResponses,
    crate::adapter::operation::{ErrorInfo, bind_operations, describe_operations},
    crate::adapter::own_server::OwnServerView,
    crate::adapter::settings::ProtocolSettings,
    crate::adapter::{
        Api, BackgroundTask, EdgeError, HubContext, NewAgent, OpenProtocol, Operation,
        OperationInfo, ProtocolAdapter, ProtocolContext, naming,
    },
    crate::kit::ed25519::SecretKey,
    crate::kit::object::ObjectWriter,
    axum::response::Response,
    rialto_config::Layers,
    rialto_core::agent::Agent,
    rialto_core::job::Job,
    rialto_core::refusal::Refusal,
    rialto_core::time::Timestamp,
    rialto_engine::Engine,
    rialto_engine::delivery::DeliveryEncoder,
    rialto_engine::random::RandomSource,
    rialto_engine::secret::HubSecret,
    std::sync::{Arc, OnceLock},
};

/// The protocol's id.
pub const ID: Protocol = Protocol::new("a2a");

/// The longest id of a message, in characters (R29).
pub const MESSAGE_ID_MAX: usize = 256;
/// The longest id of a context, in characters.
pub const CONTEXT_ID_MAX: usize = 128;
/// The most parts of a message or artifact.
pub const PARTS_MAX: usize = 100;

/// The extensions of this hub (section 2.4 of the requirements).
pub mod extensions {
    pub const HIRE: &str = "urn:rialto:a2a:hire:v1";
    pub const SCHEMAS: &str = "urn:rialto:a2a:schemas:v1";
    pub const TRUST: &str = "urn:rialto:a2a:trust:v1";
    pub const RESUME: &str = "urn:rialto:a2a:resume:v1";
    /// All that answers may name.
    pub const ALL: [&str; 4] = [HIRE, SCHEMAS, TRUST, RESUME];
}

/// The adapter of this protocol.
#[cfg(feature = "server")]
pub struct A2a;

#[cfg(feature = "server")]
impl ProtocolAdapter for A2a {
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

    fn field_map(&self) -> &'static dyn FieldMap {
        &A2aFieldMap
    }

    fn alias(&self, _: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        let digits = naming::alias_digits(new.home, new.native, taken);
        Some(format!("{}-{digits}", naming::slug(new.name)))
    }

    fn own_server(&self, agent: &Agent) -> Option<OwnServerView> {
        RemoteAgent::of(agent).map(|remote| remote.view())
    }
}

/// The protocol's own state, shared by all its operations.
#[cfg(feature = "server")]
pub struct A2aState {
    pub settings: Settings,
    /// Signs cards and nothing else.
    pub card_key: SecretKey,
    /// For servers of agents that want them.
    pub access_tokens: AccessTokens,
    /// Jobs of such agents that are followed at this node.
    pub followers: Followers,
    secret: HubSecret,
    /// When this program began to show the hub's own card.
    opened_at: OnceLock<Timestamp>,
}

/// What seals the secrets of push configurations.
#[cfg(feature = "server")]
const PUSH_PURPOSE: &str = "a2a push";

#[cfg(feature = "server")]
impl A2aState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        let card_key = SecretKey::from_seed(&secret.derive("rialto a2a card v1", "card"));
        let (access_tokens, followers) = (AccessTokens::default(), Followers::default());
        let opened_at = OnceLock::new();
        Self { settings, card_key, access_tokens, followers, secret: secret.clone(), opened_at }
    }

    /// Since when the hub's own card is as it is: it changes only with the program and its settings.
    pub fn opened_at(&self, engine: &Engine) -> Timestamp {
        *self.opened_at.get_or_init(|| engine.now())
    }

    /// Seals the secrets of a push configuration of a task.
    pub fn seal_secrets(
        &self,
        task: &str,
        webhook: &str,
        secrets: &PushSecrets,
        random: &dyn RandomSource,
    ) -> Option<String> {
        if secrets.token.is_none() && secrets.credentials.is_none() {
            return None;
        }
        let plain = serde_json::to_vec(secrets).ok()?;
        let context = format!("{task}/{webhook}");
        Some(self.secret.seal(PUSH_PURPOSE, context.as_bytes(), &plain, random))
    }

    /// The secrets of a stored push configuration.
    pub fn open_secrets(
        &self,
        job: &Job,
        webhook: &str,
        stored: &StoredPush,
    ) -> Option<PushSecrets> {
        let context = format!("{}/{webhook}", job.uuid);
        let sealed = stored.sealed.as_deref()?;
        let plain = self.secret.open(PUSH_PURPOSE, context.as_bytes(), sealed)?;
        serde_json::from_slice(&plain).ok()
    }
}

/// What the operations of this protocol get.
#[cfg(feature = "server")]
pub type A2aContext = ProtocolContext<A2aState>;

#[cfg(feature = "server")]
impl OpenProtocol for A2aState {
    fn adapter(&self) -> &'static dyn ProtocolAdapter {
        &A2a
    }

    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
        self.opened_at(&context.engine);
        Arc::new(ProtocolContext::new(context, self))
    }

    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(A2aEncoder { context: ProtocolContext::new(context, self) })
    }

    fn run_background_tasks(self: Arc<Self>, context: &HubContext) -> BackgroundTask {
        Box::pin(Supervisor::new(ProtocolContext::new(context, self)).run())
    }

    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
        Box::new(ProtocolContext::new(context, self))
    }
}

#[cfg(feature = "server")]
impl Api for A2aContext {
    fn prefix(&self) -> &str {
        ID.as_str()
    }

    fn operations(&self) -> Vec<Operation<()>> {
        bind_operations(ID, operations(), self)
    }

    fn error_response(&self, error: EdgeError) -> Response {
        errors::http_response(&errors::from_edge(error))
    }

    fn operation_error(&self, operation: &OperationInfo, error: EdgeError) -> Response {
        let error = errors::from_edge(error);
        match operations::is_rpc(operation) {
            true => errors::rpc_error_response(&error, "null", Version::V1),
            false => errors::http_response(&error),
        }
    }

    fn idempotency(&self) -> Option<&dyn IdempotencyResponses> {
        Some(self)
    }
}

#[cfg(feature = "server")]
impl IdempotencyResponses for A2aContext {
    fn context(&self) -> &HubContext {
        self
    }

    fn invalid_key(&self) -> Response {
        let text = "must have 1 to 256 characters";
        errors::http_response(&A2aError::invalid_field("Idempotency-Key", text))
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body; use a new one";
        errors::http_response(&A2aError::new(Reason::IdempotencyConflict, text))
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        errors::http_response(&errors::from_refusal(refusal))
    }

    fn redact_secrets(&self, body: &str) -> String {
        match crate::kit::ijson::read(body.as_bytes()) {
            Ok(json) => ObjectWriter::copy_without(&json, &["api_key"]).finish(),
            Err(_) => body.to_owned(),
        }
    }
}
