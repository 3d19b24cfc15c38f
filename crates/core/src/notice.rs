//! Notices, the entries of an agent's inbox in order; and deliveries, their copies sent to a URL.

use serde::{Deserialize, Serialize};

use crate::alias::Protocol;
use crate::id::{AgentId, JobId, NoticeId};
use crate::job::Original;
use crate::job::log::{LogContent, LoggedStep};
use crate::job::progress::{ProgressReport, ProgressUpdate};
use crate::time::Timestamp;

/// One entry of an agent's inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub id: NoticeId,
    /// The inbox's agent; `None` for a delivery to an unregistered receiver.
    pub to: Option<AgentId>,
    /// Position in that inbox: 1, 2, 3 … without gaps; 0 if it is in no inbox.
    pub position: u64,
    /// The previous notice in the same inbox.
    pub before: Option<NoticeId>,
    pub at: Timestamp,
    pub news: NoticeKind,
}

/// What a notice is about. "You" is the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeKind {
    /// You are assigned a job.
    Assigned { job: JobId, epoch: u32 },
    /// A job will be assigned to you once it is approved, by you or by another approver.
    #[serde(rename = "ApprovalWanted")]
    ApprovalRequested { job: JobId, until: Timestamp },
    /// Your job has a worker, after you were answered that it has to wait.
    Accepted { job: JobId },
    /// Your job has ended.
    Ended { job: JobId },
    /// A job is no longer assigned to you. With epoch 0: you were only invited, and need not
    /// answer.
    #[serde(rename = "TakenBack")]
    Unassigned { job: JobId, epoch: u32 },
    /// Your job is waiting for a worker.
    Queued { job: JobId },
    /// An auction is open in which you may bid.
    #[serde(rename = "OffersWanted")]
    OfferRequested { job: JobId, closes: Timestamp },
    /// An agent made an offer for your job; `index` is its index among the offers.
    #[serde(rename = "Offered")]
    OfferReceived { job: JobId, place: u32 },
    /// The price you named for your assigned job is agreed; `index` is its index among the offers.
    #[serde(rename = "PriceTaken")]
    PriceAgreed { job: JobId, place: u32 },
    /// Another agent got the job you made an offer for.
    #[serde(rename = "OfferClosed")]
    OfferLost { job: JobId, place: u32 },
    /// The worker of your job reported progress. Without a receiver: only an entry of the job's log.
    Progress { job: JobId, report: Box<ProgressReport> },
    /// The worker of your job asks a question and waits for the answer until then.
    InputRequested { job: JobId, question: u32, until: Timestamp },
    /// The requester answered your question.
    InputProvided { job: JobId, epoch: u32, question: u32 },
    /// A message, in the format of the protocol it was written in.
    Message {
        /// `None` for an unregistered sender, whose name is unproven.
        from: Option<AgentId>,
        #[serde(rename = "words")]
        protocol: Protocol,
        body: String,
        /// The sender's previous message.
        #[serde(rename = "follows")]
        previous: Option<NoticeId>,
    },
    /// An entry of a job's log. It has no receiver.
    Step { job: JobId, step: Box<LoggedStep> },
    /// An entry of a job's log for one of the job's webhooks. It is in no inbox.
    /// `part` is the number of the part of the result that it begins or continues.
    LogEntry { job: JobId, webhook: String, number: u32, part: u32, content: Box<LogContent> },
    /// The requester of your job sent you a message, by its number among the messages.
    RequesterMessage { job: JobId, epoch: u32, number: u32 },
    /// The same as `Progress`, with the report in the words of the protocol that both parties use.
    OriginalProgress { job: JobId, report: Box<ProgressReport>, original: Original },
}

/// How a notice counts towards the inbox limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeClass {
    /// Sent by others as often as they like: a message, or an offer or report for the agent's own
    /// job.
    FromOthers,
    /// Jobs of others: work assigned to the agent or taken from it, invitations, and the results of
    /// its offers. The agent also sees these when it lists its work.
    Work,
    /// Progress of a job the agent itself requested. Never refused, and so not counted: its number
    /// is bounded by the jobs an agent may have open. The end of an invitation is not counted
    /// either: there is at most one for each invitation that is.
    OwnJob,
}

impl NoticeKind {
    /// A copy without the text of a message or report, which may be long and is kept in the notice.
    pub fn without_text(&self) -> Self {
        match self {
            Self::Message { from, protocol: words, previous: follows, .. } => Self::Message {
                from: *from,
                protocol: *words,
                body: String::new(),
                previous: *follows,
            },
            Self::Progress { job, report } | Self::OriginalProgress { job, report, .. } => {
                let ProgressReport { number, previous, epoch, .. } = **report;
                let update = ProgressUpdate::default();
                let report = Box::new(ProgressReport { number, previous, epoch, update });
                Self::Progress { job: *job, report }
            }
            Self::LogEntry { job, webhook, number, part, content } => {
                let (webhook, content) = (webhook.clone(), Box::new(content.without_text()));
                Self::LogEntry { job: *job, webhook, number: *number, part: *part, content }
            }
            other => other.clone(),
        }
    }

    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        match self {
            Self::Message { body, .. } => body.len(),
            Self::Progress { report, .. } => report.update.content_bytes(),
            Self::OriginalProgress { report, original, .. } => {
                report.update.content_bytes() + original.content_bytes()
            }
            Self::LogEntry { content, .. } => content.content_bytes(),
            _ => 0,
        }
    }

    pub fn class(&self) -> NoticeClass {
        match self {
            Self::Unassigned { epoch: 0, .. }
            | Self::Accepted { .. }
            | Self::Ended { .. }
            | Self::InputRequested { .. }
            | Self::Step { .. }
            | Self::LogEntry { .. }
            | Self::Queued { .. } => NoticeClass::OwnJob,
            Self::Assigned { .. }
            | Self::Unassigned { .. }
            | Self::ApprovalRequested { .. }
            | Self::OfferRequested { .. }
            | Self::PriceAgreed { .. }
            | Self::InputProvided { .. }
            | Self::OfferLost { .. } => NoticeClass::Work,
            Self::OfferReceived { .. }
            | Self::Progress { .. }
            | Self::OriginalProgress { .. }
            | Self::RequesterMessage { .. }
            | Self::Message { .. } => NoticeClass::FromOthers,
        }
    }

    /// The entry of a job's log that it is, if it is a report of a worker.
    pub fn progress_report(&self) -> Option<&ProgressReport> {
        match self {
            Self::Progress { report, .. } | Self::OriginalProgress { report, .. } => Some(report),
            _ => None,
        }
    }

    /// The job it is about.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Assigned { job, .. }
            | Self::ApprovalRequested { job, .. }
            | Self::Accepted { job }
            | Self::Ended { job }
            | Self::Unassigned { job, .. }
            | Self::Queued { job }
            | Self::OfferRequested { job, .. }
            | Self::OfferReceived { job, .. }
            | Self::PriceAgreed { job, .. }
            | Self::OfferLost { job, .. }
            | Self::Progress { job, .. }
            | Self::OriginalProgress { job, .. }
            | Self::InputRequested { job, .. }
            | Self::Step { job, .. }
            | Self::LogEntry { job, .. }
            | Self::RequesterMessage { job, .. }
            | Self::InputProvided { job, .. } => Some(*job),
            Self::Message { .. } => None,
        }
    }
}

/// A notice to be delivered to a URL. The row exists until the delivery succeeds. It stays if the
/// delivery is abandoned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub notice: NoticeId,
    /// The agent whose endpoint or callback it is. Decides the signing secret and the format.
    pub to: Option<AgentId>,
    /// Position in that inbox; 0 if it is in no inbox.
    #[serde(default)]
    pub position: u64,
    /// When the notice was created.
    #[serde(default)]
    pub at: Timestamp,
    pub url: String,
    /// What it is about. The text of a message or report is only in the notice and is read from
    /// there at each attempt.
    #[serde(rename = "news")]
    pub kind: NoticeKind,
    pub attempts: u32,
    /// When to try next; `None` once abandoned.
    pub next_try: Option<Timestamp>,
    /// The last error.
    #[serde(rename = "trouble")]
    pub last_error: Option<String>,
}

impl Delivery {
    /// Whether it carries the text of its notice, as rows of older versions do.
    pub fn has_text(&self) -> bool {
        self.kind.content_bytes() > 0
    }

    /// The notice it is a copy of, as far as encoding needs it.
    pub fn to_notice(&self) -> Notice {
        let Self { notice: id, to, position, at, kind: ref news, .. } = *self;
        Notice { id, to, position, before: None, at, news: news.clone() }
    }
}

/// A notice that was delivered to a URL, and the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedDelivery {
    pub notice: NoticeId,
    pub at: Timestamp,
    pub attempts: u32,
    /// The response body, if the receiver's protocol keeps it.
    pub reply: Option<String>,
    /// The URL it was delivered to; empty in rows of older versions.
    #[serde(default)]
    pub url: String,
}
