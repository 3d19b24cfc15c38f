//! The event stream (section 2.3): event names, the bodies that are not plain messages, and the
//! positions that clients send back, in the stream and in the list of collaborations.

use std::fmt;

use rialto_core::id::JobId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::answers::{answer, common_members};
use super::words::{Role, string_enum};
use super::{CommonMembers, Kind};
use crate::kit::ijson::Json;
use crate::kit::last_event_id::parse_position;
use crate::kit::object::ObjectWriter;
use crate::openclaw::VERSION;

string_enum! {
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

/// A reader's position. It is the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// The position in the inbox.
    pub position: u64,
    /// The line of the hub's history.
    pub line: u64,
}

impl StreamPosition {
    /// Reads an event's id.
    pub fn read(text: &str) -> Option<Self> {
        let (inbox, line) = text.split_once('-')?;
        Some(Self { position: parse_position(inbox)?, line: parse_position(line)? })
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position, self.line)
    }
}

/// Where a page begins: which list, and the position in it. A list is read to its end before the
/// next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollaborationCursor {
    /// Jobs assigned to the caller, after this priority and job.
    InHand(u8, JobId),
    /// Jobs that the caller worked on, from this job on; `None` starts at the newest.
    Worked(Option<JobId>),
    /// Jobs that the caller requested, from this job on; `None` starts at the newest.
    Asked(Option<JobId>),
}

impl CollaborationCursor {
    /// The cursor as text.
    pub fn write(self) -> String {
        let from = |job: Option<JobId>| job.map_or_else(String::new, |job| job.to_string());
        match self {
            Self::InHand(priority, job) => format!("w{priority}.{job}"),
            Self::Worked(job) => format!("d{}", from(job)),
            Self::Asked(job) => format!("a{}", from(job)),
        }
    }

    /// Reads a cursor; `None` if the text is not one.
    pub fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        let job = |text: &str| match text {
            "" => Some(None),
            digits => digits.parse().ok().map(|id| Some(JobId(id))),
        };
        match kind {
            "w" => {
                let (priority, id) = rest.split_once('.')?;
                Some(Self::InHand(priority.parse().ok()?, JobId(id.parse().ok()?)))
            }
            "d" => job(rest).map(Self::Worked),
            "a" => job(rest).map(Self::Asked),
            _ => None,
        }
    }

    /// The list that follows this one, when the caller asked for both roles.
    pub fn next_list(self, role: Option<Role>) -> Option<Self> {
        match self {
            Self::InHand(..) => Some(Self::Worked(None)),
            Self::Worked(_) if role.is_none() => Some(Self::Asked(None)),
            Self::Worked(_) | Self::Asked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_two_numbers() {
        let place = StreamPosition { position: 7, line: 42 };
        assert_eq!(StreamPosition::read("7-42"), Some(place));
        assert_eq!(place.to_string(), "7-42");
        for wrong in ["", "7", "7-", "-42", "7-42-1", "+7-42", "a-b", "99999999999999999999-1"] {
            assert_eq!(StreamPosition::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for at in [
            CollaborationCursor::InHand(3, JobId(9)),
            CollaborationCursor::Worked(None),
            CollaborationCursor::Worked(Some(JobId(4))),
            CollaborationCursor::Asked(None),
            CollaborationCursor::Asked(Some(JobId(77))),
        ] {
            assert_eq!(CollaborationCursor::read(&at.write()), Some(at));
        }
        for wrong in ["", "x", "w", "w3", "w3.x", "dx", "a-1", "\u{e9}"] {
            assert_eq!(CollaborationCursor::read(wrong), None, "{wrong}");
        }
    }
}
