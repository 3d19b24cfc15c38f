//! Public information about the hub: its discovery document and its health.

use std::num::NonZeroU64;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::adapter::HubContext;
use crate::relay::discovery::HubDocument;
use crate::relay::refusals;
use crate::relay::{BODY_MAX, shape};

/// `GET /.well-known/chorus.json`: the discovery document, without a response envelope (D15).
pub async fn well_known(State(context): State<HubContext>) -> Response {
    let protocols: Vec<_> = crate::ALL.iter().map(|adapter| adapter.id()).collect();
    let protocols: Vec<_> = protocols.iter().map(|id| id.as_str()).collect();
    let hub = HubDocument {
        server_name: "Rialto",
        server_status: if context.engine.is_writable() { "ok" } else { "unavailable" },
        max_message_bytes: context.body_limit.min(BODY_MAX),
        rate_limit_per_minute: NonZeroU64::new(context.relay.settings.writes_per_minute),
        protocols: &protocols,
    };
    refusals::json_response(200, hub.write())
}

/// `GET /health`: the hub's health.
pub async fn health(State(context): State<HubContext>) -> Response {
    let engine = &context.engine;
    let agents = engine.with_world(|world| world.agents().filter(|agent| agent.active).count());
    let [delivered, failed, queued] = context.relay.delivery_counts.read();
    let writable = engine.is_writable();
    let data = json!({
        "status": if writable { "ok" } else { "unavailable" },
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": context.relay.started.elapsed().as_secs(),
        "agents_registered": agents,
        "messages_delivered": delivered,
        "messages_failed": failed,
        "messages_queued": queued,
        "inbox_connections": engine.inbox_reader_count(),
    });
    let status = if writable { 200 } else { 503 };
    refusals::json_response(status, shape::success_response(&data.to_string(), engine.now()))
}
