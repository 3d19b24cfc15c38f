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
use super::wire::api_doc::*;
use super::wire::discovery::Document;
use super::wire::discovery::HubDocument;
use super::wire::error::{ACK_EXAMPLE, ENVELOPE_EXAMPLE, MESSAGE_EXAMPLE, REGISTRATION_EXAMPLE};
use super::wire::response::{success_response, success_response_with};
use super::{Address, BODY_MAX};
use crate::adapter::Access::{
    AgentOrOperator, AnyAgent, AnyAgentOrOperator, Operator, Party, Public, Register,
};
use crate::adapter::Operation;
use crate::adapter::operation::{delete, get, post, put};
use crate::kit::api_doc::AnyOf;
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::query::Query;
use crate::relay::RelayContext;

/// The path to which messages are sent.
pub const MESSAGES: &str = "/messages";

/// Every operation of this protocol.
/// A registration by the operator that succeeds as it is.
const OPERATOR_REGISTRATION_EXAMPLE: &str =
    r#"{"agent_id":"my-agent@chorus","endpoint":"https://agent.example/receive"}"#;

pub fn operations() -> Vec<Operation<RelayContext>> {
    vec![
        post("/register", Register, agents::register)
            .summary("Register an agent, or update it with its key")
            .recognizes(is_registration)
            .request::<RegisterMembers>(REGISTRATION_EXAMPLE)
            .responds::<Success<Registration>>(201, "A new agent")
            .responds::<Success<Registration>>(200, "An updated agent")
            .at_root(),
        get("/agent/inbox", AnyAgent, inbox::open_inbox)
            .summary("The caller's inbox as a stream of events")
            .query::<InboxQuery>()
            .streams::<InboxEvent>("Messages as they come")
            .error(409)
            .at_root(),
        post("/agent/inbox/ack", AnyAgent, inbox::ack)
            .summary("Acknowledge everything up to a position")
            .request::<AckMembers>(ACK_EXAMPLE)
            .responds::<Success<AckState>>(200, "The state of the inbox")
            .at_root(),
        get("/agent/messages", AnyAgent, history::list_messages)
            .summary("Messages the caller sent and received")
            .query::<HistoryQuery>()
            .responds::<Success<Vec<HistoryEntry>>>(200, "A page of messages")
            .at_root(),
        post("/agents", Operator, agents::register_as_operator)
            .summary("Register an agent as the operator")
            .request::<RegisterMembers>(OPERATOR_REGISTRATION_EXAMPLE)
            .responds::<Success<AgentRecord>>(201, "A new agent")
            .responds::<Success<AgentRecord>>(200, "An updated agent")
            .at_root(),
        get("/agents", Public, agents::list)
            .summary("All registered agents")
            .as_is()
            .query::<AgentsQuery>()
            .responds::<Success<Vec<AgentRecord>>>(200, "A page of agents")
            .at_root(),
        get("/agents/{id}", Public, agents::show)
            .summary("One agent's record")
            .path_param::<AddressParam>()
            .responds::<Success<AgentRecord>>(200, "The agent")
            .at_root(),
        delete("/agents/{id}", AgentOrOperator, agents::unregister)
            .summary("Unregister an agent")
            .path_param::<AddressParam>()
            .responds::<Success<Deletion>>(200, "Whether there was one")
            .at_root(),
        post("/agents/{id}/key", Operator, agents::mint_key)
            .summary("Mint a key for an agent")
            .path_param::<AddressParam>()
            .responds::<Success<MintedKey>>(201, "The new key")
            .at_root(),
        post(MESSAGES, AnyAgentOrOperator, messages::send_message)
            .summary("Send a message")
            .request::<SendMembers>(MESSAGE_EXAMPLE)
            .responds::<Success<DeliveryData>>(200, "How far the message got")
            .streams::<ReplyEvent>("The receiver's reply, with `stream`")
            .responds::<Success<DeliveryData>>(202, "It waits for its receiver")
            .at_root(),
        get("/messages/{trace_id}", Party, history::show_message)
            .summary("Get a message's state")
            .path_param::<TraceId>()
            .responds::<Success<MessageState>>(200, "The message")
            .at_root(),
        get("/agent/blocks", AnyAgent, inbox::list_blocked)
            .summary("List blocked agents")
            .responds::<Success<Vec<String>>>(200, "The blocked addresses")
            .at_root(),
        put("/agent/blocks/{id}", AnyAgent, inbox::block)
            .summary("Refuse an agent's messages")
            .path_param::<AddressParam>()
            .responds::<Success<Vec<String>>>(200, "The blocked addresses")
            .at_root(),
        delete("/agent/blocks/{id}", AnyAgent, inbox::unblock)
            .summary("Unblock an agent")
            .path_param::<AddressParam>()
            .responds::<Success<Vec<String>>>(200, "The blocked addresses")
            .at_root(),
        get("/health", Public, health)
            .summary("Health of the hub")
            .as_is()
            .responds::<Success<Health>>(200, "The hub accepts writes")
            .responds::<AnyOf<Success<Health>, ErrorBody>>(503, "It does not")
            .health_check()
            .at_root(),
        get("/.well-known/chorus.json", Public, well_known)
            .summary("Discovery document")
            .as_is()
            .responds::<Document<'static>>(200, "The document")
            .at_root(),
        // Open to any caller, and every call creates a message, so it is limited by address.
        post("/receive/{id}", Register, messages::receive_envelope)
            .summary("Deliver an envelope to an agent of this hub as a peer")
            .path_param::<AddressParam>()
            .request::<ReceiveMembers>(ENVELOPE_EXAMPLE)
            .responds::<ReceiverReply>(200, "The envelope is in the agent's inbox")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(400, "The envelope cannot be delivered")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(409, "The envelope cannot be delivered")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(422, "The envelope cannot be delivered")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(429, "The envelope cannot be delivered")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(503, "The envelope cannot be delivered")
            .responds::<AnyOf<ReceiverReply, ErrorBody>>(507, "The envelope cannot be delivered"),
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

/// Whether a registration posted at the root is meant for this protocol.
fn is_registration(body: &Json<'_>) -> bool {
    let by_address = body.get("agent_id").is_some_and(|id| match id.value() {
        JsonValue::String(text) => text.contains('@'),
        _ => false,
    });
    body.get("agent_card").is_some() || by_address
}
