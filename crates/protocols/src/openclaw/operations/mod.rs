//! The table of operations, the two smallest handlers, and helpers that all handlers share.

pub mod agents;
pub mod collaborations;
pub mod identity;
pub mod requests;
pub mod responses;
pub mod stream;

use axum::extract::State;
use rialto_engine::Failure as EngineFailure;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::auth::{BodyBytes, OptionalCaller};
use super::errors::{self, ErrorResponse, HandlerResult};
use super::wire::AnyMessage;
use super::wire::answers::Health;
use super::wire::error::Failure;
use crate::adapter::Access::{
    Agent, AgentOrOperator, AnyAgent, Party, Public, Register, Worker, WorkerOrOperator,
};
use crate::adapter::Operation;
use crate::adapter::operation::{delete, get, post};
use crate::adapter::peer::Peer;
use crate::kit::query::Query;
use crate::openclaw::OpenclawContext;

/// Every operation of the protocol.
pub fn operations() -> Vec<Operation<OpenclawContext>> {
    vec![
        post("/identity", Register, identity::publish_identity)
            .summary("Publish an identity, or update it with its key"),
        post("/status", Agent, identity::post_status).summary("Report an agent's status"),
        post("/reputation", Agent, identity::post_reputation)
            .summary("Report a claimed reputation"),
        post("/collaborations", AnyAgent, requests::post_request)
            .summary("Request a collaboration"),
        get("/collaborations", AnyAgent, collaborations::list)
            .summary("List the caller's collaborations"),
        post("/agents/{agent_id}/collaborations", AnyAgent, requests::post_request_to_agent)
            .summary("Request a collaboration with this agent"),
        get("/collaborations/{id}", Party, collaborations::show)
            .summary("Show a collaboration's state"),
        post("/collaborations/{id}/response", Worker, responses::post_response)
            .summary("Accept, reject or defer a request"),
        post("/collaborations/{id}/approve", WorkerOrOperator, responses::approve)
            .summary("Approve or refuse a request that needs approval"),
        post("/collaborations/{id}/result", Worker, responses::post_result)
            .summary("Publish the result of a collaboration"),
        post("/collaborations/{id}/cancel", Party, responses::cancel)
            .summary("Cancel a collaboration"),
        post("/messages", AnyAgent, post_message).summary("Send any of the six messages"),
        get("/agents", Public, agents::list).summary("List agents and their capabilities"),
        get("/agents/{agent_id}", Public, agents::show).summary("Show an agent's identity"),
        delete("/agents/{agent_id}", AgentOrOperator, agents::remove)
            .summary("Unregister an agent"),
        get("/agents/{agent_id}/status", Public, agents::status).summary("Show agent status"),
        get("/agents/{agent_id}/reputation", Public, agents::reputation)
            .summary("Show an agent's reputation"),
        get("/stream", AnyAgent, stream::open_stream).summary("Stream the caller's events"),
        get("/health", Public, health).summary("Check that the hub is up"),
    ]
}

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
