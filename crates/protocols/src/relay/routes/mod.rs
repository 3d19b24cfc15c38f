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

use super::refusals::{self, Refused};
use super::shape::{self, Failure};
use super::{Address, Bad};
use crate::adapter::Floor;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// The result of a handler.
pub type Answered = Result<Response, Refused>;

/// An error response with the current time.
pub fn refuse(floor: &Floor, failure: impl Into<Failure>) -> Refused {
    Refused::new(failure, floor.engine.now())
}

/// An engine failure as an error response.
pub fn failed(floor: &Floor, failure: rialto_engine::Failure) -> Refused {
    refuse(floor, refusals::failed(failure))
}

/// Data in the response envelope.
pub fn done(floor: &Floor, status: u16, data: impl FnOnce(&mut Vec<u8>)) -> Response {
    refusals::json(status, shape::answered(floor.engine.now(), 256, data))
}

/// The address in a path.
pub fn address<'a>(floor: &Floor, text: &'a str) -> Option<Address<'a>> {
    Address::read(text, &floor.relay.settings.host).ok()
}

/// The query of a URL.
pub fn query(floor: &Floor, raw: Option<&str>) -> Result<Query, Refused> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed(floor, bad))
}

/// An error in a body or a query.
pub fn malformed(floor: &Floor, bad: Malformed) -> Refused {
    refuse(floor, Bad::from(bad))
}
