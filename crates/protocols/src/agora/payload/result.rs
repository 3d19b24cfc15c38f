//! RESULT: the result of a request, or a part of it.

use super::{fields, id, object_text};
use crate::agora::failure::Failure;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

/// The content of a RESULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPayload<'a> {
    /// The REQUEST it is for.
    pub request_id: &'a str,
    /// Whether it is complete.
    pub status: ResultStatus,
    /// The result: JSON text of an object.
    pub data: &'a str,
}

/// Whether a result is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultStatus {
    /// The whole result.
    Success,
    /// A part; more will follow.
    Partial,
    /// The last part: `partial` with `final` (R42).
    FinalPartial,
}

impl ResultStatus {
    /// Whether this ends the request.
    pub fn is_final(self) -> bool {
        self != Self::Partial
    }
}

impl<'a> ResultPayload<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let request_id = id(&f, "request_id")?;
        let last = f.flag("final")?.unwrap_or(false);
        let status = match f.required_text("status")? {
            "success" => ResultStatus::Success,
            "partial" if last => ResultStatus::FinalPartial,
            "partial" => ResultStatus::Partial,
            _ => {
                let failure =
                    Failure::from(f.malformed("status", "must be \"success\" or \"partial\""));
                return Err(failure.with_hint("report failed work with an ERROR"));
            }
        };
        Ok(Self { request_id, status, data: object_text(&f, "data")? })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let whole = self.status == ResultStatus::Success;
        let last = (self.status == ResultStatus::FinalPartial).then_some("true");
        ObjectWriter::new()
            .text("request_id", self.request_id)
            .text("status", if whole { "success" } else { "partial" })
            .maybe_raw("final", last)
            .raw("data", self.data)
            .finish()
    }
}
