//! Why a job is refused before it starts, in the protocol's codes (sections 2.6 and 5 of its book).

use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::Object;
use rialto_protocols::kit::rfc3339;
use uuid::Uuid;

use crate::agent::Refused;
use crate::clock;
use crate::http_server::{Answer, NoBody};

/// A valid job, shown to a caller that sent an invalid one.
const EXAMPLE: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1"}"#;
/// The `Retry-After` of a refusal for lack of capacity.
const BACK_AFTER_S: u32 = 5;

/// A refusal.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    status: u16,
    code: &'static str,
    message: String,
    field: Option<String>,
    retry_after_seconds: Option<u32>,
    allow: Option<&'static str>,
}

impl Refusal {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, code, message, field: None, retry_after_seconds: None, allow: None }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(404, "NOT_FOUND", format!("{what} not found"))
    }

    pub(super) fn encoded() -> Self {
        Self::new(415, "UNSUPPORTED_ENCODING", "send the body without Content-Encoding")
    }

    pub(super) fn method(allow: &'static str) -> Self {
        let message = format!("only {allow} is allowed here");
        Self { allow: Some(allow), ..Self::new(405, "INVALID_REQUEST", message) }
    }

    /// A member exceeds its maximum length.
    pub(super) fn long(name: &str, max: usize) -> Self {
        let message = format!("{name} has more than {max} bytes");
        let refusal = Self::new(400, "INVALID_REQUEST", message);
        Self { field: Some(format!("/{name}")), ..refusal }
    }

    /// The id belongs to another requester's job.
    pub(super) fn taken() -> Self {
        let message = "job_id belongs to another orchestrator; use a new one";
        let refusal = Self::new(409, "CONFLICT", message);
        Self { field: Some("/job_id".to_owned()), ..refusal }
    }

    /// The id was already used with different content.
    pub(super) fn differs() -> Self {
        let message = "job_id was used for another job: use a new one";
        let refusal = Self::new(422, "IDEMPOTENCY_CONFLICT", message);
        Self { field: Some("/job_id".to_owned()), ..refusal }
    }

    /// The queue is full.
    pub(super) fn full() -> Self {
        let refusal = Self::new(503, "AGENT_OFFLINE", "the agent is at capacity");
        Self { retry_after_seconds: Some(BACK_AFTER_S), ..refusal }
    }

    /// An internal error of the agent.
    pub(super) fn broken(why: impl Into<String>) -> Self {
        Self::new(500, "EXECUTION_ERROR", why)
    }

    /// The response. It also has the members of a result, for callers that read only those.
    pub(super) fn answer(self, job: Option<(Uuid, Uuid)>) -> Answer {
        let (status, allow) = (self.status, self.allow);
        let retry_after_seconds = self.retry_after_seconds;
        Answer { allow, retry_after_seconds, ..Answer::new(status, self.write(job)) }
    }

    fn write(&self, job: Option<(Uuid, Uuid)>) -> String {
        let wrong = self.code == "INVALID_REQUEST" && self.status == 400;
        let error = Object::new()
            .text("code", self.code)
            .text("message", &self.message)
            .flag("retryable", self.retry_after_seconds.is_some())
            .maybe_whole("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .maybe_text("field", self.field.as_deref())
            .maybe_raw("example", wrong.then_some(EXAMPLE))
            .finish();
        let body = match job {
            Some((job_id, agent_id)) => Object::new()
                .id("job_id", job_id)
                .id("agent_id", agent_id)
                .text("status", "FAILURE")
                .raw("output_data", "null")
                .raw("execution_cost", "0.00")
                .whole("execution_time_ms", 0)
                .text("timestamp_utc", &rfc3339::seconds(clock::now())),
            None => Object::new().text("status", "error"),
        };
        body.text("error_code", self.code)
            .text("error_message", &self.message)
            .raw("error", &error)
            .text("detail", &self.message)
            .finish()
    }
}

impl From<Malformed> for Refusal {
    fn from(bad: Malformed) -> Self {
        Self { field: Some(bad.field), ..Self::new(400, "INVALID_REQUEST", bad.message) }
    }
}

impl From<Refused> for Refusal {
    fn from(why: Refused) -> Self {
        match why {
            Refused::NoSkill => Self::new(422, "SKILL_MISMATCH", why.to_string()),
            Refused::BudgetTooLow { price } => {
                let message = format!("this costs {}: raise the budget", price.text(2));
                let refusal = Self::new(402, "BUDGET_INSUFFICIENT", message);
                Self { field: Some("/budget".to_owned()), ..refusal }
            }
            Refused::Unfit(_) => {
                let refusal = Self::new(400, "INVALID_REQUEST", why.to_string());
                Self { field: Some("/input_data".to_owned()), ..refusal }
            }
        }
    }
}

impl From<NoBody> for Refusal {
    fn from(why: NoBody) -> Self {
        match why {
            NoBody::TooLong => Self::new(413, "TOO_LARGE", "a job has at most 1048576 bytes"),
            NoBody::BrokeOff => Self::new(400, "INVALID_REQUEST", "the body is incomplete"),
            NoBody::TooSlow => Self::new(408, "INVALID_REQUEST", "the body took too long"),
        }
    }
}
