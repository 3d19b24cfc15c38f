//! The answers to a job: a refusal before it starts, in the protocol's codes, or its result
//! (sections 2.4, 2.6 and 5 of its book).

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use uuid::Uuid;

use crate::agent::{JobRefusal, Outcome};
use crate::clock;
use crate::http_server::{BodyError, HttpResponse};

/// A valid job, shown to a caller that sent an invalid one.
const EXAMPLE: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1"}"#;
/// The `Retry-After` of a refusal for lack of capacity.
const RETRY_AFTER_S: u32 = 5;
/// Maximum length of an error text; a reader may refuse more.
const TEXT_MAX: usize = 4_096;

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

    fn with_field(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(404, "NOT_FOUND", format!("{what} not found"))
    }

    pub(super) fn unsupported_encoding() -> Self {
        Self::new(415, "UNSUPPORTED_ENCODING", "send the body without Content-Encoding")
    }

    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("only {allow} is allowed here");
        Self { allow: Some(allow), ..Self::new(405, "INVALID_REQUEST", message) }
    }

    /// A member exceeds its maximum length.
    pub(super) fn too_long(name: &str, max: usize) -> Self {
        let message = format!("{name} has more than {max} bytes");
        Self::new(400, "INVALID_REQUEST", message).with_field(&format!("/{name}"))
    }

    /// The id belongs to another requester's job.
    pub(super) fn id_taken() -> Self {
        let message = "job_id belongs to another orchestrator; use a new one";
        Self::new(409, "CONFLICT", message).with_field("/job_id")
    }

    /// The id was already used with different content.
    pub(super) fn content_differs() -> Self {
        let message = "job_id was used for another job: use a new one";
        Self::new(422, "IDEMPOTENCY_CONFLICT", message).with_field("/job_id")
    }

    /// The queue is full.
    pub(super) fn at_capacity() -> Self {
        let refusal = Self::new(503, "AGENT_OFFLINE", "the agent is at capacity");
        Self { retry_after_seconds: Some(RETRY_AFTER_S), ..refusal }
    }

    /// An internal error of the agent.
    pub(super) fn internal_error(why: impl Into<String>) -> Self {
        Self::new(500, "EXECUTION_ERROR", why)
    }

    /// The response. It also has the members of a result, for callers that read only those.
    pub(super) fn into_response(self, job: Option<(Uuid, Uuid)>) -> HttpResponse {
        let (status, allow) = (self.status, self.allow);
        let retry_after_seconds = self.retry_after_seconds;
        HttpResponse { allow, retry_after_seconds, ..HttpResponse::new(status, self.write(job)) }
    }

    fn write(&self, job: Option<(Uuid, Uuid)>) -> String {
        let wrong = self.code == "INVALID_REQUEST" && self.status == 400;
        let error = ObjectWriter::new()
            .text("code", self.code)
            .text("message", &self.message)
            .flag("retryable", self.retry_after_seconds.is_some())
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .maybe_text("field", self.field.as_deref())
            .maybe_raw("example", wrong.then_some(EXAMPLE))
            .finish();
        let body = match job {
            Some((job_id, agent_id)) => ObjectWriter::new()
                .uuid("job_id", job_id)
                .uuid("agent_id", agent_id)
                .text("status", "FAILURE")
                .raw("output_data", "null")
                .raw("execution_cost", "0.00")
                .integer("execution_time_ms", 0)
                .text("timestamp_utc", &rfc3339::format_seconds(clock::now())),
            None => ObjectWriter::new().text("status", "error"),
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
        Self::new(400, "INVALID_REQUEST", bad.message).with_field(&bad.field)
    }
}

impl From<JobRefusal> for Refusal {
    fn from(why: JobRefusal) -> Self {
        match why {
            JobRefusal::UnknownSkill => Self::new(422, "SKILL_MISMATCH", why.to_string()),
            JobRefusal::BudgetTooLow { price } => {
                let message = format!("this costs {}: raise the budget", price.to_text(2));
                Self::new(402, "BUDGET_INSUFFICIENT", message).with_field("/budget")
            }
            JobRefusal::InvalidInput(_) => {
                Self::new(400, "INVALID_REQUEST", why.to_string()).with_field("/input_data")
            }
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(why: BodyError) -> Self {
        match why {
            BodyError::TooLong => Self::new(413, "TOO_LARGE", "a job has at most 1048576 bytes"),
            BodyError::Incomplete => Self::new(400, "INVALID_REQUEST", "the body is incomplete"),
            BodyError::TimedOut => Self::new(408, "INVALID_REQUEST", "the body took too long"),
        }
    }
}

/// The job's id, and its agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRef {
    pub(super) job_id: Uuid,
    pub(super) agent_id: Uuid,
}

impl JobRef {
    /// The result: at its price if it succeeded, and free otherwise. A declined job is a matter of
    /// the agent's own policy, which this protocol calls an execution error.
    pub(super) fn result(self, outcome: &Outcome, price: Credits, took: Duration) -> String {
        let (output, why) = match outcome {
            Outcome::Done(output) => (Some(output.as_str()), None),
            Outcome::Failed(why)
            | Outcome::Declined(why)
            | Outcome::InvalidInput(why)
            | Outcome::Refused(why) => (None, Some(reason(why))),
        };
        let status = if why.is_none() { "SUCCESS" } else { "FAILURE" };
        let cost = if why.is_none() { price } else { Credits::ZERO };
        let code = why.as_ref().map(|_| "EXECUTION_ERROR");
        self.body(status, output, cost, took, why.as_deref().zip(code))
    }

    /// The body for a job without a result yet.
    pub(super) fn pending(self) -> String {
        self.body("PENDING", None, Credits::ZERO, Duration::ZERO, None)
    }

    fn body(
        self,
        status: &str,
        output: Option<&str>,
        cost: Credits,
        took: Duration,
        error: Option<(&str, &str)>,
    ) -> String {
        let body = ObjectWriter::new()
            .uuid("job_id", self.job_id)
            .uuid("agent_id", self.agent_id)
            .text("status", status)
            .raw("output_data", output.unwrap_or("null"))
            .raw("execution_cost", &cost.to_text(DECIMALS))
            .integer("execution_time_ms", i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
        let body = match error {
            Some((message, code)) => body.text("error_message", message).text("error_code", code),
            None => body.raw("error_message", "null").raw("error_code", "null"),
        };
        body.text("timestamp_utc", &rfc3339::format_seconds(clock::now())).finish()
    }
}

/// A reason that is not empty and not too long.
fn reason(why: &str) -> String {
    if why.is_empty() {
        return "the agent gave no error message".to_owned();
    }
    why.chars().take(TEXT_MAX).collect()
}
