//! The operations of the protocol, and helpers that they share.

pub mod agents;
pub mod envelopes;
pub mod inbox;
pub mod overview;
pub mod requests;
pub mod socket;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rialto_core::refusal::Refusal;
use rialto_engine::keys::parse_bearer;

use super::failure::Failure;
use super::intake::EnvelopeError;
use super::token::InboxToken;
use super::{BODY_MAX, refusals, say};
use crate::adapter::{HubContext, body};
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// An error that is signed and sent as a response.
pub struct ErrorResponse(HubContext, EnvelopeError);

/// The return type of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

impl ErrorResponse {
    pub fn new(context: &HubContext, failure: Failure) -> Self {
        Self(context.clone(), failure.into())
    }

    /// The error response for an envelope that was not accepted.
    pub fn from_envelope_error(context: &HubContext, take_error: EnvelopeError) -> Self {
        Self(context.clone(), take_error)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        say::error_response(&self.0, &self.1.failure, self.1.to)
    }
}

/// An agent that reads, identified by its inbox token.
#[derive(Clone, Copy, Debug)]
pub struct InboxReader(pub InboxToken);

impl FromRequestParts<HubContext> for InboxReader {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HubContext,
    ) -> Result<Self, ErrorResponse> {
        let token = read_token(context, &parts.headers);
        if token
            .is_some_and(|token| context.engine.with_world(|world| world.is_suspended(token.agent)))
        {
            return Err(ErrorResponse::new(context, refusals::from_refusal(&Refusal::Suspended)));
        }
        token.map(Self).ok_or_else(|| {
            let text = "a valid inbox token is required: Authorization: Bearer at_…";
            let hint = "a HELLO signed with recipient = the hub and payload.inbox = true gets one";
            ErrorResponse::new(context, Failure::unauthorized(text).with_hint(hint))
        })
    }
}

/// A valid token of a registered agent, suspended or not. All other texts get the same answer.
pub fn read_token(context: &HubContext, headers: &HeaderMap) -> Option<InboxToken> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().and_then(parse_bearer)?;
    let token = context.agora.tokens.read(text, context.engine.now())?;
    let known = context.engine.with_world(|world| {
        world
            .agent(token.agent)
            .is_some_and(|agent| agent.active)
            .then(|| world.is_suspended(token.agent))
    });
    // A call of a suspended agent is refused and does not count as activity.
    if !known? {
        context.engine.record_seen(token.agent);
    }
    Some(token)
}

/// The whole body.
pub struct BodyBytes(pub Bytes);

impl FromRequest<HubContext> for BodyBytes {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, context: &HubContext) -> Result<Self, ErrorResponse> {
        let (parts, body) = request.into_parts();
        let limit = context.body_limit.min(BODY_MAX);
        let body = body::read_body(&parts.headers, body, limit).await;
        body.map(Self).map_err(|error| ErrorResponse::new(context, refusals::from_edge(&error)))
    }
}

/// The name in the path.
pub struct PathParam(pub String);

impl FromRequestParts<HubContext> for PathParam {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HubContext,
    ) -> Result<Self, Self::Rejection> {
        // A path that is not valid UTF-8 matches no name.
        let name = Path::<String>::from_request_parts(parts, context).await;
        Ok(Self(name.map_or_else(|_| "\u{fffd}".to_owned(), |Path(name)| name)))
    }
}

/// The query of a URL.
fn query(context: &HubContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed(context, bad))
}

fn malformed(context: &HubContext, bad: Malformed) -> ErrorResponse {
    ErrorResponse::new(context, bad.into())
}
