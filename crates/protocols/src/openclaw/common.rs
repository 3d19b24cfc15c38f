//! The members that every message may have: version, correlation id and time.

use rialto_core::time::Timestamp;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::VERSION;
use super::codes::Code;
use super::failure::Failure;
use crate::kit::ijson::{Json, Kind};
use crate::kit::object::Object;

/// The three members of every body that the hub sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// The request's correlation id, or one that the hub generated (R4).
    pub correlation_id: Uuid,
    /// When the body was written.
    pub timestamp: Timestamp,
}

impl Common {
    /// Adds the three members to an object.
    pub fn on(self, object: Object) -> Object {
        object
            .text("protocol_version", VERSION)
            .id("correlation_id", self.correlation_id)
            .time("timestamp", self.timestamp)
    }
}

/// The version that a message declares; ours when it declares none (R75).
pub fn version(json: &Json<'_>) -> Result<String, Failure> {
    let given = match json.get("protocol_version").map(Json::kind) {
        None => return Ok(VERSION.to_owned()),
        Some(Kind::Text(text)) => text.as_ref(),
        Some(_) => "",
    };
    let parts: Vec<_> = given.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit())
    };
    if parts.len() != 3 || !parts.iter().all(number) {
        let wrong = "protocol_version must be a version like \"1.0.0\"";
        return Err(Failure::violated(vec![wrong.to_owned()]).about(json));
    }
    if parts[0].trim_start_matches('0') != "1" {
        let message = "protocol_version must be 1.x.y: other major versions are not supported";
        return Err(Failure::new(Code::UnsupportedVersion, message).about(json));
    }
    Ok(given.to_owned())
}

/// The correlation id of a message, even when the rest of it is invalid (R81).
pub fn correlation_id(json: &Json<'_>) -> Option<Uuid> {
    uuid(json.get("correlation_id")?)
}

/// Reads a UUID in its hyphenated form.
pub(super) fn uuid(json: &Json<'_>) -> Option<Uuid> {
    let Kind::Text(text) = json.kind() else { return None };
    text.parse::<Hyphenated>().ok().map(Hyphenated::into_uuid)
}
