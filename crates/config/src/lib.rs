//! How settings are read: flags over environment over a file over the defaults of a profile.
//!
//! This crate knows no setting. The hub and each protocol resolve their own keys, each with its
//! type and its default; what no one resolved is an unknown key.

mod error;
mod file;
mod layers;
#[macro_use]
mod macros;
mod duration;
mod numbers;
mod origin;
pub mod suggest;
mod value;

pub use duration::{ConfigDuration, NonZeroDuration};
pub use error::{ConfigError, ConfigErrors};
pub use file::ConfigFile;
pub use layers::{Defaults, Layers};
pub use numbers::{ByteSize, Limit};
pub use toml::de::DeValue as TomlValue;
pub use value::{InvalidValue, Setting, parse_inline_toml, quote_toml};

use serde::Serialize;

/// Which set of defaults the hub starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `rialto serve`: everything is closed until the operator opens it.
    Serve,
    /// `rialto dev`: a temporary hub on the local machine, open for trying things out.
    Dev,
}

/// One line of `rialto config show --origin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectiveSetting {
    /// The key, such as `http.listen`.
    pub key: &'static str,
    /// The value in force as it is written in `rialto.toml`, or `unset`.
    pub value: String,
    /// The layer it came from: `default`, `default (dev)`, `rialto.toml:12`, `env
    /// RIALTO_HTTP__LISTEN` or `flag --listen`.
    pub origin: String,
}
