//! The six messages: read strictly, with everything that is wrong told at once, and written.
//!
//! Each is checked against the spec's own schema and then against the conditions the spec gives only
//! in prose (D7). What the hub uses becomes a value; the text itself is kept, with every member
//! nobody here knows.

pub mod capability;
pub mod identity;
mod reader;
pub mod report;
pub mod reputation;
pub mod request;
pub mod response;
pub mod result;
pub mod status;

pub use capability::Capability;
pub use identity::{Identity, Limits, Trust};
pub use reader::{Part, Reader};
pub use report::{Details, Report};
pub use reputation::{Metrics, Reputation};
pub use request::Request;
pub use response::{Answer, Rejection, Response};
pub use result::{Failed, Outcome, Output};
pub use status::StatusUpdate;

use uuid::Uuid;

use super::common;
use super::failure::Failure;
use super::kind::Kind;
use crate::kit::ijson::{self, Json};

/// A message as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<T> {
    /// What it says.
    pub said: T,
    /// Its exact text.
    pub raw: Box<str>,
    /// The version it says it is; ours when it says none.
    pub version: String,
    /// Its correlation id; only an identity may have none.
    pub correlation_id: Option<Uuid>,
}

/// What can be said in a message.
pub trait Said: Sized {
    /// Which kind of message says it.
    const KIND: Kind;

    /// Looks at all of it, notes what is wrong, and is `None` when a part is missing.
    fn find(reader: &mut Reader<'_, '_>) -> Option<Self>;
}

/// Reads the body of a request.
pub fn read<T: Said>(body: &[u8]) -> Result<Message<T>, Failure> {
    let json =
        ijson::read(body).map_err(|bad| Failure::from(bad).with_example(T::KIND.example()))?;
    of(&json)
}

/// Reads a message that is JSON already.
pub fn of<T: Said>(json: &Json<'_>) -> Result<Message<T>, Failure> {
    let version = common::version(json)?;
    let mut reader = Reader::of(T::KIND, json);
    let said = T::find(&mut reader);
    let said = reader.finish(said)?;
    let correlation_id = common::correlation_id(json);
    Ok(Message { said, raw: json.raw().into(), version, correlation_id })
}

/// Any of the six (`POST /messages`).
#[derive(Clone, Debug, PartialEq)]
pub enum Any {
    /// An agent.
    Identity(Box<Message<Identity>>),
    /// How it is.
    Status(Message<StatusUpdate>),
    /// How well it says it does.
    Reputation(Message<Reputation>),
    /// Work wanted.
    Request(Message<Request>),
    /// An answer to that.
    Response(Message<Response>),
    /// What came of it.
    Result(Message<Output>),
}

impl Any {
    /// Reads a body of whichever kind it is (R90).
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        let json = ijson::read(body)?;
        Ok(match Kind::tell(&json).map_err(|bad| bad.about(&json))? {
            Kind::Identity => Self::Identity(Box::new(of(&json)?)),
            Kind::Status => Self::Status(of(&json)?),
            Kind::Reputation => Self::Reputation(of(&json)?),
            Kind::Request => Self::Request(of(&json)?),
            Kind::Response => Self::Response(of(&json)?),
            Kind::Result => Self::Result(of(&json)?),
        })
    }
}

/// Whether a response or result belongs to a request: both ids must be the request's (R55, R59).
pub fn belongs(request: &Request, request_id: Uuid, correlation_id: Uuid) -> Result<(), Failure> {
    belongs_to((request.request_id, request.correlation_id), request_id, correlation_id)
}

/// The same for a request of which only the ids are at hand: its own, then its correlation id.
pub fn belongs_to(
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
        false => Err(Failure { correlation_id: Some(correlation_id), ..Failure::violated(wrong) }),
    }
}
