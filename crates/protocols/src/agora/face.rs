//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_engine::delivery::Courier;
use rialto_engine::secret::HubSecret;

use super::room::held_key;
use super::routes::{agents, envelopes, inbox, overview, requests, socket};
use super::sides::AgoraSides;
use super::{BODY_MAX, ID, courier, refusals, routes, say};
use crate::adapter::fidelity::Sides;
use crate::adapter::operation::{listed, router};
use crate::adapter::{Express, Face, Floor, Listed, Newcomer, Reach, Route, Trouble};
use crate::kit::ijson::Json;

/// The adapter of this protocol.
pub struct Agora;

const TABLE: &[Route<Floor>] = &[
    Route::prefixed("GET", "", Reach::Public, "Show hub key and endpoints", || get(overview::show)),
    Route::prefixed("POST", "", Reach::Signed, "Send a signed envelope", || post(envelopes::post)),
    Route::prefixed("POST", "/envelopes", Reach::Signed, "Send a signed envelope", || {
        post(envelopes::post)
    }),
    Route::prefixed("GET", "/agents", Reach::Public, "List agents and their capabilities", || {
        get(agents::list)
    }),
    Route::prefixed("GET", "/agents/{id}", Reach::Public, "Show an agent's entry", || {
        get(agents::show)
    }),
    Route::prefixed(
        "POST",
        "/agents/{id}",
        Reach::Signed,
        "Send a signed envelope to an agent",
        || post(envelopes::post_to),
    ),
    Route::prefixed(
        "GET",
        "/inbox",
        Reach::Inbox,
        "Stream the events of the reader's inbox",
        || get(inbox::open),
    ),
    Route::prefixed(
        "POST",
        "/inbox/ack",
        Reach::Inbox,
        "Acknowledge everything up to a position",
        || post(inbox::ack),
    ),
    Route::prefixed("GET", "/messages", Reach::Inbox, "List a page of the reader's inbox", || {
        get(inbox::page)
    }),
    Route::prefixed("GET", "/requests/{id}", Reach::Inbox, "Show the state of a request", || {
        get(requests::show)
    }),
    Route::prefixed("GET", "/ws", Reach::Signed, "Exchange envelopes over a WebSocket", || {
        get(socket::open)
    }),
];

impl Face for Agora {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, floor: &Floor) -> Router {
        router(TABLE.iter(), floor.clone())
    }

    fn root_routes(&self, _: &Floor) -> Router {
        Router::new()
    }

    fn listed(&self) -> Vec<Listed> {
        listed(ID, TABLE)
    }

    fn courier(&self, floor: &Floor) -> Arc<dyn Courier> {
        courier::courier(floor)
    }

    fn trouble(&self, floor: &Floor, trouble: Trouble) -> Response {
        say::refuse(floor, &refusals::trouble(&trouble), None)
    }

    /// There is no registration: a key becomes an agent with its first message.
    fn claims_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn sides(&self) -> &'static dyn Sides {
        &AgoraSides
    }

    fn reader(&self, floor: &Floor, headers: &HeaderMap) -> Option<AgentId> {
        let agent = routes::read_token(floor, headers)?.agent;
        floor.engine.look(|world| world.admits(agent)).then_some(agent)
    }

    fn alias(&self, secret: &HubSecret, new: &Newcomer<'_>, taken: bool) -> Option<String> {
        // Two agents with the same name in their protocol stay two agents here.
        let spare = format!("{} again", new.native);
        let native = if taken { &spare } else { new.native };
        Some(held_key(secret, new.home, native).did().to_owned())
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }

    fn express(&self) -> &'static [Express] {
        &[Express { method: "POST", path: "/envelopes", unless: &[], handler: envelopes::express }]
    }
}
