//! Records: agents, tasks, results and queries as the directory shows them (2.6, 2.7).
//!
//! They are written member by member, so that JSON from agents is copied exactly. Clients read
//! them, also from processes that leave out members. Raw texts are known to be valid JSON, because
//! orders have checked them.

pub mod agent;
pub mod done;
pub mod query;
mod read;
pub mod task;

pub use agent::{AgentRecord, AgentTasks, TaskTotals};
pub use done::TaskResult;
pub use query::TaskQuery;
pub use task::TaskRecord;

use std::collections::HashSet;

use serde::Deserialize;

use crate::kit::jcs;

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
trait KeyedRecord {
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
