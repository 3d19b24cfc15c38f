//! What each path does.

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
use crate::face::Floor;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;

/// What a handler gives back.
pub type Answered = Result<Response, Refused>;

/// A refusal, now.
pub fn refuse(floor: &Floor, failure: impl Into<Failure>) -> Refused {
    Refused::new(failure, floor.engine.now())
}

/// What the engine could not do.
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

/// The question of a URL.
pub fn query(floor: &Floor, raw: Option<&str>) -> Result<Query, Refused> {
    Query::read(raw.unwrap_or_default()).map_err(|bad| malformed(floor, bad))
}

/// What a body or a question has wrong.
pub fn malformed(floor: &Floor, bad: Malformed) -> Refused {
    refuse(floor, Bad::from(bad))
}
