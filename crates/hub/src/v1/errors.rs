//! Every error of a request, as a problem kind.
//!
//! Core's refusals are matched one by one, so that a new one cannot be forgotten.

use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure;
use rialto_protocols::adapter::{EdgeError, NOT_CURRENT};

use super::problem::Problem;

/// A problem kind. Its code and title are part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemKind {
    pub status: u16,
    pub code: &'static str,
    pub title: &'static str,
}

const fn problem_kind(status: u16, code: &'static str, title: &'static str) -> ProblemKind {
    ProblemKind { status, code, title }
}

pub static MALFORMED: ProblemKind = problem_kind(400, "malformed", "Malformed request");
pub static UNAUTHORIZED: ProblemKind = problem_kind(401, "unauthorized", "A valid key is required");
static TOO_FEW_CREDITS: ProblemKind = problem_kind(402, "too_few_credits", "Not enough credits");
static OVER_LIMIT: ProblemKind = problem_kind(402, "over_limit", "Over a limit of the key");
static BUDGET_TOO_LOW: ProblemKind =
    problem_kind(402, "budget_too_low", "The budget is below the price");
pub static FORBIDDEN: ProblemKind = problem_kind(403, "forbidden", "Not allowed with this key");
static SUSPENDED: ProblemKind =
    problem_kind(403, "suspended", "The agent or its owner is suspended");
pub static NOT_FOUND: ProblemKind = problem_kind(404, "not_found", "Not found");
pub static NO_SUCH_OWNER: ProblemKind = problem_kind(404, "no_such_owner", "Owner not found");
static METHOD_NOT_ALLOWED: ProblemKind =
    problem_kind(405, "method_not_allowed", "Method not allowed");
static TOO_SLOW: ProblemKind = problem_kind(408, "too_slow", "The request took too long to arrive");
static ID_TAKEN: ProblemKind = problem_kind(409, "id_taken", "The id is already taken");
static OWNER_TAKEN: ProblemKind =
    problem_kind(409, "owner_taken", "The owner name is already taken");
pub static WRONG_STATE: ProblemKind =
    problem_kind(409, "wrong_state", "Not possible in the current state");
static STILL_RUNNING: ProblemKind =
    problem_kind(409, "still_running", "The first request is still running");
pub static OTHER_INSTANCE: ProblemKind =
    problem_kind(409, "other_instance", "Another program is working as this agent");
pub static UNREGISTERED: ProblemKind =
    problem_kind(410, "unregistered", "The agent is unregistered");
static TOO_LARGE: ProblemKind = problem_kind(413, "too_large", "The body is too large");
static ENCODED: ProblemKind = problem_kind(415, "encoded", "Content-Encoding is not supported");
static WRONG_HOST: ProblemKind = problem_kind(421, "wrong_host", "Unknown Host");
static NO_SUCH_SKILL: ProblemKind =
    problem_kind(422, "no_such_skill", "No agent offers this skill");
static SKILL_NOT_OFFERED: ProblemKind =
    problem_kind(422, "skill_not_offered", "The agent does not offer this skill");
static REFUSED: ProblemKind = problem_kind(422, "refused", "The hub's rules do not allow this");
pub static OTHER_CONTENT: ProblemKind =
    problem_kind(422, "other_content", "The id was already used with different content");
pub static RATE_LIMITED: ProblemKind = problem_kind(429, "rate_limited", "Too many requests");
static INBOX_FULL: ProblemKind = problem_kind(429, "inbox_full", "The receiver's inbox is full");
static INTERNAL: ProblemKind = problem_kind(500, "internal", "Internal error");
static UNAVAILABLE: ProblemKind = problem_kind(503, "unavailable", "The hub cannot do this now");
static AGENT_UNAVAILABLE: ProblemKind =
    problem_kind(503, "agent_unavailable", "The agent cannot do this now");
static MEMORY_FULL: ProblemKind =
    problem_kind(507, "memory_full", "The hub's memory limit is reached");
static TOO_MANY_KEPT: ProblemKind =
    problem_kind(507, "too_many_kept", "Too many idempotency records");
static STORE_FULL: ProblemKind = problem_kind(507, "store_full", "The hub's disk is full");

/// All kinds.
pub static ALL: [&ProblemKind; 32] = [
    &MALFORMED,
    &UNAUTHORIZED,
    &TOO_FEW_CREDITS,
    &OVER_LIMIT,
    &BUDGET_TOO_LOW,
    &FORBIDDEN,
    &SUSPENDED,
    &NOT_FOUND,
    &NO_SUCH_OWNER,
    &METHOD_NOT_ALLOWED,
    &TOO_SLOW,
    &ID_TAKEN,
    &OWNER_TAKEN,
    &WRONG_STATE,
    &STILL_RUNNING,
    &OTHER_INSTANCE,
    &UNREGISTERED,
    &TOO_LARGE,
    &ENCODED,
    &WRONG_HOST,
    &NO_SUCH_SKILL,
    &SKILL_NOT_OFFERED,
    &REFUSED,
    &OTHER_CONTENT,
    &RATE_LIMITED,
    &INBOX_FULL,
    &INTERNAL,
    &UNAVAILABLE,
    &AGENT_UNAVAILABLE,
    &MEMORY_FULL,
    &TOO_MANY_KEPT,
    &STORE_FULL,
];

/// Failures of the engine.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::StoreFull => {
                Self::new(&STORE_FULL, "the hub's disk is full; nothing was changed")
                    .with_retry_after(30)
            }
            Failure::Unavailable => {
                Self::new(&UNAVAILABLE, "the hub cannot accept writes now").with_retry_after(1)
            }
            Failure::Fault => Self::new(&INTERNAL, "the log has details under the request id"),
            Failure::StillRunning => {
                let text = "the first request with this Idempotency-Key is still running";
                Self::new(&STILL_RUNNING, text).with_retry_after(1)
            }
        }
    }
}

/// Refusals of core.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            Refusal::NotAuthenticated => return Self::unauthorized(),
            Refusal::NotFound => return Self::not_found(),
            Refusal::AmountNotPositive => {
                return Self::invalid_field("/amount", refusal.to_string());
            }
            Refusal::NoSuchAgent | Refusal::NoSuchOwner { .. } | Refusal::NoSuchOffer => &NOT_FOUND,
            Refusal::OfferAmbiguous => return Self::invalid_field("/offer", refusal.to_string()),
            Refusal::IdentityMismatch
            | Refusal::GuestCannotPay
            | Refusal::Blocked
            | Refusal::LimitedKey => &FORBIDDEN,
            Refusal::Suspended => &SUSPENDED,
            Refusal::IdTaken | Refusal::NameConfusable => &ID_TAKEN,
            Refusal::OwnerTaken => &OWNER_TAKEN,
            Refusal::TooFewCredits => &TOO_FEW_CREDITS,
            Refusal::OverLimit { .. } => &OVER_LIMIT,
            Refusal::BudgetTooLow { .. } => &BUDGET_TOO_LOW,
            Refusal::Offline
            | Refusal::AtCapacity
            | Refusal::AtRateLimit
            | Refusal::AgentBroken => &AGENT_UNAVAILABLE,
            Refusal::WrongState { .. }
            | Refusal::OtherAssignment { .. }
            | Refusal::AnsweredElsewhere
            | Refusal::OfferExpired
            | Refusal::OfferNotRead
            | Refusal::JobNotPaid { .. }
            | Refusal::AlreadySettled { .. } => &WRONG_STATE,
            Refusal::SameIdOtherContent => &OTHER_CONTENT,
            Refusal::InboxFull | Refusal::TooManyOpen => &INBOX_FULL,
            Refusal::TooManySavedAnswers => &TOO_MANY_KEPT,
            Refusal::NoSuchSkill => &NO_SUCH_SKILL,
            Refusal::SkillNotOffered => &SKILL_NOT_OFFERED,
            Refusal::MemoryFull { .. } => &MEMORY_FULL,
            Refusal::InputRejected { .. }
            | Refusal::DeadlineTooSoon
            | Refusal::SelfPayment
            | Refusal::PaymentMismatch { .. }
            | Refusal::TooManyBlocked { .. }
            | Refusal::TooManyOffers { .. }
            | Refusal::TooManyReports { .. }
            | Refusal::OfferAbovePrevious { .. }
            | Refusal::Ambiguous
            | Refusal::WrongParty
            | Refusal::UnsupportedCurrency
            | Refusal::BridgeLoop { .. }
            | Refusal::TooManyAgents { .. }
            | Refusal::TooManyKeys { .. }
            | Refusal::Overflow => &REFUSED,
        };
        let problem = Self::new(kind, refusal.to_string());
        match refusal.retry() {
            Retry::Never => problem,
            Retry::After(wait) => problem.with_retry_after(wait.0.unsigned_abs().div_ceil(1_000)),
        }
    }
}

/// Errors of the edge.
impl From<EdgeError> for Problem {
    fn from(error: EdgeError) -> Self {
        match error {
            EdgeError::NotFound => Self::new(&NOT_FOUND, "no such path; see /openapi.json"),
            EdgeError::MethodNotAllowed => {
                Self::new(&METHOD_NOT_ALLOWED, "method not allowed for this path; see Allow")
            }
            EdgeError::WrongHost => Self::new(&WRONG_HOST, "unknown Host"),
            EdgeError::ForeignOrigin => {
                Self::forbidden("cross-origin requests are not allowed here")
            }
            EdgeError::EncodedBody => Self::new(&ENCODED, "send the body without Content-Encoding"),
            EdgeError::TooLarge { limit } => {
                Self::new(&TOO_LARGE, format!("the body has more than {limit} bytes"))
            }
            EdgeError::TooManyRequests { retry_after_seconds } => {
                Self::new(&RATE_LIMITED, "too many requests; see retry_after_seconds")
                    .with_retry_after(retry_after_seconds)
            }
            EdgeError::Overloaded => {
                Self::new(&UNAVAILABLE, "the hub is overloaded").with_retry_after(1)
            }
            EdgeError::NotCurrent => Self::new(&UNAVAILABLE, NOT_CURRENT).with_retry_after(1),
            EdgeError::Malformed { what } => {
                Self::new(&MALFORMED, format!("malformed HTTP request: {what}"))
            }
            EdgeError::TooSlow => {
                Self::new(&TOO_SLOW, "send the whole body without pauses").with_retry()
            }
            EdgeError::Internal => {
                Self::new(&INTERNAL, "the log has details under the request id").with_retry()
            }
        }
    }
}
