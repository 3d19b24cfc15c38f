//! ERROR: work that will not be done, or a message that was refused.

use super::{fields, whole};
use crate::agora::ID_MAX;
use crate::agora::codes::Code;
use crate::agora::failure::Failure;
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::object::ObjectWriter;

/// The content of an ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPayload<'a> {
    /// The number, which may not be one of the eight codes.
    pub number: i64,
    /// The error as text for people.
    pub message: &'a str,
    /// The REQUEST it is about.
    pub request_id: Option<&'a str>,
    /// Whether a retry can succeed, according to the hub.
    pub retryable: Option<bool>,
    /// What to do, according to the hub.
    pub hint: Option<&'a str>,
}

impl<'a> ErrorPayload<'a> {
    /// Reads a payload. The hub's own members are only shown to people, so other uses of their
    /// names are not refused.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let retryable = match f.get("retryable").map(Json::value) {
            Some(JsonValue::Bool(flag)) => Some(*flag),
            _ => None,
        };
        Ok(Self {
            number: f.required("code", whole(&f, "code")?)?,
            message: f.required_text("message")?,
            request_id: f.name("request_id", ID_MAX)?,
            retryable,
            hint: f.text("hint").ok().flatten(),
        })
    }

    /// The code of the number. A number that is not one of the eight counts as 500 (R59).
    pub fn code(&self) -> Code {
        Code::read(self.number)
    }

    /// Writes the payload of an agent's ERROR; [`Failure::payload`] writes the hub's.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .integer("code", self.number)
            .text("message", self.message)
            .maybe_text("request_id", self.request_id)
            .finish()
    }
}
