//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_engine::delivery::DeliveryEncoder;
use rialto_engine::secret::HubSecret;

use super::room::bridged_agent_signer;
use super::routes::{agents, envelopes, inbox, overview, requests, socket};
use super::sides::AgoraFieldMap;
use super::{BODY_MAX, ID, courier, refusals, routes, say};
use crate::adapter::fidelity::FieldMap;
use crate::adapter::operation::{build_router, describe_operations};
use crate::adapter::{
    Access, EdgeError, FastRoute, HubContext, NewAgent, Operation, OperationInfo, ProtocolAdapter,
};
use crate::kit::ijson::Json;

/// The adapter of this protocol.
pub struct Agora;

const OPERATIONS: &[Operation<HubContext>] = &[
    Operation::under_prefix("GET", "", Access::Public, "Show hub key and endpoints", || {
        get(overview::show)
    }),
    Operation::under_prefix("POST", "", Access::Signed, "Send a signed envelope", || {
        post(envelopes::post_envelope)
    }),
    Operation::under_prefix("POST", "/envelopes", Access::Signed, "Send a signed envelope", || {
        post(envelopes::post_envelope)
    }),
    Operation::under_prefix(
        "GET",
        "/agents",
        Access::Public,
        "List agents and their capabilities",
        || get(agents::list),
    ),
    Operation::under_prefix("GET", "/agents/{id}", Access::Public, "Show an agent's entry", || {
        get(agents::show)
    }),
    Operation::under_prefix(
        "POST",
        "/agents/{id}",
        Access::Signed,
        "Send a signed envelope to an agent",
        || post(envelopes::post_envelope_to_agent),
    ),
    Operation::under_prefix(
        "GET",
        "/inbox",
        Access::Inbox,
        "Stream the events of the reader's inbox",
        || get(inbox::open_inbox),
    ),
    Operation::under_prefix(
        "POST",
        "/inbox/ack",
        Access::Inbox,
        "Acknowledge everything up to a position",
        || post(inbox::ack),
    ),
    Operation::under_prefix(
        "GET",
        "/messages",
        Access::Inbox,
        "List a page of the reader's inbox",
        || get(inbox::list_messages),
    ),
    Operation::under_prefix(
        "GET",
        "/requests/{id}",
        Access::Inbox,
        "Show the state of a request",
        || get(requests::show),
    ),
    Operation::under_prefix(
        "GET",
        "/ws",
        Access::Signed,
        "Exchange envelopes over a WebSocket",
        || get(socket::open_socket),
    ),
];

impl ProtocolAdapter for Agora {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, context: &HubContext) -> Router {
        build_router(OPERATIONS.iter(), context.clone())
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

    fn edge_error_response(&self, context: &HubContext, error: EdgeError) -> Response {
        say::error_response(context, &refusals::from_edge(&error), None)
    }

    /// There is no registration: a key becomes an agent with its first message.
    fn recognizes_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &AgoraFieldMap
    }

    fn authenticate_reader(&self, context: &HubContext, headers: &HeaderMap) -> Option<AgentId> {
        let agent = routes::read_token(context, headers)?.agent;
        context.engine.with_world(|world| world.may_act(agent)).then_some(agent)
    }

    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        // Two agents with the same name in their protocol stay two agents here.
        let spare = format!("{} again", new.native);
        let native = if taken { &spare } else { new.native };
        Some(bridged_agent_signer(secret, new.home, native).did().to_owned())
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }

    fn fast_routes(&self) -> &'static [FastRoute] {
        &[FastRoute {
            method: "POST",
            path: "/envelopes",
            excluded_headers: &[],
            handler: envelopes::post_envelope_fast,
        }]
    }
}
