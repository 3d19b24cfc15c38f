//! Results of messages (2.4), and pages of them (2.1).

use serde::Deserialize;

use super::paging::ResultCursor;
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::object::ObjectWriter;

/// The members of a result that are constant here.
const OUTPUT: &str = r#"{"data":"","prompt":"","print":false}"#;

/// Writes the result of a successful message from the messages that the market sent; see
/// [`super::OutgoingMessage::write`].
pub fn write_result(messages: &[impl AsRef<str>]) -> String {
    let messages: Vec<&str> = messages.iter().map(AsRef::as_ref).collect();
    ObjectWriter::new()
        .raw("Messages", &format!("[{}]", messages.join(",")))
        .raw("Assignments", "[]")
        .raw("Spawns", "[]")
        .raw("Output", OUTPUT)
        .integer("GasUsed", 0)
        .finish()
}

/// Writes the result of a message that had no effect. The text is that of a [`super::OrderError`].
pub fn write_error_result(text: &str) -> String {
    ObjectWriter::new()
        .text("Error", text)
        .raw("Messages", "[]")
        .raw("Assignments", "[]")
        .raw("Spawns", "[]")
        .integer("GasUsed", 0)
        .finish()
}

/// The messages in an encoded result.
pub fn result_messages<'j, 'b>(result: &'j Json<'b>) -> &'j [Json<'b>] {
    match result.get("Messages").map(Json::value) {
        Some(JsonValue::Array(items)) => items,
        _ => &[],
    }
}

/// Writes a page of results, each with its cursor.
pub fn write_page(results: &[(impl AsRef<str>, ResultCursor)], more: bool) -> String {
    let edges: Vec<String> = results
        .iter()
        .map(|(node, cursor)| {
            ObjectWriter::new().raw("node", node.as_ref()).text("cursor", &cursor.write()).finish()
        })
        .collect();
    ObjectWriter::new()
        .raw("pageInfo", &ObjectWriter::new().flag("hasNextPage", more).finish())
        .raw("edges", &format!("[{}]", edges.join(",")))
        .finish()
}

/// A result as a client reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MessageResult {
    /// The messages that the market sent; the reply to the sender is first (D24).
    #[serde(default)]
    pub messages: Vec<MarketMessage>,
    /// Why the message had no effect.
    pub error: Option<String>,
}

/// A message of the market as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MarketMessage {
    /// The recipient's address.
    pub target: String,
    /// Its number, padded with zeros.
    #[serde(default)]
    pub anchor: String,
    /// Its data.
    pub data: Option<String>,
    /// Its tags, in order.
    pub tags: Vec<OwnedTag>,
}

/// A tag as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OwnedTag {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A page of results as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultPage {
    /// Whether there is a next page.
    pub page_info: PageInfo,
    /// The results.
    pub edges: Vec<ResultEdge>,
}

/// Information about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    /// Whether another page follows.
    pub has_next_page: bool,
}

/// A result on a page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResultEdge {
    /// The result.
    pub node: MessageResult,
    /// Its cursor, to be sent back unchanged.
    pub cursor: String,
}

/// An answer that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be read: {0}")]
pub struct ResultReadError(#[from] serde_json::Error);

impl MarketMessage {
    /// The first tag of that name.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|tag| tag.name == name).map(|tag| tag.value.as_str())
    }
}

impl MessageResult {
    /// Reads a result.
    pub fn read(body: &[u8]) -> Result<Self, ResultReadError> {
        Ok(serde_json::from_slice(body)?)
    }
}

impl ResultPage {
    /// Reads a page.
    pub fn read(body: &[u8]) -> Result<Self, ResultReadError> {
        Ok(serde_json::from_slice(body)?)
    }
}
