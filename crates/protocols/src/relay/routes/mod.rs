//! The handlers of this protocol's operations.

pub mod agents;
pub mod blocks;
pub mod history;
pub mod inbox;
pub mod messages;
pub mod overview;
pub mod receive;
pub mod traced;

use axum::response::Response;

use super::refusals::{self, ErrorResponse};
use super::shape::{self, Failure};
use super::{Address, InvalidBody};
use crate::adapter::HubContext;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// The result of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

/// An error response with the current time.
pub fn error_response(context: &HubContext, failure: impl Into<Failure>) -> ErrorResponse {
    ErrorResponse::new(failure, context.engine.now())
}

/// An engine failure as an error response.
pub fn engine_error(context: &HubContext, failure: rialto_engine::Failure) -> ErrorResponse {
    error_response(context, refusals::from_engine(failure))
}

/// Data in the response envelope.
pub fn success(context: &HubContext, status: u16, data: impl FnOnce(&mut Vec<u8>)) -> Response {
    refusals::json_response(status, shape::success_response_with(context.engine.now(), 256, data))
}

/// The address in a path.
pub fn read_address<'a>(context: &HubContext, text: &'a str) -> Option<Address<'a>> {
    Address::read(text, &context.relay.settings.host).ok()
}

/// The query of a URL.
pub fn read_query(context: &HubContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed_error(context, bad))
}

/// An error in a body or a query.
pub fn malformed_error(context: &HubContext, bad: Malformed) -> ErrorResponse {
    error_response(context, InvalidBody::from(bad))
}
