//! The form of requests and answers for the API document: the spec's own schemas of the six messages,
//! and the bodies that the hub reads and writes by hand.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use uuid::Uuid;

use super::{Kind, SCHEMAS_TEXT};
use crate::kit::api_doc::{AnyObject, Nullable, Time};
use crate::openclaw::wire::words::{Category, Role, State, Status};

/// Declares a message with the spec's schema of its kind.
macro_rules! message {
    ($name:ident, $kind:ident) => {
        #[doc = concat!("A message: `Kind::", stringify!($kind), "`.")]
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                published_schema(Kind::$kind)
            }
        }
    };
}

message!(Identity, Identity);
message!(StatusUpdate, Status);
message!(ReputationUpdate, Reputation);
message!(CollaborationRequest, Request);
message!(CollaborationResponse, Response);
message!(CollaborationResult, Result);

fn published_schema(kind: Kind) -> Schema {
    let mut all: Value =
        serde_json::from_str(SCHEMAS_TEXT).expect("the embedded file is valid; tests check it");
    let schema = all["schemas"][kind.as_str()].take();
    Schema::try_from(schema).expect("the file has a schema for each kind, by name")
}

/// Any of the six messages.
pub enum AnyMessage {}

impl JsonSchema for AnyMessage {
    fn schema_name() -> Cow<'static, str> {
        "AnyMessage".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"anyOf": [
            generator.subschema_for::<Identity>(),
            generator.subschema_for::<StatusUpdate>(),
            generator.subschema_for::<ReputationUpdate>(),
            generator.subschema_for::<CollaborationRequest>(),
            generator.subschema_for::<CollaborationResponse>(),
            generator.subschema_for::<CollaborationResult>(),
        ]})
    }
}

/// The answer to any of the six messages.
pub enum AnyAnswer {}

impl JsonSchema for AnyAnswer {
    fn schema_name() -> Cow<'static, str> {
        "AnyAnswer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        use super::answers::{ClaimRecorded, Done, Published, ResultPublished, StatusTaken};
        schemars::json_schema!({"anyOf": [
            generator.subschema_for::<Published>(),
            generator.subschema_for::<StatusTaken>(),
            generator.subschema_for::<ClaimRecorded>(),
            generator.subschema_for::<CollaborationResponse>(),
            generator.subschema_for::<Done>(),
            generator.subschema_for::<ResultPublished>(),
        ]})
    }
}

crate::request_members! {
    /// The body of `POST …/approve`.
    ApproveMembers {
        /// Whether the work is approved.
        approved: bool,
        protocol_version: Option<String>,
        /// The id that traces the request.
        correlation_id: Option<Value>,
    }
}

crate::request_members! {
    /// The body of `POST …/cancel`.
    CancelMembers {
        #[schemars(length(max = 4_096))]
        reason: Option<String>,
        protocol_version: Option<String>,
        /// The id that traces the request.
        correlation_id: Option<Value>,
    }
}

crate::request_members! {
    /// Which agents to list.
    AgentsQuery {
        /// A capability that they have; with it, the best come first.
        capability: Option<String>,
        category: Option<Category>,
        status: Option<Status>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        /// `next_cursor` of the previous page.
        cursor: Option<u64>,
    }
}

crate::request_members! {
    /// Which collaborations to list.
    CollaborationsQuery {
        role: Option<Role>,
        state: Option<State>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        /// `next_cursor` of the previous page.
        after: Option<String>,
        /// The caller, where no key says it.
        agent_id: Option<Uuid>,
    }
}

crate::request_members! {
    /// What to stream.
    StreamQuery {
        /// Ids of agents to watch, separated by commas, or `all`.
        watch: Option<String>,
        /// The caller, where no key says it.
        agent_id: Option<Uuid>,
    }
}

crate::answer_members! {
    /// An agent's score, and what it claims itself.
    ReputationView {
        agent_id: Uuid,
        claimed: Nullable<ReputationUpdate>,
        protocol_version: String,
        correlation_id: Uuid,
        timestamp: Time,
    } optional {
        /// Absent before the first finished collaboration.
        reputation_update: AnyObject,
    }
}
