//! Parts: the meanings that the fields of all protocols share, under whatever names.

/// What a field of a request or a result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The id of the job.
    Id,
    Requester,
    Worker,
    Skill,
    Input,
    /// The requester's bid, or the agreed price.
    Budget,
    Currency,
    Deadline,
    Priority,
    /// Where the answer is to be sent.
    Callback,
    Correlation,
    Conversation,
    Turn,
    /// Earlier messages of the requester and the worker, repeated in a later one.
    History,
    /// How a worker is to be chosen.
    Strategy,
    /// Whether the job may wait for a worker that is away.
    Queueing,
    Culture,
    /// What identifies a repeat of the same request.
    IdempotencyKey,
    /// Whether the job succeeded.
    Outcome,
    Output,
    /// Why the job failed, as a code.
    Cause,
    /// Why the job failed, as a sentence.
    Reason,
    /// How far the worker is, before its result.
    Progress,
    /// A part of the output, before the result.
    PartialOutput,
    /// What the worker asks the requester.
    Question,
    Paid,
    Duration,
    Signature,
    /// When the message was written.
    Time,
    /// What the message says about itself: protocol, version, kind, its own number.
    Framing,
    /// A member its protocol does not define.
    Extra,
}

impl Part {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Requester => "requester",
            Self::Worker => "worker",
            Self::Skill => "skill",
            Self::Input => "input",
            Self::Budget => "budget",
            Self::Currency => "currency",
            Self::Deadline => "deadline",
            Self::Priority => "priority",
            Self::Callback => "callback",
            Self::Correlation => "correlation",
            Self::Conversation => "conversation",
            Self::Turn => "turn",
            Self::History => "history",
            Self::Strategy => "strategy",
            Self::Queueing => "queueing",
            Self::Culture => "culture",
            Self::IdempotencyKey => "repeat",
            Self::Outcome => "outcome",
            Self::Output => "output",
            Self::Cause => "cause",
            Self::Reason => "reason",
            Self::Progress => "progress",
            Self::PartialOutput => "partial_output",
            Self::Question => "question",
            Self::Paid => "paid",
            Self::Duration => "duration",
            Self::Signature => "signature",
            Self::Time => "time",
            Self::Framing => "form",
            Self::Extra => "extra",
        }
    }

    /// Whether a different text can carry the same meaning: an alias for an id, `agora:x:v1` for
    /// `x`, an instant for a duration. In all other parts only equal values mean the same.
    pub const fn is_translated(self) -> bool {
        matches!(
            self,
            Self::Id
                | Self::Requester
                | Self::Worker
                | Self::Skill
                | Self::Input
                | Self::Budget
                | Self::Deadline
                | Self::Priority
                | Self::Strategy
                | Self::Culture
                | Self::Outcome
                | Self::Output
                | Self::Cause
                | Self::Reason
                | Self::Progress
                | Self::PartialOutput
                | Self::Question
                | Self::Paid
                | Self::Duration
        )
    }

    /// Why the field is not passed on, where the reason is not a missing field in the target.
    pub const fn drop_reason(self) -> Option<&'static str> {
        Some(match self {
            Self::Id => "the requester's own id; the worker gets the hub's id",
            Self::Worker => "the message is addressed to it",
            Self::Callback => "delivery addresses are not passed on",
            Self::Correlation | Self::Conversation | Self::Turn | Self::History => {
                "stored with the job and returned with the result"
            }
            Self::Deadline => "the hub enforces it",
            Self::Queueing => "the hub has decided by it",
            Self::IdempotencyKey => "idempotency is handled by the hub",
            Self::Signature => "verified by the hub, which keeps the signed message as evidence",
            Self::Time => "each message has its own time",
            Self::Framing => "each protocol has its own framing",
            _ => return None,
        })
    }

    /// Whether only the party that sent or received the message may see it: a callback address can
    /// be all it takes to answer, and earlier messages name the bid.
    pub const fn is_private(self) -> bool {
        matches!(self, Self::Callback | Self::History)
    }
}
