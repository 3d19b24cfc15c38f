//! Notices: what one agent is told, in order, in its inbox; and pushes, the copies sent to a URL.

use serde::{Deserialize, Serialize};

use crate::alias::Protocol;
use crate::id::{AgentId, JobId, NoticeId};
use crate::time::Timestamp;

/// One thing told to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub id: NoticeId,
    /// Whose inbox; `None` for a push to somebody the hub does not know.
    pub to: Option<AgentId>,
    /// Place in that inbox: 1, 2, 3 … without gap; 0 outside any inbox.
    pub position: u64,
    /// The notice before it in the same inbox.
    pub before: Option<NoticeId>,
    pub at: Timestamp,
    pub news: News,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// Work for you.
    Assigned { job: JobId, epoch: u32 },
    /// Work that would be yours if you, or somebody for you, agree.
    ApprovalWanted { job: JobId, until: Timestamp },
    /// The job you asked for has a worker, after you were told to wait.
    Accepted { job: JobId },
    /// The job you asked for has ended.
    Ended { job: JobId },
    /// The work you had is not yours any more; with epoch 0, you need not answer what you were asked.
    TakenBack { job: JobId, epoch: u32 },
    /// The job you asked for is waiting for a worker.
    Queued { job: JobId },
    /// An auction you may bid in.
    OffersWanted { job: JobId, closes: Timestamp },
    /// The price somebody names for the job you asked for, by its place among the offers.
    Offered { job: JobId, place: u32 },
    /// The price you named for the work you have is agreed on, by its place among the offers.
    PriceTaken { job: JobId, place: u32 },
    /// The job you named a price for went to somebody else.
    OfferClosed { job: JobId, place: u32 },
    /// A message, in the words of the protocol it was written in.
    Message {
        /// `None` for somebody the hub does not know, who gave a name that nobody proved.
        from: Option<AgentId>,
        words: Protocol,
        body: String,
        /// The message its sender wrote before this one.
        follows: Option<NoticeId>,
    },
}

/// What a notice counts as, for the limit of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something another wants: a message, or an offer for the agent's own job.
    Word,
    /// Others' jobs: work that is given to the agent or taken from it, invitations, and what became
    /// of its offers. It learns of these by asking for its work, too.
    Work,
    /// What becomes of a job the agent itself asked for. It is never refused, and so it does not
    /// count: there are no more of these than the jobs an agent may have open bring. The end of an
    /// invitation does not count either: there is one at most for each invitation that does.
    Own,
}

impl News {
    /// The same without a message's text, which may be long and stands in its notice.
    pub fn without_text(&self) -> Self {
        match self {
            Self::Message { from, words, follows, .. } => {
                Self::Message { from: *from, words: *words, body: String::new(), follows: *follows }
            }
            other => other.clone(),
        }
    }

    /// How long its content is.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message { body, .. } => body.len(),
            _ => 0,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::TakenBack { epoch: 0, .. }
            | Self::Accepted { .. }
            | Self::Ended { .. }
            | Self::Queued { .. } => Kind::Own,
            Self::Assigned { .. }
            | Self::TakenBack { .. }
            | Self::ApprovalWanted { .. }
            | Self::OffersWanted { .. }
            | Self::PriceTaken { .. }
            | Self::OfferClosed { .. } => Kind::Work,
            Self::Offered { .. } | Self::Message { .. } => Kind::Word,
        }
    }

    /// The job it is about.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Assigned { job, .. }
            | Self::ApprovalWanted { job, .. }
            | Self::Accepted { job }
            | Self::Ended { job }
            | Self::TakenBack { job, .. }
            | Self::Queued { job }
            | Self::OffersWanted { job, .. }
            | Self::Offered { job, .. }
            | Self::PriceTaken { job, .. }
            | Self::OfferClosed { job, .. } => Some(*job),
            Self::Message { .. } => None,
        }
    }
}

/// A notice on its way to a URL. The row exists while the way is open, and stays if it is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    pub notice: NoticeId,
    /// Whose endpoint or callback it is; decides the signing secret and the wording.
    pub to: Option<AgentId>,
    /// Place in that inbox; 0 outside any inbox.
    #[serde(default)]
    pub position: u64,
    /// When it was told.
    #[serde(default)]
    pub at: Timestamp,
    pub url: String,
    /// What is told; the text of a message stands in its notice only, and is read from there when an
    /// attempt is made.
    pub news: News,
    pub attempts: u32,
    /// When to try next; `None` once given up.
    pub next_try: Option<Timestamp>,
    /// What went wrong last, in words.
    pub trouble: Option<String>,
}

impl Push {
    /// Whether it carries the text of a message, as rows of older versions do.
    pub fn has_text(&self) -> bool {
        matches!(&self.news, News::Message { body, .. } if !body.is_empty())
    }

    /// The notice it is a copy of, as far as its words need it.
    pub fn told(&self) -> Notice {
        let Self { notice: id, to, position, at, ref news, .. } = *self;
        Notice { id, to, position, before: None, at, news: news.clone() }
    }
}

/// A notice that arrived at a URL, and what was answered there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    pub notice: NoticeId,
    pub at: Timestamp,
    pub attempts: u32,
    /// The answer's body, when the receiver's protocol keeps it.
    pub reply: Option<String>,
    /// Where it arrived; empty in rows of older versions.
    #[serde(default)]
    pub url: String,
}
