//! Translates refusals of the core, the engine and the edge to this protocol's errors.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_core::refusal::{Refusal, Retry};
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;

use super::RelayContext;
use super::wire::response::REJECTED;
use super::{Code, Failure, InvalidBody};
use crate::adapter::caller::KeyRejection;
use crate::adapter::operation::ErrorInfo;
use crate::adapter::resume::UNKNOWN_POSITION;
use crate::adapter::{EdgeError, NOT_CURRENT};
use crate::kit::fields::Malformed;
use crate::relay::wire::api_doc::ErrorBody;

/// A JSON response.
pub fn json_response(status: u16, body: Vec<u8>) -> Response {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// An error response, and the time it was made.
#[derive(Debug)]
pub struct ErrorResponse {
    failure: Box<Failure>,
    at: Timestamp,
}

impl ErrorResponse {
    pub fn new(failure: impl Into<Failure>, at: Timestamp) -> Self {
        Self { failure: Box::new(failure.into()), at }
    }

    /// What went wrong.
    pub fn code(&self) -> Code {
        self.failure.code
    }

    /// Marks it as the answer to a message that was neither stored nor attempted.
    pub fn into_rejected_message(mut self) -> Self {
        self.failure.data = Some(REJECTED.into());
        self
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut answer = json_response(self.failure.status, self.failure.write(self.at));
        if let Some(seconds) = self.failure.retry_after_seconds {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.failure.status == 401 {
            let scheme = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        answer
    }
}

/// The result of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

/// An error response with the current time.
pub fn error_response(context: &RelayContext, failure: impl Into<Failure>) -> ErrorResponse {
    ErrorResponse::new(failure, context.engine.now())
}

/// An engine failure as an error response.
pub fn engine_error(context: &RelayContext, failure: EngineFailure) -> ErrorResponse {
    error_response(context, from_engine(failure))
}

/// An error in a body or a query.
pub fn malformed_error(context: &RelayContext, bad: Malformed) -> ErrorResponse {
    error_response(context, InvalidBody::from(bad))
}

/// The request has no valid key.
pub fn unauthorized() -> Failure {
    let hint = "send the key of POST /register as: Authorization: Bearer ca_…";
    Failure {
        hint: Some(hint.into()),
        ..Failure::new(Code::Unauthorized, "authentication required")
    }
}

/// The key was rejected.
pub fn from_key_rejection(bad: KeyRejection) -> Failure {
    match bad {
        KeyRejection::Missing | KeyRejection::Unknown => unauthorized(),
        KeyRejection::Suspended => from_refusal(&Refusal::Suspended),
    }
}

/// The agent in a path, or the receiver, is unknown.
pub fn agent_not_found() -> Failure {
    Failure::new(Code::AgentNotFound, "agent not found; GET /agents lists all agents")
}

/// No node of this hub has sent an event with the id that a reader presents.
pub fn unknown_position() -> Failure {
    Failure::new(Code::WrongState, UNKNOWN_POSITION)
}

/// An engine failure as an error.
pub fn from_engine(failure: EngineFailure) -> Failure {
    match failure {
        EngineFailure::Refused(refusal) => from_refusal(&refusal),
        EngineFailure::StoreFull => Failure {
            status: 507,
            retry_after_seconds: Some(30),
            ..Failure::new(Code::Unavailable, "the hub's disk is full; nothing was changed")
        },
        EngineFailure::Unavailable => Failure {
            retry_after_seconds: Some(1),
            ..Failure::new(Code::Unavailable, "the hub cannot accept writes now")
        },
        EngineFailure::Fault => Failure {
            status: 500,
            ..Failure::new(Code::Unavailable, "internal error; see the hub log for this request id")
        },
        EngineFailure::StillRunning => Failure {
            retry_after_seconds: Some(1),
            ..Failure::new(Code::InProgress, "the first request with this key is still running")
        },
    }
}

/// A core refusal as an error.
pub fn from_refusal(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::NotAuthenticated => return unauthorized(),
        Refusal::NoSuchAgent => return agent_not_found(),
        Refusal::IdentityMismatch => Code::SenderMismatch,
        Refusal::GuestCannotPay | Refusal::Suspended | Refusal::LimitedKey => Code::Forbidden,
        Refusal::Blocked => Code::Blocked,
        Refusal::IdTaken | Refusal::OwnerTaken | Refusal::NameConfusable => Code::AgentIdTaken,
        Refusal::NotFound | Refusal::NoSuchOwner { .. } => Code::NotFound,
        Refusal::SameIdOtherContent => Code::IdempotencyConflict,
        Refusal::InboxFull => Code::InboxFull,
        Refusal::TooManyOpen => Code::RateLimited,
        Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers => Code::Unavailable,
        Refusal::WrongState { .. }
        | Refusal::OtherAssignment { .. }
        | Refusal::AnsweredElsewhere => Code::WrongState,
        // A bridged agent's refusal goes into its reply; here it is a bad request.
        Refusal::NoSuchSkill
        | Refusal::SkillNotOffered
        | Refusal::BudgetTooLow { .. }
        | Refusal::TooFewCredits
        | Refusal::OverLimit { .. }
        | Refusal::TooManyKeys { .. }
        | Refusal::Offline
        | Refusal::AtCapacity
        | Refusal::AtRateLimit
        | Refusal::AgentBroken
        | Refusal::InputRejected { .. }
        | Refusal::DeadlineTooSoon
        | Refusal::OfferExpired
        | Refusal::OfferNotRead
        | Refusal::SelfPayment
        | Refusal::AmountNotPositive
        | Refusal::PaymentMismatch { .. }
        | Refusal::JobNotPaid { .. }
        | Refusal::AlreadySettled { .. }
        | Refusal::BridgeLoop { .. }
        | Refusal::TooManyAgents { .. }
        | Refusal::TooManyBlocked { .. }
        | Refusal::TooManyOffers { .. }
        | Refusal::OfferAbovePrevious { .. }
        | Refusal::OfferAmbiguous
        | Refusal::NoSuchOffer
        | Refusal::TooManyReports { .. }
        | Refusal::Ambiguous
        | Refusal::WrongParty
        | Refusal::UnsupportedCurrency
        | Refusal::Overflow => Code::Validation,
    };
    let mut failure = Failure::new(code, refusal.to_string());
    if let Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers = refusal {
        failure.status = 507;
    }
    if let Retry::After(wait) = refusal.retry() {
        let seconds = wait.0.unsigned_abs().div_ceil(1_000);
        failure.retry_after_seconds = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
    }
    failure
}

/// Adds to "turn already used" how to continue.
pub fn with_turn_hint(failure: Failure) -> Failure {
    if failure.code != Code::IdempotencyConflict {
        return failure;
    }
    let hint = "this turn was already sent with a different envelope; increase turn_number";
    let field = Some("/envelope/turn_number".into());
    Failure { hint: Some(hint.into()), field, ..failure }
}

/// How all operations of this protocol answer errors.
pub fn error_info() -> ErrorInfo {
    let own = Code::ALL.into_iter().map(|code| (code.status(), code));
    let others = [
        (408, Code::Validation),
        (421, Code::NotFound),
        (500, Code::Unavailable),
        (502, Code::AdaptationFailed),
        (507, Code::Unavailable),
    ];
    ErrorInfo::json::<ErrorBody>(own.chain(others).map(|(status, code)| (status, code.as_str())))
}

/// A refusal by the edge as an error.
pub fn from_edge(error: EdgeError) -> Failure {
    let other = |status, code, text: &'static str| Failure { status, ..Failure::new(code, text) };
    match error {
        EdgeError::NotFound => {
            let hint = "start at /skill (how to join) or /llms.txt; the paths are listed in /.well-known/chorus.json and /openapi.json";
            let failure = Failure::new(Code::NotFound, "no such path");
            Failure { hint: Some(hint.into()), ..failure }
        }
        EdgeError::MethodNotAllowed => {
            Failure::new(Code::MethodNotAllowed, "method not allowed for this path; see Allow")
        }
        EdgeError::WrongHost => other(421, Code::NotFound, "unknown Host header"),
        EdgeError::ForeignOrigin => {
            Failure::new(Code::Forbidden, "cross-origin requests are not allowed here")
        }
        EdgeError::EncodedBody => Failure::new(
            Code::UnsupportedEncoding,
            "encoded bodies are not supported; remove Content-Encoding",
        ),
        EdgeError::TooLarge { limit } => {
            Failure::new(Code::PayloadTooLarge, format!("the body has more than {limit} bytes"))
        }
        EdgeError::TooManyRequests { retry_after_seconds } => Failure {
            retry_after_seconds: Some(u32::try_from(retry_after_seconds).unwrap_or(u32::MAX)),
            ..Failure::new(Code::RateLimited, "too many requests; wait and try again")
        },
        EdgeError::Overloaded => Failure {
            retry_after_seconds: Some(1),
            ..Failure::new(Code::Unavailable, "the hub is overloaded")
        },
        EdgeError::NotCurrent => {
            Failure { retry_after_seconds: Some(1), ..Failure::new(Code::Unavailable, NOT_CURRENT) }
        }
        EdgeError::Malformed { what } => {
            Failure::new(Code::Validation, format!("the request cannot be read: {what}"))
        }
        EdgeError::TooSlow => other(408, Code::Validation, "the request took too long to arrive"),
        EdgeError::Internal => {
            other(500, Code::Unavailable, "internal error; see the hub log for this request id")
        }
    }
}
