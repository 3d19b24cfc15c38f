//! Errors: maps refusals of the core, the engine and the edge to this protocol's failures, and
//! failures to signed responses.

use std::borrow::Cow;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rialto_core::job::State;
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure as EngineFailure;

use super::AgoraContext;
use super::envelope::EnvelopeError;
use super::hub_envelope::signed_error;
use super::operations::json_response;
use super::translate::request_state;
use super::wire::api_doc::ErrorEnvelope;
use super::wire::error::{Code, Failure};
use crate::adapter::operation::ErrorInfo;
use crate::adapter::{EdgeError, NOT_CURRENT};
use crate::kit::ed25519::PublicKey;

/// The failure for an engine failure.
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
        EngineFailure::Fault | EngineFailure::StillRunning => Failure::new(
            Code::Internal,
            "internal error; see the hub log for this request id under X-Request-Id",
        ),
    }
}

/// The match is exhaustive, so that a new refusal cannot be forgotten (B6).
pub fn from_refusal(refusal: &Refusal) -> Failure {
    let code = match refusal {
        // A caller that is not a party gets the same answer as for an unknown request (D19).
        Refusal::NotFound => return not_a_party(),
        Refusal::NotAuthenticated
        | Refusal::Suspended
        | Refusal::IdentityMismatch
        | Refusal::Blocked
        | Refusal::LimitedKey
        | Refusal::OfferNotRead => Code::Unauthorized,
        Refusal::NoSuchAgent
        | Refusal::NoSuchSkill
        | Refusal::SkillNotOffered
        | Refusal::NoSuchOwner { .. } => Code::NotFound,
        Refusal::BudgetTooLow { .. }
        | Refusal::TooFewCredits
        | Refusal::OverLimit { .. }
        | Refusal::GuestCannotPay
        | Refusal::UnsupportedCurrency
        | Refusal::Overflow => Code::PaymentRequired,
        Refusal::OfferExpired
        | Refusal::DeadlineTooSoon
        | Refusal::WrongState { state: State::Expired } => Code::Timeout,
        Refusal::Offline
        | Refusal::AtCapacity
        | Refusal::AtRateLimit
        | Refusal::AgentBroken
        | Refusal::InboxFull
        | Refusal::MemoryFull { .. }
        | Refusal::TooManySavedAnswers => Code::Unavailable,
        Refusal::TooManyOpen => Code::TooManyRequests,
        Refusal::WrongState { .. }
        | Refusal::OtherAssignment { .. }
        | Refusal::SameIdOtherContent
        | Refusal::TooManyOffers { .. }
        | Refusal::OfferAbovePrevious { .. }
        | Refusal::OfferAmbiguous
        | Refusal::NoSuchOffer
        | Refusal::AnsweredElsewhere
        | Refusal::TooManyReports { .. }
        | Refusal::Ambiguous
        | Refusal::WrongParty
        | Refusal::IdTaken
        | Refusal::OwnerTaken
        | Refusal::NameConfusable
        | Refusal::InputRejected { .. }
        | Refusal::SelfPayment
        | Refusal::AmountNotPositive
        | Refusal::PaymentMismatch { .. }
        | Refusal::JobNotPaid { .. }
        | Refusal::AlreadySettled { .. }
        | Refusal::TooManyBlocked { .. }
        | Refusal::BridgeLoop { .. }
        | Refusal::TooManyAgents { .. }
        | Refusal::TooManyKeys { .. } => Code::BadRequest,
    };
    let mut failure = Failure::new(code, text(refusal));
    if let Refusal::MemoryFull { .. } = refusal {
        failure.http_status = 507;
    }
    if let Some(hint) = hint(refusal) {
        failure = failure.with_hint(hint);
    }
    if let Retry::After(wait) = refusal.retry() {
        let seconds = wait.0.unsigned_abs().div_ceil(1_000);
        failure.retry_after_seconds = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
    }
    failure
}

fn not_a_party() -> Failure {
    Failure::unauthorized("no request or offer with this id, or the sender is not a party of it")
}

/// The refusal's text in this protocol's terms, where the core's text would be unclear.
fn text(refusal: &Refusal) -> Cow<'static, str> {
    match refusal {
        Refusal::WrongState { state: State::Expired } => "the request has timed out".into(),
        Refusal::WrongState { state: is } => {
            format!("the request is {}, which does not allow this", request_state(*is).as_str())
                .into()
        }
        Refusal::NoSuchSkill => "no available agent supports this resource".into(),
        Refusal::SkillNotOffered => "the agent does not support this resource".into(),
        Refusal::NoSuchAgent => "no agent has the recipient's key".into(),
        Refusal::SameIdOtherContent => {
            "this id was used before, with other content or for another recipient".into()
        }
        Refusal::BridgeLoop { .. } => "an agent cannot send a REQUEST to itself".into(),
        Refusal::NotAuthenticated => "the agent with this key is unregistered".into(),
        Refusal::BudgetTooLow { price } => {
            format!("budget.max is below the price of {}", price.to_text(0)).into()
        }
        other => other.to_string().into(),
    }
}

fn hint(refusal: &Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::SameIdOtherContent => "every message needs its own id; use a new UUID",
        Refusal::Ambiguous => "add recipient {\"id\":\"did:key:…\"} with the other party's key",
        Refusal::OfferNotRead => {
            "add recipient {\"id\":\"did:key:…\"} with the provider's key or the hub's, or read the \
             OFFER from your inbox here first"
        }
        Refusal::WrongState { state: State::Open } => "the request asks for offers: send an OFFER",
        Refusal::OfferExpired => "send a new REQUEST, or wait for another OFFER",
        Refusal::NotAuthenticated => "register again by sending a HELLO to the hub",
        Refusal::UnsupportedCurrency => "leave budget.currency out, or set it to \"credits\"",
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            "GET /agora/agents?resource=… lists the agents that support a resource"
        }
        Refusal::InboxFull => "the receiver's inbox is full; retry later",
        _ => return None,
    })
}

/// How all operations of this protocol answer errors. The code is a number.
pub fn error_info() -> ErrorInfo {
    ErrorInfo::json::<ErrorEnvelope>([
        (400, "400"),
        (401, "401"),
        (402, "402"),
        (403, "401"),
        (404, "404"),
        (405, "400"),
        (408, "408"),
        (409, "400"),
        (413, "400"),
        (415, "400"),
        (421, "400"),
        (429, "429"),
        (500, "500"),
        (503, "503"),
        (507, "503"),
    ])
}

/// The failure for a refusal of the edge.
pub fn from_edge(error: EdgeError) -> Failure {
    match error {
        EdgeError::NotFound => Failure::new(Code::NotFound, "no such path"),
        EdgeError::MethodNotAllowed => {
            Failure { http_status: 405, ..Failure::bad_request("method not allowed for this path") }
        }
        EdgeError::WrongHost => {
            Failure { http_status: 421, ..Failure::bad_request("unknown Host header for this hub") }
        }
        EdgeError::ForeignOrigin => {
            let text = "cross-origin requests are not allowed here";
            Failure { http_status: 403, ..Failure::unauthorized(text) }
        }
        EdgeError::EncodedBody => Failure::encoded_body(),
        EdgeError::TooLarge { limit } => {
            let message = format!("the body has more than {limit} bytes");
            Failure { http_status: 413, ..Failure::bad_request(message) }
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
            Failure::bad_request(format!("malformed HTTP request: {what}"))
        }
        EdgeError::TooSlow => Failure::new(Code::Timeout, "the body took too long to arrive"),
        EdgeError::Internal => {
            Failure::new(Code::Internal, "internal error; see the hub log for this request id")
        }
    }
}

/// An error that is signed and sent as a response.
pub struct ErrorResponse(AgoraContext, EnvelopeError);

/// The return type of a handler.
pub type HandlerResult = Result<Response, ErrorResponse>;

impl ErrorResponse {
    pub fn new(context: &AgoraContext, error: impl Into<EnvelopeError>) -> Self {
        Self(context.clone(), error.into())
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        error_response(&self.0, &self.1.failure, self.1.to)
    }
}

/// An error as a response.
pub fn error_response(
    context: &AgoraContext,
    failure: &Failure,
    to: Option<PublicKey>,
) -> Response {
    let mut answer = json_response(failure.http_status, signed_error(context, failure, to));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_cannot_write_now_says_when_to_retry() {
        let Failure { http_status, retry_after_seconds, retryable, .. } =
            from_engine(&EngineFailure::Unavailable);
        assert_eq!((http_status, retry_after_seconds, retryable), (503, Some(1), true));
    }
}
