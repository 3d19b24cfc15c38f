//! HTTP responses of this protocol.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use super::common::CommonMembers;
use super::failure::Failure;
use crate::adapter::HubContext;

/// The header with the id of the job that an answer is about (B18).
pub const JOB_HEADER: &str = "rialto-job";

/// An error response. It gets the hub's time and, if it answers no message, a new correlation id.
pub struct ErrorResponse(HubContext, Box<Failure>);

/// The return type of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

impl ErrorResponse {
    pub fn new(context: &HubContext, failure: Failure) -> Self {
        Self(context.clone(), Box::new(failure))
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        error_response(&self.0, &self.1)
    }
}

/// An error as a response.
pub fn error_response(context: &HubContext, failure: &Failure) -> Response {
    let engine = &context.engine;
    let mut answer =
        text_response(failure.http_status, failure.write(engine.random().new_uuid(), engine.now()));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// The three common members of an answer to a message with this correlation id, if any.
pub fn common_members(context: &HubContext, correlation_id: Option<Uuid>) -> CommonMembers {
    let correlation_id = correlation_id.unwrap_or_else(|| context.engine.random().new_uuid());
    CommonMembers { correlation_id, timestamp: context.engine.now() }
}

/// A value as a JSON response.
pub fn json_response(status: u16, body: &impl Serialize) -> Response {
    text_response(status, serde_json::to_string(body).unwrap_or_default())
}

/// JSON text as a response.
pub fn text_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}
