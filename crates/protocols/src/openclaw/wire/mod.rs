//! The six messages: reads them strictly, reports all violations at once, and writes them.
//!
//! A message is checked against the spec's own schema, then against the conditions that the spec
//! gives only in prose (D7). The members that the hub uses become typed values. The text itself is
//! kept, with all unknown members.

pub mod capability;
pub mod identity;
mod reader;
pub mod report;
pub mod reputation;
pub mod request;
pub mod response;
pub mod result;
pub mod status;

pub use capability::PublishedCapability;
pub use identity::{ClaimedTrustSignals, Identity, ResourceLimits};
pub use reader::{MessageReader, ObjectPart};
pub use report::{ReportedStatus, StatusDetails};
pub use reputation::{ReputationMetrics, ReputationUpdate};
pub use request::Request;
pub use response::{Rejection, Response, ResponseAnswer};
pub use result::{CollaborationResult, ResultError, ResultOutcome};
pub use status::StatusUpdate;

use uuid::Uuid;

use super::common;
use super::failure::Failure;
use super::kind::Kind;
use crate::kit::ijson::{self, Json};

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
    let version = common::read_version(json)?;
    let mut reader = MessageReader::checked(T::KIND, json);
    let said = T::read(&mut reader);
    let said = reader.finish(said)?;
    let correlation_id = common::read_correlation_id(json);
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
    match wrong.is_empty() {
        true => Ok(()),
        false => {
            Err(Failure { correlation_id: Some(correlation_id), ..Failure::with_violations(wrong) })
        }
    }
}
