//! The protocol's string enums for agents and collaborations, and the macro that defines them.

/// Defines a string enum with `ALL`, `as_str`, `read`, `Display` and serde.
macro_rules! string_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// All variants, in the spec's order.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The string on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// Reads the string on the wire.
            pub fn read(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(super) use string_enum;

string_enum! {
    /// The status of an agent.
    Status {
        /// It has no work.
        Idle = "idle",
        /// It is working.
        Busy = "busy",
        /// It has an error.
        Error = "error",
        /// It is in maintenance until a given time.
        Maintenance = "maintenance",
    }
}

string_enum! {
    /// Whether an error is transient.
    ErrorType {
        /// A retry can succeed.
        Transient = "transient",
        /// A retry cannot succeed.
        Permanent = "permanent",
    }
}

impl ErrorType {
    /// Whether a retry can succeed (section 6).
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Transient)
    }

    /// The type of an error that is, or is not, retryable.
    pub const fn of(retryable: bool) -> Self {
        if retryable { Self::Transient } else { Self::Permanent }
    }
}

string_enum! {
    /// The category of a capability.
    Category {
        /// Consumes trends.
        TrendConsumption = "trend_consumption",
        /// Generates content.
        ContentGeneration = "content_generation",
        /// Validates content.
        ContentValidation = "content_validation",
        /// Analyses trends.
        TrendAnalysis = "trend_analysis",
    }
}

impl Category {
    /// Guesses the category from the words in a name, for skills that do not state one.
    pub fn guess_from_name(name: &str) -> Self {
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

string_enum! {
    /// Who responds to requests for an agent (not in the spec).
    Mode {
        /// The hub, from what it knows.
        Auto = "auto",
        /// The agent itself, within nine seconds.
        Ask = "ask",
    }
}

string_enum! {
    /// The state of a collaboration (section 2.4).
    State {
        /// The decision comes later.
        Deferred = "deferred",
        /// Waiting for an agent that responds itself.
        AwaitingResponse = "awaiting_response",
        /// Accepted and running.
        Running = "running",
        /// The work is done.
        Completed = "completed",
        /// The work failed.
        Failed = "failed",
        /// A party cancelled it.
        Cancelled = "cancelled",
        /// It was never accepted.
        Rejected = "rejected",
    }
}

impl State {
    /// Whether the state is final.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Rejected)
    }
}

string_enum! {
    /// The side of a collaboration that an agent is on; `role=` of the list.
    Role {
        /// The agent that requested it.
        Requester = "requester",
        /// The agent that does the work.
        Responder = "responder",
    }
}

string_enum! {
    /// Why a reputation update is sent.
    UpdateType {
        /// A collaboration was completed.
        Completed = "collaboration_completed",
        /// A collaboration failed.
        Failed = "collaboration_failed",
        /// The period has passed.
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
            assert_eq!(Category::guess_from_name(name), wanted, "{name}");
        }
    }
}
