//! Which results are asked for (`GET /clara/cu/results/{pid}`), and where each of them stands.

use rialto_core::time::Timestamp;

use super::failure::Failure;
use super::{PAGE, PAGE_MAX};
use crate::kit::base64url;
use crate::kit::fields::Fields;
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::kit::query::Query;

/// The longest cursor worth reading.
const CURSOR_MAX: usize = 256;
/// What may stand at a border.
const MARK: &str = "must be a cursor or milliseconds since 1970";

/// The place of a result among all others. Its text has the form the real compute units give theirs,
/// so a client's old cursor from one of them is understood as well as ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// When the result came to be.
    pub at: Timestamp,
    /// How many came before; this alone decides.
    pub place: u64,
}

/// A border of the results asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A result.
    Cursor(Cursor),
    /// A time.
    Time(Timestamp),
}

/// Which comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The oldest.
    #[default]
    Ascending,
    /// The newest.
    Descending,
}

/// Which results are asked for. The borders are the same in both orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Only what is later than this.
    pub from: Option<Mark>,
    /// Nothing that is later than this.
    pub to: Option<Mark>,
    /// Which comes first.
    pub sort: Sort,
    /// How many at most.
    pub limit: usize,
}

impl Default for Paging {
    fn default() -> Self {
        Self { from: None, to: None, sort: Sort::default(), limit: PAGE }
    }
}

impl Cursor {
    /// Writes the place. The last two members are always the same: they only complete the form.
    pub fn write(&self) -> String {
        let text = Object::new()
            .whole("timestamp", self.at.0)
            .text("ordinate", &self.place.to_string())
            .raw("cron", "null")
            .text("sort", "ASC");
        base64url::encode(text.finish().as_bytes())
    }

    /// Reads a place; `None` if the text is none.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = (text.len() <= CURSOR_MAX).then(|| base64url::decode(text).ok()).flatten()?;
        let json = ijson::read(&bytes).ok()?;
        let f = Fields::of(&json, "").ok()?;
        let at = f.integer("timestamp").ok()??;
        let place = number(f.text("ordinate").ok()??)?;
        Some(Self { at: Timestamp(at), place })
    }
}

impl Mark {
    fn read(text: &str) -> Option<Self> {
        let time = number(text).and_then(|millis| i64::try_from(millis).ok());
        match time {
            Some(millis) => Some(Self::Time(Timestamp(millis))),
            None => Cursor::read(text).map(Self::Cursor),
        }
    }

    /// Whether a result stands after this border.
    fn is_before(self, result: Cursor) -> bool {
        match self {
            Self::Cursor(cursor) => cursor.place < result.place,
            Self::Time(time) => time < result.at,
        }
    }
}

impl Paging {
    /// Reads what stands after the `?`. A border without a value is none.
    pub fn read(raw: &str) -> Result<Self, Failure> {
        let query = Query::read(raw)?;
        let mark = |name| match query.text(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => Mark::read(text)
                .map(Some)
                .ok_or_else(|| Failure::bad_request(format!("{name} {MARK}"))),
        };
        let sort = match query.text("sort").filter(|text| !text.is_empty()) {
            None | Some("ASC") => Sort::Ascending,
            Some("DESC") => Sort::Descending,
            Some(_) => return Err(Failure::bad_request("sort must be ASC or DESC")),
        };
        let limit = match query.text("limit") {
            None | Some("") => None,
            Some(_) => query.integer("limit", 1..=PAGE_MAX as i64)?,
        };
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE);
        Ok(Self { from: mark("from")?, to: mark("to")?, sort, limit })
    }

    /// Whether a result is among those asked for, page by page.
    pub fn contains(&self, result: Cursor) -> bool {
        self.from.is_none_or(|from| from.is_before(result))
            && self.to.is_none_or(|to| !to.is_before(result))
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
