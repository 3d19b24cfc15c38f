//! The six kinds of messages, told apart by their members (R90).

use super::failure::Failure;
use super::words::words;
use crate::kit::ijson::Json;

words! {
    /// What a message is; the word names its schema.
    Kind {
        /// An agent and what it can do.
        Identity = "identity",
        /// How it is doing.
        Status = "status_update",
        /// How well it says it does.
        Reputation = "reputation_update",
        /// Work is wanted.
        Request = "collaboration_request",
        /// Whether it will be done.
        Response = "collaboration_response",
        /// What came of it.
        Result = "collaboration_result",
    }
}

impl Kind {
    /// The members that make a message one of this kind.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Identity => &["capabilities", "agent_name"],
            Self::Status => &["status_update"],
            Self::Reputation => &["reputation_update"],
            Self::Request => &["requester_agent_id", "capability_id"],
            Self::Response => &["response_status"],
            Self::Result => &["result_status"],
        }
    }

    /// The kind of a message. It must be one, and only one.
    pub fn tell(json: &Json<'_>) -> Result<Self, Failure> {
        let is = |kind: &Self| kind.keys().iter().all(|key| json.get(key).is_some());
        let mut kinds = Self::ALL.iter().copied().filter(is);
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => Err(unclear("none")),
            (Some(_), Some(_)) => Err(unclear("more than one")),
        }
    }
}

fn unclear(found: &str) -> Failure {
    let sets = Kind::ALL.iter().map(|kind| format!("{kind} has {}", kind.keys().join(" and ")));
    let message =
        format!("a message must have the members of exactly one kind, but this one has {found}");
    Failure { violations: sets.collect(), ..Failure::invalid(message) }
}
