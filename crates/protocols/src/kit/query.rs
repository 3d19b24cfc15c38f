//! Reads a URL's query string, with the same errors as a body.

use std::fmt::Display;
use std::ops::RangeInclusive;

use percent_encoding::percent_decode_str;
use rialto_core::money::Credits;
use rialto_core::number;

use super::fields::Malformed;

/// How many parameters one query may have.
pub const PAIRS_MAX: usize = 64;

/// The parameters of a query; each name occurs once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the part after the `?` of a URL, still percent-encoded. A parameter without `=` counts
    /// as given and empty. A `%` that encodes nothing stands for itself, as in browsers.
    pub fn read(raw: &str) -> Result<Self, Malformed> {
        let mut query = Self::default();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            if query.pairs.len() == PAIRS_MAX {
                return Err(whole(format!("has more than {PAIRS_MAX} parameters")));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| whole("has a name that is not UTF-8"))?;
            let value = decode(value).ok_or_else(|| fail(&name, "is not UTF-8"))?;
            if query.text(&name).is_some() {
                return Err(fail(&name, "is given more than once"));
            }
            query.pairs.push((name, value));
        }
        Ok(query)
    }

    /// The names that were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| name.as_str())
    }

    /// The parameter as it was given; an empty value counts as given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// An integer inside `range`.
    pub fn integer(
        &self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Malformed> {
        self.parsed(name, |text| {
            let value = number::parse_integer(text).ok();
            value.filter(|value| range.contains(value)).ok_or_else(|| {
                format!("must be a whole number from {} to {}", range.start(), range.end())
            })
        })
    }

    /// An amount with at most `decimals` decimals by value.
    pub fn credits(&self, name: &str, decimals: usize) -> Result<Option<Credits>, Malformed> {
        self.parsed(name, |text| Credits::parse(text, decimals))
    }

    /// A score from 0 to 100, in millionths.
    pub fn score(&self, name: &str) -> Result<Option<i64>, Malformed> {
        const MAX: i64 = 100_000_000;
        self.parsed(name, |text| {
            // Not money, but parsed the same way: decimal text into exact millionths.
            let millionths = Credits::parse(text, 6).ok().map(Credits::micros);
            millionths
                .filter(|millionths| *millionths <= MAX)
                .ok_or("must be a number from 0 to 100 with at most 6 decimals")
        })
    }

    fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Malformed> {
        self.text(name).map(parse).transpose().map_err(|error| fail(name, error))
    }
}

/// Percent-decodes one name or value; `None` when the bytes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    // Plus signs first: `%2B` means a plus and must not become a space afterwards.
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|decoded| decoded.into_owned())
}

/// An error about one parameter.
fn fail(name: &str, message: impl Display) -> Malformed {
    Malformed { field: format!("?{name}"), message: format!("{name} {message}") }
}

/// An error about the query as a whole.
fn whole(message: impl Display) -> Malformed {
    Malformed { field: "?".to_owned(), message: format!("query {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    fn query(raw: &str) -> Query {
        Query::read(raw).expect(raw)
    }

    fn malformed(field: &str, message: &str) -> Malformed {
        Malformed { field: field.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn parameters_are_decoded() {
        let query = query("skill=analyze+text%2B1&caf%C3%A9=%E7%95%8C&&flag&a==b&e=");
        assert_eq!(query.text("skill"), Some("analyze text+1"));
        assert_eq!(query.text("café"), Some("界"));
        assert_eq!(query.text("flag"), Some(""));
        assert_eq!(query.text("a"), Some("=b"));
        assert_eq!(query.text("e"), Some(""));
        assert_eq!(query.text("b"), None);
        assert_eq!(Query::read("100%&x=%zz").expect("percent signs").text("x"), Some("%zz"));
        assert_eq!(Query::read(""), Ok(Query::default()));
    }

    #[test]
    fn a_parameter_may_be_given_once_however_it_is_written() {
        let refusal = malformed("?limit", "limit is given more than once");
        assert_eq!(Query::read("limit=1&limit=1"), Err(refusal.clone()));
        assert_eq!(Query::read("limit=1&%6Cimit=2"), Err(refusal));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert_eq!(Query::read("q=%ff"), Err(malformed("?q", "q is not UTF-8")));
        assert_eq!(Query::read("%C3=1"), Err(malformed("?", "query has a name that is not UTF-8")));
    }

    #[test]
    fn a_query_has_a_limited_number_of_parameters() {
        let raw = |count: usize| (0..count).map(|n| format!("p{n}=1&")).collect::<String>();
        assert_eq!(query(&raw(PAIRS_MAX)).text("p63"), Some("1"));
        let refusal = malformed("?", "query has more than 64 parameters");
        assert_eq!(Query::read(&raw(PAIRS_MAX + 1)), Err(refusal));
    }

    #[test]
    fn integers_stay_inside_their_range() {
        let limit = |raw: &str| query(raw).integer("limit", 1..=200);
        assert_eq!(limit("limit=1"), Ok(Some(1)));
        assert_eq!(limit("limit=200"), Ok(Some(200)));
        assert_eq!(limit("limit=1.0"), Ok(Some(1)));
        assert_eq!(limit("limit=1e2"), Ok(Some(100)));
        assert_eq!(limit("x=1"), Ok(None));
        let refusal = malformed("?limit", "limit must be a whole number from 1 to 200");
        for value in
            ["0", "201", "-1", "%2B5", "+5", "5+", "1.5", "1e3", "", "ten", "99999999999999999999"]
        {
            assert_eq!(limit(&format!("limit={value}")), Err(refusal.clone()), "{value}");
        }
    }

    #[test]
    fn amounts_and_scores_are_exact() {
        let query = query(
            "price=0.29&fine=0.005&low=0.000001&top=1e2&over=100.000001&much=1e9&neg=-1&tiny=1e-7\
             &quoted=%225%22",
        );
        assert_eq!(query.credits("price", 2), Ok(Some(Credits::from_micros(290_000))));
        assert_eq!(query.credits("none", 2), Ok(None));
        let refusal = malformed("?fine", "fine has more than 2 decimals");
        assert_eq!(query.credits("fine", 2), Err(refusal));
        assert_eq!(query.score("price"), Ok(Some(290_000)));
        assert_eq!(query.score("low"), Ok(Some(1)));
        assert_eq!(query.score("top"), Ok(Some(100_000_000)));
        assert_eq!(query.score("none"), Ok(None));
        for name in ["over", "much", "neg", "tiny", "quoted"] {
            let message = format!("{name} must be a number from 0 to 100 with at most 6 decimals");
            assert_eq!(query.score(name), Err(malformed(&format!("?{name}"), &message)));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_comes_back(name in any::<String>(), value in any::<String>()) {
            let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let raw = format!("{}={}", encode(&name), encode(&value));
            let query = Query::read(&raw).expect("an encoded pair");
            prop_assert_eq!(query.text(&name), Some(value.as_str()));
        }

        #[test]
        fn no_query_makes_the_reader_panic(raw in "([a-c%=&+.0-9é]|%[0-9a-f]{2}){0,60}") {
            if let Ok(query) = Query::read(&raw) {
                let _ = (query.integer("a", 0..=9), query.credits("a", 2), query.score("a"));
            }
        }
    }
}
