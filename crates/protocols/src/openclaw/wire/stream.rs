//! The event stream: event names, and the bodies that are not plain messages (section 2.3).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::VERSION;
use super::answers::{answer, common_members};
use super::common::CommonMembers;
use super::kind::Kind;
use super::words::words;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

words! {
    /// The name of an event.
    Event {
        /// The stream is open.
        Connected = "connected",
        /// Work is requested.
        Request = "collaboration_request",
        /// A request was answered.
        Response = "collaboration_response",
        /// A result arrived.
        Result = "collaboration_result",
        /// The other party cancelled.
        Cancelled = "collaboration_cancelled",
        /// The status of an agent changed.
        Status = "status_update",
        /// The reputation of an agent changed.
        Reputation = "reputation_update",
    }
}

impl Event {
    /// The event that carries a message of this kind; an identity has none.
    pub const fn carrying(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Identity => None,
            Kind::Status => Some(Self::Status),
            Kind::Reputation => Some(Self::Reputation),
            Kind::Request => Some(Self::Request),
            Kind::Response => Some(Self::Response),
            Kind::Result => Some(Self::Result),
        }
    }
}

answer! {
    /// The first event of a stream.
    Connected {
        /// `connected`.
        status: String,
        /// The agent that reads the stream.
        agent_id: String,
    }
}

impl Connected {
    /// The `status` of this event.
    pub const STATUS: &str = "connected";
}

/// A request as its responder receives it: the requester's own text, the collaboration id, and
/// whether the hub has already accepted it (`accepted` false: it waits for the agent's response).
pub fn write_request(request: &Json<'_>, collaboration_id: Option<Uuid>, accepted: bool) -> String {
    const OURS: [&str; 5] =
        ["collaboration_id", "accepted", "awaiting_approval", "deferred_until", "protocol_version"];
    ObjectWriter::copy_without(request, &OURS)
        .maybe_uuid("collaboration_id", collaboration_id)
        .flag("accepted", accepted)
        .text("protocol_version", VERSION)
        .finish()
}

/// A message as it is forwarded: its own text, with the version always present (R75).
pub fn write_message(json: &Json<'_>) -> String {
    ObjectWriter::copy_without(json, &["protocol_version"])
        .text("protocol_version", VERSION)
        .finish()
}
