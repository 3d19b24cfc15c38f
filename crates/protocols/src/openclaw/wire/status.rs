//! The status of an agent, as identities and status updates contain it.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::reader::{MessageReader, ObjectPart};
use super::words::{ErrorType, Status};
use super::{CommonMembers, Kind, MessageBody};
use crate::kit::object::ObjectWriter;
use crate::openclaw::{LATE_AFTER, TEXT_MAX};

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

/// A status and the time since which it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedStatus {
    /// The status.
    pub status: Status,
    /// Since when it holds.
    pub at: Timestamp,
    /// Details of the status.
    pub details: StatusDetails,
}

/// The details of a status. Which of them are required depends on the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// The number of running tasks.
    pub active_tasks: Option<i64>,
    /// The code of the error.
    pub error_code: Option<String>,
    /// The error as text for people.
    pub error_message: Option<String>,
    /// Whether the error is transient.
    pub error_type: Option<ErrorType>,
    /// When the maintenance ends.
    pub maintenance_until: Option<Timestamp>,
    /// Why the agent is in maintenance.
    pub maintenance_reason: Option<String>,
}

impl ReportedStatus {
    /// Reads the object that contains the status. An update about an error must have an error type
    /// (D8).
    pub(super) fn find(
        r: &mut MessageReader<'_, '_>,
        from: &ObjectPart<'_, '_>,
        update: bool,
    ) -> Option<Self> {
        let status = from.text("current_status").and_then(Status::read);
        let details = from.part("status_details");
        let needed: &[&str] = match status {
            Some(Status::Busy) => &["active_tasks"],
            Some(Status::Error) if update => &["error_code", "error_message", "error_type"],
            Some(Status::Error) => &["error_code", "error_message"],
            Some(Status::Maintenance) => &["maintenance_until"],
            Some(Status::Idle) | None => &[],
        };
        let when = status.map_or(String::new(), |status| format!("current_status is {status}"));
        needed.iter().for_each(|name| r.require_when(&details, name, &when));
        let details = StatusDetails {
            active_tasks: r.number(&details, "active_tasks"),
            error_code: r.bounded(&details, "error_code", TEXT_MAX),
            error_message: r.bounded(&details, "error_message", TEXT_MAX),
            error_type: details.text("error_type").and_then(ErrorType::read),
            maintenance_until: r.time(&details, "maintenance_until"),
            maintenance_reason: r.bounded(&details, "maintenance_reason", TEXT_MAX),
        };
        let at = r.time(from, "status_timestamp");
        Some(Self { status: status?, at: at?, details })
    }

    /// Adds the members to an object.
    pub fn write_to(&self, object: ObjectWriter) -> ObjectWriter {
        let object =
            object.text("current_status", self.status.as_str()).time("status_timestamp", self.at);
        if self.details == StatusDetails::default() {
            return object;
        }
        let StatusDetails { error_code, error_message, error_type, maintenance_reason, .. } =
            &self.details;
        let details = ObjectWriter::new()
            .maybe_integer("active_tasks", self.details.active_tasks)
            .maybe_text("error_code", error_code.as_deref())
            .maybe_text("error_message", error_message.as_deref())
            .maybe_text("error_type", error_type.map(ErrorType::as_str))
            .maybe_time("maintenance_until", self.details.maintenance_until)
            .maybe_text("maintenance_reason", maintenance_reason.as_deref());
        object.raw("status_details", &details.finish())
    }
}
