//! Messages that the market sends (2.4, 2.5). Tags are in their printed order, and data is
//! optional. A message gets its number when it is written; numbers increase by one for every
//! message ever sent.

mod board;
mod notice;
mod task;

pub use notice::TaskNotice;

use super::PROTOCOL;
use crate::kit::object::ObjectWriter;

/// A message of the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The recipient's address.
    pub target: String,
    /// Tag names and values, from `Action` on.
    pub tags: Vec<(&'static str, String)>,
    /// Its data.
    pub data: Option<String>,
}

impl OutgoingMessage {
    /// A message without data, with the tags that all messages of the market have.
    fn new(target: &str, action: &str) -> Self {
        let tags = vec![("Action", action.to_owned()), ("Protocol", PROTOCOL.to_owned())];
        Self { target: target.to_owned(), tags, data: None }
    }

    fn tag(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.tags.push((name, value.into()));
        self
    }

    fn maybe_tag(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.tag(name, value),
            None => self,
        }
    }

    /// Adds the task id, under the tag names of the spec and of the deployed processes (D1).
    fn about(self, task_id: &str) -> Self {
        self.tag("TaskId", task_id).tag("Task-Id", task_id)
    }

    fn data(mut self, data: impl Into<String>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Writes the message with the number `reference`.
    pub fn write(&self, reference: u64) -> String {
        let number = reference.to_string();
        let usual = [
            ("Data-Protocol", "ao"),
            ("Variant", "ao.TN.1"),
            ("Type", "Message"),
            ("Reference", &number),
        ];
        let own = self.tags.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs = usual.into_iter().chain(own);
        let tags: Vec<String> = pairs
            .map(|(name, value)| {
                ObjectWriter::new().text("name", name).text("value", value).finish()
            })
            .collect();
        ObjectWriter::new()
            .text("Target", &self.target)
            .text("Anchor", &format!("{reference:032}"))
            .maybe_text("Data", self.data.as_deref())
            .raw("Tags", &format!("[{}]", tags.join(",")))
            .finish()
    }
}
