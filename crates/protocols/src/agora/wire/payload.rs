//! Payloads of each message type (section 2.4), read and written by the same types on both sides.
//!
//! Numbers are read from their canonical text (R20): `10000.0` and `1e4` have the same signature as
//! `10000`, so they are the same timeout. Unknown members are ignored.

pub mod accept;
pub mod capability;
pub mod error;
pub mod hello;
pub mod offer;
pub mod request;
pub mod result;
pub mod status;
pub mod welcome;

pub use accept::Accept;
pub use capability::Capability;
pub use error::ErrorPayload;
pub use hello::Hello;
pub use offer::Offer;
pub use request::{Budget, Request};
pub use result::ResultPayload;
pub use status::{AgentStatus, MessageStatus, StatusUpdate};
pub use welcome::Welcome;

use rialto_core::money::Credits;

use super::envelope::Envelope;
use super::failure::Failure;
use super::kind::MessageType;
use super::{DECIMALS, ID_MAX};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, Json};
use crate::kit::jcs;

/// The payload of a message, by its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Requested work.
    Request(Request<'a>),
    /// Terms for the work.
    Offer(Offer<'a>),
    /// Accepted terms.
    Accept(Accept<'a>),
    /// A result.
    Result(ResultPayload<'a>),
    /// There will be no result.
    Error(ErrorPayload<'a>),
    /// HELLO, WELCOME and STATUS: any object is valid (R60). The receiver reads it with
    /// [`Hello::read`], [`Welcome::read`], [`StatusUpdate::read`] or [`MessageStatus::read`].
    Unspecified,
}

impl<'a> Payload<'a> {
    /// Reads the payload of an envelope by its type.
    pub fn read(envelope: &Envelope<'a>) -> Result<Self, Failure> {
        let payload = envelope.payload;
        Ok(match envelope.message_type {
            MessageType::Request => Self::Request(Request::read(payload)?),
            MessageType::Offer => Self::Offer(Offer::read(payload)?),
            MessageType::Accept => Self::Accept(Accept::read(payload)?),
            MessageType::Result => Self::Result(ResultPayload::read(payload)?),
            MessageType::Error => Self::Error(ErrorPayload::read(payload)?),
            MessageType::Hello | MessageType::Welcome | MessageType::Status => Self::Unspecified,
        })
    }
}

/// The members of a payload.
fn fields<'a, 'b>(payload: &'b Json<'a>) -> Result<Fields<'a, 'b>, Malformed> {
    Fields::read(payload, "/payload")
}

/// An amount, read from the signed number.
fn amount(f: &Fields<'_, '_>, name: &str) -> Result<Option<Credits>, Malformed> {
    let Some(number) = number(f, name, "must be a number")? else { return Ok(None) };
    Credits::parse(&number, DECIMALS).map(Some).map_err(|bad| f.malformed(name, bad))
}

/// An integer, read from the signed number.
fn whole(f: &Fields<'_, '_>, name: &str) -> Result<Option<i64>, Malformed> {
    const WANTED: &str = "must be a whole number";
    let Some(number) = number(f, name, WANTED)? else { return Ok(None) };
    number.parse().map(Some).map_err(|_| f.malformed(name, WANTED))
}

/// The canonical text of a number.
fn number(f: &Fields<'_, '_>, name: &str, wanted: &str) -> Result<Option<String>, Malformed> {
    match f.get(name).map(Json::value) {
        None => Ok(None),
        Some(ijson::JsonValue::Number(digits)) => {
            jcs::canonical_number(digits).map(Some).map_err(|bad| f.malformed(name, bad))
        }
        Some(_) => Err(f.malformed(name, wanted)),
    }
}

/// The id of another envelope (R51).
fn id<'b>(f: &Fields<'_, 'b>, name: &str) -> Result<&'b str, Malformed> {
    f.required_name(name, ID_MAX)
}

/// The exact text of an object.
fn object_text<'b>(f: &Fields<'_, 'b>, name: &str) -> Result<&'b str, Malformed> {
    f.required(name, f.object(name)?)?;
    Ok(f.get(name).map_or("{}", Json::raw))
}

#[cfg(test)]
mod tests;
