//! Result records: the entries of an outbox, and the data of `Task-Result`.

use std::borrow::Cow;

use rialto_core::time::Timestamp;
use serde::Deserialize;

use super::task::TaskRecord;
use super::{KeyedRecord, read};
use crate::kit::object::ObjectWriter;

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult<'a> {
    /// The task's id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The agent that did it.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The agent's address.
    #[serde(borrow)]
    pub sender: Cow<'a, str>,
    /// The requester's address (R48).
    #[serde(borrow)]
    pub recipient: Cow<'a, str>,
    /// JSON text for the requester. Left out where it is not public (R20).
    #[serde(borrow, default, deserialize_with = "read::maybe_raw")]
    pub result: Option<&'a str>,
    /// When the result arrived.
    pub timestamp: Timestamp,
    /// The number of messages that the market had received by then.
    pub block: u64,
}

impl TaskResult<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        self.object().finish()
    }

    /// Writes the record as deployed processes do, including the task.
    pub fn write_with_task(&self, task: &TaskRecord<'_>) -> String {
        self.object().text("agentAddress", &self.sender).raw("originalTask", &task.write()).finish()
    }

    fn object(&self) -> ObjectWriter {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("agentId", &self.agent_id)
            .text("sender", &self.sender)
            .text("recipient", &self.recipient)
            .maybe_raw("result", self.result)
            .integer("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
    }
}

impl KeyedRecord for TaskResult<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn agent_id(&self) -> &str {
        &self.agent_id
    }

    fn write(&self) -> String {
        TaskResult::write(self)
    }
}
