//! Hub addresses: two URLs of one hub are one address.

use reqwest::Url;

use super::super::error::CliError;

/// Validates a hub URL and returns it in normalized form.
pub fn normalize(text: &str) -> Result<String, CliError> {
    let fine = |url: &Url| {
        let plain = url.query().is_none() && url.fragment().is_none();
        let open = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain && open
    };
    match Url::parse(text).ok().filter(fine) {
        Some(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        None => {
            let message = format!("{text:?} is not a hub URL");
            Err(CliError::usage(message, "write it like http://127.0.0.1:7425"))
        }
    }
}

/// Whether both are URLs of one hub. An invalid URL matches nothing.
pub fn is_same_hub(one: &str, other: &str) -> bool {
    matches!((normalize(one), normalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Host, port and path, without the scheme.
pub fn without_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hub_may_be_written_in_several_ways() {
        assert!(is_same_hub("http://Hub.example:80/", "HTTP://hub.example"));
        assert!(is_same_hub("http://h/a/", "http://h/a"));
        for other in ["https://h", "http://h:81", "http://h/a", "http://h.", "h", ""] {
            assert!(!is_same_hub("http://h", other), "{other}");
        }
        assert!(!is_same_hub("h", "h"), "invalid URLs never match");
    }

    #[test]
    fn an_address_is_a_web_address_and_nothing_more() {
        assert_eq!(normalize("http://h:7425/").expect("fine"), "http://h:7425");
        for not in ["h:7425", "ftp://h", "http://", "http://a:b@h", "http://h?x", "http://h#x"] {
            assert!(normalize(not).is_err(), "{not}");
        }
    }
}
