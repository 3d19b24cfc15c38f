//! Where a value came from, and how one writes a value there.

use std::fmt;

/// What an environment variable's name begins with to be configuration.
const ENV_PREFIX: &str = "RIALTO_";
/// What stands between section and key in it, since keys have single underscores of their own.
const ENV_DOT: &str = "__";
/// Keys that have a flag of their own; any other is given with `--set`.
const FLAGS: [(&str, &str); 3] =
    [("http.listen", "--listen"), ("http.public_url", "--public-url"), ("data.dir", "--data")];

/// The layer a value was given in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// Nobody set it, and `rialto dev` has its own default.
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
    pub fn flag(key: &str) -> Self {
        match FLAGS.iter().find(|(of, _)| *of == key) {
            Some((_, flag)) => Self::Flag((*flag).to_owned()),
            None => Self::Flag(format!("--set {key}")),
        }
    }

    /// How one would give `key` a value in this layer, the value being `text` on a command line and
    /// `toml` in a file.
    pub fn example(&self, key: &str, text: &str, toml: &str) -> String {
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

    /// What `key` is called in this layer.
    pub fn spelling(&self, key: &str) -> String {
        match self {
            Self::Env(_) => env_variable(key),
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

/// The key that an environment variable is about; `None` when it is no configuration at all, as
/// `RIALTO_HUB`, `RIALTO_KEY` and everything else without a double underscore.
pub fn env_key(variable: &str) -> Option<String> {
    let (section, key) = variable.strip_prefix(ENV_PREFIX)?.split_once(ENV_DOT)?;
    let key = format!("{section}.{key}");
    // Only the upper-case spelling counts, so that no two variables can mean one key. Any other
    // becomes a key that cannot exist, and is refused with the right spelling suggested.
    let shouted = !variable.contains(char::is_lowercase);
    Some(if shouted { key.to_lowercase() } else { key.to_uppercase() })
}

fn env_variable(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replacen('.', ENV_DOT, 1).to_uppercase())
}
