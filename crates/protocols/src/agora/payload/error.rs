//! ERROR: work that will not be done, or a message that was refused.

use super::{fields, whole};
use crate::agora::ID_MAX;
use crate::agora::codes::Code;
use crate::agora::failure::Failure;
use crate::kit::ijson::{Json, Kind};
use crate::kit::object::Object;

/// What went wrong, as its sender tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<'a> {
    /// The number, which may be none of the eight.
    pub number: i64,
    /// What people are told.
    pub message: &'a str,
    /// The REQUEST it is about.
    pub request_id: Option<&'a str>,
    /// Whether the hub says that trying again can help.
    pub retryable: Option<bool>,
    /// What the hub says to do.
    pub hint: Option<&'a str>,
}

impl<'a> Failed<'a> {
    /// Reads a payload. The hub's own members are told to people only, so that nobody is refused
    /// for using their names otherwise.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let retryable = match f.get("retryable").map(Json::kind) {
            Some(Kind::Bool(flag)) => Some(*flag),
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

    /// What the number means; one that is none of the eight is 500 (R59).
    pub fn code(&self) -> Code {
        Code::read(self.number)
    }

    /// Writes the payload an agent sends; the hub's comes from [`Failure::payload`].
    pub fn write(&self) -> String {
        Object::new()
            .whole("code", self.number)
            .text("message", self.message)
            .maybe_text("request_id", self.request_id)
            .finish()
    }
}
