//! Headers of an outgoing call, checked so that no value can end its line or redirect the request.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::guard::TargetError;

/// Headers that frame or route a request; only the client writes them.
const RESERVED: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header of this name can be sent.
pub fn can_send_header(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !RESERVED.contains(&name.as_str()))
}

/// Converts pairs into headers; a single one that cannot be sent refuses them all.
pub(super) fn parse_headers(pairs: Vec<(String, String)>) -> Result<HeaderMap, TargetError> {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| TargetError::InvalidHeader)?;
        if RESERVED.contains(&name.as_str()) {
            return Err(TargetError::InvalidHeader);
        }
        // `from_str` refuses line ends and other controls, but accepts bytes beyond ASCII, which
        // receivers read in different ways.
        let value = HeaderValue::from_str(&value).ok().filter(|_| value.is_ascii());
        let value = value.ok_or(TargetError::InvalidHeader)?;
        headers.try_append(name, value).map_err(|_| TargetError::InvalidHeader)?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> Result<HeaderMap, TargetError> {
        parse_headers(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn ordinary_headers_pass_unchanged() {
        let headers = one("Webhook-Id", "msg_1").expect("a good header");
        assert_eq!(headers["webhook-id"], "msg_1");
        assert!(one("content-type", "application/json; charset=utf-8").is_ok());
    }

    #[test]
    fn values_that_would_end_their_line_are_refused() {
        for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\u{7f}", "é", "a\u{2028}b"] {
            assert_eq!(one("x-note", value).err(), Some(TargetError::InvalidHeader), "{value:?}");
        }
    }

    #[test]
    fn names_that_are_no_names_or_belong_to_the_client_are_refused() {
        assert!(can_send_header("X-Note"));
        for name in ["", "x y", "x:", "x\r\n", "é", "Host", "Content-Length", "Transfer-Encoding"]
        {
            assert!(!can_send_header(name), "{name:?}");
            assert_eq!(one(name, "1").err(), Some(TargetError::InvalidHeader), "{name:?}");
        }
    }
}
