//! What commands say about jobs: requests, offers, results, and by which ids they name a job.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Command;
use crate::alias::{Digest, Protocol};
use crate::id::{AgentId, JobId};
use crate::job::progress::ProgressUpdate;
use crate::job::{Cause, JobWebhook, Policy, Requester, Selection};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::time::{Millis, Timestamp};

/// Requests work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(with = "crate::encoding::named_fields")]
    pub selection: Selection,
    /// Agents that cannot use the input, and why.
    pub unfit_agents: Vec<UnfitAgent>,
    #[serde(with = "crate::encoding::named_fields")]
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

/// Requests work, with a webhook that gets every entry of the job's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenJobWithWebhook {
    pub job: OpenJob,
    pub webhook: JobWebhook,
}

/// Requests work from invited agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    pub by: AgentId,
    /// The requester's own id for the request.
    pub id: String,
    pub uuid: Uuid,
    pub skill: String,
    pub input: String,
    pub to: RequestTarget,
    pub budget: Option<Credits>,
    /// The price step of the requester's protocol.
    pub price_step: PriceStep,
    /// Agents that cannot use the input, and why.
    pub unfit_agents: Vec<UnfitAgent>,
    /// The budget is in a currency that cannot be paid with.
    pub other_currency: bool,
    /// How long the job may take, from when the order is executed.
    pub timeout: Millis,
    pub meta: String,
    /// Whether the signed bytes name this hub or the worker. Only then are credits held for it.
    pub is_bound: bool,
}

/// Which agents are invited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestTarget {
    Agent(AgentId),
    /// The best agents that offer the skill.
    Best {
        max: usize,
    },
}

/// An agent that cannot use a job's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfitAgent {
    pub agent: AgentId,
    /// What is wrong with the input.
    pub reason: String,
}

/// A job, by any of its ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobRef {
    Id(JobId),
    Uuid(Uuid),
    Foreign {
        origin: Protocol,
        id: String,
    },
    /// As an agent that was invited or assigned knows it. Only with the agent it leads to a job.
    Named(ExternalRef),
}

/// A job or an offer by the id one of its parties gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalRef {
    pub id: String,
    /// The other party, if given.
    pub counterparty: Option<AgentId>,
}

/// What an offer is for, and how long it is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferTerms {
    /// An offer of any agent with the skill.
    Open { valid_for: Millis },
    /// An offer of an agent that was invited or has the job, under its own name for the offer.
    Invited { name: String, valid_for: Millis, eta: Millis },
    /// The only bid of an invited agent in an auction, valid until the deadline of the job. The
    /// last one closes the auction.
    Bid,
}

/// Accepts an agent's offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptOffer {
    pub by: AgentId,
    pub offer: AcceptedOffer,
    pub payment_proof: Option<String>,
    pub binding: PaymentBinding,
}

/// The offer that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AcceptedOffer {
    InJob {
        job: JobRef,
        offer: OfferRef,
    },
    /// By the id that its maker gave it.
    Named(ExternalRef),
}

/// What shows that an order to pay was meant for this hub. Another hub may know the same keys, and
/// anyone who sees a signed order can submit it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentBinding {
    /// The order names this hub or the payee, or came with a credential of this hub.
    NamesHub,
    /// It names neither. The signer has read its inbox here up to this position.
    ReadUpTo(u64),
}

/// Ends a job without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonJob {
    pub by: AgentId,
    pub request: ExternalRef,
    pub cause: Cause,
    /// The job was never started, so it counts as no one's failure.
    pub refused: bool,
    pub text: String,
}

/// One offer for a job, as its requester refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferRef {
    /// By its index among the offers, as given in notices.
    Index(u32),
    /// By the offering agent and the price that was shown.
    Price { by: AgentId, price: Credits },
    /// By the offering agent alone, if it made only one offer.
    Only { by: AgentId },
}

/// A worker's progress in an assigned job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportProgress {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant, if the caller knows.
    pub epoch: Option<u32>,
    pub update: ProgressUpdate,
}

/// A worker's question about an assigned job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerQuestion {
    pub job: JobRef,
    pub by: AgentId,
    /// The number of the question, if the caller knows; otherwise the open one is meant.
    pub question: Option<u32>,
    /// JSON text.
    pub input: String,
}

/// A requester's message to the worker of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendToWorker {
    pub job: JobRef,
    pub by: AgentId,
    /// JSON text, in the format of the requester's protocol.
    pub body: String,
    /// For the worker: JSON text in no protocol's format.
    pub input: String,
}

/// Adds a webhook to a job, or replaces the one with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetJobWebhook {
    pub job: JobRef,
    pub by: AgentId,
    pub webhook: JobWebhook,
}

/// Removes a webhook from a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveJobWebhook {
    pub job: JobRef,
    pub by: AgentId,
    pub id: String,
}

/// What the protocol of a worker did with the worker's job, or learned of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHandover {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant.
    pub epoch: u32,
    /// Text of the worker's protocol, kept with the assignment. `None` keeps what is there, and says
    /// that there is news of the worker.
    pub state: Option<String>,
    pub stage: HandoverStage,
    /// Later jobs find the first job with this name.
    pub conversation: Option<Digest>,
}

/// How far a worker is with a job that its protocol hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandoverStage {
    /// The job is about to be sent, so it may be there already.
    Sending,
    /// The worker has it.
    Received,
    /// The worker works on it.
    Working,
}

/// A report of a worker, and the same in the words of its own protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportOriginal {
    pub report: OriginalReport,
    /// JSON text.
    pub original: String,
}

/// What a worker can report in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OriginalReport {
    Progress(ReportProgress),
    Question(AskQuestion),
    SignIn(AskQuestion),
    Result(ReportResult),
    Decline { job: JobRef, by: AgentId, epoch: Option<u32>, reason: Option<String> },
}

impl OriginalReport {
    /// The job it is about.
    pub fn job(&self) -> &JobRef {
        match self {
            Self::Progress(order) => &order.job,
            Self::Question(order) | Self::SignIn(order) => &order.job,
            Self::Result(order) => &order.job,
            Self::Decline { job, .. } => job,
        }
    }

    /// The worker that reports.
    pub fn by(&self) -> AgentId {
        match self {
            Self::Progress(order) => order.by,
            Self::Question(order) | Self::SignIn(order) => order.by,
            Self::Result(order) => order.by,
            Self::Decline { by, .. } => *by,
        }
    }
}

impl From<OriginalReport> for Command {
    fn from(report: OriginalReport) -> Self {
        match report {
            OriginalReport::Progress(order) => Self::ReportProgress(Box::new(order)),
            OriginalReport::Question(order) => Self::AskQuestion(Box::new(order)),
            OriginalReport::SignIn(order) => Self::AskToSignIn(Box::new(order)),
            OriginalReport::Result(order) => Self::ReportResult(Box::new(order)),
            OriginalReport::Decline { job, by, epoch, reason } => {
                Self::Decline { job, by, epoch, reason }
            }
        }
    }
}

/// A worker's report about an assigned job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportResult {
    pub job: JobRef,
    pub by: AgentId,
    /// Which assignment of the job is meant, if the caller knows.
    pub epoch: Option<u32>,
    pub ok: bool,
    /// Whether the work is done; otherwise this is a part of the result and the job goes on.
    pub is_final: bool,
    /// Whether the worker fetches and lists its work, so that it now knows of all of it. A worker
    /// that only reads its inbox may not have read the rest.
    pub knows_work: bool,
    /// The worker gave no response: its endpoint refused the request, or the connection broke. The
    /// assignment fails and counts as a timeout does.
    pub no_response: bool,
    pub output: Option<String>,
    /// `Credits::MAX` if the worker names no cost: then the agreed price counts.
    pub cost: Credits,
    /// If `None`, the time since the assignment, by the hub's clock.
    pub took: Option<Millis>,
    pub cause: Option<Cause>,
    pub text: Option<String>,
    /// Data of the worker's own protocol, as JSON text.
    pub meta: Option<String>,
    pub content: Digest,
}

/// Who cancels a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Canceller {
    Agent(AgentId),
    /// A requester that is not registered. It has no proof of identity.
    Guest,
    Operator,
}

/// An agent's response to a job it was assigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    Agent(AgentId),
    Operator,
}

/// What the response of a worker's endpoint says about the job that was delivered to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerReport {
    Started { job: JobRef, by: AgentId },
    Result(Box<ReportResult>),
    Declined { job: JobRef, by: AgentId },
    Unreachable { job: JobId, epoch: u32 },
}

impl From<WorkerReport> for Command {
    fn from(report: WorkerReport) -> Self {
        match report {
            WorkerReport::Started { job, by } => Self::Start { job, by },
            WorkerReport::Result(report) => Self::ReportResult(report),
            WorkerReport::Declined { job, by } => {
                Self::Decline { job, by, epoch: None, reason: None }
            }
            WorkerReport::Unreachable { job, epoch } => Self::MarkUnreachable { job, epoch },
        }
    }
}
