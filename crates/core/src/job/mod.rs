//! Jobs: one piece of paid work, from request to settlement.
//!
//! This module only decides. It never waits, stores or sends. Credits move in `ledger`, scores in
//! `reputation`.

pub mod abandon;
pub mod acceptance;
pub mod backoff;
pub mod end;
pub mod grace_period;
pub mod handover;
pub mod log;
pub mod offer;
pub mod open;
mod policy;
pub mod price_agreement;
pub mod progress;
pub mod question;
pub mod readiness;
pub mod request;
pub mod select;
mod stored;
#[cfg(test)]
mod tests;
pub mod webhook;
pub mod work;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent::key_limits::SpendingKey;
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, JobId, OwnerId};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::time::{Millis, Timestamp};
pub use backoff::Backoff;
pub use handover::{Handover, Original};
pub use offer::Offer;
pub use policy::{NamedWorker, Policy, Queueing, Reassignment, RequesterOptions};
pub use progress::Progress;
pub use question::{Question, RequesterMessage};
pub use select::Selection;
pub use webhook::JobWebhook;

/// One piece of work and everything the hub knows about it. Its row is flat (`job/stored.rs`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    /// The hub's public id of the job, unique.
    pub uuid: Uuid,
    pub state: State,
    pub request: Request,
    pub policy: Policy,
    pub selection: Selection,
    pub candidates: Candidates,
    pub payment: Payment,
    /// Raised with every assignment; only the worker of the current one may act.
    pub epoch: u32,
    pub assignment: Option<Assignment>,
    /// What the worker's protocol keeps with the assignment.
    pub handover: Option<Handover>,
    pub acceptance: Acceptance,
    pub progress: Progress,
    /// The workers' questions to the requester, in order. Only the last may lack an answer.
    pub questions: Vec<Question>,
    /// What the requester sent the worker after the request, in order.
    pub messages: Vec<RequesterMessage>,
    /// URLs that get every later entry of the log.
    pub webhooks: Vec<JobWebhook>,
    /// The requester was answered that the job has to wait, so it is notified of the end.
    pub pending: bool,
    pub result: Option<JobResult>,
    pub ended_at: Option<Timestamp>,
    pub links: Links,
}

/// What is requested, by which agent, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub requester: Requester,
    /// The protocol of the request, and the requester's own id for the job.
    pub origin: Protocol,
    pub foreign_id: String,
    /// Digest of the whole request, to tell a repeat from a different job.
    pub content: Digest,
    pub skill: String,
    /// Other skill names under which the same work may be offered.
    pub alternative_skills: Vec<String>,
    /// JSON text, exactly as received.
    pub input: String,
    /// What is wrong with the input, in the origin protocol's format. Reported when the worker is
    /// back.
    pub input_error: Option<String>,
    /// Data of the origin protocol, as JSON text.
    pub meta: String,
    /// Bridges crossed so far.
    pub hops: u8,
    /// 1 is the most urgent.
    pub priority: u8,
    pub opened_at: Timestamp,
    pub deadline: Timestamp,
    /// When the requester wants the result, if it said so.
    pub wanted_by: Option<Timestamp>,
    /// How long an assigned worker may give no response.
    pub lease: Millis,
    /// URL at which the requester wants to be notified of the end.
    pub callback: Option<String>,
}

/// The agents that may do a job before one of them is assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Agents that are not asked again.
    pub declined: Vec<AgentId>,
    /// Agents that were invited to do the job or to make an offer, and have not declined.
    pub invited: Vec<AgentId>,
    /// Position of the request in the inbox of the sole invitee.
    pub invitation_position: Option<u64>,
    /// When that agent read the request.
    pub read_at: Option<Timestamp>,
    pub offers: Vec<Offer>,
    /// The current or last auction round.
    pub round: Option<AuctionRound>,
    /// The worker the job is deferred for, and whether it waits for approval.
    pub pending_assignment: Option<PendingAssignment>,
    /// How many assignments failed, and until when the job backs off.
    pub backoff: Backoff,
}

/// The money of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub payer: Option<OwnerId>,
    pub budget: Credits,
    /// The requester's price step. The requester pays the price it is shown.
    pub price_step: PriceStep,
    /// Credits held now.
    pub held: Credits,
    /// The key it was requested with, or its offer accepted, if limits bind it.
    pub key: Option<SpendingKey>,
    /// The price agreed with each worker that was ever chosen. It stays fixed however often the job
    /// returns to the same worker, whatever the worker lists or offers by then.
    pub agreed_prices: Vec<AgreedPrice>,
    /// The requester's payment proof; stored, not interpreted.
    pub proof: Option<String>,
}

/// What the worker agreed to when it took the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// When the worker accepted the job, or the hub did for it.
    pub accepted_at: Option<Timestamp>,
    /// When the worker expects to be ready.
    pub ready_at: Option<Timestamp>,
    /// When the result is expected: the requester's wish, or else the worker's promise. After that
    /// it is late.
    pub promised: Option<Timestamp>,
    /// The worker's own id for the job, if it has one.
    pub worker_job_id: Option<Uuid>,
}

/// A job's place in the lists that are followed from row to row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The requester's previous job, and the worker's.
    pub previous_requested: Option<JobId>,
    pub previous_worked: Option<JobId>,
    /// Number of orders submitted to the market when the job was opened, and when it ended.
    pub market_orders_before: u64,
    pub market_orders_at_end: u64,
}

/// The priority of a job whose request names none.
pub const DEFAULT_PRIORITY: u8 = 5;

/// One auction of a job, counted from 1, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuctionRound {
    pub number: u32,
    pub since: Timestamp,
}

/// A job that is deferred before it is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAssignment {
    pub worker: AgentId,
    /// Waits for approval; otherwise for the worker to be back.
    #[serde(rename = "approval")]
    pub needs_approval: bool,
    /// Approval was given, but the worker cannot start yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "agreed")]
    pub approved: bool,
}

/// The requester of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Requester {
    Agent(AgentId),
    /// An unregistered requester. It has no account and can only request free work.
    Guest(String),
}

/// The assignment of a job to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub worker: AgentId,
    pub owner: OwnerId,
    /// Fixed at assignment, whatever the worker asks later.
    pub price: Credits,
    /// The worker's own price, if it was rounded up for the requester.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Credits>,
    /// The worker listed no price when it was chosen. It may name one once, up to the budget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_open: bool,
    pub since: Timestamp,
    /// Without a response by then, the assignment fails.
    pub until: Timestamp,
    /// The worker has received the work; it can no longer be withdrawn.
    pub handed_over: bool,
    /// Position of the assignment notice in the worker's inbox, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "told_at")]
    pub inbox_position: Option<u64>,
    /// When the worker received the job: fetched, read, delivered to its endpoint, or accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "handed_at")]
    pub received_at: Option<Timestamp>,
    /// How long the worker must have had the job before a missing response counts against it.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    #[serde(rename = "fair_time")]
    pub grace_period: Millis,
    /// The assignment ended within the grace period, so it does not count against the worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
}

/// The price agreed with one worker, as in its [`Assignment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedPrice {
    pub worker: AgentId,
    pub price: Credits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "own")]
    pub unrounded_price: Option<Credits>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_open: bool,
}

/// The state of a job. Final states never change again. The encoding counts the variants, so a new
/// one is the last.
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
    /// Withdrawn before any result. Protocols treat the job as if it never existed.
    Withdrawn,
    /// The worker waits for an answer of the requester until then.
    InputRequired {
        until: Timestamp,
    },
}

impl State {
    /// Its name, for error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Queued => "queued",
            Self::Negotiating => "negotiating",
            Self::Deferred { .. } => "deferred",
            Self::Assigned => "assigned",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Withdrawn => "withdrawn",
            Self::InputRequired { .. } => "waiting for an answer",
        }
    }

    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        use State::*;
        matches!(self, Completed | Failed | Expired | Cancelled | Withdrawn)
    }

    /// Whether a worker has the job and may report about it.
    pub fn is_assigned(self) -> bool {
        matches!(self, Self::Assigned | Self::Running | Self::InputRequired { .. })
    }

    /// The state table: which state may follow which.
    pub fn may_become(self, next: Self) -> bool {
        use State::*;
        match self {
            Open => !matches!(next, InputRequired { .. }),
            Queued | Negotiating => {
                !matches!(next, Open | Running | InputRequired { .. } | Completed)
            }
            Deferred { .. } => !matches!(next, Open | InputRequired { .. } | Completed),
            Assigned => !matches!(next, Open),
            Running | InputRequired { .. } => !matches!(next, Open | Negotiating | Withdrawn),
            Completed | Failed | Expired | Cancelled | Withdrawn => false,
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobResult {
    pub ok: bool,
    /// JSON text, exactly as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub paid: Credits,
    #[serde(rename = "took")]
    pub duration: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Data of the worker's protocol, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "words")]
    pub meta: Option<String>,
    /// Digest of the worker's report, to tell a repeat from a different report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// The report in the worker's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
}

/// Why a job ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The worker reported that it lacks the skill.
    NoSuchSkill,
    /// The worker reported that the budget was too low.
    BudgetTooLow,
    /// The worker reported that it was offline.
    Offline,
    /// The work failed.
    Execution,
    /// The worker reported that payment failed.
    Payment,
    /// The worker's answer was unusable.
    Unusable,
    /// The worker did not respond within its lease, or the job passed its deadline.
    TimedOut,
    /// The worker unregistered before it was done.
    WorkerLeft,
    /// The requester cancelled the job.
    Cancelled,
    /// The worker refused by its own rules.
    Policy,
    /// Every candidate declined or failed.
    #[serde(rename = "NobodyLeft")]
    NoWorkerLeft,
    /// The assignment ended within the grace period. Only in outcomes: the requester is told that
    /// the job timed out or that the worker left.
    #[serde(rename = "NoFairTime")]
    WithinGracePeriod,
    /// The requester did not answer the worker's question.
    NoAnswer,
    /// The worker cannot use the input.
    InputMisfit,
    /// It is not known whether the worker got the job.
    UnknownFate,
}

impl Cause {
    /// Whether it counts as the worker's failure and changes its score.
    pub fn is_worker_failure(self) -> bool {
        use Cause::*;
        matches!(self, Offline | Execution | Payment | Unusable | TimedOut | WorkerLeft)
    }
}

impl Job {
    /// The size of its content: input, result, and protocol data.
    pub fn content_bytes(&self) -> usize {
        let report = self.result.as_ref();
        let text = |text: Option<&String>| text.map_or(0, String::len);
        let told = [
            text(report.and_then(|report| report.output.as_ref())),
            text(report.and_then(|report| report.text.as_ref())),
            text(report.and_then(|report| report.meta.as_ref())),
            report.and_then(|report| report.original.as_ref()).map_or(0, Original::content_bytes),
        ];
        let handed = self.handover.as_ref().map_or(0, |handover| handover.state.len());
        let asked = self.dialogue_bytes() + text(self.progress.text.as_ref()) + handed;
        self.request.input.len() + self.request.meta.len() + asked + told.iter().sum::<usize>()
    }

    /// The skill names under which the work may be offered; the first is the requested one.
    pub fn skill_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.request.skill.as_str())
            .chain(self.request.alternative_skills.iter().map(String::as_str))
    }

    /// The assigned worker, or the last one if the job has ended.
    pub fn worker(&self) -> Option<AgentId> {
        self.assignment.map(|turn| turn.worker)
    }

    /// Whether its id can be released. The id of a broadcast's copy cannot: the other copies keep
    /// ids derived from the same one.
    pub fn has_unique_name(&self) -> bool {
        !matches!(self.selection, Selection::Broadcast | Selection::BroadcastToProtocol)
    }

    /// When the job is due for its next timer; `None` for a finished job.
    pub fn due_at(&self) -> Option<Timestamp> {
        let own = match self.state {
            state if state.is_final() => return None,
            State::Deferred { until } | State::InputRequired { until } => until,
            State::Negotiating => match self.selection {
                Selection::Auction { closes } => closes,
                _ => self.request.deadline,
            },
            State::Queued => self.candidates.backoff.until.unwrap_or(self.request.deadline),
            _ => self.assignment.map_or(self.request.deadline, |turn| turn.until),
        };
        Some(own.min(self.request.deadline))
    }

    /// The worker of a job that is assigned to it or deferred by it.
    pub fn active_worker(&self) -> Option<AgentId> {
        let is_held = self.state.is_assigned() || matches!(self.state, State::Deferred { .. });
        self.worker().filter(|_| is_held)
    }

    /// The price agreed with this worker, if it was chosen before.
    pub fn agreed_price_with(&self, worker: AgentId) -> Option<AgreedPrice> {
        self.payment.agreed_prices.iter().find(|agreed| agreed.worker == worker).copied()
    }

    /// Sets the price agreed with a worker, replacing an earlier one.
    pub fn set_agreed_price(&mut self, agreed: AgreedPrice) {
        self.payment.agreed_prices.retain(|known| known.worker != agreed.worker);
        self.payment.agreed_prices.push(agreed);
    }

    /// The agent that has yet to read the job's notice in its inbox, and the notice's position.
    pub fn unread_notice(&self) -> Option<(AgentId, u64)> {
        match (self.state, self.assignment) {
            (State::Assigned | State::Running, Some(turn)) if turn.received_at.is_none() => {
                Some((turn.worker, turn.inbox_position?))
            }
            (State::Open, None) if self.candidates.read_at.is_none() => {
                Some((*self.candidates.invited.first()?, self.candidates.invitation_position?))
            }
            _ => None,
        }
    }

    /// The most the requester can pay. A guest pays nothing, whatever its budget is.
    pub fn max_payment(&self) -> Credits {
        match self.selection {
            _ if self.policy.requester.unpaid => self.payment.budget,
            _ if self.payment.payer.is_none() => Credits::ZERO,
            Selection::Invited { any_price: true, .. } => Credits::from_micros(i64::MAX),
            _ => self.payment.budget,
        }
    }

    /// Removes the assignment and the acceptance.
    pub fn unassign(&mut self) {
        self.assignment = None;
        self.handover = None;
        self.acceptance.accepted_at = None;
        self.acceptance.worker_job_id = None;
        self.acceptance.ready_at = None;
        self.acceptance.promised = self.request.wanted_by;
        self.progress.restart();
    }

    /// Whether a worker may have started, so that the job cannot simply be cancelled.
    pub fn has_started(&self) -> bool {
        matches!(self.state, State::Running | State::InputRequired { .. })
            || self.assignment.is_some_and(|turn| turn.handed_over)
    }

    /// Whether a worker is working on it or has accepted it.
    pub fn is_in_progress(&self) -> bool {
        self.acceptance.accepted_at.is_some() && self.active_worker().is_some()
    }

    /// The worker, or the agent the job is deferred for.
    pub fn intended_worker(&self) -> Option<AgentId> {
        self.worker().or(self.candidates.pending_assignment.map(|waits| waits.worker))
    }

    /// Whether this agent requested it.
    pub fn is_requested_by(&self, agent: AgentId) -> bool {
        self.request.requester == Requester::Agent(agent)
    }
}
