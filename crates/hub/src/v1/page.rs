//! Paged lists: each page has a cursor to the next.
//!
//! A cursor is a position, not a count to skip, so rows that are added in between neither repeat
//! nor hide others. It is opaque but not secret: a handler must still check that the caller may see
//! what it points to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rialto_config::suggest::nearest_key;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;
use schemars::JsonSchema;
use serde::Serialize;

/// Items per page: at most, and by default.
const LIMIT_MAX: i64 = 200;
const LIMIT_DEFAULT: i64 = 50;

/// Most numbers in a cursor; no list needs more.
const CURSOR_NUMBERS_MAX: usize = 8;

/// One page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<Cursor>,
}

/// Where to continue: the list's tag, and the numbers of the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    list: char,
    position: Vec<u64>,
}

impl Cursor {
    pub fn new(list: char, place: impl Into<Vec<u64>>) -> Self {
        Self { list, position: place.into() }
    }

    /// `None` for anything this hub did not encode.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain = std::str::from_utf8(&bytes).ok()?;
        let mut parts = plain.split('.');
        let mut list = parts.next()?.chars();
        let (Some(list), None) = (list.next(), list.next()) else { return None };
        let place: Option<Vec<u64>> =
            parts.take(CURSOR_NUMBERS_MAX).map(|part| part.parse().ok()).collect();
        let cursor = Self { list, position: place? };
        // Each position has one encoding: signs, leading zeros and excess numbers are rejected.
        (cursor.plain() == plain).then_some(cursor)
    }

    /// The cursor as text.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.plain())
    }

    fn plain(&self) -> String {
        self.position.iter().fold(self.list.to_string(), |text, number| format!("{text}.{number}"))
    }
}

rialto_protocols::value_schema!(Cursor, {"type": "string"});

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.encode())
    }
}

/// How many items the caller wants.
pub fn parse_limit(query: &Query) -> Result<usize, Malformed> {
    Ok(query.integer("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT) as usize)
}

/// The position in this list to continue from, as `N` numbers.
pub fn parse_cursor<const N: usize>(
    query: &Query,
    list: char,
) -> Result<Option<[u64; N]>, Malformed> {
    read_cursor(query.text("cursor"), list)
}

/// The same for the text of a cursor.
pub fn read_cursor<const N: usize>(
    text: Option<&str>,
    list: char,
) -> Result<Option<[u64; N]>, Malformed> {
    let Some(text) = text else { return Ok(None) };
    let cursor = Cursor::parse(text).filter(|cursor| cursor.list == list);
    let place = cursor.and_then(|cursor| cursor.position.try_into().ok());
    place.map(Some).ok_or_else(|| Malformed {
        field: "?cursor".to_owned(),
        message: "cursor does not belong to this list; use next_cursor of the previous page"
            .to_owned(),
    })
}

/// Parses a query and rejects unknown parameters: a misspelt one would be ignored silently, and the
/// response would answer a different question.
pub fn parse_query(raw: Option<&str>, known: &[&'static str]) -> Result<Query, Malformed> {
    let query = Query::read(raw.unwrap_or_default())?;
    let unknown = query.names().find(|name| !known.contains(name)).map(str::to_owned);
    match unknown {
        None => Ok(query),
        Some(name) => {
            let help = match nearest_key(&name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("expected one of {}", known.join(", ")),
            };
            let message = format!("{name} is an unknown parameter: {help}");
            Err(Malformed { field: format!("?{name}"), message })
        }
    }
}

/// Parses a parameter with a fixed set of values.
pub fn parse_choice<T: Copy>(
    query: &Query,
    name: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, Malformed> {
    let Some(given) = query.text(name) else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, means)| *means);
    found.map(Some).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("{name} must be one of: {}", words.join(", "));
        Malformed { field: format!("?{name}"), message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Query {
        Query::read(text).expect(text)
    }

    #[test]
    fn a_written_cursor_is_read_back_by_its_own_list_only() {
        let cursor = Cursor::new('r', [0, 50_000_000, 17, u64::MAX]);
        let text = serde_json::to_string(&cursor).expect("a cursor is text");
        let query = asked(&format!("cursor={}", text.trim_matches('"')));
        assert_eq!(parse_cursor(&query, 'r'), Ok(Some([0, 50_000_000, 17, u64::MAX])));
        assert!(parse_cursor::<4>(&query, 's').is_err());
        assert!(parse_cursor::<1>(&query, 'r').is_err());
        assert_eq!(parse_cursor::<1>(&asked("limit=1"), 'r'), Ok(None));
    }

    #[test]
    fn what_we_did_not_write_is_no_cursor() {
        let endless = format!("r{}", ".0".repeat(1_000));
        for plain in [
            "",
            "r",
            "r.",
            "r.+1",
            "r.01",
            "rr.1",
            "r.-1",
            "r.1 ",
            "r.18446744073709551616",
            &endless,
        ] {
            let query = asked(&format!("cursor={}", URL_SAFE_NO_PAD.encode(plain)));
            assert!(parse_cursor::<1>(&query, 'r').is_err(), "{plain}");
        }
        for text in ["", "%", "1", "ci4x%3D", "cg\n"] {
            assert!(parse_cursor::<1>(&asked(&format!("cursor={text}")), 'r').is_err(), "{text}");
        }
    }

    #[test]
    fn limits_stay_within_bounds() {
        assert_eq!(parse_limit(&asked("")), Ok(50));
        assert_eq!(parse_limit(&asked("limit=200")), Ok(200));
        for bad in ["0", "201", "-1", "ten", ""] {
            assert!(parse_limit(&asked(&format!("limit={bad}"))).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_parameter_that_is_not_known_is_refused_with_the_one_that_was_meant() {
        let refused = |raw: &str| parse_query(Some(raw), &["skill", "limit"]).expect_err(raw);
        let wrong = refused("limit=1&skll=sum");
        assert_eq!(wrong.field, "?skll");
        assert_eq!(wrong.message, "skll is an unknown parameter: did you mean skill?");
        assert_eq!(
            refused("q=1").message,
            "q is an unknown parameter: expected one of skill, limit"
        );
        assert!(parse_query(Some("limit=1&skill=sum"), &["skill", "limit"]).is_ok());
        assert!(parse_query(None, &[]).is_ok());
    }

    #[test]
    fn a_word_outside_the_list_is_told_the_list() {
        let words = [("live", 1), ("ended", 2)];
        assert_eq!(parse_choice(&asked("state=ended"), "state", &words), Ok(Some(2)));
        let refusal =
            parse_choice(&asked("state=dead"), "state", &words).expect_err("no such word");
        assert_eq!(refusal.message, "state must be one of: live, ended");
    }
}
