//! The messages and answers as they are on the wire. The hub and its clients share every rule here:
//! nothing in this folder waits, stores anything or reads the clock.
//!
//! The six messages are told apart by their members (R90) and read strictly, with all violations
//! reported at once. A message is checked against the spec's own schema, then against the conditions
//! that the spec gives only in prose (D7). The members that the hub uses become typed values. The
//! text itself is kept, with all unknown members.

pub mod answers;
pub mod api_doc;
pub mod directory;
pub mod error;
pub mod identity;
mod reader;
pub mod reputation;
pub mod request;
pub mod response;
pub mod result;
pub mod status;
pub mod stream;
pub mod words;

pub use identity::{ClaimedTrustSignals, Identity, PublishedCapability, ResourceLimits};
pub use reader::{MessageReader, ObjectPart};
pub use reputation::{ReputationMetrics, ReputationUpdate};
pub use request::Request;
pub use response::{Rejection, Response, ResponseAnswer};
pub use result::{CollaborationResult, ResultError, ResultOutcome};
pub use status::{ReportedStatus, StatusDetails, StatusUpdate};

use std::sync::LazyLock;

use rialto_core::time::Timestamp;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::VERSION;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::schema::Schema;
use error::{Code, Failure};
use words::string_enum;

/// A message as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<T> {
    /// Its typed content.
    pub body: T,
    /// Its exact text.
    pub raw: Box<str>,
    /// The version it declares; ours when it declares none.
    pub version: String,
    /// Its correlation id; only an identity may lack one.
    pub correlation_id: Option<Uuid>,
}

/// The content of one kind of message.
pub trait MessageBody: Sized {
    /// The kind of message that has this content.
    const KIND: Kind;

    /// Reads all members and records every violation. `None` when a required part is missing.
    fn read(reader: &mut MessageReader<'_, '_>) -> Option<Self>;
}

/// Reads a message from the body of a request.
pub fn read<T: MessageBody>(body: &[u8]) -> Result<Message<T>, Failure> {
    let json =
        ijson::read(body).map_err(|bad| Failure::from(bad).with_example(T::KIND.example()))?;
    from_json(&json)
}

/// Reads a message from parsed JSON.
pub fn from_json<T: MessageBody>(json: &Json<'_>) -> Result<Message<T>, Failure> {
    let version = read_version(json)?;
    let mut reader = MessageReader::checked(T::KIND, json);
    let said = T::read(&mut reader);
    let said = reader.finish(said)?;
    let correlation_id = read_correlation_id(json);
    Ok(Message { body: said, raw: json.raw().into(), version, correlation_id })
}

/// A message of any of the six kinds (`POST /messages`).
#[derive(Clone, Debug, PartialEq)]
pub enum AnyMessage {
    /// An agent and its capabilities.
    Identity(Box<Message<Identity>>),
    /// Its status.
    Status(Message<StatusUpdate>),
    /// The reputation that it claims.
    Reputation(Message<ReputationUpdate>),
    /// Requested work.
    Request(Message<Request>),
    /// A response to a request.
    Response(Message<Response>),
    /// The result of a collaboration.
    Result(Message<CollaborationResult>),
}

impl AnyMessage {
    /// Reads a body and detects its kind (R90).
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        let json = ijson::read(body)?;
        Ok(match Kind::detect(&json).map_err(|bad| bad.in_answer_to(&json))? {
            Kind::Identity => Self::Identity(Box::new(from_json(&json)?)),
            Kind::Status => Self::Status(from_json(&json)?),
            Kind::Reputation => Self::Reputation(from_json(&json)?),
            Kind::Request => Self::Request(from_json(&json)?),
            Kind::Response => Self::Response(from_json(&json)?),
            Kind::Result => Self::Result(from_json(&json)?),
        })
    }
}

/// Checks that a response or result belongs to a request: both ids must be the request's (R55,
/// R59).
pub fn check_belongs(
    request: &Request,
    request_id: Uuid,
    correlation_id: Uuid,
) -> Result<(), Failure> {
    check_belongs_to((request.request_id, request.correlation_id), request_id, correlation_id)
}

/// The same check when only the request's id and its correlation id are known, in this order.
pub fn check_belongs_to(
    request: (Uuid, Uuid),
    request_id: Uuid,
    correlation_id: Uuid,
) -> Result<(), Failure> {
    let pairs =
        [("request_id", request_id == request.0), ("correlation_id", correlation_id == request.1)];
    let wrong = pairs.iter().filter(|(_, same)| !same);
    let wrong: Vec<_> = wrong.map(|(name, _)| format!("{name} must be the request's")).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure { correlation_id: Some(correlation_id), ..Failure::with_violations(wrong) })
}

string_enum! {
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

    /// A short valid message of this kind, shown in errors about invalid ones (C10).
    pub const fn example(self) -> &'static str {
        match self {
            Self::Identity => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","agent_name":"chimera-content-node-001","agent_type":"autonomous_content_node","version":"1.0.0","capabilities":{"advertised_capabilities":[{"capability_id":"consume_trends","capability_name":"Trend Consumption","description":"Accepts trend data","category":"trend_consumption"}],"input_schemas":{"consume_trends":{"type":"object","required":["trends"]}},"output_schemas":{}},"status":{"current_status":"idle","status_timestamp":"2026-02-06T16:00:00Z"}}"#
            }
            Self::Status => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","status_update":{"current_status":"busy","status_timestamp":"2026-02-06T16:10:00Z","status_details":{"active_tasks":3}},"correlation_id":"770e8400-e29b-41d4-a716-446655440002","timestamp":"2026-02-06T16:10:00Z"}"#
            }
            Self::Reputation => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","reputation_update":{"update_type":"periodic_update","reputation_score":0.92,"update_timestamp":"2026-02-06T17:00:00Z"},"correlation_id":"cc0e8400-e29b-41d4-a716-446655440007","timestamp":"2026-02-06T17:00:00Z"}"#
            }
            Self::Request => {
                r#"{"request_id":"dd0e8400-e29b-41d4-a716-446655440008","requester_agent_id":"ee0e8400-e29b-41d4-a716-446655440009","capability_id":"consume_trends","input_data":{"trends":[]},"correlation_id":"110e8400-e29b-41d4-a716-446655440011","priority":3,"timestamp":"2026-02-06T16:30:00Z"}"#
            }
            Self::Response => {
                r#"{"request_id":"dd0e8400-e29b-41d4-a716-446655440008","responder_agent_id":"550e8400-e29b-41d4-a716-446655440000","response_status":"accepted","correlation_id":"110e8400-e29b-41d4-a716-446655440011","collaboration_id":"220e8400-e29b-41d4-a716-446655440012","timestamp":"2026-02-06T16:30:05Z"}"#
            }
            Self::Result => {
                r#"{"collaboration_id":"220e8400-e29b-41d4-a716-446655440012","request_id":"dd0e8400-e29b-41d4-a716-446655440008","responder_agent_id":"550e8400-e29b-41d4-a716-446655440000","result_status":"completed","correlation_id":"110e8400-e29b-41d4-a716-446655440011","output_data":{},"timestamp":"2026-02-06T16:33:20Z"}"#
            }
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

/// The three members of every body that the hub sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonMembers {
    /// The request's correlation id, or one that the hub generated (R4).
    pub correlation_id: Uuid,
    /// When the body was written.
    pub timestamp: Timestamp,
}

impl CommonMembers {
    /// Adds the three members to an object.
    pub fn write_to(self, object: ObjectWriter) -> ObjectWriter {
        object
            .text("protocol_version", VERSION)
            .uuid("correlation_id", self.correlation_id)
            .time("timestamp", self.timestamp)
    }
}

/// The version that a message declares; ours when it declares none (R75).
pub fn read_version(json: &Json<'_>) -> Result<String, Failure> {
    let given = match json.get("protocol_version").map(Json::value) {
        None => return Ok(VERSION.to_owned()),
        Some(JsonValue::String(text)) => text.as_ref(),
        Some(_) => "",
    };
    let parts: Vec<_> = given.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit())
    };
    if parts.len() != 3 || !parts.iter().all(number) {
        let wrong = "protocol_version must be a version like \"1.0.0\"";
        return Err(Failure::with_violations(vec![wrong.to_owned()]).in_answer_to(json));
    }
    if parts[0].trim_start_matches('0') != "1" {
        let message = "protocol_version must be 1.x.y: other major versions are not supported";
        return Err(Failure::new(Code::UnsupportedVersion, message).in_answer_to(json));
    }
    Ok(given.to_owned())
}

/// The correlation id of a message, even when the rest of it is invalid (R81).
pub fn read_correlation_id(json: &Json<'_>) -> Option<Uuid> {
    read_uuid(json.get("correlation_id")?)
}

/// Reads a UUID in its hyphenated form.
pub(super) fn read_uuid(json: &Json<'_>) -> Option<Uuid> {
    let JsonValue::String(text) = json.value() else { return None };
    text.parse::<Hyphenated>().ok().map(Hyphenated::into_uuid)
}

/// The six schemas as in the spec.
const SCHEMAS_TEXT: &str = include_str!("../fixtures/schemas.json");

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let all =
        ijson::read(SCHEMAS_TEXT.as_bytes()).expect("the embedded file is valid; tests check it");
    let one = |kind: &Kind| {
        let schema = all.get("schemas").and_then(|schemas| schemas.get(kind.as_str()));
        let schema = schema.expect("the file has a schema for each kind, by name");
        Schema::of(schema).expect("the spec's schemas are valid, which a test checks")
    };
    Kind::ALL.iter().map(one).collect()
});

/// The schema of a kind.
pub fn schema_of(kind: Kind) -> &'static Schema {
    &SCHEMAS[kind as usize]
}
