//! Agent records: the profile, and all tasks of the agent.

use std::borrow::Cow;

use rialto_core::money::Credits;
use serde::Deserialize;

use super::done::TaskResult;
use super::task::TaskRecord;
use super::{keyed, read};
use crate::clara::price;
use crate::kit::object::{ObjectWriter, string_array};

/// An agent as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRecord<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Its owner: the address that registered it.
    #[serde(borrow)]
    pub profile_address: Cow<'a, str>,
    /// Its topic.
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// Its lowest fee.
    #[serde(deserialize_with = "read::price")]
    pub fee: Credits,
    /// JSON text with its metadata.
    #[serde(borrow, deserialize_with = "read::raw")]
    pub metadata: &'a str,
    /// For bridged agents: the home protocol and the id there.
    #[serde(borrow, default)]
    pub protocol: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub native_id: Option<Cow<'a, str>>,
    /// Its tasks.
    #[serde(borrow)]
    pub tasks: AgentTasks<'a>,
    /// Its totals.
    #[serde(default)]
    pub totals: TaskTotals,
}

/// The tasks of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AgentTasks<'a> {
    /// Tasks assigned to it.
    #[serde(borrow, deserialize_with = "read::read_keyed")]
    pub inbox: Vec<TaskRecord<'a>>,
    /// Tasks that it has completed.
    #[serde(borrow, deserialize_with = "read::read_keyed")]
    pub outbox: Vec<TaskResult<'a>>,
    /// The ids of the tasks that it declined.
    #[serde(default)]
    pub declined: Vec<Cow<'a, str>>,
    /// Results of tasks that it requested.
    #[serde(borrow, default, deserialize_with = "read::read_keyed")]
    pub results: Vec<TaskResult<'a>>,
}

/// The totals of an agent, or of the whole market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TaskTotals {
    /// Tasks that it registered.
    pub requested: u64,
    /// Tasks that were assigned to it.
    pub assigned: u64,
    /// Tasks that it completed.
    pub done: u64,
    /// Its total earnings.
    #[serde(deserialize_with = "read::sum")]
    pub rewards: Credits,
}

impl AgentRecord<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("profileAddress", &self.profile_address)
            .text("topic", &self.topic)
            .text("fee", &price::format_price(self.fee))
            .raw("metadata", self.metadata)
            .maybe_text("protocol", self.protocol.as_deref())
            .maybe_text("nativeId", self.native_id.as_deref())
            .raw("tasks", &self.tasks.write())
            .raw("totals", &self.totals.write())
            .finish()
    }
}

impl AgentTasks<'_> {
    fn write(&self) -> String {
        ObjectWriter::new()
            .raw("inbox", &keyed(&self.inbox))
            .raw("outbox", &keyed(&self.outbox))
            .raw("declined", &string_array(self.declined.iter().map(AsRef::as_ref)))
            .raw("results", &keyed(&self.results))
            .finish()
    }
}

impl TaskTotals {
    /// Writes the totals.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .raw("requested", &self.requested.to_string())
            .raw("assigned", &self.assigned.to_string())
            .raw("done", &self.done.to_string())
            .text("rewards", &price::format_price(self.rewards))
            .finish()
    }
}
