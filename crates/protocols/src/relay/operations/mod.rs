//! The table of operations, what their handlers share, and public information about the hub: its
//! discovery document and its health.

pub mod agents;
pub mod history;
pub mod inbox;
pub mod messages;

use std::num::NonZeroU64;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{delete, get, post, put};
use serde_json::json;

use super::errors::{ErrorResponse, json_response, malformed_error};
use super::wire::discovery::HubDocument;
use super::wire::response::{success_response, success_response_with};
use super::{Address, BODY_MAX};
use crate::adapter::{Access, Operation};
use crate::kit::query::Query;
use crate::relay::RelayContext;

/// Every operation of this protocol.
pub const OPERATIONS: &[Operation<RelayContext>] = &[
    Operation {
        method: "POST",
        path: "/register",
        at_root: true,
        access: Access::Register,
        summary: "Register an agent, or update it with its key",
        handler: || post(agents::register),
    },
    Operation {
        method: "GET",
        path: "/agent/inbox",
        at_root: true,
        access: Access::AnyAgent,
        summary: "The caller's inbox as a stream of events",
        handler: || get(inbox::open_inbox),
    },
    Operation {
        method: "POST",
        path: "/agent/inbox/ack",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Acknowledge everything up to a position",
        handler: || post(inbox::ack),
    },
    Operation {
        method: "GET",
        path: "/agent/messages",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Messages the caller sent and received",
        handler: || get(history::list_messages),
    },
    Operation {
        method: "POST",
        path: "/agents",
        at_root: true,
        access: Access::Operator,
        summary: "Register an agent as the operator",
        handler: || post(agents::register_as_operator),
    },
    Operation {
        method: "GET",
        path: "/agents",
        at_root: true,
        access: Access::Public,
        summary: "All registered agents",
        handler: || get(agents::list),
    },
    Operation {
        method: "GET",
        path: "/agents/{id}",
        at_root: true,
        access: Access::Public,
        summary: "One agent's record",
        handler: || get(agents::show),
    },
    Operation {
        method: "DELETE",
        path: "/agents/{id}",
        at_root: true,
        access: Access::AgentOrOperator,
        summary: "Unregister an agent",
        handler: || delete(agents::unregister),
    },
    Operation {
        method: "POST",
        path: "/agents/{id}/key",
        at_root: true,
        access: Access::Operator,
        summary: "Mint a key for an agent",
        handler: || post(agents::mint_key),
    },
    Operation {
        method: "POST",
        path: "/messages",
        at_root: true,
        access: Access::AnyAgentOrOperator,
        summary: "Send a message",
        handler: || post(messages::send_message),
    },
    Operation {
        method: "GET",
        path: "/messages/{trace_id}",
        at_root: true,
        access: Access::Party,
        summary: "Get a message's state",
        handler: || get(history::show_message),
    },
    Operation {
        method: "GET",
        path: "/agent/blocks",
        at_root: true,
        access: Access::AnyAgent,
        summary: "List blocked agents",
        handler: || get(inbox::list_blocked),
    },
    Operation {
        method: "PUT",
        path: "/agent/blocks/{id}",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Refuse an agent's messages",
        handler: || put(inbox::block),
    },
    Operation {
        method: "DELETE",
        path: "/agent/blocks/{id}",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Unblock an agent",
        handler: || delete(inbox::unblock),
    },
    Operation {
        method: "GET",
        path: "/health",
        at_root: true,
        access: Access::Public,
        summary: "Health of the hub",
        handler: || get(health),
    },
    Operation {
        method: "GET",
        path: "/.well-known/chorus.json",
        at_root: true,
        access: Access::Public,
        summary: "Discovery document",
        handler: || get(well_known),
    },
    Operation {
        method: "POST",
        path: "/receive/{id}",
        at_root: false,
        // Open to any caller, and every call creates a message, so it is limited by address.
        access: Access::Register,
        summary: "Deliver an envelope to an agent of this hub as a peer",
        handler: || post(messages::receive_envelope),
    },
];

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
