//! Records of agents as the directory shows them (2.6), and how records are written and read.
//!
//! They are written member by member, so that JSON from agents is copied exactly. Clients read
//! them, also from processes that leave out members. Raw texts are known to be valid JSON, because
//! orders have checked them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use rialto_core::money::Credits;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::register::{format_price, read_price, read_sum};
use super::task::{TaskRecord, TaskResult};
use crate::kit::jcs;
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
    #[serde(deserialize_with = "deserialize_price")]
    pub fee: Credits,
    /// JSON text with its metadata.
    #[serde(borrow, deserialize_with = "deserialize_raw")]
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
    #[serde(borrow, deserialize_with = "deserialize_keyed")]
    pub inbox: Vec<TaskRecord<'a>>,
    /// Tasks that it has completed.
    #[serde(borrow, deserialize_with = "deserialize_keyed")]
    pub outbox: Vec<TaskResult<'a>>,
    /// The ids of the tasks that it declined.
    #[serde(default)]
    pub declined: Vec<Cow<'a, str>>,
    /// Results of tasks that it requested.
    #[serde(borrow, default, deserialize_with = "deserialize_keyed")]
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
    #[serde(deserialize_with = "deserialize_sum")]
    pub rewards: Credits,
}

impl AgentRecord<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("profileAddress", &self.profile_address)
            .text("topic", &self.topic)
            .text("fee", &format_price(self.fee))
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
            .text("rewards", &format_price(self.rewards))
            .finish()
    }
}

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the record cannot be read: {0}")]
pub struct RecordReadError(#[from] serde_json::Error);

/// Reads one record, or a list of them with `Vec`.
pub fn read_record<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, RecordReadError> {
    Ok(serde_json::from_str(text)?)
}

/// Writes a list of encoded records.
pub fn write_list(records: impl IntoIterator<Item = String>) -> String {
    let records: Vec<String> = records.into_iter().collect();
    format!("[{}]", records.join(","))
}

/// An entry in a map of tasks.
pub(super) trait KeyedRecord {
    /// The id of its task.
    fn id(&self) -> &str;
    /// The agent of the entry.
    fn agent_id(&self) -> &str;
    /// Its JSON text.
    fn write(&self) -> String;
}

/// Writes an object keyed by task id. An empty one is `[]`, as in Lua (R17). The copies of a task
/// for many agents share its id (D22), but keys must be unique: from the second copy on, the key is
/// id, `_` and agent.
fn keyed<T: KeyedRecord>(entries: &[T]) -> String {
    if entries.is_empty() {
        return "[]".to_owned();
    }
    let mut out = "{".to_owned();
    let mut seen = HashSet::with_capacity(entries.len());
    for entry in entries {
        let mut name = entry.id().to_owned();
        if !seen.insert(name.clone()) {
            name = format!("{name}_{}", entry.agent_id());
            if !seen.insert(name.clone()) {
                continue;
            }
        }
        if out.len() > 1 {
            out.push(',');
        }
        jcs::push_string(&mut out, &name);
        out.push(':');
        out.push_str(&entry.write());
    }
    out.push('}');
    out
}

/// The exact text of a member.
fn deserialize_raw<'de, D: Deserializer<'de>>(from: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(from).map(RawValue::get)
}

/// The exact text of an optional member. `null` counts as present.
pub(super) fn deserialize_maybe_raw<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'de str>, D::Error> {
    deserialize_raw(from).map(Some)
}

/// A fee or a reward.
pub(super) fn deserialize_price<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    read_price(&text).ok_or_else(|| D::Error::custom("a price must be digits in a string"))
}

/// A total, which may be zero.
fn deserialize_sum<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    read_sum(&text).ok_or_else(|| D::Error::custom("a sum must be digits in a string"))
}

/// The values of an object, or an empty list.
fn deserialize_keyed<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_any(KeyedVisitor(PhantomData))
}

struct KeyedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for KeyedVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an empty list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Vec::new()),
            Some(_) => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((_, value)) = map.next_entry::<IgnoredAny, T>()? {
            values.push(value);
        }
        Ok(values)
    }
}
