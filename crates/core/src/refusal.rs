//! Refusals: the request was valid, but the rules do not allow it.
//!
//! Each protocol maps every refusal to its own error code with an exhaustive match, so a new
//! refusal cannot be forgotten in a protocol.

use serde::{Deserialize, Serialize};

use crate::job::State;
use crate::money::Credits;
use crate::time::Millis;

/// Why a command was refused. The encoding counts the variants, so a new one is the last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    #[error("the credential does not allow this")]
    NotAuthenticated,
    #[error(
        "suspended by the operator; ask the operator to resume it (balances, jobs and messages are kept)"
    )]
    Suspended,
    #[error("the request body names another agent or owner than the credential")]
    #[serde(rename = "IdentityDiffers")]
    IdentityMismatch,
    #[error("this id is already in use; choose another id")]
    IdTaken,
    #[error("this owner already exists; register more of its agents with the key of one of them")]
    OwnerTaken,
    #[error("this name is in use or too similar to one in use; choose another name")]
    #[serde(rename = "LooksTaken")]
    NameConfusable,
    #[error("not found")]
    #[serde(rename = "NotYours")]
    NotFound,
    #[error("agent not found")]
    NoSuchAgent,
    #[error("no agent offers this skill")]
    NoSuchSkill,
    #[error("the agent does not offer this skill")]
    SkillNotOffered,
    #[error("the budget is below the price of {}", price.to_text(2))]
    BudgetTooLow { price: Credits },
    #[error("not enough credits")]
    TooFewCredits,
    #[error("the agent is offline")]
    Offline,
    #[error("the agent cannot take more jobs now; retry later")]
    AtCapacity,
    #[error("the agent has reached its limit of jobs per minute; retry in a minute")]
    #[serde(rename = "TooFast")]
    AtRateLimit,
    #[error("this requester has too many open jobs; retry when some have ended")]
    TooManyOpen,
    #[error("the agent reports that it is broken")]
    #[serde(rename = "OutOfOrder")]
    AgentBroken,
    #[error("a guest without an account can only request free work; register to pay for work")]
    GuestCannotPay,
    #[error("the input does not match the agent's input schema: {reason}")]
    #[serde(rename = "Unfit")]
    InputRejected {
        #[serde(rename = "why")]
        reason: String,
    },
    #[error("the deadline is too soon; allow more time")]
    DeadlineTooSoon,
    #[error("not allowed while the job is {}", state.name())]
    WrongState {
        #[serde(rename = "is")]
        state: State,
    },
    #[error("this refers to another assignment of the job; the current epoch is {epoch}")]
    #[serde(rename = "OtherTurn")]
    OtherAssignment {
        #[serde(rename = "is")]
        epoch: u32,
    },
    #[error("the offer has expired")]
    OfferExpired,
    #[error(
        "the order names neither this hub nor the payee, and the signer has not read the offer on this hub; read the inbox first"
    )]
    #[serde(rename = "UnreadOffer")]
    OfferNotRead,
    #[error("at most {max} offers may be made for one job")]
    TooManyOffers { max: usize },
    #[error("a later offer must not be above the {} offered before", before.to_text(6))]
    #[serde(rename = "OfferRaised")]
    OfferAbovePrevious { before: Credits },
    #[error("this agent made several offers; name one by its id or price")]
    #[serde(rename = "OfferUnnamed")]
    OfferAmbiguous,
    #[error("offer not found")]
    NoSuchOffer,
    #[error("this id is ambiguous: several agents use it; name the other party too")]
    Ambiguous,
    #[error("the addressed agent is not a party of this job or offer")]
    WrongParty,
    #[error("the currency is not supported; use credits")]
    #[serde(rename = "OtherCurrency")]
    UnsupportedCurrency,
    #[error("this id was already used with different content; use a new id")]
    SameIdOtherContent,
    #[error("account `{name}` not found")]
    NoSuchOwner { name: String },
    #[error("payer and payee are the same account")]
    #[serde(rename = "PaysItself")]
    SelfPayment,
    #[error("the amount must be above zero")]
    #[serde(rename = "NothingToMove")]
    AmountNotPositive,
    #[error("the transfer does not match the job's payment of {}; check the amount and both owners", paid.to_text(2))]
    #[serde(rename = "NotWhatWasPaid")]
    PaymentMismatch { paid: Credits },
    #[error("the job has not completed successfully")]
    JobNotPaid { pending: bool },
    #[error("already settled by transfer {by}")]
    AlreadySettled { by: String },
    #[error("the receiver's inbox is full; retry later")]
    InboxFull,
    #[error(
        "too many answers are saved for this caller's idempotency keys; each expires after a day, so \
         wait, or send the request without a key"
    )]
    #[serde(rename = "TooManyKept")]
    TooManySavedAnswers,
    #[error("the receiver blocks messages from this sender")]
    Blocked,
    #[error("an agent can block at most {max} others")]
    TooManyBlocked { max: usize },
    #[error("a job may cross at most {max} bridges and never return to its requester")]
    BridgeLoop { max: u8 },
    #[error("an owner can have at most {max} agents; remove one first")]
    TooManyAgents { max: usize },
    #[error("the sum of the amounts is too large")]
    Overflow,
    #[error("{budget}; nothing was changed")]
    MemoryFull {
        #[serde(rename = "of")]
        budget: MemoryBudget,
    },
    #[error(
        "the worker waits until the requester has signed in elsewhere; the hub takes no answer and no \
         credential"
    )]
    AnsweredElsewhere,
    #[error("one job may have at most {max} of these, and limited content; report the result")]
    TooManyReports { max: u32 },
    #[error("{}", over_limit_text(*limit, *left, *by_default))]
    OverLimit {
        limit: SpendingLimit,
        /// What the key may still spend today; `None` without a limit per day.
        left: Option<Credits>,
        /// The limit is the hub's default for keys without limits of their own.
        by_default: bool,
    },
    #[error(
        "this key is limited: it cannot issue, rotate, list or revoke keys, renew secrets, register \
         other agents or unregister; use a key of this agent without limits"
    )]
    LimitedKey,
    #[error("an agent can have at most {max} keys with a label or limits; revoke one first")]
    TooManyKeys { max: usize },
}

/// What a key may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpendingLimit {
    /// One hold, or one transfer.
    PerJob(Credits),
    /// All of one day (UTC).
    PerDay(Credits),
    /// It may not transfer credits.
    Transfers,
}

/// What is left, and how more may be spent.
fn over_limit_text(limit: SpendingLimit, left: Option<Credits>, by_default: bool) -> String {
    let left_today = left.map_or_else(String::new, |left| {
        format!(", and {} is left of what it may spend today (UTC)", left.to_text(2))
    });
    let most = match limit {
        SpendingLimit::PerJob(most) => {
            format!("at most {} on one job or transfer{left_today}", most.to_text(2))
        }
        SpendingLimit::PerDay(most) => format!("at most {} a day{left_today}", most.to_text(2)),
        SpendingLimit::Transfers => {
            return "this key may not transfer credits; a key of this agent without limits may, and \
                    may issue one that may"
                .to_owned();
        }
    };
    match by_default {
        true => format!(
            "a key without limits of its own may spend {most}; ask the operator to raise this limit \
             of the hub, or issue a key with higher limits"
        ),
        false => format!(
            "this key may spend {most}; a key of this agent without limits may issue one with higher \
             limits"
        ),
    }
}

/// Which memory budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MemoryBudget {
    #[error(
        "this owner's agents and open jobs have reached the memory limit of one owner: end jobs, or \
         shrink or remove agents, then retry"
    )]
    Owner,
    #[error(
        "the memory for owners that never had credits is used up: end jobs or remove agents, or \
         retry later"
    )]
    Newcomers,
    #[error(
        "the hub's memory is used up: only requests that need no more memory are accepted; retry later"
    )]
    Hub,
}

/// Whether repeating the request can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request will never succeed.
    Never,
    /// It may succeed after this long.
    After(Millis),
}

impl Refusal {
    /// Whether the same request may succeed later. An account may receive credits and a suspension
    /// may end, but the hub cannot say when.
    pub fn may_succeed_later(&self) -> bool {
        // Another key of the same agent may do what this one may not.
        let is_limited = matches!(self, Self::OverLimit { .. } | Self::LimitedKey);
        is_limited
            || matches!(self, Self::TooFewCredits | Self::Suspended)
            || self.retry() != Retry::Never
    }

    /// Its name in snake case without its fields, for metrics.
    pub fn code(&self) -> String {
        let debug = format!("{self:?}");
        let name = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let mut code = String::with_capacity(name.len() + 4);
        for c in name.chars() {
            if c.is_uppercase() && !code.is_empty() {
                code.push('_');
            }
            code.push(c.to_ascii_lowercase());
        }
        code
    }

    /// Whether and when repeating the request can help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Offline | Self::AtCapacity => Retry::After(Millis::seconds(30)),
            Self::AtRateLimit => Retry::After(Millis::minutes(1)),
            Self::InboxFull | Self::TooManyOpen => Retry::After(Millis::seconds(10)),
            Self::MemoryFull { .. } => Retry::After(Millis::seconds(60)),
            // Saved answers expire a day after they were saved, so capacity returns gradually.
            Self::TooManySavedAnswers => Retry::After(Millis::minutes(10)),
            Self::JobNotPaid { pending: true } => Retry::After(Millis::seconds(1)),
            Self::NotAuthenticated
            | Self::Suspended
            | Self::IdentityMismatch
            | Self::IdTaken
            | Self::OwnerTaken
            | Self::NameConfusable
            | Self::NotFound
            | Self::NoSuchAgent
            | Self::NoSuchSkill
            | Self::SkillNotOffered
            | Self::BudgetTooLow { .. }
            | Self::TooFewCredits
            | Self::GuestCannotPay
            | Self::AgentBroken
            | Self::InputRejected { .. }
            | Self::DeadlineTooSoon
            | Self::WrongState { .. }
            | Self::OtherAssignment { .. }
            | Self::AnsweredElsewhere
            | Self::TooManyReports { .. }
            | Self::OfferExpired
            | Self::OfferNotRead
            | Self::TooManyOffers { .. }
            | Self::OfferAbovePrevious { .. }
            | Self::OfferAmbiguous
            | Self::NoSuchOffer
            | Self::Ambiguous
            | Self::WrongParty
            | Self::UnsupportedCurrency
            | Self::SameIdOtherContent
            | Self::NoSuchOwner { .. }
            | Self::SelfPayment
            | Self::AmountNotPositive
            | Self::PaymentMismatch { .. }
            | Self::JobNotPaid { pending: false }
            | Self::AlreadySettled { .. }
            | Self::Blocked
            | Self::TooManyBlocked { .. }
            | Self::BridgeLoop { .. }
            | Self::TooManyAgents { .. }
            | Self::OverLimit { .. }
            | Self::LimitedKey
            | Self::TooManyKeys { .. }
            | Self::Overflow => Retry::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_name_without_what_it_carries() {
        assert_eq!(Refusal::TooFewCredits.code(), "too_few_credits");
        assert_eq!(Refusal::WrongState { state: State::Open }.code(), "wrong_state");
        assert_eq!(Refusal::NoSuchOwner { name: "Bad Name".to_owned() }.code(), "no_such_owner");
    }

    #[test]
    fn what_waiting_may_cure_may_pass_and_nothing_else() {
        use Refusal::*;
        let full = MemoryFull { budget: MemoryBudget::Hub };
        let curable =
            [Offline, AtCapacity, AtRateLimit, InboxFull, TooManyOpen, full, TooManySavedAnswers];
        assert!(curable.iter().all(|one| one.may_succeed_later() && one.retry() != Retry::Never));
        assert!(JobNotPaid { pending: true }.may_succeed_later());
        // An account may receive credits and a suspension may end, but the hub cannot say when.
        for refusal in [TooFewCredits, Suspended] {
            assert_eq!((refusal.may_succeed_later(), refusal.retry()), (true, Retry::Never));
        }
        let price = Credits::ZERO;
        let final_words = [
            IdTaken,
            OwnerTaken,
            NameConfusable,
            NotFound,
            NoSuchAgent,
            NoSuchSkill,
            SkillNotOffered,
            BudgetTooLow { price },
            GuestCannotPay,
            AgentBroken,
            DeadlineTooSoon,
            SameIdOtherContent,
            WrongState { state: State::Open },
            OtherAssignment { epoch: 2 },
            OfferAbovePrevious { before: price },
            OfferAmbiguous,
            NoSuchOffer,
            JobNotPaid { pending: false },
        ];
        for refusal in final_words {
            assert!(!refusal.may_succeed_later(), "{refusal:?}");
        }
    }
}
