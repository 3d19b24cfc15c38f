//! What the hub answers when it has done something (sections 2.2 and 2.4).
//!
//! The hub writes them and clients read them, by the same types. Every one has the three common
//! members as its own: serde cannot flatten them next to numbers that are kept as text.

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::VERSION;
use super::common::Common;
use super::score::Score;
use crate::kit::stamp;

/// Makes a type of answer with the three common members.
macro_rules! answer {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$each])* pub $field: $type,)+
            /// The version of the answer.
            pub protocol_version: String,
            /// What it answers.
            pub correlation_id: String,
            /// When it was written.
            pub timestamp: String,
        }

        impl $name {
            /// The answer.
            #[allow(clippy::too_many_arguments)]
            pub fn new(common: Common, $($field: $type,)+) -> Self {
                let [protocol_version, correlation_id, timestamp] = texts(common);
                Self { $($field,)+ protocol_version, correlation_id, timestamp }
            }
        }
    };
}

pub(super) use answer;

/// The three common members as they are written.
pub(super) fn texts(common: Common) -> [String; 3] {
    [VERSION.to_owned(), common.correlation_id.to_string(), stamp::millis(common.timestamp)]
}

answer! {
    /// An identity was published.
    Published {
        /// `published`.
        status: String,
        /// Who.
        agent_id: String,
        /// Its key, shown once; absent when it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_key: Option<String>,
        /// What its pushes are signed with, shown once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        webhook_secret: Option<String>,
        /// When, by the hub's clock.
        published_at: String,
    }
}

answer! {
    /// A status update was taken.
    StatusTaken {
        /// `accepted`.
        status: String,
        /// Whose.
        agent_id: String,
        /// Whether it is the newest; an older one changes nothing (R37).
        applied: bool,
        /// Whether it was told too late (R32).
        late: bool,
        /// What was strange about it.
        warnings: Vec<String>,
    }
}

answer! {
    /// A reputation update was taken for what it is.
    ClaimRecorded {
        /// `recorded_as_claim`.
        status: String,
        /// Whose.
        agent_id: String,
        /// What the agent says.
        claimed_score: Box<RawValue>,
        /// What the hub says; `null` before the first finished collaboration (R87).
        hub_score: Option<Box<RawValue>>,
        /// Whether the two are far apart.
        differs: bool,
    }
}

answer! {
    /// A result was taken.
    ResultPublished {
        /// `published`.
        status: String,
        /// Of what.
        collaboration_id: String,
        /// Whether the output fits its schema (R60).
        output_valid: bool,
    }
}

answer! {
    /// A response was passed on, or a request approved or refused: the status says which.
    Done {
        /// `delivered`, `approved` or `refused`.
        status: String,
    }
}

answer! {
    /// An agent is gone.
    Unregistered {
        /// `unregistered`.
        status: String,
        /// Who.
        agent_id: String,
    }
}

answer! {
    /// The hub is here.
    Health {
        /// `ok`.
        status: String,
        /// The hub's own id.
        hub_id: String,
        /// How many agents it has.
        agents: u64,
    }
}

impl Published {
    /// The status of this answer.
    pub const STATUS: &str = "published";

    /// When, by the hub's clock, as it is written.
    pub fn at(time: Timestamp) -> String {
        stamp::millis(time)
    }
}

impl StatusTaken {
    /// The status of this answer.
    pub const STATUS: &str = "accepted";
}

impl ClaimRecorded {
    /// The status of this answer.
    pub const STATUS: &str = "recorded_as_claim";

    /// The answer to a claim, `claimed` as it was written.
    pub fn of(common: Common, agent_id: String, claimed: Score, hub: Option<Score>) -> Self {
        let differs = hub.is_some_and(|hub| hub.differs(claimed));
        let hub = hub.map(Score::json);
        Self::new(common, Self::STATUS.to_owned(), agent_id, claimed.json(), hub, differs)
    }
}

impl ResultPublished {
    /// The status of this answer.
    pub const STATUS: &str = "published";
}

impl Done {
    /// A response was passed on.
    pub const DELIVERED: &str = "delivered";
    /// A request may be served.
    pub const APPROVED: &str = "approved";
    /// It may not.
    pub const REFUSED: &str = "refused";
}

impl Unregistered {
    /// The status of this answer.
    pub const STATUS: &str = "unregistered";
}

impl Health {
    /// The status of this answer.
    pub const STATUS: &str = "ok";
}
