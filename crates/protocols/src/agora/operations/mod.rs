//! The table of operations, the extractors that they share, and `GET /agora`.

pub mod agents;
pub mod envelopes;
pub mod inbox;
pub mod requests;
pub mod websocket;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::VERSION;
use super::errors::ErrorResponse;
use super::wire::api_doc::*;
use super::wire::error::ENVELOPE_EXAMPLE;
use super::wire::error::Failure;
use super::wire::responses::HubInfo;
use super::wire::responses::{Ack, AckAnswer, AgentEntry, DirectoryPage, InboxPage, RequestView};
use crate::adapter::Access::{Inbox, Public, Signed};
use crate::adapter::Operation;
use crate::adapter::operation::{JSON, ResponseInfo};
use crate::adapter::operation::{get, post};
use crate::agora::AgoraContext;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// The operations of the protocol.
pub fn operations() -> Vec<Operation<AgoraContext>> {
    vec![
        get("", Public, show_hub)
            .summary("Show hub key and endpoints")
            .as_is()
            .responds::<HubInfo>(200, "The hub"),
        post("", Signed, envelopes::post_envelope)
            .summary("Send a signed envelope")
            .query::<WaitQuery>()
            .request::<EnvelopeMembers>(ENVELOPE_EXAMPLE)
            .responds::<SignedEnvelope>(200, "An answer: with `wait` that of the other party")
            .responds::<SignedEnvelope>(202, "The envelope is accepted"),
        post("/envelopes", Signed, envelopes::post_envelope)
            .summary("Send a signed envelope")
            .query::<WaitQuery>()
            .request::<EnvelopeMembers>(ENVELOPE_EXAMPLE)
            .responds::<SignedEnvelope>(200, "An answer: with `wait` that of the other party")
            .responds::<SignedEnvelope>(202, "The envelope is accepted"),
        get("/agents", Public, agents::list)
            .summary("List agents and their capabilities")
            .as_is()
            .query::<AgentsQuery>()
            .responds::<DirectoryPage>(200, "A page of agents"),
        get("/agents/{id}", Public, agents::show)
            .summary("Show an agent's entry")
            .path_param::<KeyParam>()
            .responds::<AgentEntry>(200, "The agent"),
        post("/agents/{id}", Signed, envelopes::post_envelope_to_agent)
            .summary("Send a signed envelope to an agent")
            .path_param::<KeyParam>()
            .query::<WaitQuery>()
            .request::<EnvelopeMembers>(ENVELOPE_EXAMPLE)
            .responds::<SignedEnvelope>(200, "An answer: with `wait` that of the other party")
            .responds::<SignedEnvelope>(202, "The envelope is accepted"),
        get("/inbox", Inbox, inbox::open_inbox)
            .summary("Stream the events of the reader's inbox")
            .streams::<StreamEvent>("Envelopes as they arrive")
            .error(409),
        post("/inbox/ack", Inbox, inbox::ack)
            .summary("Acknowledge everything up to a position")
            .request::<Ack>(r#"{"up_to":42}"#)
            .responds::<AckAnswer>(200, "The state of the inbox"),
        get("/messages", Inbox, inbox::list_messages)
            .summary("List a page of the reader's inbox")
            .query::<MessagesQuery>()
            .responds::<InboxPage<'static>>(200, "A page of envelopes"),
        get("/requests/{id}", Inbox, requests::show)
            .summary("Show the state of a request")
            .path_param::<RequestId>()
            .query::<RequestQuery>()
            .responds::<RequestView>(200, "The request"),
        get("/ws", Signed, websocket::open_socket)
            .summary("Exchange envelopes over a WebSocket")
            .response(ResponseInfo {
                status: 101,
                content_type: JSON,
                schema: None,
                description: "A WebSocket: envelopes as text frames, after a HELLO",
            })
            .responds::<ErrorEnvelope>(426, "The request is no upgrade"),
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
