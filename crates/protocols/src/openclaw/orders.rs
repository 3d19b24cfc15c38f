//! The two small bodies that are not messages of the protocol: approve and cancel.

use uuid::Uuid;

use super::TEXT_MAX;
use super::common;
use super::failure::Failure;
use crate::kit::fields::Fields;
use crate::kit::ijson;

/// `POST …/approve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApproveBody {
    /// Whether the work is approved.
    pub approved: bool,
    /// The id that traces the request.
    pub correlation_id: Option<Uuid>,
}

/// `POST …/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelBody {
    /// Why it is cancelled.
    pub reason: Option<String>,
    /// The id that traces the request.
    pub correlation_id: Option<Uuid>,
}

impl ApproveBody {
    /// Reads the body.
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        const EXAMPLE: &str = r#"{"approved":true}"#;
        let json = ijson::read(body).map_err(|bad| Failure::from(bad).with_example(EXAMPLE))?;
        common::read_version(&json)?;
        let wrong = |bad| Failure::from(bad).with_example(EXAMPLE).in_answer_to(&json);
        let f = Fields::read(&json, "").map_err(wrong)?;
        let approved = f.flag("approved").and_then(|flag| f.required("approved", flag));
        let correlation_id = common::read_correlation_id(&json);
        Ok(Self { approved: approved.map_err(wrong)?, correlation_id })
    }
}

impl CancelBody {
    /// Reads the body. An empty body gives no reason.
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        const EXAMPLE: &str = r#"{"reason":"no longer needed"}"#;
        if body.is_empty() {
            return Ok(Self::default());
        }
        let json = ijson::read(body).map_err(|bad| Failure::from(bad).with_example(EXAMPLE))?;
        common::read_version(&json)?;
        let wrong = |bad| Failure::from(bad).with_example(EXAMPLE).in_answer_to(&json);
        let f = Fields::read(&json, "").map_err(wrong)?;
        let reason = f.text("reason").map_err(wrong)?;
        if reason.is_some_and(|reason| reason.chars().count() > TEXT_MAX) {
            return Err(wrong(
                f.malformed("reason", format!("has more than {TEXT_MAX} characters")),
            ));
        }
        let correlation_id = common::read_correlation_id(&json);
        Ok(Self { reason: reason.map(str::to_owned), correlation_id })
    }
}
