//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::{delete, get, post};
use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::DeliveryEncoder;
use rialto_engine::secret::HubSecret;
use uuid::Uuid;

use super::codes::Code;
use super::failure::Failure;
use super::routes::{
    agents, answers, ask, collaborations, identity, list, messages, overview, reports, stream,
};
use super::sides::OpenclawFieldMap;
use super::updates::UpdatePoster;
use super::{BODY_MAX, ID, courier, fitting, refusals, say};
use crate::adapter::fidelity::FieldMap;
use crate::adapter::idempotency::{IdempotencyResponses, idempotent_router};
use crate::adapter::operation::describe_operations;
use crate::adapter::{
    Access, BackgroundTask, EdgeError, HubContext, NewAgent, Operation, OperationInfo,
    ProtocolAdapter, naming,
};
use crate::kit::ijson::{self, Json};
use crate::kit::object::ObjectWriter;

/// The adapter of this protocol.
pub struct Openclaw;

const OPERATIONS: &[Operation<HubContext>] = &[
    Operation::under_prefix(
        "POST",
        "/identity",
        Access::Register,
        "Publish an identity, or update it with its key",
        || post(identity::publish_identity),
    ),
    Operation::under_prefix("POST", "/status", Access::Agent, "Report an agent's status", || {
        post(reports::post_status)
    }),
    Operation::under_prefix(
        "POST",
        "/reputation",
        Access::Agent,
        "Report a claimed reputation",
        || post(reports::post_reputation),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations",
        Access::AnyAgent,
        "Request a collaboration",
        || post(ask::post_request),
    ),
    Operation::under_prefix(
        "GET",
        "/collaborations",
        Access::AnyAgent,
        "List the caller's collaborations",
        || get(list::list),
    ),
    Operation::under_prefix(
        "POST",
        "/agents/{agent_id}/collaborations",
        Access::AnyAgent,
        "Request a collaboration with this agent",
        || post(ask::post_request_to_agent),
    ),
    Operation::under_prefix(
        "GET",
        "/collaborations/{id}",
        Access::Party,
        "Show a collaboration's state",
        || get(collaborations::show),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/response",
        Access::Worker,
        "Accept, reject or defer a request",
        || post(answers::post_response),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/approve",
        Access::WorkerOrOperator,
        "Approve or refuse a request that needs approval",
        || post(answers::approve),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/result",
        Access::Worker,
        "Publish the result of a collaboration",
        || post(answers::post_result),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/cancel",
        Access::Party,
        "Cancel a collaboration",
        || post(answers::cancel),
    ),
    Operation::under_prefix(
        "POST",
        "/messages",
        Access::AnyAgent,
        "Send any of the six messages",
        || post(messages::post_message),
    ),
    Operation::under_prefix(
        "GET",
        "/agents",
        Access::Public,
        "List agents and their capabilities",
        || get(agents::list),
    ),
    Operation::under_prefix(
        "GET",
        "/agents/{agent_id}",
        Access::Public,
        "Show an agent's identity",
        || get(agents::show),
    ),
    Operation::under_prefix(
        "DELETE",
        "/agents/{agent_id}",
        Access::AgentOrOperator,
        "Unregister an agent",
        || delete(agents::remove),
    ),
    Operation::under_prefix(
        "GET",
        "/agents/{agent_id}/status",
        Access::Public,
        "Show agent status",
        || get(agents::status),
    ),
    Operation::under_prefix(
        "GET",
        "/agents/{agent_id}/reputation",
        Access::Public,
        "Show an agent's reputation",
        || get(agents::reputation),
    ),
    Operation::under_prefix(
        "GET",
        "/stream",
        Access::AnyAgent,
        "Stream the caller's events",
        || get(stream::open_stream),
    ),
    Operation::under_prefix("GET", "/health", Access::Public, "Check that the hub is up", || {
        get(overview::health)
    }),
];

impl ProtocolAdapter for Openclaw {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, context: &HubContext) -> Router {
        idempotent_router(OPERATIONS.iter(), context, &Openclaw)
    }

    fn root_routes(&self, _: &HubContext) -> Router {
        Router::new()
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, OPERATIONS)
    }

    fn delivery_encoder(&self, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        courier::delivery_encoder(context)
    }

    fn run_background_tasks(&self, context: &HubContext) -> BackgroundTask {
        Box::pin(UpdatePoster::new(context.clone()).run())
    }

    fn edge_error_response(&self, context: &HubContext, error: EdgeError) -> Response {
        say::error_response(context, &refusals::from_edge(&error))
    }

    /// Identities are published under the protocol's prefix only.
    fn recognizes_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &OpenclawFieldMap
    }

    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        let name = match taken {
            true => naming::fallback_alias_uuid(secret, new.home, new.native),
            false => naming::alias_uuid(new.home, new.native),
        };
        Some(name.to_string())
    }

    fn checks_input(&self) -> bool {
        true
    }

    fn input_error(
        &self,
        context: &HubContext,
        agent: &Arc<Agent>,
        skill: &str,
        input: &str,
    ) -> Option<String> {
        let broken = fitting::input_violations(context, agent, skill, input);
        (!broken.is_empty()).then(|| broken.join("; "))
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }
}

impl IdempotencyResponses for Openclaw {
    fn namespace(&self) -> &'static str {
        "openclaw"
    }

    fn invalid_key(&self) -> Response {
        let wrong = "Idempotency-Key must have 1 to 256 characters".to_owned();
        bare(&Failure::with_violations(vec![wrong]))
    }

    fn body_mismatch(&self, body: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        let failure = Failure::new(Code::IdempotencyConflict, text);
        bare(&match ijson::read(body) {
            Ok(json) => failure.in_answer_to(&json),
            Err(_) => failure,
        })
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        bare(&refusals::from_refusal(refusal))
    }

    fn edge_error(&self, error: EdgeError) -> Response {
        bare(&refusals::from_edge(&error))
    }

    fn redact_secrets(&self, body: &str) -> String {
        const SECRETS: [&str; 2] = ["api_key", "webhook_secret"];
        let Ok(json) = ijson::read(body.as_bytes()) else { return body.to_owned() };
        match SECRETS.iter().any(|name| json.get(name).is_some()) {
            true => ObjectWriter::copy_without(&json, &SECRETS).finish(),
            false => body.to_owned(),
        }
    }

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["requester_agent_id", "responder_agent_id", "agent_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}

/// An error response where no hub context is available: without the hub's clock and ids.
fn bare(failure: &Failure) -> Response {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let made = Uuid::new_v5(&Uuid::NAMESPACE_OID, &millis.to_be_bytes());
    let mut answer =
        say::text_response(failure.http_status, failure.write(made, Timestamp(millis)));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}
