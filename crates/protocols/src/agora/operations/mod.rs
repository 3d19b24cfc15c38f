//! The table of operations, the extractors that they share, and `GET /agora`.

pub mod agents;
pub mod envelopes;
pub mod inbox;
pub mod requests;
pub mod websocket;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::errors::{self, ErrorResponse};
use super::wire::error::Failure;
use super::wire::responses::HubInfo;
use super::{BODY_MAX, VERSION};
use crate::adapter::Access::{Inbox, Public, Signed};
use crate::adapter::operation::{get, post};
use crate::adapter::{Operation, body};
use crate::agora::AgoraContext;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// The operations of the protocol.
pub fn operations() -> Vec<Operation<AgoraContext>> {
    vec![
        get("", Public, show_hub).summary("Show hub key and endpoints"),
        post("", Signed, envelopes::post_envelope).summary("Send a signed envelope"),
        post("/envelopes", Signed, envelopes::post_envelope).summary("Send a signed envelope"),
        get("/agents", Public, agents::list).summary("List agents and their capabilities"),
        get("/agents/{id}", Public, agents::show).summary("Show an agent's entry"),
        post("/agents/{id}", Signed, envelopes::post_envelope_to_agent)
            .summary("Send a signed envelope to an agent"),
        get("/inbox", Inbox, inbox::open_inbox).summary("Stream the events of the reader's inbox"),
        post("/inbox/ack", Inbox, inbox::ack).summary("Acknowledge everything up to a position"),
        get("/messages", Inbox, inbox::list_messages).summary("List a page of the reader's inbox"),
        get("/requests/{id}", Inbox, requests::show).summary("Show the state of a request"),
        get("/ws", Signed, websocket::open_socket).summary("Exchange envelopes over a WebSocket"),
    ]
}

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
fn websocket_url(hub_url: &str) -> String {
    match hub_url.strip_prefix("http") {
        Some(rest) => format!("ws{rest}"),
        None => hub_url.to_owned(),
    }
}

/// `GET /agora`: the hub's key and its endpoints.
async fn show_hub(State(context): State<AgoraContext>) -> Response {
    let url = |(name, path): (&str, &str)| {
        let base = if name == WEBSOCKET {
            websocket_url(&context.hub_url)
        } else {
            context.hub_url.clone()
        };
        (name.to_owned(), format!("{base}{path}"))
    };
    let about = HubInfo {
        protocol: VERSION.to_owned(),
        hub: context.state.signer.did().to_owned(),
        window_ms: context.state.settings.window.0,
        endpoints: ENDPOINTS.into_iter().map(url).collect(),
    };
    json_response(200, serde_json::to_string(&about).unwrap_or_default())
}

/// The whole body.
pub struct BodyBytes(pub Bytes);

impl FromRequest<AgoraContext> for BodyBytes {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, context: &AgoraContext) -> Result<Self, ErrorResponse> {
        let (parts, body) = request.into_parts();
        let limit = context.body_limit.min(BODY_MAX);
        let body = body::read_body(&parts.headers, body, limit).await;
        body.map(Self).map_err(|error| ErrorResponse::new(context, errors::from_edge(&error)))
    }
}

/// The name in the path.
pub struct PathParam(pub String);

impl FromRequestParts<AgoraContext> for PathParam {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &AgoraContext,
    ) -> Result<Self, Self::Rejection> {
        // A path that is not valid UTF-8 matches no name.
        let name = Path::<String>::from_request_parts(parts, context).await;
        Ok(Self(name.map_or_else(|_| "\u{fffd}".to_owned(), |Path(name)| name)))
    }
}

/// The query of a URL.
fn query(context: &AgoraContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed(context, bad))
}

fn malformed(context: &AgoraContext, bad: Malformed) -> ErrorResponse {
    ErrorResponse::new(context, Failure::from(bad))
}

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_has_the_scheme_that_belongs_to_the_hubs() {
        assert_eq!(websocket_url("http://127.0.0.1:7425"), "ws://127.0.0.1:7425");
        assert_eq!(websocket_url("https://hub.example"), "wss://hub.example");
    }
}
