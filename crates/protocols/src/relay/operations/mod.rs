//! The table of operations, what their handlers share, and public information about the hub: its
//! discovery document and its health.

pub mod agents;
pub mod history;
pub mod inbox;
pub mod messages;

use std::num::NonZeroU64;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::errors::{ErrorResponse, json_response, malformed_error};
use super::wire::discovery::HubDocument;
use super::wire::response::{success_response, success_response_with};
use super::{Address, BODY_MAX};
use crate::adapter::Access::{
    AgentOrOperator, AnyAgent, AnyAgentOrOperator, Operator, Party, Public, Register,
};
use crate::adapter::Operation;
use crate::adapter::operation::{delete, get, post, put};
use crate::kit::query::Query;
use crate::relay::RelayContext;

/// Every operation of this protocol.
pub fn operations() -> Vec<Operation<RelayContext>> {
    vec![
        post("/register", Register, agents::register)
            .summary("Register an agent, or update it with its key")
            .at_root(),
        get("/agent/inbox", AnyAgent, inbox::open_inbox)
            .summary("The caller's inbox as a stream of events")
            .at_root(),
        post("/agent/inbox/ack", AnyAgent, inbox::ack)
            .summary("Acknowledge everything up to a position")
            .at_root(),
        get("/agent/messages", AnyAgent, history::list_messages)
            .summary("Messages the caller sent and received")
            .at_root(),
        post("/agents", Operator, agents::register_as_operator)
            .summary("Register an agent as the operator")
            .at_root(),
        get("/agents", Public, agents::list).summary("All registered agents").at_root(),
        get("/agents/{id}", Public, agents::show).summary("One agent's record").at_root(),
        delete("/agents/{id}", AgentOrOperator, agents::unregister)
            .summary("Unregister an agent")
            .at_root(),
        post("/agents/{id}/key", Operator, agents::mint_key)
            .summary("Mint a key for an agent")
            .at_root(),
        post("/messages", AnyAgentOrOperator, messages::send_message)
            .summary("Send a message")
            .at_root(),
        get("/messages/{trace_id}", Party, history::show_message)
            .summary("Get a message's state")
            .at_root(),
        get("/agent/blocks", AnyAgent, inbox::list_blocked)
            .summary("List blocked agents")
            .at_root(),
        put("/agent/blocks/{id}", AnyAgent, inbox::block)
            .summary("Refuse an agent's messages")
            .at_root(),
        delete("/agent/blocks/{id}", AnyAgent, inbox::unblock)
            .summary("Unblock an agent")
            .at_root(),
        get("/health", Public, health).summary("Health of the hub").at_root(),
        get("/.well-known/chorus.json", Public, well_known).summary("Discovery document").at_root(),
        // Open to any caller, and every call creates a message, so it is limited by address.
        post("/receive/{id}", Register, messages::receive_envelope)
            .summary("Deliver an envelope to an agent of this hub as a peer"),
    ]
}

/// Data in the response envelope.
pub fn success(context: &RelayContext, status: u16, data: impl FnOnce(&mut Vec<u8>)) -> Response {
    json_response(status, success_response_with(context.engine.now(), 256, data))
}

/// The address in a path.
pub fn read_address<'a>(context: &RelayContext, text: &'a str) -> Option<Address<'a>> {
    Address::read(text, &context.state.settings.host).ok()
}

/// The query of a URL.
pub fn read_query(context: &RelayContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed_error(context, bad))
}

/// `GET /.well-known/chorus.json`: the discovery document, without a response envelope (D15).
pub async fn well_known(State(context): State<RelayContext>) -> Response {
    let protocols: Vec<_> = crate::ALL.iter().map(|adapter| adapter.id()).collect();
    let protocols: Vec<_> = protocols.iter().map(|id| id.as_str()).collect();
    let hub = HubDocument {
        server_name: "Rialto",
        server_status: if context.engine.is_writable() { "ok" } else { "unavailable" },
        max_message_bytes: context.body_limit.min(BODY_MAX),
        rate_limit_per_minute: NonZeroU64::new(context.settings.writes_per_minute),
        protocols: &protocols,
    };
    json_response(200, hub.write())
}

/// `GET /health`: the hub's health.
pub async fn health(State(context): State<RelayContext>) -> Response {
    let engine = &context.engine;
    let agents = engine.with_world(|world| world.agents().filter(|agent| agent.active).count());
    let [delivered, failed, queued] = context.state.delivery_counts.read();
    let writable = engine.is_writable();
    let data = json!({
        "status": if writable { "ok" } else { "unavailable" },
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": context.state.started.elapsed().as_secs(),
        "agents_registered": agents,
        "messages_delivered": delivered,
        "messages_failed": failed,
        "messages_queued": queued,
        "inbox_connections": engine.inbox_reader_count(),
    });
    let status = if writable { 200 } else { 503 };
    json_response(status, success_response(&data.to_string(), engine.now()))
}
