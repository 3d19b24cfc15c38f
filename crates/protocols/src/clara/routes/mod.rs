//! The operations of the protocol, and helpers that they share.

pub mod compute;
pub mod messages;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::failure::Failure;
use super::{BODY_MAX, intake};
use crate::adapter::{HubContext, body};

/// The return type of a handler.
pub type HandlerResult = Result<Response, Failure>;

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut answer = json_response(self.status, self.body());
        if let Some(seconds) = self.retry_after_seconds {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}

/// The whole body.
pub struct BodyBytes(pub Bytes);

impl FromRequest<HubContext> for BodyBytes {
    type Rejection = Failure;

    async fn from_request(request: Request, context: &HubContext) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let limit = context.body_limit.min(BODY_MAX);
        let body = body::read_body(&parts.headers, body, limit).await;
        body.map(Self).map_err(|error| intake::from_edge(&error))
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
