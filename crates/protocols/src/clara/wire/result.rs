//! Results of messages (2.4), pages of them (`GET /clara/cu/results/{pid}`, 2.1), and the short
//! answers of the message unit.

use rialto_core::time::Timestamp;
use serde::Deserialize;

use super::error::Failure;
use super::outgoing::OutgoingMessage;
use crate::clara::{PAGE, PAGE_MAX};
use crate::kit::ans104::ItemId;
use crate::kit::base64url;
use crate::kit::fields::Fields;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;

/// The longest cursor that is read.
const CURSOR_MAX: usize = 256;
/// The error about an invalid `from` or `to`.
const MARK: &str = "must be a cursor or milliseconds since 1970";

/// Writes the result of a successful message from the encoded messages that the market sent; see
/// [`OutgoingMessage::write`].
pub fn write_result(messages: &[impl AsRef<str>]) -> String {
    let bytes = messages.iter().map(|message| message.as_ref().len() + 1).sum();
    write_with_messages(bytes, messages, |out, message| out.push_str(message.as_ref()))
}

/// The same from messages that get their numbers now, the first one after `before`.
pub fn write_numbered_result(messages: &[OutgoingMessage], before: u64) -> String {
    let bytes = messages.iter().map(|message| message.expected_len() + 1).sum();
    write_with_messages(bytes, (before + 1..).zip(messages), |out, (number, message)| {
        message.write_to(out, number);
    })
}

fn write_with_messages<M>(
    bytes: usize,
    messages: impl IntoIterator<Item = M>,
    write: impl Fn(&mut String, M),
) -> String {
    const BEFORE: &str = r#"{"Messages":["#;
    const AFTER: &str = concat!(
        r#"],"Assignments":[],"Spawns":[],"#,
        r#""Output":{"data":"","prompt":"","print":false},"GasUsed":0}"#,
    );
    let mut out = String::with_capacity(BEFORE.len() + bytes + AFTER.len());
    out.push_str(BEFORE);
    for message in messages {
        if out.len() > BEFORE.len() {
            out.push(',');
        }
        write(&mut out, message);
    }
    out.push_str(AFTER);
    out
}

/// Writes the result of a message that had no effect. The text is that of an
/// [`super::error::OrderError`].
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

/// The position of a result among all others. Its text has the form that real compute units use, so
/// their cursors are accepted as well as the hub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResultCursor {
    /// When the result was created.
    pub at: Timestamp,
    /// The sequence number. Only this decides the order.
    pub ordinate: u64,
}

/// A limit of the requested range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageBound {
    /// The position of a result.
    Cursor(ResultCursor),
    /// A time.
    Time(Timestamp),
}

/// The sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// The requested range. Its limits mean the same in both sort orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Only results later than this.
    pub from: Option<PageBound>,
    /// No results later than this.
    pub to: Option<PageBound>,
    /// The sort order.
    pub sort: SortOrder,
    /// The most results on the page.
    pub limit: usize,
}

impl Default for Paging {
    fn default() -> Self {
        Self { from: None, to: None, sort: SortOrder::default(), limit: PAGE }
    }
}

impl ResultCursor {
    /// Writes the cursor. The last two members are constant; they only complete the form.
    pub fn write(&self) -> String {
        let text = ObjectWriter::new()
            .integer("timestamp", self.at.0)
            .text("ordinate", &self.ordinate.to_string())
            .raw("cron", "null")
            .text("sort", "ASC");
        base64url::encode(text.finish().as_bytes())
    }

    /// Reads a cursor; `None` if the text is not one.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = (text.len() <= CURSOR_MAX).then(|| base64url::decode(text).ok()).flatten()?;
        let json = ijson::read(&bytes).ok()?;
        let f = Fields::read(&json, "").ok()?;
        let at = f.integer("timestamp").ok()??;
        let place = number(f.text("ordinate").ok()??)?;
        Some(Self { at: Timestamp(at), ordinate: place })
    }
}

impl PageBound {
    fn read(text: &str) -> Option<Self> {
        let time = number(text).and_then(|millis| i64::try_from(millis).ok());
        match time {
            Some(millis) => Some(Self::Time(Timestamp(millis))),
            None => ResultCursor::read(text).map(Self::Cursor),
        }
    }

    /// Whether a result is later than this mark.
    fn is_before(self, result: ResultCursor) -> bool {
        match self {
            Self::Cursor(cursor) => cursor.ordinate < result.ordinate,
            Self::Time(time) => time < result.at,
        }
    }
}

impl Paging {
    /// Reads the query string. A limit without a value is ignored.
    pub fn read(raw: &str) -> Result<Self, Failure> {
        let query = Query::read(raw)?;
        let mark = |name| match query.text(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => PageBound::read(text)
                .map(Some)
                .ok_or_else(|| Failure::bad_request(format!("{name} {MARK}"))),
        };
        let sort = match query.text("sort").filter(|text| !text.is_empty()) {
            None | Some("ASC") => SortOrder::Ascending,
            Some("DESC") => SortOrder::Descending,
            Some(_) => return Err(Failure::bad_request("sort must be ASC or DESC")),
        };
        let limit = match query.text("limit") {
            None | Some("") => None,
            Some(_) => query.integer("limit", 1..=PAGE_MAX as i64)?,
        };
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE);
        Ok(Self { from: mark("from")?, to: mark("to")?, sort, limit })
    }

    /// Whether a result is in the requested range.
    pub fn contains(&self, result: ResultCursor) -> bool {
        self.from.is_none_or(|from| from.is_before(result))
            && self.to.is_none_or(|to| !to.is_before(result))
    }
}

/// Reads a number of digits only.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The part of the message unit's answer that a client reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AcceptedMessage {
    /// The id of the message.
    pub id: String,
}

/// 202: the message was evaluated and stored.
pub fn message_accepted_body(id: &str) -> String {
    processing("Processing DataItem", id)
}

/// 202: a known message was assigned again, which changes nothing.
pub fn assignment_accepted_body(id: ItemId) -> String {
    processing("Processing Assignment", &id.to_string())
}

/// 200: monitoring was switched on or off. It has no effect: every process here runs by itself.
pub fn monitor_body() -> String {
    ObjectWriter::new().text("message", "ok").finish()
}

/// 200: the process id of the market and the paths of its units.
pub fn overview_body(process: ItemId) -> String {
    ObjectWriter::new()
        .text("process", &process.to_string())
        .text("mu", "/clara/mu")
        .text("cu", "/clara/cu")
        .finish()
}

fn processing(message: &str, id: &str) -> String {
    ObjectWriter::with_capacity(96).text("message", message).text("id", id).finish()
}
