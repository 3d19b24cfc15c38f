//! `GET /agora`: which hub this is and where it listens.

use axum::extract::State;
use axum::response::Response;

use crate::agora::about::About;
use crate::agora::{VERSION, say};
use crate::face::Floor;

/// What is where, relative to the hub's own address.
const ENDPOINTS: [(&str, &str); 7] = [
    ("envelopes", "/agora/envelopes"),
    ("agents", "/agora/agents"),
    ("inbox", "/agora/inbox"),
    ("messages", "/agora/messages"),
    ("ack", "/agora/inbox/ack"),
    ("requests", "/agora/requests/{id}"),
    ("websocket", "/agora/ws"),
];

/// Says so.
pub async fn show(State(floor): State<Floor>) -> Response {
    let url = |(name, path): (&str, &str)| (name.to_owned(), format!("{}{path}", floor.hub_url));
    let about = About {
        protocol: VERSION.to_owned(),
        hub: floor.agora.hub.did().to_owned(),
        window_ms: floor.agora.settings.window.0,
        endpoints: ENDPOINTS.into_iter().map(url).collect(),
    };
    say::json(200, serde_json::to_string(&about).unwrap_or_default())
}
