//! RESULT: the result of a request, or a part of it.

use super::{fields, id, object_text};
use crate::agora::failure::Failure;
use crate::kit::ijson::Json;
use crate::kit::object::Object;

/// The content of a RESULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    /// The REQUEST it is for.
    pub request_id: &'a str,
    /// Whether it is complete.
    pub status: Status,
    /// The result: JSON text of an object.
    pub data: &'a str,
}

/// Whether a result is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The whole result.
    Success,
    /// A part; more will follow.
    Partial,
    /// The last part: `partial` with `final` (R42).
    LastPartial,
}

impl Status {
    /// Whether this ends the request.
    pub fn completes(self) -> bool {
        self != Self::Partial
    }
}

impl<'a> Output<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let request_id = id(&f, "request_id")?;
        let last = f.flag("final")?.unwrap_or(false);
        let status = match f.required_text("status")? {
            "success" => Status::Success,
            "partial" if last => Status::LastPartial,
            "partial" => Status::Partial,
            _ => {
                let failure = Failure::from(f.fail("status", "must be \"success\" or \"partial\""));
                return Err(failure.with_hint("report failed work with an ERROR"));
            }
        };
        Ok(Self { request_id, status, data: object_text(&f, "data")? })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let whole = self.status == Status::Success;
        let last = (self.status == Status::LastPartial).then_some("true");
        Object::new()
            .text("request_id", self.request_id)
            .text("status", if whole { "success" } else { "partial" })
            .maybe_raw("final", last)
            .raw("data", self.data)
            .finish()
    }
}
