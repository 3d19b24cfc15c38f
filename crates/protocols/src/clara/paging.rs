//! The paging of results (`GET /clara/cu/results/{pid}`), and the position of each result.

use rialto_core::time::Timestamp;

use super::failure::Failure;
use super::{PAGE, PAGE_MAX};
use crate::kit::base64url;
use crate::kit::fields::Fields;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;

/// The longest cursor that is read.
const CURSOR_MAX: usize = 256;
/// The error about an invalid `from` or `to`.
const MARK: &str = "must be a cursor or milliseconds since 1970";

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
