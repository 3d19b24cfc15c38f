//! The hub's answers to successful operations (sections 2.2 and 2.4).
//!
//! The hub writes these types and clients read them. Each type declares the three common members
//! itself: serde cannot flatten them next to numbers that are kept as text.

use rialto_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::CommonMembers;
use super::api_doc::{CollaborationRequest, CollaborationResponse, CollaborationResult};
use super::reputation::Score;
use super::words::State;
use crate::kit::raw_json::Number;
use crate::kit::rfc3339;
use crate::openclaw::VERSION;

/// Defines an answer type with the three common members.
macro_rules! answer {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $($(#[$each])* pub $field: $type,)+
            /// The protocol version of the answer.
            pub protocol_version: String,
            /// The correlation id of the message it answers.
            pub correlation_id: String,
            /// When the answer was written.
            pub timestamp: String,
        }

        impl $name {
            /// Builds the answer.
            #[allow(clippy::too_many_arguments)]
            pub fn new(common: CommonMembers, $($field: $type,)+) -> Self {
                let [protocol_version, correlation_id, timestamp] = common_members(common);
                Self { $($field,)+ protocol_version, correlation_id, timestamp }
            }
        }
    };
}

pub(super) use answer;

/// The three common members as JSON strings.
pub(super) fn common_members(common: CommonMembers) -> [String; 3] {
    [
        VERSION.to_owned(),
        common.correlation_id.to_string(),
        rfc3339::format_millis(common.timestamp),
    ]
}

answer! {
    /// `POST /identity`: an identity was published.
    Published {
        /// `published`.
        status: String,
        /// The id of the published agent.
        agent_id: String,
        /// The agent's API key, shown once. Absent when the agent already has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_key: Option<String>,
        /// The secret that signs webhook deliveries to the agent, shown once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        webhook_secret: Option<String>,
        /// When it was published, by the hub's clock.
        published_at: String,
    }
}

answer! {
    /// A status update was accepted.
    StatusTaken {
        /// `accepted`.
        status: String,
        /// The agent the update is about.
        agent_id: String,
        /// Whether the update is the newest. An older one changes nothing (R37).
        applied: bool,
        /// Whether the update arrived too late (R32).
        late: bool,
        /// What in the update contradicts the hub's own data.
        warnings: Vec<String>,
    }
}

answer! {
    /// A reputation update was recorded as the agent's claim.
    ClaimRecorded {
        /// `recorded_as_claim`.
        status: String,
        /// The agent the claim is about.
        agent_id: String,
        /// The score that the agent claims.
        claimed_score: Number,
        /// The hub's own score; `null` before the first finished collaboration (R87).
        hub_score: Option<Number>,
        /// Whether the two scores differ by more than the tolerance.
        differs: bool,
    }
}

answer! {
    /// A result was accepted.
    ResultPublished {
        /// `published`.
        status: String,
        /// The collaboration the result belongs to.
        collaboration_id: String,
        /// Whether the output conforms to its schema (R60).
        output_valid: bool,
    }
}

answer! {
    /// A response was delivered, or a request approved or refused. `status` says which.
    Done {
        /// `delivered`, `approved` or `refused`.
        status: String,
    }
}

answer! {
    /// An agent was unregistered.
    Unregistered {
        /// `unregistered`.
        status: String,
        /// The id of the unregistered agent.
        agent_id: String,
    }
}

answer! {
    /// The hub is up.
    Health {
        /// `ok`.
        status: String,
        /// The hub's own id.
        hub_id: String,
        /// The number of registered agents.
        agents: u64,
    }
}

impl Published {
    /// The `status` of this answer.
    pub const STATUS: &str = "published";

    /// Formats a time of the hub's clock.
    pub fn format_time(time: Timestamp) -> String {
        rfc3339::format_millis(time)
    }
}

impl StatusTaken {
    /// The `status` of this answer.
    pub const STATUS: &str = "accepted";
}

impl ClaimRecorded {
    /// The `status` of this answer.
    pub const STATUS: &str = "recorded_as_claim";

    /// The answer to a claim; `claimed` is written as the agent wrote it.
    pub fn of(common: CommonMembers, agent_id: String, claimed: Score, hub: Option<Score>) -> Self {
        let differs = hub.is_some_and(|hub| hub.differs(claimed));
        let hub = hub.map(Score::json);
        Self::new(common, Self::STATUS.to_owned(), agent_id, claimed.json(), hub, differs)
    }
}

impl ResultPublished {
    /// The `status` of this answer.
    pub const STATUS: &str = "published";
}

impl Done {
    /// A response was delivered to the requester.
    pub const DELIVERED: &str = "delivered";
    /// The request was approved.
    pub const APPROVED: &str = "approved";
    /// The request was refused.
    pub const REFUSED: &str = "refused";
}

impl Unregistered {
    /// The `status` of this answer.
    pub const STATUS: &str = "unregistered";
}

impl Health {
    /// The `status` of this answer.
    pub const STATUS: &str = "ok";
}

answer! {
    /// `GET /collaborations/{id}`.
    CollaborationView {
        /// Its id; `null` before it is accepted.
        collaboration_id: Option<String>,
        /// Its current state.
        state: State,
        /// The request as it was received.
        #[schemars(with = "CollaborationRequest")]
        request: Box<RawValue>,
        /// The last response, if there is one.
        #[schemars(with = "Option<CollaborationResponse>")]
        response: Option<Box<RawValue>>,
        /// The result, if there is one.
        #[schemars(with = "Option<CollaborationResult>")]
        result: Option<Box<RawValue>>,
    }
}

/// One entry of the list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollaborationSummary {
    /// Its id; `null` before it is accepted.
    pub collaboration_id: Option<String>,
    /// Its current state.
    pub state: State,
    /// The request as it was received.
    #[schemars(with = "CollaborationRequest")]
    pub request: Box<RawValue>,
    /// The last response, if there is one.
    #[schemars(with = "Option<CollaborationResponse>")]
    pub response: Option<Box<RawValue>>,
    /// The result, if there is one.
    #[schemars(with = "Option<CollaborationResult>")]
    pub result: Option<Box<RawValue>>,
}

answer! {
    /// `GET /collaborations`: one page of the caller's own collaborations.
    CollaborationPage {
        /// The collaborations.
        collaborations: Vec<CollaborationSummary>,
        /// The cursor of the next page; `null` on the last.
        next_cursor: Option<String>,
    }
}
