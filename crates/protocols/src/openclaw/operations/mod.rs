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

use super::auth::from_key_rejection;
use super::errors::{self, ErrorResponse, HandlerResult};
use super::wire::AnyMessage;
use super::wire::Kind;
use super::wire::answers::Health;
use super::wire::answers::*;
use super::wire::api_doc::{self, *};
use super::wire::directory::{AgentEntry, Page};
use super::wire::error::Failure;
use crate::adapter::Access::{
    Agent, AgentOrOperator, AnyAgent, Party, Public, Register, Worker, WorkerOrOperator,
};
use crate::adapter::Operation;
use crate::adapter::caller::OptionalCaller;
use crate::adapter::operation::{delete, get, post};
use crate::adapter::peer::Peer;
use crate::adapter::request::BodyBytes;
use crate::kit::api_doc::AnyObject;
use crate::kit::query::Query;
use crate::openclaw::OpenclawContext;

/// Every operation of the protocol.
pub fn operations() -> Vec<Operation<OpenclawContext>> {
    vec![
        post("/identity", Register, identity::publish_identity)
            .summary("Publish an identity, or update it with its key")
            .request::<Identity>(Kind::Identity.example())
            .responds::<Published>(201, "A new agent")
            .responds::<Published>(200, "An updated agent"),
        post("/status", Agent, identity::post_status)
            .summary("Report an agent's status")
            .request::<StatusUpdate>(Kind::Status.example())
            .responds::<StatusTaken>(200, "The update is taken"),
        post("/reputation", Agent, identity::post_reputation)
            .summary("Report a claimed reputation")
            .request::<ReputationUpdate>(Kind::Reputation.example())
            .responds::<ClaimRecorded>(200, "The claim is recorded"),
        post("/collaborations", AnyAgent, requests::post_request)
            .summary("Request a collaboration")
            .request::<CollaborationRequest>(Kind::Request.example())
            .responds::<CollaborationResponse>(200, "The response"),
        get("/collaborations", AnyAgent, collaborations::list)
            .summary("List the caller's collaborations")
            .query::<CollaborationsQuery>()
            .responds::<CollaborationPage>(200, "A page of collaborations"),
        post("/agents/{agent_id}/collaborations", AnyAgent, requests::post_request_to_agent)
            .summary("Request a collaboration with this agent")
            .path_param::<Uuid>()
            .request::<CollaborationRequest>(Kind::Request.example())
            .responds::<CollaborationResponse>(200, "The response"),
        get("/collaborations/{id}", Party, collaborations::show)
            .summary("Show a collaboration's state")
            .path_param::<Uuid>()
            .responds::<CollaborationView>(200, "The collaboration"),
        post("/collaborations/{id}/response", Worker, responses::post_response)
            .summary("Accept, reject or defer a request")
            .path_param::<Uuid>()
            .request::<CollaborationResponse>(Kind::Response.example())
            .responds::<Done>(200, "The response is delivered"),
        post("/collaborations/{id}/approve", WorkerOrOperator, responses::approve)
            .summary("Approve or refuse a request that needs approval")
            .path_param::<Uuid>()
            .request::<ApproveMembers>(r#"{"approved":true}"#)
            .responds::<Done>(200, "Approved or refused"),
        post("/collaborations/{id}/result", Worker, responses::post_result)
            .summary("Publish the result of a collaboration")
            .path_param::<Uuid>()
            .request::<CollaborationResult>(Kind::Result.example())
            .responds::<ResultPublished>(200, "The result is published"),
        post("/collaborations/{id}/cancel", Party, responses::cancel)
            .summary("Cancel a collaboration")
            .path_param::<Uuid>()
            .optional_request::<CancelMembers>(r#"{"reason":"no longer needed"}"#)
            .responds::<CollaborationResult>(200, "The result of the cancelled collaboration"),
        post("/messages", AnyAgent, post_message)
            .summary("Send any of the six messages")
            .request::<api_doc::AnyMessage>(Kind::Status.example())
            .responds::<AnyAnswer>(200, "What became of it")
            .responds::<Published>(201, "A new agent"),
        get("/agents", Public, agents::list)
            .summary("List agents and their capabilities")
            .as_is()
            .query::<AgentsQuery>()
            .responds::<Page>(200, "A page of agents"),
        get("/agents/{agent_id}", Public, agents::show)
            .summary("Show an agent's identity")
            .path_param::<Uuid>()
            .responds::<AgentEntry>(200, "The agent's identity"),
        delete("/agents/{agent_id}", AgentOrOperator, agents::remove)
            .summary("Unregister an agent")
            .path_param::<Uuid>()
            .responds::<Unregistered>(200, "Unregistered"),
        get("/agents/{agent_id}/status", Public, agents::status)
            .summary("Show agent status")
            .path_param::<Uuid>()
            .responds::<StatusUpdate>(200, "The last update"),
        get("/agents/{agent_id}/reputation", Public, agents::reputation)
            .summary("Show an agent's reputation")
            .path_param::<Uuid>()
            .responds::<ReputationView>(200, "The last update"),
        get("/stream", AnyAgent, stream::open_stream)
            .summary("Stream the caller's events")
            .query::<StreamQuery>()
            .streams::<AnyObject>("Messages for the caller, and updates of watched agents")
            .error(409),
        get("/health", Public, health)
            .summary("Check that the hub is up")
            .as_is()
            .responds::<Health>(200, "The hub is up")
            .health_check(),
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
    let known = anyone.known().map_err(|rejection| refuse(from_key_rejection(rejection)))?;
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
