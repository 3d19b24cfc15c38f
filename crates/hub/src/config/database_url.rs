//! The URL of a database. It may contain a password, which is never shown.

use std::fmt;

use rialto_config::{InvalidValue, Setting, TomlValue, quote_toml};

/// Shown instead of a password.
const HIDDEN: &str = "***";

/// A `postgres` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL with its password.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Without the password.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, query) = match self.0.split_once('?') {
            Some((whole, query)) => (whole, Some(query)),
            None => (self.0.as_str(), None),
        };
        let (scheme, rest) = whole.split_once("://").unwrap_or(("", whole));
        // A password may contain `@` and `/`, even though it should not.
        match rest.rsplit_once('@') {
            Some((user, host)) => {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                let hidden = if password.is_empty() { "" } else { ":***" };
                write!(f, "{scheme}://{name}{hidden}@{host}")?;
            }
            None => write!(f, "{scheme}://{rest}")?,
        }
        let Some(query) = query else { return Ok(()) };
        let shown = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.eq_ignore_ascii_case("password") => format!("{name}={HIDDEN}"),
            _ => pair.to_owned(),
        });
        write!(f, "?{}", shown.collect::<Vec<_>>().join("&"))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Setting for DatabaseUrl {
    const EXAMPLE: &'static str = "postgres://rialto@db.example/rialto";

    fn expected() -> String {
        "a postgres URL".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        // The value is not repeated, because it may contain a password.
        let wrong = |why: &str| InvalidValue(format!("the URL {why}"));
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        match rest {
            None => Err(wrong("begins with neither postgres:// nor postgresql://")),
            Some("") => Err(wrong("names no host and no database")),
            Some(_) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(wrong("has characters that must be percent-encoded"))
            }
            Some(_) => Ok(Self(text.to_owned())),
        }
    }

    fn from_toml(value: &TomlValue<'_>) -> Result<Self, InvalidValue> {
        let text = value.as_str().ok_or_else(|| InvalidValue("the URL is not text".to_owned()))?;
        Self::from_text(text)
    }

    fn to_toml(&self) -> String {
        quote_toml(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgres://db/rialto", "postgres://db/rialto"),
            ("postgres://ada@db:5432/rialto", "postgres://ada@db:5432/rialto"),
            ("postgresql://ada:s3cret@db/rialto", "postgresql://ada:***@db/rialto"),
            ("postgres://ada:s3c:r@et/@db/rialto?a=b", "postgres://ada:***@db/rialto?a=b"),
            (
                "postgres:///rialto?host=/run&Password=s3cret&user=ada",
                "postgres:///rialto?host=/run&Password=***&user=ada",
            ),
        ] {
            let url = DatabaseUrl::from_text(text).expect(text);
            assert_eq!(url.expose(), text);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
            assert_eq!(url.to_toml(), format!("\"{shown}\""));
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_it() {
        for text in ["", "mysql://ada:s3cret@db", "postgres://", "postgres://ada:s3 cret@db"] {
            let InvalidValue(why) = DatabaseUrl::from_text(text).expect_err(text);
            assert!(why.starts_with("the URL ") && !why.contains("s3"), "{why}");
        }
    }
}
