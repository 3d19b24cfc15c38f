//! Refusals of the core, the engine and the edge as errors of this protocol, or as the message of an
//! agent that does not take a task.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure;

use super::wire::Version;
use super::wire::error::{A2aError, ErrorBody, Reason};
use crate::adapter::operation::ErrorInfo;
use crate::adapter::{EdgeError, NOT_CURRENT};

/// What an agent answers instead of a task (R44).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declined {
    /// The value of `refused`.
    pub code: &'static str,
    pub text: String,
    pub retry_after_seconds: Option<u64>,
    pub is_retryable: bool,
    /// What is wrong with the input.
    pub violations: Vec<String>,
    /// The skills to choose from: a JSON array.
    pub skills: Option<String>,
}

/// A refusal that the agent itself would give, before there is a task; `None` for one of the hub.
pub fn declined(refusal: &Refusal, skill: &str) -> Option<Declined> {
    let code = match refusal {
        Refusal::NoSuchAgent | Refusal::NoSuchSkill | Refusal::SkillNotOffered => "NO_SUCH_SKILL",
        Refusal::BudgetTooLow { .. } => "BUDGET_TOO_LOW",
        Refusal::TooFewCredits => "TOO_FEW_CREDITS",
        Refusal::GuestCannotPay => "GUEST_CANNOT_PAY",
        Refusal::Offline => "OFFLINE",
        Refusal::AtCapacity | Refusal::AtRateLimit | Refusal::InboxFull => "AT_CAPACITY",
        Refusal::AgentBroken => "OUT_OF_ORDER",
        Refusal::InputRejected { .. } => "INPUT_MISFIT",
        Refusal::DeadlineTooSoon => "DEADLINE_TOO_SOON",
        Refusal::BridgeLoop { .. } => "BRIDGE_LOOP",
        _ => return None,
    };
    let text = match refusal {
        Refusal::BudgetTooLow { price } => {
            let price = price.to_text(2);
            format!(
                "{skill} costs {price} credits: send it again with metadata \
                 {{\"urn:rialto:a2a:hire:v1\":{{\"budget\":\"{price}\"}}}}"
            )
        }
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            format!("there is no skill {skill:?} here; the card lists the skills")
        }
        other => other.to_string(),
    };
    let violations = match refusal {
        Refusal::InputRejected { reason } => reason.split("; ").map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let retry_after_seconds = match refusal.retry() {
        Retry::Never => None,
        Retry::After(wait) => Some(wait.0.unsigned_abs().div_ceil(1_000)),
    };
    let is_retryable = refusal.may_succeed_later();
    let skills = None;
    Some(Declined { code, text, retry_after_seconds, is_retryable, violations, skills })
}

/// The error for a refusal (R115). The match is exhaustive, so that no refusal is forgotten.
pub fn from_refusal(refusal: &Refusal) -> A2aError {
    let text = refusal.to_string();
    let error = |reason| A2aError::new(reason, text.clone());
    let retry_after_seconds = match refusal.retry() {
        Retry::Never => None,
        Retry::After(wait) => Some(wait.0.unsigned_abs().div_ceil(1_000)),
    };
    let later = |reason| A2aError { retry_after_seconds, ..error(reason) };
    match refusal {
        Refusal::NotAuthenticated | Refusal::IdentityMismatch => error(Reason::Unauthenticated),
        Refusal::Suspended | Refusal::Blocked => error(Reason::Forbidden),
        Refusal::NotFound => A2aError::new(Reason::TaskNotFound, "task not found"),
        Refusal::NoSuchAgent => error(Reason::NotFound),
        Refusal::IdTaken
        | Refusal::OwnerTaken
        | Refusal::NameConfusable
        | Refusal::SameIdOtherContent => error(Reason::Conflict),
        Refusal::WrongState { state } if state.is_final() => {
            let text = "the task has ended; send a message without taskId to begin a new one";
            A2aError::new(Reason::UnsupportedOperation, text)
        }
        Refusal::WrongState { .. } | Refusal::OtherAssignment { .. } => {
            error(Reason::UnsupportedOperation)
        }
        Refusal::InboxFull
        | Refusal::AtCapacity
        | Refusal::AtRateLimit
        | Refusal::TooManyOpen
        | Refusal::TooManySavedAnswers => later(Reason::RateLimited),
        Refusal::MemoryFull { .. } | Refusal::Offline => later(Reason::Unavailable),
        Refusal::NoSuchSkill
        | Refusal::SkillNotOffered
        | Refusal::BudgetTooLow { .. }
        | Refusal::TooFewCredits
        | Refusal::AgentBroken
        | Refusal::GuestCannotPay
        | Refusal::InputRejected { .. }
        | Refusal::DeadlineTooSoon
        | Refusal::OfferExpired
        | Refusal::OfferNotRead
        | Refusal::TooManyOffers { .. }
        | Refusal::OfferAbovePrevious { .. }
        | Refusal::OfferAmbiguous
        | Refusal::NoSuchOffer
        | Refusal::Ambiguous
        | Refusal::WrongParty
        | Refusal::UnsupportedCurrency
        | Refusal::NoSuchOwner { .. }
        | Refusal::SelfPayment
        | Refusal::AmountNotPositive
        | Refusal::PaymentMismatch { .. }
        | Refusal::JobNotPaid { .. }
        | Refusal::AlreadySettled { .. }
        | Refusal::TooManyBlocked { .. }
        | Refusal::BridgeLoop { .. }
        | Refusal::TooManyAgents { .. }
        | Refusal::Overflow
        | Refusal::AnsweredElsewhere
        | Refusal::TooManyReports { .. } => error(Reason::InvalidParams),
    }
}

/// The error for a failure of the engine.
pub fn from_engine(failure: &Failure) -> A2aError {
    let unavailable = |text: &str| {
        let error = A2aError::new(Reason::Unavailable, text);
        A2aError { retry_after_seconds: Some(1), ..error }
    };
    match failure {
        Failure::Refused(refusal) => from_refusal(refusal),
        Failure::StoreFull => A2aError {
            http_status: Some(507),
            ..unavailable("the disk of the hub is full; nothing was changed")
        },
        Failure::Unavailable => unavailable("the hub cannot accept writes now"),
        Failure::Fault => A2aError::new(Reason::InternalError, "internal error; see the hub's log"),
        Failure::StillRunning => {
            let error = A2aError::new(Reason::Conflict, failure.to_string());
            A2aError { retry_after_seconds: Some(1), ..error }
        }
    }
}

/// The error for a refusal of the edge.
pub fn from_edge(error: EdgeError) -> A2aError {
    let new = |reason| A2aError::new(reason, error.to_string());
    let with_status =
        |status| A2aError { http_status: Some(status), ..new(Reason::InvalidRequest) };
    let retry_after_seconds = error.retry_after_seconds();
    match error {
        EdgeError::NotFound => new(Reason::NotFound),
        EdgeError::MethodNotAllowed => {
            A2aError { http_status: Some(405), ..new(Reason::MethodNotFound) }
        }
        EdgeError::Malformed { .. } => with_status(400),
        EdgeError::WrongHost => with_status(421),
        EdgeError::TooSlow => with_status(408),
        EdgeError::ForeignOrigin => new(Reason::Forbidden),
        EdgeError::EncodedBody => new(Reason::UnsupportedEncoding),
        EdgeError::TooLarge { .. } => new(Reason::TooLarge),
        EdgeError::TooManyRequests { .. } => {
            A2aError { retry_after_seconds, ..new(Reason::RateLimited) }
        }
        EdgeError::Overloaded => A2aError { retry_after_seconds, ..new(Reason::Unavailable) },
        EdgeError::NotCurrent => {
            A2aError { retry_after_seconds, ..A2aError::new(Reason::Unavailable, NOT_CURRENT) }
        }
        EdgeError::Internal => new(Reason::InternalError),
    }
}

/// How all operations of this protocol answer errors.
pub fn error_info() -> ErrorInfo {
    let own = Reason::ALL.iter().map(|reason| (reason.http_status(), reason.name()));
    let others = [
        (405, Reason::MethodNotFound),
        (408, Reason::InvalidRequest),
        (421, Reason::InvalidRequest),
        (507, Reason::Unavailable),
    ];
    let others = others.into_iter().map(|(status, reason)| (status, reason.name()));
    ErrorInfo::json::<ErrorBody>(own.chain(others))
}

/// An error in the form of the HTTP+JSON binding.
pub fn http_response(error: &A2aError) -> Response {
    with_retry(json_response(error.http_status(), error.write_http()), error)
}

/// An error in the form of JSON-RPC.
pub fn rpc_error_response(error: &A2aError, id: &str, version: Version) -> Response {
    with_retry(json_response(error.rpc_http_status(), error.write_rpc(id, version)), error)
}

fn with_retry(mut response: Response, error: &A2aError) -> Response {
    if let Some(seconds) = error.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}
