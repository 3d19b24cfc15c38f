//! The error object (section 2.4): the one form of every error, written by the hub and read by
//! clients.

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::common::CommonMembers;
use super::failure::Failure;
use super::state::ErrorType;
use crate::kit::object::{ObjectWriter, string_array};

/// An error body as a client reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The protocol version of the answer.
    pub protocol_version: String,
    /// The correlation id of the message it answers.
    pub correlation_id: String,
    /// When the answer was written.
    pub timestamp: String,
    /// The error.
    pub error: ErrorObject,
}

/// The error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorObject {
    /// One of [`super::Code`]; other hubs may use other codes.
    pub code: String,
    /// The error as text for people.
    pub message: String,
    /// Whether the error is transient.
    pub error_type: ErrorType,
    /// Whether a retry can succeed.
    pub retryable: bool,
    /// How long to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// Details such as `StatusDetails`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
}

/// The details of an invalid message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// Every violation, one sentence each.
    #[serde(default)]
    pub validation_errors: Vec<String>,
}

impl ErrorObject {
    /// The violations that a 400 lists; empty for other errors.
    pub fn violations(&self) -> Vec<String> {
        let details =
            self.details.as_ref().map(|raw| serde_json::from_str::<ErrorDetails>(raw.get()));
        details.and_then(Result::ok).unwrap_or_default().validation_errors
    }
}

impl Failure {
    /// The body of the answer. `made` is the correlation id for a message that had none (R4).
    pub fn write(&self, made: Uuid, at: Timestamp) -> String {
        let details = (!self.violations.is_empty() || self.example.is_some()).then(|| {
            let listed = string_array(self.violations.iter().map(String::as_str));
            let listed = (!self.violations.is_empty()).then_some(listed);
            ObjectWriter::new()
                .maybe_raw("validation_errors", listed.as_deref())
                .maybe_raw("example", self.example)
                .finish()
        });
        let error = ObjectWriter::new()
            .text("code", self.code.as_str())
            .text("message", &self.message)
            .text("error_type", ErrorType::of(self.retryable).as_str())
            .flag("retryable", self.retryable)
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .maybe_raw("details", details.as_deref())
            .finish();
        let correlation_id = self.correlation_id.unwrap_or(made);
        CommonMembers { correlation_id, timestamp: at }
            .write_to(ObjectWriter::new())
            .raw("error", &error)
            .finish()
    }
}
