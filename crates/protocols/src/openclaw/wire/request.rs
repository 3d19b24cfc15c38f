//! Collaboration requests, and the two small bodies that are not messages of the protocol: approve and
//! cancel.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::error::Failure;
use super::reader::MessageReader;
use super::{CommonMembers, Kind, MessageBody, read_correlation_id, read_version};
use crate::kit::fields::Fields;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::openclaw::{KEY_MAX, NAME_MAX, PRIORITY, TEXT_MAX};

/// The content of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The id that the requester gave it.
    pub request_id: Uuid,
    /// The agent that requests the work.
    pub requester_agent_id: Uuid,
    /// The requested capability.
    pub capability_id: String,
    /// The exact JSON text of the input, an object.
    pub input_data: Box<str>,
    /// Marks repeats as the same request.
    pub idempotency_key: Option<String>,
    /// The latest time for the result.
    pub deadline: Option<Timestamp>,
    /// 1 is the most urgent, 10 the least.
    pub priority: Option<u8>,
    /// The agent that is asked (not in the spec). Without it, the path or the hub decides.
    pub responder_agent_id: Option<Uuid>,
    /// The highest price that the requester pays (not in the spec).
    pub budget: Option<Credits>,
    /// The id that traces the request and all that follows from it.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

impl MessageBody for Request {
    const KIND: Kind = Kind::Request;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let request_id = r.uuid(&whole, "request_id");
        let requester_agent_id = r.uuid(&whole, "requester_agent_id");
        let capability_id = r.name(&whole, "capability_id", NAME_MAX);
        let idempotency_key = r.bounded(&whole, "idempotency_key", KEY_MAX);
        let deadline = r.time(&whole, "deadline");
        let priority = r.number(&whole, "priority").and_then(|n| u8::try_from(n).ok());
        let responder_agent_id = r.uuid(&whole, "responder_agent_id");
        let budget = r.amount(&whole, "budget");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        Some(Self {
            request_id: request_id?,
            requester_agent_id: requester_agent_id?,
            capability_id: capability_id?,
            input_data: whole.object("input_data")?,
            idempotency_key,
            deadline,
            priority,
            responder_agent_id,
            budget,
            correlation_id: correlation_id?,
            timestamp: timestamp?,
        })
    }
}

impl Request {
    /// The priority, or the default.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(PRIORITY)
    }

    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let object = ObjectWriter::new()
            .uuid("request_id", self.request_id)
            .uuid("requester_agent_id", self.requester_agent_id)
            .text("capability_id", &self.capability_id)
            .raw("input_data", &self.input_data)
            .maybe_text("idempotency_key", self.idempotency_key.as_deref())
            .maybe_time("deadline", self.deadline)
            .maybe_integer("priority", self.priority.map(i64::from))
            .maybe_uuid("responder_agent_id", self.responder_agent_id)
            .maybe_credits("budget", self.budget);
        let common =
            CommonMembers { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.write_to(object).finish()
    }
}

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
        read_version(&json)?;
        let wrong = |bad| Failure::from(bad).with_example(EXAMPLE).in_answer_to(&json);
        let f = Fields::read(&json, "").map_err(wrong)?;
        let approved = f.flag("approved").and_then(|flag| f.required("approved", flag));
        let correlation_id = read_correlation_id(&json);
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
        read_version(&json)?;
        let wrong = |bad| Failure::from(bad).with_example(EXAMPLE).in_answer_to(&json);
        let f = Fields::read(&json, "").map_err(wrong)?;
        let reason = f.text("reason").map_err(wrong)?;
        if reason.is_some_and(|reason| reason.chars().count() > TEXT_MAX) {
            return Err(wrong(
                f.malformed("reason", format!("has more than {TEXT_MAX} characters")),
            ));
        }
        let correlation_id = read_correlation_id(&json);
        Ok(Self { reason: reason.map(str::to_owned), correlation_id })
    }
}
