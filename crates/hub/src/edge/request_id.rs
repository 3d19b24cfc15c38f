//! The id of a request, used in its response, log lines and errors.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of requests and responses that carries the id.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id a caller may choose.
const LENGTH_MAX: usize = 128;

/// Generates ids for requests without one: UUIDs, except in tests.
pub type IdSource = Arc<dyn Fn() -> String + Send + Sync>;

/// A request's id, chosen by the caller or generated. Handlers find it in the extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id if it is safe to log; else one from `source`.
    pub fn from_headers(headers: &HeaderMap, source: &IdSource) -> Self {
        let chosen = headers.get(HEADER).filter(|value| is_valid_id(value)).cloned();
        // A source that generates invalid ids is a bug, but no reason to fail requests.
        let make = || HeaderValue::try_from(source()).ok().filter(is_valid_id);
        Self(chosen.or_else(make).unwrap_or(HeaderValue::from_static("unknown")))
    }

    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or("unknown")
    }

    pub fn header_value(&self) -> HeaderValue {
        self.0.clone()
    }

    pub fn into_header_value(self) -> HeaderValue {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_valid_id(value: &HeaderValue) -> bool {
    (1..=LENGTH_MAX).contains(&value.len())
        && value.as_bytes().iter().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(chosen: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(chosen).expect("a header value"));
        let source: IdSource = Arc::new(|| "made".to_owned());
        RequestId::from_headers(&headers, &source).to_string()
    }

    #[test]
    fn only_short_visible_ids_are_echoed() {
        assert_eq!(id(b"abc-123~"), "abc-123~");
        assert_eq!(id(&[b'a'; 128]), "a".repeat(128));
        for chosen in [&[b'a'; 129][..], b"", b"a b", b"a\tb", "ü".as_bytes()] {
            assert_eq!(id(chosen), "made", "{chosen:?}");
        }
    }

    #[test]
    fn without_one_the_source_is_asked() {
        let source: IdSource = Arc::new(|| "made".to_owned());
        assert_eq!(RequestId::from_headers(&HeaderMap::new(), &source).as_str(), "made");
        let broken: IdSource = Arc::new(|| "two\nlines".to_owned());
        assert_eq!(RequestId::from_headers(&HeaderMap::new(), &broken).as_str(), "unknown");
    }
}
