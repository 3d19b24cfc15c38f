//! Where a value came from, and how to write a value in that layer.

use std::fmt;

/// Prefix of environment variables that are configuration.
const ENV_PREFIX: &str = "RIALTO_";
/// Separates section and key in a variable, because keys contain single underscores.
const ENV_DOT: &str = "__";
/// Keys that have their own flag; all others are set with `--set`.
const FLAGS: [(&str, &str); 4] = [
    ("http.listen", "--listen"),
    ("http.public_url", "--public-url"),
    ("data.dir", "--data"),
    ("store.database_url", "--database-url"),
];

/// The layer a value was given in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No layer sets it.
    Default,
    /// No layer sets it, and `rialto dev` has its own default.
    DevDefault,
    /// A line of the configuration file.
    File { name: String, line: usize },
    /// An environment variable.
    Env(String),
    /// A command line flag.
    Flag(String),
}

impl Origin {
    /// The flag that sets `key`.
    pub fn from_flag(key: &str) -> Self {
        match FLAGS.iter().find(|(of, _)| *of == key) {
            Some((_, flag)) => Self::Flag((*flag).to_owned()),
            None => Self::Flag(format!("--set {key}")),
        }
    }

    /// An example line that sets `key` in this layer: `text` is the value on a command line, `toml`
    /// the value in a file.
    pub fn example_line(&self, key: &str, text: &str, toml: &str) -> String {
        match self {
            Self::Env(variable) => format!("{variable}={text}"),
            Self::Flag(flag) if flag.starts_with("--set") => format!("{flag}={text}"),
            Self::Flag(flag) => format!("{flag} {text}"),
            Self::Default | Self::DevDefault | Self::File { .. } => {
                let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
                format!("{name} = {toml}")
            }
        }
    }

    /// The name of `key` in this layer.
    pub fn key_name(&self, key: &str) -> String {
        match self {
            Self::Env(_) => variable_of_key(key),
            _ => key.to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::DevDefault => f.write_str("default (dev)"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Env(variable) => write!(f, "env {variable}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// The key that an environment variable sets. `None` if it is not configuration, such as
/// `RIALTO_HUB`, `RIALTO_KEY` and any other name without a double underscore.
pub fn key_of_variable(variable: &str) -> Option<String> {
    let (section, key) = variable.strip_prefix(ENV_PREFIX)?.split_once(ENV_DOT)?;
    let key = format!("{section}.{key}");
    // Only the upper-case spelling is valid, so that no two variables can set the same key. Any
    // other spelling becomes a key that cannot exist and is rejected with the right spelling
    // suggested.
    let shouted = !variable.contains(char::is_lowercase);
    Some(if shouted { key.to_lowercase() } else { key.to_uppercase() })
}

fn variable_of_key(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replacen('.', ENV_DOT, 1).to_uppercase())
}
