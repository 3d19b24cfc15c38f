//! Errors of this protocol: refusals as code, status and error body, with a valid example of an
//! invalid field.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rialto_core::job::Cause;
use rialto_core::money::Credits;
use rialto_core::refusal::{Refusal, Retry};
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::wire::DECIMALS;
use crate::adapter::operation::ErrorInfo;
use crate::adapter::{EdgeError, NOT_CURRENT};
use crate::kit::api_doc::Nullable;
use crate::kit::fields::Malformed;
use crate::kit::raw_json::Number;
use crate::kit::{raw_json, rfc3339};

pub const INVALID_REQUEST: &str = "INVALID_REQUEST";
pub const TRANSFER_FAILED: &str = "TRANSFER_FAILED";
pub const AGENT_OFFLINE: &str = "AGENT_OFFLINE";
pub const EXECUTION_ERROR: &str = "EXECUTION_ERROR";
pub const SKILL_MISMATCH: &str = "SKILL_MISMATCH";
pub const BUDGET_INSUFFICIENT: &str = "BUDGET_INSUFFICIENT";

/// A registration that succeeds as it is.
pub const REGISTRATION_EXAMPLE: &str = r#"{"agent_name":"Text-Analyst","owner_id":"acme","api_endpoint":"https://agent.example","skills":[{"skill_name":"analyze_text","description":"Finds names and numbers","cost_per_call":0.10,"input_schema":{"text":"string"},"output_schema":{"entities":"list"}}],"version":"0.1"}"#;
/// A complete job.
pub const JOB_EXAMPLE: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1"}"#;
/// A complete result.
pub const RESULT_EXAMPLE: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.10,"execution_time_ms":1250,"error_message":null}"#;
/// A complete transfer.
pub const TRANSFER_EXAMPLE: &str = r#"{"transfer_id":"0e37df36-f698-41e6-8a1c-0d2f6e2c7a10","from_owner":"acme","to_owner":"globex","amount":0.10}"#;
/// A complete discovery query.
pub const DISCOVERY_EXAMPLE: &str =
    r#"{"skill":"analyze_text","min_reputation":40,"max_cost":0.20}"#;
/// A complete heartbeat.
pub const HEARTBEAT_EXAMPLE: &str = r#"{"agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#;
/// A complete account.
pub const ACCOUNT_EXAMPLE: &str = r#"{"owner_id":"acme"}"#;

/// A failed request, and how to report it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    pub retry_after_seconds: Option<u64>,
    pub field: Option<String>,
    pub example: Option<&'static str>,
    /// A refused job is also reported in the shape of a result.
    pub job: Option<Box<RefusedJob>>,
}

/// What the answer for a refused job repeats.
#[derive(Clone, Debug)]
pub struct RefusedJob {
    pub job_id: Option<String>,
    pub agent_id: Option<String>,
    pub at: Timestamp,
}

impl Failure {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            code,
            message,
            retry_after_seconds: None,
            field: None,
            example: None,
            job: None,
        }
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "UNAUTHORIZED", "missing or invalid key; send `Authorization: Bearer rk_…`")
    }

    pub fn forbidden(message: &str) -> Self {
        Self::new(403, "FORBIDDEN", message)
    }

    pub fn not_found() -> Self {
        Self::new(404, "NOT_FOUND", "not found, or not visible to this key")
    }

    /// An invalid field, with a correct example of it.
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Malformed { field: field.to_owned(), message: message.into() }.into()
    }

    /// 413 for one member that has too many bytes.
    pub fn too_large(field: String, max: usize) -> Self {
        let name = field.rsplit('/').next().unwrap_or_default();
        let message = format!("{name} has more than {max} bytes; send less");
        Self { field: Some(field), ..Self::new(413, "TOO_LARGE", message) }
    }

    pub fn for_job(mut self, job: RefusedJob) -> Self {
        self.job = Some(Box::new(job));
        self
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        let example = example_for(&malformed.field);
        let mut failure = Self::new(400, INVALID_REQUEST, malformed.message);
        failure.field = Some(malformed.field);
        failure.example = Some(example);
        failure
    }
}

/// For bodies that cannot be read at all: the answer shows a complete valid one.
pub fn with_body_example(whole: &'static str) -> impl Fn(Malformed) -> Failure {
    move |malformed| {
        let all = malformed.field.is_empty();
        let failure = Failure::from(malformed);
        if all { Failure { example: Some(whole), ..failure } } else { failure }
    }
}

/// The kind of request, where the same refusal has different codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Job,
    Transfer,
    Other,
}

/// An engine failure as an error of this protocol.
pub fn from_engine(failure: EngineFailure, context: RequestKind) -> Failure {
    match failure {
        EngineFailure::Refused(refusal) => from_refusal(&refusal, context),
        EngineFailure::StoreFull => {
            let full =
                Failure::new(507, "UNAVAILABLE", "the hub's disk is full; nothing was changed");
            Failure { retry_after_seconds: Some(30), ..full }
        }
        EngineFailure::Unavailable => {
            let down = Failure::new(503, "UNAVAILABLE", "the hub cannot accept writes now");
            Failure { retry_after_seconds: Some(1), ..down }
        }
        EngineFailure::Fault => {
            Failure::new(500, "INTERNAL", "internal error; see the hub log for this request id")
        }
        EngineFailure::StillRunning => {
            let text = "the first request with this key is still running";
            Failure { retry_after_seconds: Some(1), ..Failure::new(409, "CONFLICT", text) }
        }
    }
}

/// Matches every refusal, so that a new one cannot be forgotten.
pub fn from_refusal(refusal: &Refusal, context: RequestKind) -> Failure {
    // "Does not exist" and "belongs to another caller" get the same answer, wherever it was
    // noticed.
    if *refusal == Refusal::NotFound {
        return Failure::not_found();
    }
    let money = context == RequestKind::Transfer;
    let (status, code) = match refusal {
        Refusal::NotAuthenticated => (401, "UNAUTHORIZED"),
        Refusal::IdentityMismatch | Refusal::GuestCannotPay => (403, "FORBIDDEN"),
        Refusal::Suspended => (403, "SUSPENDED"),
        Refusal::IdTaken | Refusal::OwnerTaken | Refusal::NameConfusable => (409, "CONFLICT"),
        Refusal::WrongState { .. } | Refusal::OfferExpired | Refusal::OfferNotRead => {
            (409, "CONFLICT")
        }
        Refusal::TooManyAgents { .. } | Refusal::OtherAssignment { .. } => (409, "CONFLICT"),
        Refusal::NotFound | Refusal::NoSuchAgent => (404, "NOT_FOUND"),
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => (422, SKILL_MISMATCH),
        Refusal::BudgetTooLow { .. } => (402, BUDGET_INSUFFICIENT),
        Refusal::TooFewCredits | Refusal::Overflow => (402, TRANSFER_FAILED),
        Refusal::OverLimit { .. } => (402, TRANSFER_FAILED),
        Refusal::LimitedKey => (403, "FORBIDDEN"),
        Refusal::TooManyKeys { .. } => (409, "CONFLICT"),
        Refusal::Offline | Refusal::AtCapacity | Refusal::AtRateLimit | Refusal::AgentBroken => {
            (503, AGENT_OFFLINE)
        }
        Refusal::DeadlineTooSoon => (502, EXECUTION_ERROR),
        Refusal::SameIdOtherContent if money => (422, TRANSFER_FAILED),
        Refusal::SameIdOtherContent => (422, "IDEMPOTENCY_CONFLICT"),
        Refusal::NoSuchOwner { .. } => (404, TRANSFER_FAILED),
        Refusal::SelfPayment | Refusal::PaymentMismatch { .. } => (422, TRANSFER_FAILED),
        Refusal::AmountNotPositive | Refusal::InputRejected { .. } => (400, INVALID_REQUEST),
        Refusal::JobNotPaid { .. } | Refusal::AlreadySettled { .. } => (409, TRANSFER_FAILED),
        Refusal::InboxFull | Refusal::TooManyOpen => (429, "RATE_LIMITED"),
        Refusal::TooManySavedAnswers => (507, "UNAVAILABLE"),
        Refusal::Blocked => (403, "FORBIDDEN"),
        Refusal::TooManyBlocked { .. } => (400, INVALID_REQUEST),
        Refusal::BridgeLoop { .. } => (422, "CONFLICT"),
        Refusal::TooManyOffers { .. } | Refusal::OfferAbovePrevious { .. } => (409, "CONFLICT"),
        Refusal::AnsweredElsewhere | Refusal::TooManyReports { .. } => (409, "CONFLICT"),
        Refusal::NoSuchOffer => (404, "NOT_FOUND"),
        Refusal::Ambiguous | Refusal::WrongParty | Refusal::OfferAmbiguous => {
            (400, INVALID_REQUEST)
        }
        Refusal::UnsupportedCurrency => (402, TRANSFER_FAILED),
        Refusal::MemoryFull { .. } => (507, "UNAVAILABLE"),
    };
    let mut failure = Failure::new(status, code, refusal.to_string());
    if let Retry::After(wait) = refusal.retry() {
        failure.retry_after_seconds = Some(wait.0.unsigned_abs().div_ceil(1_000));
    }
    // Agent ids are UUIDs here, so it is the owner's name. A payer must exist already.
    if *refusal == Refusal::NameConfusable {
        let field = if money { "to_owner" } else { "owner_id" };
        failure.field = Some(format!("/{field}"));
        failure.message = format!(
            "{field} is taken or too similar to another owner's name; use the name exactly as it was registered"
        );
    }
    match refusal {
        Refusal::OwnerTaken => {
            failure.field = Some("/owner_id".to_owned());
            failure.message =
                "owner_id is taken: to add an agent to this owner, send a key of one of its agents \
                               of one it has; otherwise choose another owner_id"
                    .to_owned();
        }
        Refusal::SkillNotOffered => {
            failure.field = Some("/skill_name".to_owned());
            failure.message = "the agent does not offer this skill; GET \
                               /registry/agents/{agent_id} lists what it offers"
                .to_owned();
        }
        _ => {}
    }
    failure
}

/// A refusal by the edge as an error of this protocol.
pub fn from_edge(edge_error: EdgeError) -> Failure {
    match edge_error {
        EdgeError::NotFound => Failure::new(404, "NOT_FOUND", "no such path"),
        EdgeError::MethodNotAllowed => {
            Failure::new(405, INVALID_REQUEST, "method not allowed for this path")
        }
        EdgeError::WrongHost => {
            Failure::new(421, INVALID_REQUEST, "unknown Host header for this hub")
        }
        EdgeError::ForeignOrigin => {
            Failure::forbidden("cross-origin requests are not allowed here")
        }
        EdgeError::EncodedBody => {
            Failure::new(415, "UNSUPPORTED_ENCODING", "send the body without Content-Encoding")
        }
        EdgeError::TooLarge { limit } => {
            Failure::new(413, "TOO_LARGE", format!("the body has more than {limit} bytes"))
        }
        EdgeError::TooManyRequests { retry_after_seconds } => {
            let limited = Failure::new(
                429,
                "RATE_LIMITED",
                "rate limit exceeded; retry after the given seconds",
            );
            Failure { retry_after_seconds: Some(retry_after_seconds), ..limited }
        }
        EdgeError::Overloaded => {
            let busy = Failure::new(503, "UNAVAILABLE", "the hub is overloaded");
            Failure { retry_after_seconds: Some(1), ..busy }
        }
        EdgeError::NotCurrent => {
            let behind = Failure::new(503, "UNAVAILABLE", NOT_CURRENT);
            Failure { retry_after_seconds: Some(1), ..behind }
        }
        EdgeError::Malformed { what } => {
            Failure::new(400, INVALID_REQUEST, format!("malformed HTTP request: {what}"))
        }
        EdgeError::TooSlow => {
            let slow = Failure::new(408, INVALID_REQUEST, "the body took too long to arrive");
            Failure { retry_after_seconds: Some(1), ..slow }
        }
        EdgeError::Internal => {
            Failure::new(500, "INTERNAL", "internal error; see the hub log for this request id")
        }
    }
}

/// The code that a result shows for the way a job ended; a cancelled job has none.
pub fn code_of_cause(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::NoSuchSkill => Some(SKILL_MISMATCH),
        Cause::BudgetTooLow => Some(BUDGET_INSUFFICIENT),
        Cause::Offline => Some(AGENT_OFFLINE),
        Cause::Payment => Some(TRANSFER_FAILED),
        Cause::Execution
        | Cause::Unusable
        | Cause::TimedOut
        | Cause::WorkerLeft
        | Cause::Policy
        | Cause::NoWorkerLeft
        | Cause::WithinGracePeriod
        | Cause::NoAnswer
        | Cause::InputMisfit
        | Cause::UnknownFate => Some(EXECUTION_ERROR),
        Cause::Cancelled => None,
    }
}

/// The cause of a worker's own code; an unknown code is an execution error.
pub fn cause_of_code(code: &str) -> Cause {
    match code {
        SKILL_MISMATCH => Cause::NoSuchSkill,
        BUDGET_INSUFFICIENT => Cause::BudgetTooLow,
        AGENT_OFFLINE => Cause::Offline,
        TRANSFER_FAILED => Cause::Payment,
        _ => Cause::Execution,
    }
}

/// How all operations of this protocol answer errors.
pub fn error_info() -> ErrorInfo {
    ErrorInfo::json::<ErrorBody<'static>>([
        (400, INVALID_REQUEST),
        (401, "UNAUTHORIZED"),
        (402, BUDGET_INSUFFICIENT),
        (402, TRANSFER_FAILED),
        (403, "FORBIDDEN"),
        (403, "SUSPENDED"),
        (404, "NOT_FOUND"),
        (404, TRANSFER_FAILED),
        (405, INVALID_REQUEST),
        (408, INVALID_REQUEST),
        (409, "CONFLICT"),
        (409, TRANSFER_FAILED),
        (413, "TOO_LARGE"),
        (415, "UNSUPPORTED_ENCODING"),
        (421, INVALID_REQUEST),
        (422, "CONFLICT"),
        (422, "IDEMPOTENCY_CONFLICT"),
        (422, SKILL_MISMATCH),
        (422, TRANSFER_FAILED),
        (429, "RATE_LIMITED"),
        (500, "INTERNAL"),
        (502, EXECUTION_ERROR),
        (503, AGENT_OFFLINE),
        (503, "UNAVAILABLE"),
        (507, "UNAVAILABLE"),
    ])
}

/// An error; a refused job is also answered in the form of a result.
#[derive(Serialize, JsonSchema)]
pub struct ErrorBody<'a> {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    job: Option<RefusedJobBody<'a>>,
    status: &'a str,
    error_code: &'a str,
    error_message: &'a str,
    error: ErrorDetail<'a>,
    detail: &'a str,
}

#[derive(Serialize, JsonSchema)]
pub struct RefusedJobBody<'a> {
    #[schemars(with = "Nullable<String>")]
    job_id: Option<&'a str>,
    #[schemars(with = "Nullable<String>")]
    agent_id: Option<&'a str>,
    output_data: (),
    execution_cost: Number,
    execution_time_ms: u32,
    timestamp_utc: String,
}

#[derive(Serialize, JsonSchema)]
pub struct ErrorDetail<'a> {
    code: &'a str,
    message: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Box<RawValue>>,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let job = self.job.as_ref().map(|job| RefusedJobBody {
            job_id: job.job_id.as_deref(),
            agent_id: job.agent_id.as_deref(),
            output_data: (),
            execution_cost: raw_json::amount(Credits::ZERO, DECIMALS),
            execution_time_ms: 0,
            timestamp_utc: rfc3339::format_seconds(job.at),
        });
        let body = ErrorBody {
            status: if job.is_some() { "FAILURE" } else { "error" },
            job,
            error_code: self.code,
            error_message: &self.message,
            error: ErrorDetail {
                code: self.code,
                message: &self.message,
                retryable: self.retry_after_seconds.is_some(),
                retry_after_seconds: self.retry_after_seconds,
                field: self.field.as_deref(),
                example: self.example.map(raw_json::verbatim),
            },
            detail: &self.message,
        };
        let mut answer = json_response(self.status, &body);
        if let Some(seconds) = self.retry_after_seconds {
            answer.headers_mut().insert("retry-after", HeaderValue::from(seconds));
        }
        answer
    }
}

/// A JSON response.
pub fn json_response(status: u16, body: &impl Serialize) -> Response {
    let text = serde_json::to_vec(body).unwrap_or_default();
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    answer
}

/// A valid example for the named field; the whole body if no closer one is known.
fn example_for(field: &str) -> &'static str {
    let last = field.rsplit('/').next().unwrap_or_default();
    match last {
        "agent_id" => r#"{"agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#,
        "job_id" => r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}"#,
        "transfer_id" => r#"{"transfer_id":"0e37df36-f698-41e6-8a1c-0d2f6e2c7a10"}"#,
        "orchestrator_id" => r#"{"orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#,
        "agent_name" => r#"{"agent_name":"Text-Analyst-3000"}"#,
        "owner_id" => r#"{"owner_id":"acme"}"#,
        "from_owner" => r#"{"from_owner":"acme"}"#,
        "to_owner" => r#"{"to_owner":"globex"}"#,
        "api_endpoint" => r#"{"api_endpoint":"https://agent.example/jobs"}"#,
        "callback_url" => r#"{"callback_url":"https://orchestrator.example/results"}"#,
        "skills" => r#"{"skills":[{"skill_name":"analyze_text","cost_per_call":0.10}]}"#,
        "skill_name" => r#"{"skill_name":"analyze_text"}"#,
        "description" => r#"{"description":"Finds names and numbers"}"#,
        "cost_per_call" => r#"{"cost_per_call":0.10}"#,
        "input_schema" => r#"{"input_schema":{"text":"string"}}"#,
        "output_schema" => r#"{"output_schema":{"entities":"list"}}"#,
        "version" => r#"{"version":"0.1"}"#,
        "timestamp_utc" => r#"{"timestamp_utc":"2026-02-11T14:15:09Z"}"#,
        "rotate_key" => r#"{"rotate_key":true}"#,
        "input_modes" => r#"{"input_modes":["text/plain","image/*"]}"#,
        "input_data" => r#"{"input_data":{"text":"Revenue for Q3 was 42000"}}"#,
        "output_data" => r#"{"output_data":{"entities":[]}}"#,
        "budget" => r#"{"budget":0.15}"#,
        "amount" => r#"{"amount":0.10}"#,
        "initial_balance" => r#"{"initial_balance":100.00}"#,
        "currency" => r#"{"currency":"chorus_credits_v1"}"#,
        "status" => r#"{"status":"SUCCESS"}"#,
        "execution_cost" => r#"{"execution_cost":0.10}"#,
        "execution_time_ms" => r#"{"execution_time_ms":1250}"#,
        "error_message" => r#"{"status":"SUCCESS","error_message":null}"#,
        "error_code" => r#"{"error_code":"EXECUTION_ERROR"}"#,
        "?skill" => r#""/discover?skill=analyze_text""#,
        "?min_reputation" => r#""/discover?skill=analyze_text&min_reputation=40""#,
        "?max_cost" => r#""/discover?skill=analyze_text&max_cost=0.20""#,
        "?min_jobs" => r#""/discover?skill=analyze_text&min_jobs=1""#,
        "?limit" => r#""?limit=50""#,
        "?offset" => r#""?offset=0""#,
        "?wait" => r#""?status=PENDING&wait=30""#,
        "?status" => r#""?status=PENDING""#,
        "?job_id" => r#""?job_id=f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#,
        "?owner_id" => r#""?owner_id=acme""#,
        "skill" => r#"{"skill":"analyze_text"}"#,
        "min_reputation" => r#"{"min_reputation":40}"#,
        "max_cost" => r#"{"max_cost":0.20}"#,
        "min_jobs" => r#"{"min_jobs":1}"#,
        "limit" => r#"{"limit":50}"#,
        "offset" => r#"{"offset":0}"#,
        "Idempotency-Key" => r#""Idempotency-Key: 5f0c2a9e""#,
        _ if field.starts_with('?') => r#""/discover?skill=analyze_text""#,
        _ if field.starts_with("/skills/") => {
            r#"{"skill_name":"analyze_text","cost_per_call":0.10}"#
        }
        _ => REGISTRATION_EXAMPLE,
    }
}
