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
use rialto_engine::keys::bearer;

use super::failure::Failure;
use super::intake::Untaken;
use super::token::Token;
use super::{BODY_MAX, refusals, say};
use crate::adapter::{Floor, body};
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// An error that is signed and sent as a response.
pub struct Refused(Floor, Untaken);

/// The return type of a handler.
pub type Answered = Result<Response, Refused>;

impl Refused {
    pub fn new(floor: &Floor, failure: Failure) -> Self {
        Self(floor.clone(), failure.into())
    }

    /// The error response for an envelope that was not accepted.
    pub fn untaken(floor: &Floor, untaken: Untaken) -> Self {
        Self(floor.clone(), untaken)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        say::refuse(&self.0, &self.1.failure, self.1.to)
    }
}

/// An agent that reads, identified by its inbox token.
#[derive(Clone, Copy, Debug)]
pub struct Reader(pub Token);

impl FromRequestParts<Floor> for Reader {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let token = read_token(floor, &parts.headers);
        if token.is_some_and(|token| floor.engine.look(|world| world.is_suspended(token.agent))) {
            return Err(Refused::new(floor, refusals::refused(&Refusal::Suspended)));
        }
        token.map(Self).ok_or_else(|| {
            let text = "a valid inbox token is required: Authorization: Bearer at_…";
            let hint = "a HELLO signed with recipient = the hub and payload.inbox = true gets one";
            Refused::new(floor, Failure::unauthorized(text).with_hint(hint))
        })
    }
}

/// A valid token of a registered agent, suspended or not. All other texts get the same answer.
pub fn read_token(floor: &Floor, headers: &HeaderMap) -> Option<Token> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().and_then(bearer)?;
    let token = floor.agora.tokens.read(text, floor.engine.now())?;
    let known = floor.engine.look(|world| {
        world
            .agent(token.agent)
            .is_some_and(|agent| agent.active)
            .then(|| world.is_suspended(token.agent))
    });
    // A call of a suspended agent is refused and does not count as activity.
    if !known? {
        floor.engine.seen(token.agent);
    }
    Some(token)
}

/// The whole body.
pub struct Sent(pub Bytes);

impl FromRequest<Floor> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request, floor: &Floor) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let limit = floor.body_limit.min(BODY_MAX);
        let body = body::read(&parts.headers, body, limit).await;
        body.map(Self).map_err(|trouble| Refused::new(floor, refusals::trouble(&trouble)))
    }
}

/// The name in the path.
pub struct Named(pub String);

impl FromRequestParts<Floor> for Named {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Self::Rejection> {
        // A path that is not valid UTF-8 matches no name.
        let name = Path::<String>::from_request_parts(parts, floor).await;
        Ok(Self(name.map_or_else(|_| "\u{fffd}".to_owned(), |Path(name)| name)))
    }
}

/// The query of a URL.
fn query(floor: &Floor, raw: Option<&str>) -> Result<Query, Refused> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed(floor, bad))
}

fn malformed(floor: &Floor, bad: Malformed) -> Refused {
    Refused::new(floor, bad.into())
}
