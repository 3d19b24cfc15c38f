//! Collaboration requests: work is wanted.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::Said;
use super::reader::Reader;
use crate::kit::object::Object;
use crate::openclaw::common::Common;
use crate::openclaw::kind::Kind;
use crate::openclaw::{KEY_MAX, NAME_MAX, PRIORITY};

/// What a request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requester's own id for it.
    pub request_id: Uuid,
    /// Who asks.
    pub requester_agent_id: Uuid,
    /// What for.
    pub capability_id: String,
    /// The exact JSON text of the input, an object.
    pub input_data: Box<str>,
    /// Makes repeats the same request.
    pub idempotency_key: Option<String>,
    /// By when.
    pub deadline: Option<Timestamp>,
    /// 1 is the most urgent, 10 the least.
    pub priority: Option<u8>,
    /// Whom (ours); otherwise the path or the hub says.
    pub responder_agent_id: Option<Uuid>,
    /// What it may cost at most (ours).
    pub budget: Option<Credits>,
    /// Traces it and everything that comes of it.
    pub correlation_id: Uuid,
    /// When it was written.
    pub timestamp: Timestamp,
}

impl Said for Request {
    const KIND: Kind = Kind::Request;

    fn find(r: &mut Reader<'_, '_>) -> Option<Self> {
        let whole = r.whole();
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
    /// How urgent it is.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(PRIORITY)
    }

    /// The message.
    pub fn write(&self) -> String {
        let object = Object::new()
            .id("request_id", self.request_id)
            .id("requester_agent_id", self.requester_agent_id)
            .text("capability_id", &self.capability_id)
            .raw("input_data", &self.input_data)
            .maybe_text("idempotency_key", self.idempotency_key.as_deref())
            .maybe_time("deadline", self.deadline)
            .maybe_whole("priority", self.priority.map(i64::from))
            .maybe_id("responder_agent_id", self.responder_agent_id)
            .maybe_amount("budget", self.budget);
        let common = Common { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.on(object).finish()
    }
}
