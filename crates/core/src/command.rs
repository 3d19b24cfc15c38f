//! Commands: requests to change state. The caller's identity is already proven.

use std::sync::Arc;

use uuid::Uuid;

use crate::agent::key::{Holder, KeyHash};
use crate::agent::status::AgentStatusUpdate;
use crate::agent::{Liveness, Skill, Terms};
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, JobId, NoticeId, OwnerId};
use crate::idempotency::{Principal, SavedAnswer};
use crate::job::progress::ProgressUpdate;
use crate::job::{Cause, Policy, Requester, Selection};
use crate::market::MarketSubmission;
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::signed_order::SignedEnvelope;
use crate::time::{Millis, Timestamp};

/// A request to change state.
#[derive(Clone, Debug)]
pub enum Command {
    Register(Box<Registration>),
    Remove {
        agent: AgentId,
        by_operator: bool,
    },
    IssueKey {
        holder: Holder,
        hash: KeyHash,
        retire_others: bool,
        by_operator: bool,
    },
    RevokeKeys {
        agent: AgentId,
        by_operator: bool,
    },
    /// Suspends or resumes; the operator only.
    SetSuspended {
        subject: SuspensionTarget,
        suspended: bool,
    },
    /// The store was restored from a backup. What the original did after the backup did not happen
    /// here.
    BeginEpoch,
    /// Adds a new webhook secret; older ones expire.
    RenewSecret {
        agent: AgentId,
    },
    Heartbeat {
        agent: AgentId,
    },
    /// An agent that was offline is active again.
    RecordActivity {
        agent: AgentId,
    },
    OpenAccount {
        name: String,
    },
    Grant {
        name: String,
        amount: Credits,
    },
    Burn {
        name: String,
        amount: Credits,
    },
    Pay(Box<Pay>),
    OpenJob(Box<OpenJob>),
    Offer {
        job: JobRef,
        by: AgentId,
        price: Credits,
        valid_for: Millis,
    },
    AcceptOffer {
        job: JobRef,
        by: AgentId,
        offer: OfferRef,
    },
    /// The worker has the job and will report later.
    Start {
        job: JobRef,
        by: AgentId,
    },
    /// The worker reports how far it is, or a part of the result.
    ReportProgress(Box<ReportProgress>),
    /// The worker asks the requester for more input.
    AskQuestion(Box<AskQuestion>),
    /// The requester answers the worker's question.
    AnswerQuestion(Box<AnswerQuestion>),
    ReportResult(Box<ReportResult>),
    /// An agent that confirms jobs itself accepts, refuses or defers one.
    Respond {
        job: JobRef,
        by: AgentId,
        response: WorkerResponse,
    },
    /// Approves or rejects a job that needs approval.
    Approve {
        job: JobRef,
        by: Approver,
        approved: bool,
    },
    /// Records the status an agent reports about itself.
    ReportStatus {
        agent: AgentId,
        status: AgentStatusUpdate,
    },
    /// Records the reputation an agent claims for itself.
    ReportReputation {
        agent: AgentId,
        text: Arc<str>,
    },
    Decline {
        job: JobRef,
        by: AgentId,
        /// Which assignment of the job is meant, if the caller knows.
        epoch: Option<u32>,
        /// Why, as the agent states it.
        reason: Option<String>,
    },
    Defer {
        job: JobRef,
        by: AgentId,
        until: Timestamp,
    },
    /// The worker has read these jobs; they can no longer be withdrawn.
    HandOver {
        agent: AgentId,
        jobs: Vec<JobId>,
    },
    /// The worker listed its work and was shown these jobs, or none, without taking them. They can
    /// still be withdrawn.
    MarkShown {
        agent: AgentId,
        jobs: Vec<JobId>,
    },
    /// The requester is about to get the answer that it has to wait.
    MarkPending {
        job: JobId,
    },
    /// The connection to the assigned worker failed.
    MarkUnreachable {
        job: JobId,
        epoch: u32,
    },
    Cancel {
        job: JobRef,
        by: Canceller,
        /// Why, as the caller states it.
        reason: Option<String>,
    },
    /// Takes a job away from its worker; the operator only.
    Requeue {
        job: JobRef,
    },
    /// An order that an agent signed.
    ExecuteSigned(Box<SignedEnvelope>),
    /// An order to a market.
    SubmitToMarket(Box<MarketSubmission>),
    /// Adds aliases in protocols that were introduced after the agent registered.
    AddAliases {
        agent: AgentId,
        aliases: Vec<(Protocol, String)>,
    },
    SendMessage(Box<SendMessage>),
    Ack {
        agent: AgentId,
        up_to: u64,
    },
    /// A reader of the agent's inbox received everything up to this position.
    MarkPresented {
        agent: AgentId,
        up_to: u64,
    },
    /// Blocks or unblocks messages from another agent.
    SetBlocked {
        agent: AgentId,
        other: AgentId,
        blocked: bool,
    },
    /// Attempts a delivery now, even one that was abandoned.
    RetryDelivery {
        notice: NoticeId,
    },
    RecordDelivery {
        notice: NoticeId,
        result: DeliveryResult,
    },
    SaveAnswer(Box<SaveAnswer>),
    FireTimer(Timer),
}

impl Command {
    /// Whether the operator issued it, for the history.
    pub fn is_by_operator(&self) -> bool {
        match self {
            Self::Register(order) => order.actor == Actor::Operator,
            Self::SendMessage(order) => order.by_operator,
            Self::Remove { by_operator, .. }
            | Self::IssueKey { by_operator, .. }
            | Self::RevokeKeys { by_operator, .. } => *by_operator,
            Self::Approve { by, .. } => *by == Approver::Operator,
            Self::Cancel { by, .. } => *by == Canceller::Operator,
            Self::Grant { .. }
            | Self::Burn { .. }
            | Self::Requeue { .. }
            | Self::SetSuspended { .. }
            | Self::BeginEpoch => true,
            _ => false,
        }
    }
}

/// What is suspended: one agent, or an owner with all its agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspensionTarget {
    Agent(AgentId),
    Owner(OwnerId),
}

/// The caller, as far as its identity is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Anonymous,
    /// The holder of this agent's key, whether or not the agent is still registered.
    Agent(AgentId),
    Operator,
    /// The owner named in the order; its identity is proven.
    Owner,
    /// An unproven caller on a hub with open registration, for agents native to the given protocol.
    OpenRegistration,
}

/// Saves an answer for repeats of the request.
#[derive(Clone, Debug)]
pub struct SaveAnswer {
    /// Digest of caller, path and idempotency key.
    pub scope: Digest,
    /// Digest of the request body.
    pub request: Digest,
    /// The caller whose share it counts against.
    pub principal: Principal,
    pub answer: SavedAnswer,
}

/// Registers or updates an agent.
#[derive(Clone, Debug)]
pub struct Registration {
    pub actor: Actor,
    pub home: Protocol,
    pub native_id: String,
    /// Its aliases in the other protocols.
    pub aliases: Vec<(Protocol, String)>,
    pub owner: String,
    pub name: String,
    pub endpoint: Option<String>,
    pub liveness: Liveness,
    pub skills: Vec<Skill>,
    pub terms: Terms,
    /// Its status, if it reports one.
    pub status: Option<AgentStatusUpdate>,
    pub card: String,
    /// Hash of a new key, used for a new agent or when `rotate_key` is set.
    pub key: Option<KeyHash>,
    pub rotate_key: bool,
}

/// Moves credits, or confirms that a job's hold already moved them.
#[derive(Clone, Debug)]
pub struct Pay {
    pub origin: Protocol,
    /// The payer's id for the transfer; a generated one if the payer gave none.
    pub foreign_id: String,
    pub id_given: bool,
    pub from: String,
    pub to: String,
    pub amount: Credits,
    pub job: Option<String>,
    /// Whether an unknown payee gets an account.
    pub open_payee: bool,
    pub content: Digest,
}

/// Sends a message to another agent.
#[derive(Clone, Debug)]
pub struct SendMessage {
    /// `None` for an unregistered sender.
    pub from: Option<AgentId>,
    pub to: AgentId,
    /// The protocol the body is written in.
    pub protocol: Protocol,
    pub body: String,
    /// Where to deliver it besides the inbox.
    pub url: Option<String>,
    /// How long the hub waits before its first attempt, because the caller makes one itself.
    pub first_try: Millis,
    /// Identifies a repeat of this message for as long as the message is kept.
    pub identity: Option<MessageIdentity>,
    /// The operator sends it in the sender's name.
    pub by_operator: bool,
}

/// The position of a message in a conversation between two agents.
#[derive(Clone, Debug)]
pub struct MessageIdentity {
    pub conversation: String,
    pub number: u64,
    pub content: Digest,
}

/// Requests work.
#[derive(Clone, Debug)]
pub struct OpenJob {
    pub uuid: Uuid,
    pub origin: Protocol,
    pub foreign_id: String,
    pub content: Digest,
    pub requester: Requester,
    pub skill: String,
    /// Other skill names under which the same work may be offered.
    pub alternative_skills: Vec<String>,
    pub input: String,
    pub budget: Credits,
    /// The price step of the requester's protocol.
    pub price_step: PriceStep,
    pub selection: Selection,
    /// Agents that cannot use the input, and why.
    pub unfit_agents: Vec<UnfitAgent>,
    pub policy: Policy,
    pub deadline: Timestamp,
    pub lease: Millis,
    /// When the requester wants the result. If `None`, the worker's expected duration counts.
    pub wanted_by: Option<Timestamp>,
    /// 1 is the most urgent.
    pub priority: u8,
    pub callback: Option<String>,
    /// What is wrong with the input, in the origin protocol's format. Reported when the worker is
    /// back.
    pub input_error: Option<String>,
    pub meta: String,
    pub hops: u8,
    /// A second id by which the parties may name the job. If two requesters use the same one, it
    /// names neither job.
    pub request_id: Option<String>,
}

/// An agent that cannot use a job's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitAgent {
    pub agent: AgentId,
    /// What is wrong with the input.
    pub reason: String,
}

/// A job, by any of its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRef {
    Id(JobId),
    Uuid(Uuid),
    Foreign { origin: Protocol, id: String },
}

/// One offer for a job, as its requester refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferRef {
    /// By its index among the offers, as given in notices.
    Index(u32),
    /// By the offering agent and the price that was shown.
    Price { by: AgentId, price: Credits },
    /// By the offering agent alone, if it made only one offer.
    Only { by: AgentId },
}

/// A worker's progress in an assigned job.
#[derive(Clone, Debug)]
pub struct ReportProgress {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant, if the caller knows.
    pub epoch: Option<u32>,
    pub update: ProgressUpdate,
}

/// A worker's question about an assigned job.
#[derive(Clone, Debug)]
pub struct AskQuestion {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant, if the caller knows.
    pub epoch: Option<u32>,
    pub text: String,
    /// JSON Schema of the answer, as text.
    pub schema: Option<String>,
}

/// A requester's answer to a question.
#[derive(Clone, Debug)]
pub struct AnswerQuestion {
    pub job: JobRef,
    pub by: AgentId,
    /// The number of the question, if the caller knows; otherwise the open one is meant.
    pub question: Option<u32>,
    /// JSON text.
    pub input: String,
}

/// A worker's report about an assigned job.
#[derive(Clone, Debug)]
pub struct ReportResult {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant, if the caller knows.
    pub epoch: Option<u32>,
    pub ok: bool,
    /// The worker gave no response: its endpoint refused the request, or the connection broke. The
    /// assignment fails and counts as a timeout does.
    pub no_response: bool,
    pub output: Option<String>,
    /// `Credits::MAX` if the worker names no cost: then the agreed price counts.
    pub cost: Credits,
    pub took: Millis,
    pub cause: Option<Cause>,
    pub text: Option<String>,
    /// Data of the worker's own protocol, as JSON text.
    pub meta: Option<String>,
    pub content: Digest,
}

/// Who cancels a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canceller {
    Agent(AgentId),
    /// A requester that is not registered. It has no proof of identity.
    Guest,
    Operator,
}

/// An agent's response to a job it was assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerResponse {
    Accept {
        /// When it expects to be ready, if it knows.
        ready_at: Option<Timestamp>,
        /// The agent's own id for the job, if it has one.
        worker_job_id: Option<Uuid>,
    },
    Refuse {
        cause: Cause,
        text: String,
        /// Data of the worker's own protocol, as JSON text.
        words: Option<String>,
    },
    /// Do not ask again before then.
    Defer { until: Timestamp },
}

/// Who approves a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    Agent(AgentId),
    Operator,
}

/// How an attempt to deliver a notice ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The response body, if the message's protocol keeps it.
    Delivered { reply: Option<String> },
    /// There is nothing left to send, and nothing was delivered.
    Obsolete,
    /// Retry at `next_try`, or abandon the delivery if it is `None`.
    Failed { why: String, next_try: Option<Timestamp> },
    /// The endpoint reports that it is permanently gone.
    EndpointGone,
}

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    Job(JobId),
    /// The probation of an agent registered without proof has ended.
    Probation(AgentId),
}
