//! Status updates: an agent reports its status.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::Said;
use super::reader::Reader;
use super::report::Report;
use crate::kit::object::Object;
use crate::openclaw::LATE_AFTER;
use crate::openclaw::common::Common;
use crate::openclaw::kind::Kind;
use crate::openclaw::state::Status;

/// The content of a status update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The agent it is about.
    pub agent_id: Uuid,
    /// The current status.
    pub report: Report,
    /// The previous status.
    pub previous: Option<Status>,
    /// The id that traces the message.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

impl Said for StatusUpdate {
    const KIND: Kind = Kind::Status;

    fn find(r: &mut Reader<'_, '_>) -> Option<Self> {
        let whole = r.whole();
        let update = whole.part("status_update");
        let report = Report::find(r, &update, true);
        let agent_id = r.uuid(&whole, "agent_id");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        Some(Self {
            agent_id: agent_id?,
            report: report?,
            previous: update.text("previous_status").and_then(Status::read),
            correlation_id: correlation_id?,
            timestamp: timestamp?,
        })
    }
}

impl StatusUpdate {
    /// Whether the update was written too long after the status changed (R32).
    pub fn is_late(&self) -> bool {
        self.timestamp.since(self.report.at) > LATE_AFTER
    }

    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let update = self.report.on(Object::new());
        let update = update.maybe_text("previous_status", self.previous.map(Status::as_str));
        let object =
            Object::new().id("agent_id", self.agent_id).raw("status_update", &update.finish());
        let common = Common { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.on(object).finish()
    }
}
