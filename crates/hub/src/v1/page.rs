//! Pages: lists are given out in parts, each with a cursor to the next.
//!
//! A cursor says where to go on, never how many to skip, so rows that arrive in between neither
//! repeat nor hide others. It is opaque but no secret: whoever follows one must still check that
//! what it leads to is the caller's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;
use serde::Serialize;

use crate::config::suggest::nearest;

/// Items of one page, at most and when nothing is said.
const LIMIT_MAX: i64 = 200;
const LIMIT: i64 = 50;

/// Numbers that mark a place, at most; no list of ours needs as many.
const PLACE_MAX: usize = 8;

/// One page.
#[derive(Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<Cursor>,
}

/// Where to go on: which list it is for, and the numbers that mark the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    list: char,
    place: Vec<u64>,
}

impl Cursor {
    pub fn new(list: char, place: impl Into<Vec<u64>>) -> Self {
        Self { list, place: place.into() }
    }

    /// `None` for anything this hub did not write.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain = std::str::from_utf8(&bytes).ok()?;
        let mut parts = plain.split('.');
        let mut list = parts.next()?.chars();
        let (Some(list), None) = (list.next(), list.next()) else { return None };
        let place: Option<Vec<u64>> = parts.take(PLACE_MAX).map(|part| part.parse().ok()).collect();
        let cursor = Self { list, place: place? };
        // One place has one text: signs, leading zeros and numbers without end are not ours.
        (cursor.plain() == plain).then_some(cursor)
    }

    /// As it is given out.
    pub fn write(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.plain())
    }

    fn plain(&self) -> String {
        self.place.iter().fold(self.list.to_string(), |text, number| format!("{text}.{number}"))
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.write())
    }
}

/// How many items the caller wants.
pub fn limit(query: &Query) -> Result<usize, Malformed> {
    Ok(query.integer("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT) as usize)
}

/// Where the caller goes on in this list, as so many numbers.
pub fn place<const N: usize>(query: &Query, list: char) -> Result<Option<[u64; N]>, Malformed> {
    let Some(text) = query.text("cursor") else { return Ok(None) };
    let cursor = Cursor::read(text).filter(|cursor| cursor.list == list);
    let place = cursor.and_then(|cursor| cursor.place.try_into().ok());
    place.map(Some).ok_or_else(|| Malformed {
        field: "?cursor".to_owned(),
        message: "cursor does not belong to this list".to_owned(),
    })
}

/// The query of a URL, which may have these parameters and no others: one that is written wrong
/// would be left out without a word, and the answer would be to another question.
pub fn query(raw: Option<&str>, known: &[&'static str]) -> Result<Query, Malformed> {
    let query = Query::read(raw.unwrap_or_default())?;
    let unknown = query.names().find(|name| !known.contains(name)).map(str::to_owned);
    match unknown {
        None => Ok(query),
        Some(name) => {
            let help = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there is {}", known.join(", ")),
            };
            let message = format!("{name} is an unknown field: {help}");
            Err(Malformed { field: format!("?{name}"), message })
        }
    }
}

/// One of several words.
pub fn choice<T: Copy>(
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
        assert_eq!(place(&query, 'r'), Ok(Some([0, 50_000_000, 17, u64::MAX])));
        assert!(place::<4>(&query, 's').is_err());
        assert!(place::<1>(&query, 'r').is_err());
        assert_eq!(place::<1>(&asked("limit=1"), 'r'), Ok(None));
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
            assert!(place::<1>(&query, 'r').is_err(), "{plain}");
        }
        for text in ["", "%", "1", "ci4x%3D", "cg\n"] {
            assert!(place::<1>(&asked(&format!("cursor={text}")), 'r').is_err(), "{text}");
        }
    }

    #[test]
    fn limits_stay_within_bounds() {
        assert_eq!(limit(&asked("")), Ok(50));
        assert_eq!(limit(&asked("limit=200")), Ok(200));
        for bad in ["0", "201", "-1", "ten", ""] {
            assert!(limit(&asked(&format!("limit={bad}"))).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_parameter_that_is_not_known_is_refused_with_the_one_that_was_meant() {
        let refused = |raw: &str| query(Some(raw), &["skill", "limit"]).expect_err(raw);
        let wrong = refused("limit=1&skll=sum");
        assert_eq!(wrong.field, "?skll");
        assert_eq!(wrong.message, "skll is not known here: did you mean skill?");
        assert_eq!(refused("q=1").message, "q is not known here: there is skill, limit");
        assert!(query(Some("limit=1&skill=sum"), &["skill", "limit"]).is_ok());
        assert!(query(None, &[]).is_ok());
    }

    #[test]
    fn a_word_outside_the_list_is_told_the_list() {
        let words = [("live", 1), ("ended", 2)];
        assert_eq!(choice(&asked("state=ended"), "state", &words), Ok(Some(2)));
        let refusal = choice(&asked("state=dead"), "state", &words).expect_err("no such word");
        assert_eq!(refusal.message, "state must be one of: live, ended");
    }
}
