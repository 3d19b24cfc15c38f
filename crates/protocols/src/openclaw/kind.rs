//! The six kinds of messages, which their members tell apart (R90).

use super::failure::Failure;
use super::words::words;
use crate::kit::ijson::Json;

words! {
    /// The kind of a message. The string is the name of its schema.
    Kind {
        /// An agent and its capabilities.
        Identity = "identity",
        /// The status of an agent.
        Status = "status_update",
        /// The reputation that an agent claims.
        Reputation = "reputation_update",
        /// Work is requested.
        Request = "collaboration_request",
        /// Whether the work is accepted.
        Response = "collaboration_response",
        /// The result of the work.
        Result = "collaboration_result",
    }
}

impl Kind {
    /// The members that identify a message of this kind.
    pub const fn required_members(self) -> &'static [&'static str] {
        match self {
            Self::Identity => &["capabilities", "agent_name"],
            Self::Status => &["status_update"],
            Self::Reputation => &["reputation_update"],
            Self::Request => &["requester_agent_id", "capability_id"],
            Self::Response => &["response_status"],
            Self::Result => &["result_status"],
        }
    }

    /// The kind of a message. Its members must match exactly one kind.
    pub fn detect(json: &Json<'_>) -> Result<Self, Failure> {
        let is = |kind: &Self| kind.required_members().iter().all(|key| json.get(key).is_some());
        let mut kinds = Self::ALL.iter().copied().filter(is);
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => Err(unclear("none")),
            (Some(_), Some(_)) => Err(unclear("more than one")),
        }
    }
}

fn unclear(found: &str) -> Failure {
    let sets = Kind::ALL
        .iter()
        .map(|kind| format!("{kind} has {}", kind.required_members().join(" and ")));
    let message =
        format!("a message must have the members of exactly one kind, but this one has {found}");
    Failure { violations: sets.collect(), ..Failure::invalid(message) }
}
