//! The stream: the names of its events and the bodies that are no plain message (section 2.3).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::VERSION;
use super::answers::{answer, texts};
use super::common::Common;
use super::kind::Kind;
use super::words::words;
use crate::kit::ijson::Json;
use crate::kit::object::Object;

words! {
    /// What happened.
    Event {
        /// The stream is open.
        Connected = "connected",
        /// Somebody wants something.
        Request = "collaboration_request",
        /// Somebody answered.
        Response = "collaboration_response",
        /// Somebody is done.
        Result = "collaboration_result",
        /// The other party called it off.
        Cancelled = "collaboration_cancelled",
        /// Somebody is doing otherwise.
        Status = "status_update",
        /// Somebody does better, or worse.
        Reputation = "reputation_update",
    }
}

impl Event {
    /// The event that carries a message; an identity has none.
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
    /// The first event.
    Connected {
        /// `connected`.
        status: String,
        /// Who listens.
        agent_id: String,
    }
}

impl Connected {
    /// The status of this event.
    pub const STATUS: &str = "connected";
}

/// A request as its responder gets it: the requester's own words, what the work is called, and
/// whether the hub has accepted it already (`accepted` false: it waits for the agent's response).
pub fn request(request: &Json<'_>, collaboration_id: Option<Uuid>, accepted: bool) -> String {
    const OURS: [&str; 5] =
        ["collaboration_id", "accepted", "awaiting_approval", "deferred_until", "protocol_version"];
    Object::copy(request, &OURS)
        .maybe_id("collaboration_id", collaboration_id)
        .flag("accepted", accepted)
        .text("protocol_version", VERSION)
        .finish()
}

/// A message as it is passed on: its own words, in a version that is said (R75).
pub fn message(json: &Json<'_>) -> String {
    Object::copy(json, &["protocol_version"]).text("protocol_version", VERSION).finish()
}
