//! Maps refusals of the core, the engine and the edge to errors, or to rejections of a request, and
//! writes HTTP responses.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_core::agent::Agent;
use rialto_core::job::State;
use rialto_core::refusal::{Refusal, Retry};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;
use serde::Serialize;
use uuid::Uuid;

use super::wire::error::ErrorBody;
use super::wire::error::{Code, Failure, Rejected};
use super::wire::{CommonMembers, Rejection};
use crate::adapter::operation::ErrorInfo;
use crate::adapter::{EdgeError, HubContext, NOT_CURRENT};

/// When to retry an agent that is silent or in error (R72).
const AWAY_SECONDS: u32 = 60;
/// When to retry an agent at capacity, or a requester with too few credits.
const LATER_SECONDS: u32 = 30;

/// The error for an engine failure.
pub fn from_engine(failure: &EngineFailure) -> Failure {
    match failure {
        EngineFailure::Refused(refusal) => from_refusal(refusal),
        EngineFailure::StoreFull => {
            Failure { retry_after_seconds: Some(30), ..Failure::disk_full() }
        }
        EngineFailure::Unavailable => {
            let down = Failure::new(Code::Unavailable, "the hub cannot accept writes now");
            Failure { retry_after_seconds: Some(1), ..down }
        }
        EngineFailure::Fault => Failure::internal("see X-Request-Id in the hub's log"),
        EngineFailure::StillRunning => {
            let running =
                Failure::still_running("the first request with this key is still running");
            Failure { retry_after_seconds: Some(1), ..running }
        }
    }
}

/// The match is exhaustive, so that a new refusal cannot be forgotten (B6).
pub fn from_refusal(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::NotFound => return Failure::not_found("collaboration"),
        Refusal::NoSuchAgent => return Failure::not_found("agent"),
        Refusal::NotAuthenticated => Code::Unauthorized,
        Refusal::IdentityMismatch | Refusal::Blocked | Refusal::Suspended | Refusal::LimitedKey => {
            Code::Forbidden
        }
        Refusal::NoSuchOwner { .. } | Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            Code::NotFound
        }
        Refusal::IdTaken
        | Refusal::OwnerTaken
        | Refusal::NameConfusable
        | Refusal::WrongState { .. }
        | Refusal::OtherAssignment { .. }
        | Refusal::AnsweredElsewhere
        | Refusal::TooManyReports { .. }
        | Refusal::OfferExpired
        | Refusal::OfferNotRead
        | Refusal::TooManyOffers { .. }
        | Refusal::OfferAbovePrevious { .. }
        | Refusal::OfferAmbiguous
        | Refusal::NoSuchOffer
        | Refusal::Ambiguous
        | Refusal::WrongParty
        | Refusal::AlreadySettled { .. }
        | Refusal::JobNotPaid { .. }
        | Refusal::PaymentMismatch { .. }
        | Refusal::TooManyAgents { .. }
        | Refusal::TooManyKeys { .. }
        | Refusal::AgentBroken => Code::Conflict,
        Refusal::SameIdOtherContent => Code::IdempotencyConflict,
        Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers => Code::Unavailable,
        Refusal::TooManyOpen
        | Refusal::InboxFull
        | Refusal::AtCapacity
        | Refusal::AtRateLimit
        | Refusal::Offline => Code::RateLimited,
        Refusal::BudgetTooLow { .. }
        | Refusal::TooFewCredits
        | Refusal::OverLimit { .. }
        | Refusal::GuestCannotPay
        | Refusal::InputRejected { .. }
        | Refusal::DeadlineTooSoon
        | Refusal::UnsupportedCurrency
        | Refusal::SelfPayment
        | Refusal::AmountNotPositive
        | Refusal::TooManyBlocked { .. }
        | Refusal::BridgeLoop { .. }
        | Refusal::Overflow => Code::Validation,
    };
    let mut failure = Failure::new(code, words(refusal));
    if let Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers = refusal {
        failure.http_status = 507;
    }
    if let Retry::After(wait) = refusal.retry() {
        failure.retryable = true;
        failure.retry_after_seconds = Some(seconds(wait.0));
    }
    failure
}

/// The refusal's text in this protocol's terms, where the core's text would be unclear.
fn words(refusal: &Refusal) -> Cow<'static, str> {
    match refusal {
        Refusal::WrongState { state: is } => match is {
            State::Deferred { .. } => "the collaboration is deferred, which does not allow this",
            State::Assigned | State::Running | State::InputRequired { .. } => {
                "the collaboration is running, which does not allow this"
            }
            State::Completed | State::Failed | State::Expired => {
                "the collaboration already has a result"
            }
            State::Cancelled | State::Withdrawn => "the collaboration was cancelled",
            State::Open | State::Queued | State::Negotiating => {
                "the collaboration waits for an answer, which does not allow this"
            }
        }
        .into(),
        Refusal::IdTaken | Refusal::OwnerTaken => {
            "this id is taken; an existing agent_id needs its own key".into()
        }
        Refusal::NotAuthenticated => "the key is not this agent's".into(),
        Refusal::SameIdOtherContent => {
            "this request_id was used with other content; use a new one".into()
        }
        Refusal::TooManyOpen => "too many of the requester's collaborations are open".into(),
        Refusal::TooManySavedAnswers => {
            "too many idempotency records are stored for this caller; they expire after a day, so \
             try again later"
                .into()
        }
        other => other.to_string().into(),
    }
}

/// The agent that was asked, and when: the context of a rejection.
#[derive(Clone, Copy)]
pub struct RejectionContext<'a> {
    pub world: &'a World,
    pub agent: Option<&'a Agent>,
    pub now: Timestamp,
}

/// A refusal as the rejection of a request. A refusal that does not answer a request is an error.
pub fn rejection(refusal: &Refusal, asked: RejectionContext<'_>) -> Result<Rejection, Failure> {
    use Rejected::*;
    let no = |code, text: &str| Ok(Rejection::new(code, text));
    let later = |text: &str, seconds| {
        let rejection = Rejection::new(ResourceExhausted, text);
        Ok(Rejection { retry_after_seconds: Some(seconds), ..rejection })
    };
    match refusal {
        Refusal::NoSuchAgent => no(CapabilityNotAvailable, "No such agent"),
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            no(CapabilityNotAvailable, "Capability is not available")
        }
        Refusal::AgentBroken => no(CapabilityNotAvailable, "Agent is in a permanent error state"),
        Refusal::Offline => later("Agent is not available now", AWAY_SECONDS),
        Refusal::AtCapacity => Ok(full(asked)),
        Refusal::InboxFull => later("Agent's inbox is full", LATER_SECONDS),
        Refusal::AtRateLimit => {
            let at = asked.agent.and_then(|agent| asked.world.next_start_at(agent.id, asked.now));
            let wait = at.map_or(1, |at| seconds(at.since(asked.now).0));
            later("Agent has reached its request limit per minute", wait)
        }
        Refusal::InputRejected { reason: why } => Ok(Rejection::invalid_input([why.as_str()])),
        Refusal::DeadlineTooSoon => no(DeadlineTooSoon, "The work cannot be done by the deadline"),
        Refusal::BudgetTooLow { price } => {
            let text = format!("The budget is below the price of {}", price.to_text(0));
            Ok(Rejection::new(PolicyViolation, text))
        }
        Refusal::TooFewCredits | Refusal::GuestCannotPay => {
            Ok(Rejection::insufficient_credits(LATER_SECONDS))
        }
        Refusal::OverLimit { .. } => Ok(Rejection::new(PolicyViolation, refusal.to_string())),
        Refusal::Blocked => no(PolicyViolation, "Agent accepts no requests from this requester"),
        Refusal::BridgeLoop { .. } => no(PolicyViolation, "An agent cannot send itself a request"),
        other => Err(from_refusal(other)),
    }
}

/// The agent is at capacity (R71).
fn full(asked: RejectionContext<'_>) -> Rejection {
    let max =
        asked.agent.and_then(|agent| agent.terms.capacity.max_concurrent_jobs).map_or(1, u64::from);
    let has = asked.agent.map_or(0, |agent| asked.world.assigned_job_count(agent.id));
    // A job that finished in between must not make the figures contradict the rejection.
    Rejection::at_capacity((has as u64).max(max), max, LATER_SECONDS)
}

/// Whole seconds, at least one.
fn seconds(millis: i64) -> u32 {
    u32::try_from(millis.max(1).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// How all operations of this protocol answer errors.
pub fn error_info() -> ErrorInfo {
    let own = Code::ALL.iter().map(|code| (code.http_status(), *code));
    let others = [
        (408, Code::Validation),
        (421, Code::Validation),
        (500, Code::Unavailable),
        (507, Code::Unavailable),
    ];
    ErrorInfo::json::<ErrorBody>(own.chain(others).map(|(status, code)| (status, code.as_str())))
}

/// The error for a refusal of the edge.
pub fn from_edge(error: EdgeError) -> Failure {
    match error {
        EdgeError::NotFound => Failure::not_found("path"),
        EdgeError::MethodNotAllowed => {
            Failure::new(Code::MethodNotAllowed, "method not allowed for this path")
        }
        EdgeError::WrongHost => {
            Failure { http_status: 421, ..Failure::invalid("unknown Host header for this hub") }
        }
        EdgeError::ForeignOrigin => {
            Failure::new(Code::Forbidden, "cross-origin requests are not allowed here")
        }
        EdgeError::EncodedBody => Failure::encoded_body(),
        EdgeError::TooLarge { limit } => {
            Failure::new(Code::TooLarge, format!("the body has more than {limit} bytes"))
        }
        EdgeError::TooManyRequests { retry_after_seconds } => {
            let seconds = u32::try_from(retry_after_seconds).unwrap_or(u32::MAX);
            Failure::rate_limited("too many messages; retry later", seconds)
        }
        EdgeError::Overloaded => {
            let full = Failure::new(Code::Unavailable, "the hub is overloaded");
            Failure { retry_after_seconds: Some(1), ..full }
        }
        EdgeError::NotCurrent => {
            let behind = Failure::new(Code::Unavailable, NOT_CURRENT);
            Failure { retry_after_seconds: Some(1), ..behind }
        }
        EdgeError::Malformed { what } => {
            Failure::invalid(format!("malformed HTTP request: {what}"))
        }
        EdgeError::TooSlow => {
            Failure { http_status: 408, ..Failure::invalid("the body took too long to arrive") }
        }
        EdgeError::Internal => Failure::internal("see X-Request-Id in the hub's log"),
    }
}

/// An error response. It gets the hub's time and, if it answers no message, a new correlation id.
pub struct ErrorResponse(HubContext, Box<Failure>);

/// The return type of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

impl ErrorResponse {
    pub fn new(context: &HubContext, failure: Failure) -> Self {
        Self(context.clone(), Box::new(failure))
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        error_response(&self.0, &self.1)
    }
}

/// An error as a response.
pub fn error_response(context: &HubContext, failure: &Failure) -> Response {
    write_error(failure, context.engine.random().new_uuid(), context.engine.now())
}

fn write_error(failure: &Failure, made: Uuid, at: Timestamp) -> Response {
    let mut answer = text_response(failure.http_status, failure.write(made, at));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// The three common members of an answer to a message with this correlation id, if any.
pub fn common_members(context: &HubContext, correlation_id: Option<Uuid>) -> CommonMembers {
    let correlation_id = correlation_id.unwrap_or_else(|| context.engine.random().new_uuid());
    CommonMembers { correlation_id, timestamp: context.engine.now() }
}

/// A value as a JSON response.
pub fn json_response(status: u16, body: &impl Serialize) -> Response {
    text_response(status, serde_json::to_string(body).unwrap_or_default())
}

/// JSON text as a response.
pub fn text_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}
