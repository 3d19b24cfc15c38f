//! The operations of the protocol, and helpers that they share.

pub mod agents;
pub mod answers;
mod aside;
pub mod ask;
pub mod choice;
pub mod collaborations;
pub mod identity;
pub mod list;
pub mod messages;
mod offering;
pub mod overview;
mod repeat;
pub mod reports;
mod settle;
pub mod stream;

use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::failure::Failure;
use super::refusals;
use super::say::ErrorResponse;
use crate::adapter::HubContext;
use crate::kit::query::Query;

/// The query of a URL.
fn query(context: &HubContext, raw: Option<&str>) -> Result<Query, ErrorResponse> {
    let query = Query::read(raw.unwrap_or_default());
    query.map_err(|bad| ErrorResponse::new(context, bad.into()))
}

/// An error in answer to a message with that correlation id.
fn about(context: &HubContext, failure: Failure, correlation_id: Option<Uuid>) -> ErrorResponse {
    let correlation_id = failure.correlation_id.or(correlation_id);
    ErrorResponse::new(context, Failure { correlation_id, ..failure })
}

/// The error for an engine failure, in answer to a message with that correlation id.
fn failed(
    context: &HubContext,
    failure: &EngineFailure,
    correlation_id: Option<Uuid>,
) -> ErrorResponse {
    about(context, refusals::from_engine(failure), correlation_id)
}
