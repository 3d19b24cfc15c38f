//! Why a job is refused before it starts, in the protocol's codes (sections 2.6 and 5 of its book).

use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use uuid::Uuid;

use crate::agent::JobRefusal;
use crate::clock;
use crate::http_server::{BodyError, HttpResponse};

/// A valid job, shown to a caller that sent an invalid one.
const EXAMPLE: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1"}"#;
/// The `Retry-After` of a refusal for lack of capacity.
const RETRY_AFTER_S: u32 = 5;

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
        let refusal = Self::new(400, "INVALID_REQUEST", message);
        Self { field: Some(format!("/{name}")), ..refusal }
    }

    /// The id belongs to another requester's job.
    pub(super) fn id_taken() -> Self {
        let message = "job_id belongs to another orchestrator; use a new one";
        let refusal = Self::new(409, "CONFLICT", message);
        Self { field: Some("/job_id".to_owned()), ..refusal }
    }

    /// The id was already used with different content.
    pub(super) fn content_differs() -> Self {
        let message = "job_id was used for another job: use a new one";
        let refusal = Self::new(422, "IDEMPOTENCY_CONFLICT", message);
        Self { field: Some("/job_id".to_owned()), ..refusal }
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
        Self { field: Some(bad.field), ..Self::new(400, "INVALID_REQUEST", bad.message) }
    }
}

impl From<JobRefusal> for Refusal {
    fn from(why: JobRefusal) -> Self {
        match why {
            JobRefusal::UnknownSkill => Self::new(422, "SKILL_MISMATCH", why.to_string()),
            JobRefusal::BudgetTooLow { price } => {
                let message = format!("this costs {}: raise the budget", price.to_text(2));
                let refusal = Self::new(402, "BUDGET_INSUFFICIENT", message);
                Self { field: Some("/budget".to_owned()), ..refusal }
            }
            JobRefusal::InvalidInput(_) => {
                let refusal = Self::new(400, "INVALID_REQUEST", why.to_string());
                Self { field: Some("/input_data".to_owned()), ..refusal }
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
