//! Collaboration responses: whether a request is accepted.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::error::Rejected;
use super::reader::{MessageReader, ObjectPart};
use super::words::string_enum;
use super::{CommonMembers, Kind, MessageBody};
use crate::kit::ijson;
use crate::kit::object::{ObjectWriter, string_array};
use crate::openclaw::TEXT_MAX;

string_enum! {
    /// The three responses.
    ResponseStatus {
        /// The work will be done.
        Accepted = "accepted",
        /// The work will not be done.
        Rejected = "rejected",
        /// The decision comes later.
        Deferred = "deferred",
    }
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The request it answers.
    pub request_id: Uuid,
    /// The agent that responds; the hub's id when no agent could be found (R84).
    pub responder_agent_id: Uuid,
    /// The answer.
    pub answer: ResponseAnswer,
    /// The request's correlation id.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
    /// The result, once there is one, as the exact text of its message (R64).
    pub result: Option<Box<str>>,
}

/// The answer with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseAnswer {
    /// The work will be done.
    Accepted {
        /// The id of the collaboration.
        collaboration_id: Uuid,
        /// When the result is expected.
        estimated_completion: Option<Timestamp>,
    },
    /// The work will not be done.
    Rejected(Rejection),
    /// The decision comes later.
    Deferred {
        /// When the request is decided again.
        until: Timestamp,
    },
}

/// Why a request was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The code of the reason.
    pub code: Rejected,
    /// The reason as text for people.
    pub message: String,
    /// Details: the exact JSON text of an object.
    pub details: Option<Box<str>>,
    /// Whether a repeated request can be accepted.
    pub retryable: bool,
    /// How long to wait before a repeat.
    pub retry_after_seconds: Option<u32>,
}

impl Rejection {
    /// A rejection with a code and a message only.
    pub fn new(code: Rejected, message: impl Into<String>) -> Self {
        let (retryable, message) = (code.retryable(), message.into());
        Self { code, message, details: None, retryable, retry_after_seconds: None }
    }

    /// The input violates the capability's schema; lists every violation (R62).
    pub fn invalid_input<'t>(violations: impl IntoIterator<Item = &'t str>) -> Self {
        let details =
            ObjectWriter::new().raw("validation_errors", &string_array(violations)).finish();
        let message = "Input data does not conform to the capability's input schema";
        Self { details: Some(details.into()), ..Self::new(Rejected::InvalidInput, message) }
    }

    /// The agent is at capacity (R71).
    pub fn at_capacity(current_tasks: u64, max_tasks: u64, retry_after_seconds: u32) -> Self {
        let details = format!(r#"{{"current_tasks":{current_tasks},"max_tasks":{max_tasks}}}"#);
        let message = "Agent is at maximum concurrent task capacity";
        Self {
            details: Some(details.into()),
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(Rejected::ResourceExhausted, message)
        }
    }

    /// The requester has too few credits (R88).
    pub fn insufficient_credits(retry_after_seconds: u32) -> Self {
        Self {
            details: Some(r#"{"reason":"insufficient_credits"}"#.into()),
            retry_after_seconds: Some(retry_after_seconds),
            ..Self::new(Rejected::ResourceExhausted, "Requester has too few credits")
        }
    }

    /// Reads the JSON text of a reason alone, as [`Self::write`] wrote it.
    pub fn read(text: &str) -> Option<Self> {
        let json = ijson::read(text.as_bytes()).ok()?;
        let mut reader = MessageReader::unchecked(Kind::Response, &json);
        let whole = reader.root();
        Self::find(&mut reader, &whole)
    }

    fn find(r: &mut MessageReader<'_, '_>, reason: &ObjectPart<'_, '_>) -> Option<Self> {
        let code = reason.text("code").and_then(Rejected::read);
        let message = r.bounded(reason, "message", TEXT_MAX);
        let retryable = r.flag(reason, "retryable");
        let after = r.number(reason, "retry_after_seconds");
        Some(Self {
            code: code?,
            message: message?,
            details: reason.object("details"),
            retryable: retryable.unwrap_or(code?.retryable()),
            retry_after_seconds: after.and_then(|seconds| u32::try_from(seconds).ok()),
        })
    }

    /// The JSON text of the reason.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("code", self.code.as_str())
            .text("message", &self.message)
            .maybe_raw("details", self.details.as_deref())
            .flag("retryable", self.retryable)
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .finish()
    }
}

impl MessageBody for Response {
    const KIND: Kind = Kind::Response;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let status = whole.text("response_status").and_then(ResponseStatus::read);
        let needed = match status {
            Some(ResponseStatus::Accepted) => Some("collaboration_id"),
            Some(ResponseStatus::Rejected) => Some("rejection_reason"),
            Some(ResponseStatus::Deferred) => Some("deferred_until"),
            None => None,
        };
        if let (Some(name), Some(status)) = (needed, status) {
            r.require_when(&whole, name, &format!("response_status is {status}"));
        }
        let collaboration_id = r.uuid(&whole, "collaboration_id");
        let estimated_completion = r.time(&whole, "estimated_completion");
        let until = r.time(&whole, "deferred_until");
        let reason = whole.part("rejection_reason");
        let reason = if reason.exists() { Rejection::find(r, &reason) } else { None };
        let request_id = r.uuid(&whole, "request_id");
        let responder_agent_id = r.uuid(&whole, "responder_agent_id");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        let answer = match status? {
            ResponseStatus::Accepted => ResponseAnswer::Accepted {
                collaboration_id: collaboration_id?,
                estimated_completion,
            },
            ResponseStatus::Rejected => ResponseAnswer::Rejected(reason?),
            ResponseStatus::Deferred => ResponseAnswer::Deferred { until: until? },
        };
        Some(Self {
            request_id: request_id?,
            responder_agent_id: responder_agent_id?,
            answer,
            correlation_id: correlation_id?,
            timestamp: timestamp?,
            result: whole.object("result"),
        })
    }
}

impl Response {
    /// Its `response_status`.
    pub fn status(&self) -> ResponseStatus {
        match self.answer {
            ResponseAnswer::Accepted { .. } => ResponseStatus::Accepted,
            ResponseAnswer::Rejected(_) => ResponseStatus::Rejected,
            ResponseAnswer::Deferred { .. } => ResponseStatus::Deferred,
        }
    }

    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let object = ObjectWriter::new()
            .uuid("request_id", self.request_id)
            .uuid("responder_agent_id", self.responder_agent_id)
            .text("response_status", self.status().as_str());
        let object = match &self.answer {
            ResponseAnswer::Accepted { collaboration_id, estimated_completion } => object
                .uuid("collaboration_id", *collaboration_id)
                .maybe_time("estimated_completion", *estimated_completion),
            ResponseAnswer::Rejected(reason) => object.raw("rejection_reason", &reason.write()),
            ResponseAnswer::Deferred { until } => object.time("deferred_until", *until),
        };
        let common =
            CommonMembers { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.write_to(object.maybe_raw("result", self.result.as_deref())).finish()
    }
}
