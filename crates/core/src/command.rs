//! Commands: requests to change state, as plain data. What proves the author is in the
//! [`Envelope`](crate::envelope::Envelope) around a command.

mod jobs;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::key::{Holder, KeyHash};
use crate::agent::key_limits::KeyLimits;
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::agent::{Liveness, Skill, Terms};
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, JobId, KeyId, NoticeId, OwnerId};
use crate::idempotency::{Idempotency, SavedAnswer};
use crate::money::Credits;
use crate::time::{Millis, Timestamp};
pub use jobs::*;

/// A request to change state. The encoding counts the variants, so a new one is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Requests work from agents that the requester names, or from the best that offer it.
    RequestJob(Box<JobRequest>),
    Offer {
        job: JobRef,
        by: AgentId,
        price: Credits,
        terms: OfferTerms,
    },
    AcceptOffer(Box<AcceptOffer>),
    /// The worker has the job and will report later.
    Start {
        job: JobRef,
        by: AgentId,
    },
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
    /// An invited agent passes on an auction, or the worker declines. Queued jobs are tried again.
    Pass {
        job: JobRef,
        by: AgentId,
    },
    /// Ends a job without a result, as either party.
    AbandonJob(Box<AbandonJob>),
    Defer {
        job: JobRef,
        by: AgentId,
        until: Timestamp,
    },
    /// Tries queued jobs again.
    DispatchQueue,
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
    /// Changes what an agent reports about itself.
    UpdateProfile {
        agent: AgentId,
        profile: Box<ProfileUpdate>,
    },
    /// Does nothing: the order itself is recorded by its signature or in its market.
    RecordOnly,
    /// Adds aliases in protocols that were introduced after the agent registered.
    AddAliases {
        agent: AgentId,
        aliases: Vec<(Protocol, String)>,
    },
    SendMessage(Box<SendMessage>),
    /// Sends the signed text of the envelope itself to another agent.
    Forward {
        to: AgentId,
    },
    Ack {
        agent: AgentId,
        up_to: u64,
    },
    /// The same, refused if another reader of the inbox was faster or there is nothing to read.
    AckUnread {
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
    /// How an attempt to deliver a notice ended. What the response reports about a job counts with
    /// it, or not at all.
    RecordDelivery {
        notice: NoticeId,
        result: DeliveryResult,
        report: Option<WorkerReport>,
    },
    SaveAnswer(Box<SaveAnswer>),
    FireTimer(Timer),
    /// The worker reports how far it is, or a part of the result.
    ReportProgress(Box<ReportProgress>),
    /// The worker asks the requester for more input.
    AskQuestion(Box<AskQuestion>),
    /// The requester answers the worker's question.
    AnswerQuestion(Box<AnswerQuestion>),
    /// The worker waits until the requester has signed in elsewhere.
    AskToSignIn(Box<AskQuestion>),
    /// The requester sends its worker a message, which answers the open question if there is one.
    SendToWorker(Box<SendToWorker>),
    /// The requester wants every later entry of the log at a URL, or no longer.
    SetJobWebhook(Box<SetJobWebhook>),
    RemoveJobWebhook(Box<RemoveJobWebhook>),
    /// Requests work, and wants every entry of the job's log at a URL.
    OpenJobWithWebhook(Box<OpenJobWithWebhook>),
    /// The protocol of a worker has handed the job over, is about to, or learned of the worker.
    RecordHandover(Box<RecordHandover>),
    /// The worker reports, asks, ends or declines, in the words of its own protocol as well.
    ReportOriginal(Box<ReportOriginal>),
    /// What the protocol of an agent knows of it has changed.
    UpdateCard(Box<UpdateCard>),
    /// Issues one more key of an agent, with a label and limits.
    IssueLimitedKey(Box<IssueLimitedKey>),
    /// Revokes one key of an agent.
    RevokeKey {
        agent: AgentId,
        key: KeyId,
    },
    /// A key was used.
    RecordKeyUse {
        agent: AgentId,
        key: KeyId,
    },
}

impl Command {
    /// Accepts an offer of a job, as a requester whose credential this hub has checked.
    pub fn accept_offer(job: JobRef, by: AgentId, offer: OfferRef) -> Self {
        let (binding, payment_proof) = (PaymentBinding::NamesHub, None);
        let offer = AcceptedOffer::InJob { job, offer };
        Self::AcceptOffer(Box::new(AcceptOffer { by, offer, payment_proof, binding }))
    }

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuspensionTarget {
    Agent(AgentId),
    Owner(OwnerId),
}

/// The caller, as far as its identity is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveAnswer {
    pub idempotency: Idempotency,
    pub answer: SavedAnswer,
}

/// Registers or updates an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(with = "crate::encoding::named_fields")]
    pub skills: Vec<Skill>,
    #[serde(with = "crate::encoding::named_fields")]
    pub terms: Terms,
    /// Its status, if it reports one.
    pub status: Option<AgentStatusUpdate>,
    pub card: String,
    /// Hash of a new key, used for a new agent or when `rotate_key` is set.
    pub key: Option<KeyHash>,
    pub rotate_key: bool,
}

/// Moves credits, or confirms that a job's hold already moved them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageIdentity {
    pub conversation: String,
    pub number: u64,
    pub content: Digest,
}

/// What an agent reports about itself. Omitted fields stay as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileUpdate {
    pub name: Option<String>,
    #[serde(with = "crate::encoding::named_fields")]
    pub skills: Option<Vec<Skill>>,
    pub endpoint: Option<String>,
    pub availability: Option<Availability>,
}

/// Replaces what the protocol of an agent keeps of it, unless it was changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateCard {
    pub agent: AgentId,
    /// The digest of the card that was read before.
    pub known: Digest,
    pub name: String,
    #[serde(with = "crate::encoding::named_fields")]
    pub skills: Vec<Skill>,
    pub card: String,
    /// Whether others see something else in the card than before.
    pub is_changed: bool,
    /// Whether the agent's server was reached for it.
    pub is_reached: bool,
}

/// Issues a key of an agent. The agent keeps its other keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueLimitedKey {
    pub agent: AgentId,
    pub hash: KeyHash,
    pub label: Option<String>,
    #[serde(with = "crate::encoding::named_fields")]
    pub limits: KeyLimits,
}

/// How an attempt to deliver a notice ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Job(JobId),
    /// The probation of an agent registered without proof has ended.
    Probation(AgentId),
}
