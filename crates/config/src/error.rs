//! Errors in a configuration. Each says what is wrong and what to write instead.

/// Why the configuration cannot be used. The hub never starts with a partial one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or cannot be opened.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The path as given.
        path: String,
        /// The error of the operating system.
        why: String,
    },
    /// The file is not valid TOML.
    #[error("{path} is not valid TOML: {why}")]
    InvalidToml {
        /// The path as given.
        path: String,
        /// Line, column and what the parser expected there.
        why: String,
    },
    /// No setting has this name. The value is omitted on purpose: it may be a secret in the wrong
    /// place.
    #[error("unknown key `{key}` ({origin}); {}", hint(.suggestion.as_deref()))]
    UnknownKey {
        /// The key as given.
        key: String,
        /// The layer it was given in.
        origin: String,
        /// The nearest known key, as it is written in that layer.
        suggestion: Option<String>,
    },
    /// The setting exists, but the value is invalid.
    #[error("`{key}` ({origin}): {found}; expected {expected}, for example `{example}`")]
    InvalidValue {
        /// The key.
        key: String,
        /// The layer the value was given in.
        origin: String,
        /// The value, and what is wrong with it.
        found: String,
        /// What a valid value is.
        expected: String,
        /// A valid line, as it is written in that layer.
        example: String,
    },
}

impl ConfigError {
    /// The key it is about.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Unreadable { .. } | Self::InvalidToml { .. } => None,
            Self::UnknownKey { key, .. } | Self::InvalidValue { key, .. } => Some(key),
        }
    }
}

/// All errors of a configuration, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl std::fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ConfigError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(problem: ConfigError) -> Self {
        Self(vec![problem])
    }
}

fn hint(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`rialto config show` lists every key".to_owned(),
    }
}
