//! A peer's HTTP routes: those of a hub that make sense for a single agent.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::agora::wire::responses::HubInfo;
use rialto_protocols::agora::{BODY_MAX, Code, Failure, VERSION, WINDOW};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::net::TcpListener;

use super::service::EnvelopeService;
use crate::agent::direct::journal::Journal;
use crate::agora::handler::Handler;
use crate::agora::identity::Identity;
use crate::clock;
use crate::http_server::{self, BodyError, HttpResponse, has_content_encoding};

/// Path for envelopes to one agent; its key follows.
const AGENTS: &str = "/agora/agents/";

/// Serves envelopes at `/agora`, `/agora/envelopes` and `/agora/agents/{key}` of `listener` until
/// `stop`; running requests may then finish. Messages are kept in memory only, so envelopes signed
/// before the start are refused.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    identity: Identity,
    handler: Arc<H>,
    stop: impl Future<Output = ()>,
) {
    let agent_state =
        Arc::new(EnvelopeService::new(identity, handler, None, (Journal::disabled(), Vec::new())));
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let agent_state = Arc::clone(&agent_state);
        async move { route(&agent_state, &head, body).await }
    };
    http_server::serve(listener, BODY_MAX, answer, stop).await;
}

/// Handles one request.
pub(super) async fn route<H: Handler>(
    agent_state: &Arc<EnvelopeService<H>>,
    head: &Parts,
    body: Result<Bytes, BodyError>,
) -> HttpResponse {
    let path = head.uri.path().trim_end_matches('/');
    let to = match path {
        "/agora" | "/agora/envelopes" => None,
        _ => match path.strip_prefix(AGENTS).map(parse_key_segment) {
            Some(Some(key)) => Some(key),
            _ => return agent_state.refuse(&Failure::new(Code::NotFound, "unknown path"), None),
        },
    };
    if head.method == Method::GET && path == "/agora" {
        return about(agent_state.identity());
    }
    if head.method != Method::POST {
        let failure =
            Failure { http_status: 405, ..Failure::bad_request("envelopes are sent with POST") };
        let allow = Some(if path == "/agora" { "GET, POST" } else { "POST" });
        return HttpResponse { allow, ..agent_state.refuse(&failure, None) };
    }
    match body {
        Ok(_) if has_content_encoding(&head.headers) => {
            agent_state.refuse(&Failure::encoded_body(), None)
        }
        Ok(body) => agent_state.answer(&body, to, clock::now()).await,
        Err(BodyError::TooLong) => agent_state.refuse(&Failure::too_large(), None),
        Err(BodyError::Incomplete) => {
            agent_state.refuse(&Failure::bad_request("the body is incomplete"), None)
        }
        Err(BodyError::TimedOut) => {
            agent_state.refuse(&Failure::new(Code::Timeout, "the body took too long"), None)
        }
    }
}

/// The key in a path. Colons may be escaped; keys contain nothing else to escape.
fn parse_key_segment(segment: &str) -> Option<PublicKey> {
    PublicKey::parse(&segment.replace("%3A", ":").replace("%3a", ":")).ok()
}

/// The agent's own description, in the hub's format: to callers, a peer is a hub with one agent.
fn about(identity: &Identity) -> HttpResponse {
    let endpoints = [("envelopes", "/agora/envelopes"), ("agents", "/agora/agents")];
    let about = HubInfo {
        protocol: VERSION.to_owned(),
        hub: identity.did().to_owned(),
        window_ms: WINDOW.0,
        endpoints: endpoints.map(|(name, path)| (name.to_owned(), path.to_owned())).into(),
    };
    let body = serde_json::to_vec(&about).unwrap_or_default();
    HttpResponse { status: 200, body, ..HttpResponse::default() }
}
