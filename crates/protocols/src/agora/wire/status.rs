//! STATUS: the status of an agent, or what the hub did with a message and the state of its request.
//!
//! The spec defines no payload for STATUS. Unknown values from agents are ignored. Receipts are in
//! their own file.

use serde::{Deserialize, Serialize};

use super::error::Failure;
use super::hello::Capability;
use super::payload::fields;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

/// The status of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentStatus {
    /// It has no work.
    Idle,
    /// It is working.
    Busy,
    /// It has an error.
    Error,
    /// It is in maintenance.
    Maintenance,
    /// It is going offline.
    Offline,
}

impl AgentStatus {
    /// All statuses.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::Busy, Self::Error, Self::Maintenance, Self::Offline];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Error => "error",
            Self::Maintenance => "maintenance",
            Self::Offline => "offline",
        }
    }

    /// Reads the name on the wire.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// What an agent reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusUpdate<'a> {
    /// Its status, if it is one of the five names.
    pub status: Option<AgentStatus>,
    /// Its capabilities from now on.
    pub capabilities: Option<Vec<Capability<'a>>>,
}

impl<'a> StatusUpdate<'a> {
    /// Reads the payload of a STATUS to the hub.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let status = f.text("status").ok().flatten().and_then(AgentStatus::read);
        Ok(Self { status, capabilities: Capability::read_list(&f)? })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let capabilities = self.capabilities.as_deref().map(Capability::write_list);
        ObjectWriter::new()
            .maybe_text("status", self.status.map(AgentStatus::as_str))
            .maybe_raw("capabilities", capabilities.as_deref())
            .finish()
    }
}

/// What the hub did with a message: `accepted` it, or closed an offer because another was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageStatus<'a> {
    /// `accepted`, `received` or `offer_closed`.
    pub status: &'a str,
    /// The message it is about; for `offer_closed` the OFFER.
    pub message_id: Option<&'a str>,
    /// The request that the message belongs to.
    pub request_id: Option<&'a str>,
    /// The state of that request.
    pub state: Option<RequestState>,
}

impl<'a> MessageStatus<'a> {
    /// A message was accepted. If it belongs to a request, includes the request's state.
    pub fn accepted(message_id: &'a str, request: Option<(&'a str, RequestState)>) -> Self {
        let (request_id, state) = request.unzip();
        Self { status: "accepted", message_id: Some(message_id), request_id, state }
    }

    /// An offer was closed because another one was accepted (R45).
    pub fn offer_closed(offer_id: &'a str, request_id: &'a str) -> Self {
        let (message_id, request_id) = (Some(offer_id), Some(request_id));
        Self { status: "offer_closed", message_id, request_id, state: None }
    }

    /// Reads the payload of a STATUS of the hub; `None` if it is not one.
    pub fn read(payload: &'a Json<'_>) -> Option<Self> {
        let f = fields(payload).ok()?;
        let text = |name| f.text(name).ok().flatten();
        let status = text("status")?;
        AgentStatus::read(status).is_none().then(|| Self {
            status,
            message_id: text("message_id"),
            request_id: text("request_id"),
            state: text("state").and_then(RequestState::read),
        })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("status", self.status)
            .maybe_text("message_id", self.message_id)
            .maybe_text("request_id", self.request_id)
            .maybe_text("state", self.state.map(RequestState::as_str))
            .finish()
    }
}

/// The state of a request (section 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RequestState {
    /// It was sent.
    Pending,
    /// There are offers.
    Negotiating,
    /// An agent is working on it.
    Processing,
    /// The work is done.
    Completed,
    /// The work failed; this is final.
    Failed,
}

impl RequestState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Negotiating, Self::Processing, Self::Completed, Self::Failed];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Negotiating => "NEGOTIATING",
            Self::Processing => "PROCESSING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
        }
    }

    /// Reads the name on the wire.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}
