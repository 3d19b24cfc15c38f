//! `GET /agora`: the hub's key and its endpoints.

use axum::extract::State;
use axum::response::Response;

use crate::adapter::HubContext;
use crate::agora::about::HubInfo;
use crate::agora::{VERSION, say};

/// Paths relative to the hub's address.
const ENDPOINTS: [(&str, &str); 7] = [
    ("envelopes", "/agora/envelopes"),
    ("agents", "/agora/agents"),
    ("inbox", "/agora/inbox"),
    ("messages", "/agora/messages"),
    ("ack", "/agora/inbox/ack"),
    ("requests", "/agora/requests/{id}"),
    (WEBSOCKET, "/agora/ws"),
];

/// The endpoint that has another scheme.
const WEBSOCKET: &str = "websocket";

/// The hub's address with the scheme of WebSocket: `ws://` for `http://`, `wss://` for `https://`.
fn websocket(hub_url: &str) -> String {
    match hub_url.strip_prefix("http") {
        Some(rest) => format!("ws{rest}"),
        None => hub_url.to_owned(),
    }
}

/// Shows the hub's key and its endpoints.
pub async fn show(State(context): State<HubContext>) -> Response {
    let url = |(name, path): (&str, &str)| {
        let base =
            if name == WEBSOCKET { websocket(&context.hub_url) } else { context.hub_url.clone() };
        (name.to_owned(), format!("{base}{path}"))
    };
    let about = HubInfo {
        protocol: VERSION.to_owned(),
        hub: context.agora.signer.did().to_owned(),
        window_ms: context.agora.settings.window.0,
        endpoints: ENDPOINTS.into_iter().map(url).collect(),
    };
    say::json_response(200, serde_json::to_string(&about).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_has_the_scheme_that_belongs_to_the_hubs() {
        assert_eq!(websocket("http://127.0.0.1:7425"), "ws://127.0.0.1:7425");
        assert_eq!(websocket("https://hub.example"), "wss://hub.example");
    }
}
