//! Status updates: an agent reports its status.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::MessageBody;
use super::reader::MessageReader;
use super::report::ReportedStatus;
use crate::kit::object::ObjectWriter;
use crate::openclaw::LATE_AFTER;
use crate::openclaw::common::CommonMembers;
use crate::openclaw::kind::Kind;
use crate::openclaw::state::Status;

/// The content of a status update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The agent it is about.
    pub agent_id: Uuid,
    /// The current status.
    pub report: ReportedStatus,
    /// The previous status.
    pub previous_status: Option<Status>,
    /// The id that traces the message.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

impl MessageBody for StatusUpdate {
    const KIND: Kind = Kind::Status;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let update = whole.part("status_update");
        let report = ReportedStatus::find(r, &update, true);
        let agent_id = r.uuid(&whole, "agent_id");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        Some(Self {
            agent_id: agent_id?,
            report: report?,
            previous_status: update.text("previous_status").and_then(Status::read),
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
        let update = self.report.write_to(ObjectWriter::new());
        let update = update.maybe_text("previous_status", self.previous_status.map(Status::as_str));
        let object = ObjectWriter::new()
            .uuid("agent_id", self.agent_id)
            .raw("status_update", &update.finish());
        let common =
            CommonMembers { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.write_to(object).finish()
    }
}
