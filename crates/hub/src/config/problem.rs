//! What can be wrong with a configuration, told so that the next try succeeds.

/// Why the configuration cannot be used. Nothing starts on half of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is missing or cannot be opened.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The file as it was named.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The file is no TOML.
    #[error("{path} is not valid TOML: {why}")]
    NotToml {
        /// The file as it was named.
        path: String,
        /// Line, column and what the parser expected there.
        why: String,
    },
    /// No setting has this name. The value is left out on purpose: it may be a secret that was put
    /// in the wrong place.
    #[error("unknown key `{key}` ({origin}); {}", hint(.suggestion.as_deref()))]
    UnknownKey {
        /// The key as it was given.
        key: String,
        /// The layer it was given in.
        origin: String,
        /// The nearest known name, spelled as that layer spells it.
        suggestion: Option<String>,
    },
    /// The setting exists, the value does not fit it.
    #[error("`{key}` ({origin}): {found}; expected {expected}, for example `{example}`")]
    BadValue {
        /// The key.
        key: String,
        /// The layer the value was given in.
        origin: String,
        /// The value, and what is wrong with it.
        found: String,
        /// What would have fitted.
        expected: String,
        /// A line that works, written as that layer writes it.
        example: String,
    },
}

/// Everything that is wrong with a configuration, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl std::error::Error for Problems {}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

fn hint(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`rialto config show` lists every key".to_owned(),
    }
}
