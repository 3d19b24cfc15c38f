//! Collaboration results.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::error::DEADLINE_EXCEEDED;
use super::reader::{MessageReader, ObjectPart};
use super::words::{ErrorType, string_enum};
use super::{CommonMembers, Kind, MessageBody};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::openclaw::TEXT_MAX;

string_enum! {
    /// The three outcomes.
    ResultStatus {
        /// The work is done.
        Completed = "completed",
        /// The work failed.
        Failed = "failed",
        /// The collaboration was cancelled.
        Cancelled = "cancelled",
    }
}

/// The content of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollaborationResult {
    /// The collaboration it belongs to.
    pub collaboration_id: Uuid,
    /// The request it belongs to.
    pub request_id: Uuid,
    /// The agent that did the work.
    pub responder_agent_id: Uuid,
    /// The outcome with its details.
    pub outcome: ResultOutcome,
    /// How long the work took.
    pub execution_duration_ms: Option<i64>,
    /// When the work was done.
    pub completed_at: Option<Timestamp>,
    /// The request's correlation id.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

/// The outcome of a collaboration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultOutcome {
    /// The work is done. The output is the exact JSON text of an object.
    Completed {
        /// The JSON text of the output.
        output_data: Box<str>,
    },
    /// There is no output because of an error.
    Failed(ResultError),
    /// There is no output because a party cancelled.
    Cancelled {
        /// Why it was cancelled (not in the spec).
        reason: Option<String>,
    },
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultError {
    /// The code of the error.
    pub code: String,
    /// The error as text for people.
    pub message: String,
    /// Whether the error is transient.
    pub error_type: Option<ErrorType>,
    /// Details: the exact JSON text of an object.
    pub details: Option<Box<str>>,
    /// Whether a repeated request can succeed. Follows from the error type when it is missing.
    pub retryable: bool,
    /// How long to wait before a repeat.
    pub retry_after_seconds: Option<u32>,
}

impl ResultError {
    /// The error of work that was not done in time (R82).
    pub fn deadline_exceeded() -> Self {
        Self {
            code: DEADLINE_EXCEEDED.to_owned(),
            message: "no result arrived in time".to_owned(),
            error_type: Some(ErrorType::Transient),
            details: None,
            retryable: true,
            retry_after_seconds: None,
        }
    }

    /// Reads the error from the stored JSON text of a result.
    pub fn read(result: &str) -> Option<Self> {
        let json = ijson::read(result.as_bytes()).ok()?;
        let mut reader = MessageReader::unchecked(Kind::Result, &json);
        let error = reader.root().part("error");
        Self::find(&mut reader, &error)
    }

    fn find(r: &mut MessageReader<'_, '_>, error: &ObjectPart<'_, '_>) -> Option<Self> {
        let code = r.bounded(error, "code", TEXT_MAX);
        let message = r.bounded(error, "message", TEXT_MAX);
        let error_type = error.text("error_type").and_then(ErrorType::read);
        let retryable = r.flag(error, "retryable");
        let after = r.number(error, "retry_after_seconds");
        Some(Self {
            code: code?,
            message: message?,
            error_type,
            details: error.object("details"),
            retryable: retryable.unwrap_or(error_type.is_some_and(ErrorType::is_retryable)),
            retry_after_seconds: after.and_then(|seconds| u32::try_from(seconds).ok()),
        })
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .text("code", &self.code)
            .text("message", &self.message)
            .maybe_text("error_type", self.error_type.map(ErrorType::as_str))
            .maybe_raw("details", self.details.as_deref())
            .flag("retryable", self.retryable)
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .finish()
    }
}

impl MessageBody for CollaborationResult {
    const KIND: Kind = Kind::Result;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let status = whole.text("result_status").and_then(ResultStatus::read);
        match status {
            Some(ResultStatus::Completed) => {
                r.require_when(&whole, "output_data", "result_status is completed");
            }
            Some(ResultStatus::Failed) => {
                r.require_when(&whole, "error", "result_status is failed")
            }
            Some(ResultStatus::Cancelled) | None => {}
        }
        let error = whole.part("error");
        let error = if error.exists() { ResultError::find(r, &error) } else { None };
        let reason = r.bounded(&whole, "reason", TEXT_MAX);
        let collaboration_id = r.uuid(&whole, "collaboration_id");
        let request_id = r.uuid(&whole, "request_id");
        let responder_agent_id = r.uuid(&whole, "responder_agent_id");
        let execution_duration_ms = r.number(&whole, "execution_duration_ms");
        let completed_at = r.time(&whole, "completed_at");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        let outcome = match status? {
            ResultStatus::Completed => {
                ResultOutcome::Completed { output_data: whole.object("output_data")? }
            }
            ResultStatus::Failed => ResultOutcome::Failed(error?),
            ResultStatus::Cancelled => ResultOutcome::Cancelled { reason },
        };
        Some(Self {
            collaboration_id: collaboration_id?,
            request_id: request_id?,
            responder_agent_id: responder_agent_id?,
            outcome,
            execution_duration_ms,
            completed_at,
            correlation_id: correlation_id?,
            timestamp: timestamp?,
        })
    }
}

impl CollaborationResult {
    /// Its `result_status`.
    pub fn status(&self) -> ResultStatus {
        match self.outcome {
            ResultOutcome::Completed { .. } => ResultStatus::Completed,
            ResultOutcome::Failed(_) => ResultStatus::Failed,
            ResultOutcome::Cancelled { .. } => ResultStatus::Cancelled,
        }
    }

    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let object = ObjectWriter::new()
            .uuid("collaboration_id", self.collaboration_id)
            .uuid("request_id", self.request_id)
            .uuid("responder_agent_id", self.responder_agent_id)
            .text("result_status", self.status().as_str());
        let object = match &self.outcome {
            ResultOutcome::Completed { output_data } => object.raw("output_data", output_data),
            ResultOutcome::Failed(error) => object.raw("error", &error.write()),
            ResultOutcome::Cancelled { reason } => object.maybe_text("reason", reason.as_deref()),
        };
        let object = object
            .maybe_integer("execution_duration_ms", self.execution_duration_ms)
            .maybe_time("completed_at", self.completed_at);
        let common =
            CommonMembers { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.write_to(object).finish()
    }
}
