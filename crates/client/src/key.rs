//! A key, which authenticates a caller to a server. `Debug` does not print it.

use std::fmt;

/// An agent's or operator's key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Creates a key from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key's text, to store it or send it to its server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_revealed_only_on_purpose() {
        let key = Key::new("ca_secret");
        assert_eq!(key.reveal(), "ca_secret");
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}
