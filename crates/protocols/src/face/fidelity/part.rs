//! Parts: what the fields of all protocols have in common, whatever each calls them.

/// What a field of a request or a result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// What the job is called.
    Id,
    Requester,
    Worker,
    Skill,
    Input,
    /// What is bid, or what was agreed on.
    Budget,
    Currency,
    Deadline,
    Priority,
    /// Where the answer is to go.
    Callback,
    Correlation,
    Conversation,
    Turn,
    /// How a worker is to be picked.
    Strategy,
    Culture,
    /// What makes a repeat one.
    Repeat,
    /// Whether it was done.
    Outcome,
    Output,
    /// Why it was not done, in one word.
    Cause,
    /// Why it was not done, in a sentence.
    Reason,
    Paid,
    Duration,
    Signature,
    /// When the message was written.
    Time,
    /// What the message says of itself: protocol, version, kind, its own number.
    Form,
    /// What its protocol does not know.
    Extra,
}

impl Part {
    /// Its name outside.
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
            Self::Strategy => "strategy",
            Self::Culture => "culture",
            Self::Repeat => "repeat",
            Self::Outcome => "outcome",
            Self::Output => "output",
            Self::Cause => "cause",
            Self::Reason => "reason",
            Self::Paid => "paid",
            Self::Duration => "duration",
            Self::Signature => "signature",
            Self::Time => "time",
            Self::Form => "form",
            Self::Extra => "extra",
        }
    }

    /// Whether another text can say the same: an alias for an id, `agora:x:v1` for `x`, an instant
    /// for a span. Of all other parts only the same value is the same thing.
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
                | Self::Paid
                | Self::Duration
        )
    }

    /// Why it stays behind, where that is not just for want of a place.
    pub const fn why_dropped(self) -> Option<&'static str> {
        Some(match self {
            Self::Id => "the requester's own id; the worker gets the hub's id",
            Self::Worker => "it is who gets the message",
            Self::Callback => "delivery addresses are not passed on",
            Self::Correlation | Self::Conversation | Self::Turn => {
                "stored with the job and returned with the result"
            }
            Self::Deadline => "the hub keeps it",
            Self::Repeat => "idempotency is handled by the hub",
            Self::Signature => "a signature ends at the hub, which keeps the message as evidence",
            Self::Time => "each message has a time of its own",
            Self::Form => "each protocol has its own form",
            _ => return None,
        })
    }

    /// Whether only the side whose message it stands in may see it: an address to answer to can be
    /// all it takes to answer.
    pub const fn is_private(self) -> bool {
        matches!(self, Self::Callback)
    }
}
