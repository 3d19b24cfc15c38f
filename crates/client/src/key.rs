//! A key: what proves to a server who is calling. Never printed by accident.

use std::fmt;

/// An agent's or operator's key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key itself, for whoever keeps it or shows it to its server.
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
