//! The members that every message may have: version, correlation id and time.

use rialto_core::time::Timestamp;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::VERSION;
use super::codes::Code;
use super::failure::Failure;
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::object::ObjectWriter;

/// The three members of every body that the hub sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonMembers {
    /// The request's correlation id, or one that the hub generated (R4).
    pub correlation_id: Uuid,
    /// When the body was written.
    pub timestamp: Timestamp,
}

impl CommonMembers {
    /// Adds the three members to an object.
    pub fn write_to(self, object: ObjectWriter) -> ObjectWriter {
        object
            .text("protocol_version", VERSION)
            .uuid("correlation_id", self.correlation_id)
            .time("timestamp", self.timestamp)
    }
}

/// The version that a message declares; ours when it declares none (R75).
pub fn read_version(json: &Json<'_>) -> Result<String, Failure> {
    let given = match json.get("protocol_version").map(Json::value) {
        None => return Ok(VERSION.to_owned()),
        Some(JsonValue::String(text)) => text.as_ref(),
        Some(_) => "",
    };
    let parts: Vec<_> = given.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit())
    };
    if parts.len() != 3 || !parts.iter().all(number) {
        let wrong = "protocol_version must be a version like \"1.0.0\"";
        return Err(Failure::with_violations(vec![wrong.to_owned()]).in_answer_to(json));
    }
    if parts[0].trim_start_matches('0') != "1" {
        let message = "protocol_version must be 1.x.y: other major versions are not supported";
        return Err(Failure::new(Code::UnsupportedVersion, message).in_answer_to(json));
    }
    Ok(given.to_owned())
}

/// The correlation id of a message, even when the rest of it is invalid (R81).
pub fn read_correlation_id(json: &Json<'_>) -> Option<Uuid> {
    read_uuid(json.get("correlation_id")?)
}

/// Reads a UUID in its hyphenated form.
pub(super) fn read_uuid(json: &Json<'_>) -> Option<Uuid> {
    let JsonValue::String(text) = json.value() else { return None };
    text.parse::<Hyphenated>().ok().map(Hyphenated::into_uuid)
}
