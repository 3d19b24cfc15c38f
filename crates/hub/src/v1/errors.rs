//! Every error of a request, as a problem kind.
//!
//! Core's refusals are matched one by one, so that a new one cannot be forgotten.

use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure;
use rialto_protocols::adapter::Trouble;

use super::problem::Problem;

/// A problem kind. Its code and title are part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub status: u16,
    pub code: &'static str,
    pub title: &'static str,
}

const fn kind(status: u16, code: &'static str, title: &'static str) -> Kind {
    Kind { status, code, title }
}

pub static MALFORMED: Kind = kind(400, "malformed", "Malformed request");
pub static UNAUTHORIZED: Kind = kind(401, "unauthorized", "A valid key is required");
static TOO_FEW_CREDITS: Kind = kind(402, "too_few_credits", "Not enough credits");
static BUDGET_TOO_LOW: Kind = kind(402, "budget_too_low", "The budget is below the price");
pub static FORBIDDEN: Kind = kind(403, "forbidden", "Not allowed with this key");
static SUSPENDED: Kind = kind(403, "suspended", "The agent or its owner is suspended");
pub static NOT_FOUND: Kind = kind(404, "not_found", "Not found");
pub static NO_SUCH_OWNER: Kind = kind(404, "no_such_owner", "Owner not found");
static METHOD_NOT_ALLOWED: Kind = kind(405, "method_not_allowed", "Method not allowed");
static TOO_SLOW: Kind = kind(408, "too_slow", "The request took too long to arrive");
static ID_TAKEN: Kind = kind(409, "id_taken", "The id is already taken");
static OWNER_TAKEN: Kind = kind(409, "owner_taken", "The owner name is already taken");
pub static WRONG_STATE: Kind = kind(409, "wrong_state", "Not possible in the current state");
static STILL_RUNNING: Kind = kind(409, "still_running", "The first request is still running");
pub static OTHER_INSTANCE: Kind =
    kind(409, "other_instance", "Another program is working as this agent");
pub static UNREGISTERED: Kind = kind(410, "unregistered", "The agent is unregistered");
static TOO_LARGE: Kind = kind(413, "too_large", "The body is too large");
static ENCODED: Kind = kind(415, "encoded", "Content-Encoding is not supported");
static WRONG_HOST: Kind = kind(421, "wrong_host", "Unknown Host");
static NO_SUCH_SKILL: Kind = kind(422, "no_such_skill", "No agent offers this skill");
static SKILL_NOT_OFFERED: Kind =
    kind(422, "skill_not_offered", "The agent does not offer this skill");
static REFUSED: Kind = kind(422, "refused", "The hub's rules do not allow this");
pub static OTHER_CONTENT: Kind =
    kind(422, "other_content", "The id was already used with different content");
pub static RATE_LIMITED: Kind = kind(429, "rate_limited", "Too many requests");
static INBOX_FULL: Kind = kind(429, "inbox_full", "The receiver's inbox is full");
static INTERNAL: Kind = kind(500, "internal", "Internal error");
static UNAVAILABLE: Kind = kind(503, "unavailable", "The hub cannot do this now");
static AGENT_UNAVAILABLE: Kind = kind(503, "agent_unavailable", "The agent cannot do this now");
static MEMORY_FULL: Kind = kind(507, "memory_full", "The hub's memory limit is reached");
static TOO_MANY_KEPT: Kind = kind(507, "too_many_kept", "Too many idempotency records");
static STORE_FULL: Kind = kind(507, "store_full", "The hub's disk is full");

/// Failures of the engine.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Full => Self::new(&STORE_FULL, "the hub's disk is full; nothing was changed")
                .retry_after(30),
            Failure::Down => {
                Self::new(&UNAVAILABLE, "the hub cannot accept writes now").retry_after(5)
            }
            Failure::Fault => Self::new(&INTERNAL, "the log has details under the request id"),
            Failure::StillRunning => {
                let text = "the first request with this Idempotency-Key is still running";
                Self::new(&STILL_RUNNING, text).retry_after(1)
            }
        }
    }
}

/// Refusals of core.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            Refusal::NotAuthenticated => return Self::unauthorized(),
            Refusal::NotYours => return Self::not_found(),
            Refusal::NothingToMove => return Self::field("/amount", refusal.to_string()),
            Refusal::NoSuchAgent | Refusal::NoSuchOwner { .. } | Refusal::NoSuchOffer => &NOT_FOUND,
            Refusal::OfferUnnamed => return Self::field("/offer", refusal.to_string()),
            Refusal::IdentityDiffers | Refusal::GuestCannotPay | Refusal::Blocked => &FORBIDDEN,
            Refusal::Suspended => &SUSPENDED,
            Refusal::IdTaken | Refusal::LooksTaken => &ID_TAKEN,
            Refusal::OwnerTaken => &OWNER_TAKEN,
            Refusal::TooFewCredits => &TOO_FEW_CREDITS,
            Refusal::BudgetTooLow { .. } => &BUDGET_TOO_LOW,
            Refusal::Offline | Refusal::AtCapacity | Refusal::TooFast | Refusal::OutOfOrder => {
                &AGENT_UNAVAILABLE
            }
            Refusal::WrongState { .. }
            | Refusal::OtherTurn { .. }
            | Refusal::OfferExpired
            | Refusal::UnreadOffer
            | Refusal::JobNotPaid { .. }
            | Refusal::AlreadySettled { .. } => &WRONG_STATE,
            Refusal::SameIdOtherContent => &OTHER_CONTENT,
            Refusal::InboxFull | Refusal::TooManyOpen => &INBOX_FULL,
            Refusal::TooManyKept => &TOO_MANY_KEPT,
            Refusal::NoSuchSkill => &NO_SUCH_SKILL,
            Refusal::SkillNotOffered => &SKILL_NOT_OFFERED,
            Refusal::MemoryFull { .. } => &MEMORY_FULL,
            Refusal::Unfit { .. }
            | Refusal::DeadlineTooSoon
            | Refusal::PaysItself
            | Refusal::NotWhatWasPaid { .. }
            | Refusal::TooManyBlocked { .. }
            | Refusal::TooManyOffers { .. }
            | Refusal::OfferRaised { .. }
            | Refusal::Ambiguous
            | Refusal::WrongParty
            | Refusal::OtherCurrency
            | Refusal::BridgeLoop { .. }
            | Refusal::TooManyAgents { .. }
            | Refusal::Overflow => &REFUSED,
        };
        let problem = Self::new(kind, refusal.to_string());
        match refusal.retry() {
            Retry::Never => problem,
            Retry::After(wait) => problem.retry_after(wait.0.unsigned_abs().div_ceil(1_000)),
        }
    }
}

/// Errors of the edge.
impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotFound => Self::new(&NOT_FOUND, "no such path; see /openapi.json"),
            Trouble::MethodNotAllowed => {
                Self::new(&METHOD_NOT_ALLOWED, "method not allowed for this path; see Allow")
            }
            Trouble::WrongHost => Self::new(&WRONG_HOST, "unknown Host"),
            Trouble::ForeignOrigin => Self::forbidden("cross-origin requests are not allowed here"),
            Trouble::Encoded => Self::new(&ENCODED, "send the body without Content-Encoding"),
            Trouble::TooLarge { limit } => {
                Self::new(&TOO_LARGE, format!("the body has more than {limit} bytes"))
            }
            Trouble::TooManyRequests { retry_after_seconds } => {
                Self::new(&RATE_LIMITED, "too many requests; see retry_after_seconds")
                    .retry_after(retry_after_seconds)
            }
            Trouble::Overloaded => Self::new(&UNAVAILABLE, "the hub is overloaded").retry_after(1),
            Trouble::Malformed { what } => {
                Self::new(&MALFORMED, format!("malformed HTTP request: {what}"))
            }
            Trouble::TooSlow => {
                Self::new(&TOO_SLOW, "send the whole body without pauses").retryable()
            }
            Trouble::Broken => {
                Self::new(&INTERNAL, "the log has details under the request id").retryable()
            }
        }
    }
}
