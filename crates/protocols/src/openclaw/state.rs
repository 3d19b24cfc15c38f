//! The protocol's words for how agents and collaborations stand.

use super::words::words;

words! {
    /// How an agent is doing.
    Status {
        /// Nothing to do.
        Idle = "idle",
        /// At work.
        Busy = "busy",
        /// Something broke.
        Error = "error",
        /// Away until a time.
        Maintenance = "maintenance",
    }
}

words! {
    /// Whether an error passes.
    ErrorType {
        /// It does: try again.
        Transient = "transient",
        /// It does not.
        Permanent = "permanent",
    }
}

impl ErrorType {
    /// Whether trying again can help (section 6).
    pub const fn retryable(self) -> bool {
        matches!(self, Self::Transient)
    }

    /// The type of an error that is worth another try, or not.
    pub const fn of(retryable: bool) -> Self {
        if retryable { Self::Transient } else { Self::Permanent }
    }
}

words! {
    /// What sort of thing a capability does.
    Category {
        /// Takes trends in.
        TrendConsumption = "trend_consumption",
        /// Makes content.
        ContentGeneration = "content_generation",
        /// Checks content.
        ContentValidation = "content_validation",
        /// Looks at trends.
        TrendAnalysis = "trend_analysis",
    }
}

impl Category {
    /// What sort of thing something does that does not say so itself, by words in its name.
    pub fn of_name(name: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["trend"]) {
            Self::TrendAnalysis
        } else if has(&["consume", "ingest"]) {
            Self::TrendConsumption
        } else if has(&["valid", "check", "review", "moderat"]) {
            Self::ContentValidation
        } else {
            Self::ContentGeneration
        }
    }
}

words! {
    /// Who answers requests for an agent (ours).
    Mode {
        /// The hub, by what it knows.
        Auto = "auto",
        /// The agent itself, within nine seconds.
        Ask = "ask",
    }
}

words! {
    /// How a collaboration stands (section 2.4).
    State {
        /// To be looked at again later.
        Deferred = "deferred",
        /// Waiting for an agent that answers for itself.
        AwaitingResponse = "awaiting_response",
        /// Accepted.
        Running = "running",
        /// Done.
        Completed = "completed",
        /// Not done.
        Failed = "failed",
        /// Called off.
        Cancelled = "cancelled",
        /// Never begun.
        Rejected = "rejected",
    }
}

impl State {
    /// Whether it stays so for ever.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Rejected)
    }
}

words! {
    /// Which side of a collaboration somebody is on; `role=` of the list.
    Role {
        /// Asked for it.
        Requester = "requester",
        /// Does it.
        Responder = "responder",
    }
}

words! {
    /// Why a reputation is told.
    UpdateType {
        /// A collaboration was completed.
        Completed = "collaboration_completed",
        /// A collaboration failed.
        Failed = "collaboration_failed",
        /// It was time to.
        Periodic = "periodic_update",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_go_by_words_in_the_name() {
        for (name, wanted) in [
            ("find_trends", Category::TrendAnalysis),
            ("ingest_feed", Category::TrendConsumption),
            ("consume", Category::TrendConsumption),
            ("moderation", Category::ContentValidation),
            ("fact_check", Category::ContentValidation),
            ("translate", Category::ContentGeneration),
        ] {
            assert_eq!(Category::of_name(name), wanted, "{name}");
        }
    }
}
