//! The table of operations, the two smallest handlers, and helpers that all handlers share.

pub mod agents;
pub mod collaborations;
pub mod identity;
pub mod requests;
pub mod responses;
pub mod stream;

use axum::extract::State;
use axum::routing::{delete, get, post};
use rialto_engine::Failure as EngineFailure;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::auth::{BodyBytes, OptionalCaller};
use super::errors::{self, ErrorResponse, HandlerResult};
use super::wire::AnyMessage;
use super::wire::answers::Health;
use super::wire::error::Failure;
use crate::adapter::peer::Peer;
use crate::adapter::{Access, Operation};
use crate::kit::query::Query;
use crate::openclaw::OpenclawContext;

/// Every operation of the protocol.
pub const OPERATIONS: &[Operation<OpenclawContext>] = &[
    Operation::under_prefix(
        "POST",
        "/identity",
        Access::Register,
        "Publish an identity, or update it with its key",
        || post(identity::publish_identity),
    ),
    Operation::under_prefix("POST", "/status", Access::Agent, "Report an agent's status", || {
        post(identity::post_status)
    }),
    Operation::under_prefix(
        "POST",
        "/reputation",
        Access::Agent,
        "Report a claimed reputation",
        || post(identity::post_reputation),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations",
        Access::AnyAgent,
        "Request a collaboration",
        || post(requests::post_request),
    ),
    Operation::under_prefix(
        "GET",
        "/collaborations",
        Access::AnyAgent,
        "List the caller's collaborations",
        || get(collaborations::list),
    ),
    Operation::under_prefix(
        "POST",
        "/agents/{agent_id}/collaborations",
        Access::AnyAgent,
        "Request a collaboration with this agent",
        || post(requests::post_request_to_agent),
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
        || post(responses::post_response),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/approve",
        Access::WorkerOrOperator,
        "Approve or refuse a request that needs approval",
        || post(responses::approve),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/result",
        Access::Worker,
        "Publish the result of a collaboration",
        || post(responses::post_result),
    ),
    Operation::under_prefix(
        "POST",
        "/collaborations/{id}/cancel",
        Access::Party,
        "Cancel a collaboration",
        || post(responses::cancel),
    ),
    Operation::under_prefix(
        "POST",
        "/messages",
        Access::AnyAgent,
        "Send any of the six messages",
        || post(post_message),
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
        get(health)
    }),
];

/// The query of a URL.
fn query(context: &OpenclawContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    let query = Query::read(raw.unwrap_or_default());
    query.map_err(|bad| ErrorResponse::new(context, bad.into()))
}

/// An error in answer to a message with that correlation id.
fn about(
    context: &OpenclawContext,
    failure: Failure,
    correlation_id: Option<Uuid>,
) -> ErrorResponse {
    let correlation_id = failure.correlation_id.or(correlation_id);
    ErrorResponse::new(context, Failure { correlation_id, ..failure })
}

/// The error for an engine failure, in answer to a message with that correlation id.
fn failed(
    context: &OpenclawContext,
    failure: &EngineFailure,
    correlation_id: Option<Uuid>,
) -> ErrorResponse {
    about(context, errors::from_engine(failure), correlation_id)
}

/// The most schemas compiled or checked at the same time; more wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Runs the work on the blocking pool; `None` if it panicked.
pub async fn run_blocking_limited<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let _turn = AT_ONCE.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}

/// `GET /health`.
pub async fn health(State(context): State<OpenclawContext>) -> HandlerResult {
    let agents =
        context.engine.with_world(|world| world.agents().filter(|agent| agent.active).count());
    let (status, hub_id) = (Health::STATUS.to_owned(), context.state.hub_id.to_string());
    let common = errors::common_members(&context, None);
    Ok(errors::json_response(200, &Health::new(common, status, hub_id, agents as u64)))
}

/// `POST /messages`.
pub async fn post_message(
    State(context): State<OpenclawContext>,
    anyone: OptionalCaller,
    Peer(peer): Peer,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let refuse = |failure| ErrorResponse::new(&context, failure);
    let read = run_blocking_limited(move || AnyMessage::read(&body)).await;
    let message = read.unwrap_or_else(|| Err(Failure::internal("reading"))).map_err(refuse)?;
    if let AnyMessage::Identity(message) = &message {
        return identity::publish_from_messages(&context, anyone, peer, message).await;
    }
    let known = anyone.require_known().map_err(refuse)?;
    match message {
        AnyMessage::Identity(message) => {
            identity::publish_from_messages(&context, anyone, peer, &message).await
        }
        AnyMessage::Status(message) => identity::handle_status(&context, known, &message).await,
        AnyMessage::Reputation(message) => {
            identity::handle_reputation(&context, known, &message).await
        }
        AnyMessage::Request(message) => {
            requests::handle_request(&context, known, message, None).await
        }
        AnyMessage::Response(message) => {
            let id = message.body.request_id;
            responses::handle_response(&context, known, id, &message).await
        }
        AnyMessage::Result(message) => {
            let id = message.body.collaboration_id;
            responses::handle_result(&context, known, id, &message).await
        }
    }
}
