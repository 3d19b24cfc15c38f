//! Jobs: one piece of paid work, from request to settlement.
//!
//! This room only decides. It never waits, stores or sends. Money moves in `ledger`, scores in
//! `reputation`.

pub mod ask;
pub mod bargain;
pub mod end;
pub mod fair;
pub mod fit;
pub mod offer;
pub mod open;
pub mod reply;
pub mod respond;
pub mod rest;
pub mod select;
#[cfg(test)]
mod tests;
pub mod work;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::alias::{Digest, Protocol};
use crate::grain::Grain;
use crate::id::{AgentId, JobId, OwnerId};
use crate::money::Credits;
use crate::time::{Millis, Timestamp};
pub use offer::Offer;
pub use rest::Rest;
pub use select::Selection;

/// One piece of work and all that is known about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// The hub's public id of it, unlike any other.
    pub uuid: Uuid,
    /// The protocol it was asked in, and the requester's own id for it.
    pub origin: Protocol,
    pub foreign: String,
    /// Of everything the requester said, to tell a repeat from a different job.
    pub content: Digest,
    pub requester: Requester,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<OwnerId>,
    pub skill: String,
    /// Other names under which somebody may offer what is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// JSON text, exactly as it came.
    pub input: String,
    pub budget: Credits,
    /// How finely its requester counts; what it is shown, it pays.
    #[serde(default, skip_serializing_if = "Grain::is_fine")]
    pub grain: Grain,
    /// What is set aside now.
    pub held: Credits,
    pub selection: Selection,
    pub policy: Policy,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// The price agreed with each worker that was ever chosen. It holds however often the job comes
    /// back to the same worker, and whatever that lists or offers by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<Agreed>,
    /// Raised with every assignment; only the holder of the current one may act.
    pub epoch: u32,
    /// Who will not be asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<AgentId>,
    /// Who was asked to do it or to name a price, and has not said no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// Which of its auctions is held, or was held last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
    /// Where the question stands in the inbox of somebody who was asked alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<u64>,
    /// When that agent read the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// What the requester said about having paid; kept, not interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_proof: Option<String>,
    pub opened_at: Timestamp,
    pub deadline: Timestamp,
    /// How long an assigned worker may be silent.
    pub lease: Millis,
    /// The requester was told to wait, so the end is news to it.
    pub pending: bool,
    /// Where the requester wants the end to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// What is wrong with it in its origin protocol's words, to be told once its worker is back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
    /// What only the origin protocol understands, as JSON text.
    pub meta: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What its worker calls it, if that has a name of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<Uuid>,
    /// When its worker took it on, or the hub for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// When its worker said it would be ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// By when the requester wants it, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Timestamp>,
    /// By when the work was wanted, or promised by whoever has it; later is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<Timestamp>,
    /// 1 is the most urgent.
    #[serde(default = "usual_priority", skip_serializing_if = "is_usual_priority")]
    pub priority: u8,
    /// Somebody it waits for, and whether that is for a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Waiting>,
    /// How many assignments failed, and until when the job backs off.
    #[serde(default, skip_serializing_if = "Rest::is_none")]
    pub rest: Rest,
    /// How many orders had been posted to the market when it was opened, and when it ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub posts_before: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub posts_at_end: u64,
    /// Bridges crossed so far.
    pub hops: u8,
    /// The requester's job before this one, and the worker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_asked: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_worked: Option<JobId>,
}

/// How urgent a job is when nobody says.
pub const PRIORITY: u8 = 5;

fn usual_priority() -> u8 {
    PRIORITY
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_usual_priority(priority: &u8) -> bool {
    *priority == PRIORITY
}

/// One auction of a job, counted from 1, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub number: u32,
    pub since: Timestamp,
}

/// A job that is put off before anybody has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub worker: AgentId,
    /// For a yes; otherwise for the worker to be back.
    pub approval: bool,
    /// The yes was given, but the worker cannot begin yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agreed: bool,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Requester {
    Agent(AgentId),
    /// Somebody the hub does not know; it has no account and can only ask for what is free.
    Guest(String),
}

/// What happens when the first choice does not work out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A worker that cannot be connected to is replaced by the next one.
    pub next_when_unreachable: bool,
    /// A worker that declines is replaced.
    pub next_when_declined: bool,
    /// A worker that fails or stays silent is replaced.
    pub next_when_failed: bool,
    /// With nobody to choose from, the job waits instead of being refused.
    pub queue_unmatched: bool,
    /// The requester is answered at once and hears of the rest: whether the worker is there is
    /// asked before whether it can be paid, and nothing is held while it is away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub presence_first: bool,
    /// Once somebody has had it, it waits for the next instead of ending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queue_later: bool,
    /// Prices only steer the choice: nothing is held and nothing is paid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpaid: bool,
    /// Either side may call it off until there is a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_any_time: bool,
    /// A worker that is named need not be there: the work waits in its hands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent_too: bool,
    /// A worker that is named is not given it before this moment, whether or not it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The requester waits for the answer, also while the worker has yet to fetch the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_waits: bool,
}

/// One worker's turn at a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub worker: AgentId,
    pub owner: OwnerId,
    /// Fixed at this moment, whatever the worker asks later.
    pub price: Credits,
    /// What the worker asks itself, where that was rounded up for the requester.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Credits>,
    /// The worker listed no price when it was chosen: it may name one, up to the budget, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_open: bool,
    pub since: Timestamp,
    /// Silence past this moment is a failure.
    pub until: Timestamp,
    /// The work has been handed over and can no longer be called back.
    pub handed_over: bool,
    /// Position of the assignment in the worker's inbox, if it was told there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<u64>,
    /// When the worker had the job in hand: fetched, read, delivered to its endpoint, or accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_at: Option<Timestamp>,
    /// How long the worker must have the job in hand before its silence counts against it.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub fair_time: Millis,
    /// The assignment ended within the grace period, so it does not count against the worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
}

/// The price agreed with one worker, as in its [`Assignment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    pub worker: AgentId,
    pub price: Credits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Credits>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_open: bool,
}

/// Where a job stands. The terminal ones never change again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    Open,
    Queued,
    Negotiating,
    Deferred {
        until: Timestamp,
    },
    Assigned,
    Running,
    Completed,
    Failed,
    Expired,
    Cancelled,
    /// Withdrawn before any result. Protocols treat it as if it never existed.
    Withdrawn,
}

impl State {
    /// Whether nothing can happen any more.
    pub fn is_final(self) -> bool {
        use State::*;
        matches!(self, Completed | Failed | Expired | Cancelled | Withdrawn)
    }

    /// The state table: which state may follow which.
    pub fn may_become(self, next: Self) -> bool {
        use State::*;
        match self {
            Open => true,
            Queued => !matches!(next, Open | Running | Completed),
            Negotiating => !matches!(next, Open | Running | Completed),
            Deferred { .. } => !matches!(next, Open | Completed),
            Assigned => !matches!(next, Open),
            Running => !matches!(next, Open | Negotiating | Withdrawn),
            Completed | Failed | Expired | Cancelled | Withdrawn => false,
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub ok: bool,
    /// JSON text, exactly as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub paid: Credits,
    pub took: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What only the worker's protocol understands, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Digest of the worker's report, to tell a repeat from a different report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
}

/// Why a job ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The worker said it lacks the skill.
    NoSuchSkill,
    /// The worker said the budget was too low.
    BudgetTooLow,
    /// The worker said it was not there.
    Offline,
    /// The work went wrong.
    Execution,
    /// The worker said payment failed.
    Payment,
    /// The worker's answer made no sense.
    Unusable,
    /// The worker stayed silent past its lease, or the job past its deadline.
    TimedOut,
    /// The worker unregistered in the middle.
    WorkerLeft,
    /// The requester called it off.
    Cancelled,
    /// The worker refused by its own rules.
    Policy,
    /// Everybody declined or failed.
    NobodyLeft,
    /// The turn ended before the worker had the job in hand for a fair time. Only in outcomes: the
    /// requester is told that the job timed out or that the worker left.
    NoFairTime,
}

impl Cause {
    /// Whether the worker is to blame, and its score moves.
    pub fn blames_worker(self) -> bool {
        use Cause::*;
        matches!(self, Offline | Execution | Payment | Unusable | TimedOut | WorkerLeft)
    }
}

impl Job {
    /// How long its content is: what was asked, what came of it, and what protocols keep with it.
    pub fn bytes(&self) -> usize {
        let report = self.report.as_ref();
        let text = |text: Option<&String>| text.map_or(0, String::len);
        let told = [
            text(report.and_then(|report| report.output.as_ref())),
            text(report.and_then(|report| report.text.as_ref())),
            text(report.and_then(|report| report.words.as_ref())),
        ];
        self.input.len() + self.meta.len() + told.iter().sum::<usize>()
    }

    /// What somebody may call what is wanted; the first is its own name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.skill.as_str()).chain(self.also.iter().map(String::as_str))
    }

    /// The worker whose turn it is, or whose turn it was when the job ended.
    pub fn worker(&self) -> Option<AgentId> {
        self.assignment.map(|turn| turn.worker)
    }

    /// Whether its name can be given back. That of a broadcast's copy cannot: the others go on under
    /// names made of the same.
    pub fn has_its_own_name(&self) -> bool {
        !matches!(self.selection, Selection::Broadcast | Selection::Everybody)
    }

    /// The next moment something must happen by itself; `None` for a finished job.
    pub fn due(&self) -> Option<Timestamp> {
        let own = match self.state {
            state if state.is_final() => return None,
            State::Deferred { until } => until,
            State::Negotiating => match self.selection {
                Selection::Auction { closes } => closes,
                _ => self.deadline,
            },
            State::Queued => self.rest.until.unwrap_or(self.deadline),
            _ => self.assignment.map_or(self.deadline, |turn| turn.until),
        };
        Some(own.min(self.deadline))
    }

    /// The worker of a job that is assigned, running or deferred by that worker.
    pub fn in_hand_of(&self) -> Option<AgentId> {
        let held = matches!(self.state, State::Assigned | State::Running | State::Deferred { .. });
        self.worker().filter(|_| held)
    }

    /// The price agreed with this worker, if it was chosen before.
    pub fn agreed_with(&self, worker: AgentId) -> Option<Agreed> {
        self.agreed.iter().find(|agreed| agreed.worker == worker).copied()
    }

    /// Notes the price agreed with a worker, in place of an earlier one.
    pub fn agree(&mut self, agreed: Agreed) {
        self.agreed.retain(|known| known.worker != agreed.worker);
        self.agreed.push(agreed);
    }

    /// Who still has to read about it in its inbox before it has it in hand, and at which position.
    pub fn unread(&self) -> Option<(AgentId, u64)> {
        match (self.state, self.assignment) {
            (State::Assigned | State::Running, Some(turn)) if turn.handed_at.is_none() => {
                Some((turn.worker, turn.told_at?))
            }
            (State::Open, None) if self.read_at.is_none() => {
                Some((*self.asked.first()?, self.asked_at?))
            }
            _ => None,
        }
    }

    /// The most the requester can pay. A guest pays nothing, whatever its budget says.
    pub fn purse(&self) -> Credits {
        match self.selection {
            _ if self.policy.unpaid => self.budget,
            _ if self.payer.is_none() => Credits::ZERO,
            Selection::Asked { any_price: true, .. } => Credits::from_micros(i64::MAX),
            _ => self.budget,
        }
    }

    /// Takes it out of its worker's hands; nobody has taken it on any more.
    pub fn unassign(&mut self) {
        self.assignment = None;
        self.accepted_at = None;
        self.called = None;
        self.ready_at = None;
        self.promised = self.wanted;
    }

    /// Whether somebody may have begun, so that it cannot simply be called off.
    pub fn has_started(&self) -> bool {
        self.state == State::Running || self.assignment.is_some_and(|turn| turn.handed_over)
    }

    /// Whether somebody is at work on it, or has promised to be.
    pub fn is_worked_on(&self) -> bool {
        self.accepted_at.is_some() && self.in_hand_of().is_some()
    }

    /// The worker, or the agent the job is deferred for.
    pub fn for_whom(&self) -> Option<AgentId> {
        self.worker().or(self.waits_for.map(|waits| waits.worker))
    }

    /// Whether this agent asked for it.
    pub fn asked_by(&self, agent: AgentId) -> bool {
        self.requester == Requester::Agent(agent)
    }
}
