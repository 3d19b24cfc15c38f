//! Responses: JSON with exact amounts and RFC 3339 times.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json::{self, Number};
use serde::Serialize;

use super::problem::Problem;

/// Minimum decimals of an amount; up to six where needed.
const DECIMALS_MIN: usize = 2;

/// The result of every handler.
pub type HandlerResult = Result<Response, Problem>;

/// A response with this body.
pub fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_vec(body).unwrap_or_default();
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A 200 response.
pub fn ok_response(body: &impl Serialize) -> Response {
    json_response(StatusCode::OK, body)
}

/// An amount as a JSON number, never converted to a float.
pub fn format_amount(amount: Credits) -> Number {
    raw_json::amount(amount, DECIMALS_MIN)
}

/// RFC 3339 in UTC, such as `2026-03-20T10:00:00.000Z`.
pub fn format_time(moment: Timestamp) -> Time {
    Time::millis(moment)
}
