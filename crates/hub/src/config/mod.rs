//! Configuration: flags over environment over `rialto.toml` over the defaults of a profile.
//!
//! Only `schema` names keys; everything else here is derived from it. What a value means to the hub
//! is decided where it is used, not here.

mod choices;
mod duration;
mod error;
mod file;
mod layers;
mod names;
mod numbers;
mod origin;
mod schema;
pub(crate) mod suggest;
mod topics;
mod value;

#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod tests;

pub use choices::{Access, Backend, DiscoverEndpoint, FailedStatus, Level, LogFormat, Offline};
pub use duration::{ConfigDuration, NonZeroDuration};
pub use error::{ConfigError, ConfigErrors};
pub use names::{BaseUrl, HostName, ProcessId, RelayHost};
pub use numbers::{ByteSize, Limit};
pub use schema::*;
pub use topics::{TopicMap, Topics};

use std::path::Path;

use file::ConfigFile;
use layers::Layers;
use serde::Serialize;

/// The file that is read when no file is named.
const FILE_NAME: &str = "rialto.toml";

/// Which set of defaults the hub starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `rialto serve`: everything is closed until the operator opens it.
    Serve,
    /// `rialto dev`: a temporary hub on the local machine, open for trying things out.
    Dev,
}

/// A configuration, and where each of its values came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedConfig {
    /// The values in force.
    pub config: Config,
    rows: Vec<EffectiveSetting>,
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

impl LoadedConfig {
    /// Reads all layers. If no `file` is named, `./rialto.toml` is read if it exists. `flags` are
    /// pairs of key and value, such as `("http.listen", "0.0.0.0:7425")`.
    ///
    /// A value that a higher layer overrides is checked all the same, so that a flag cannot hide an
    /// invalid file.
    pub fn load(
        posture: Profile,
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigErrors> {
        let source = match file {
            Some(named) => Some(ConfigFile::read(named)?),
            None => ConfigFile::read_if_exists(Path::new(FILE_NAME))?,
        };
        Self::from_layers(posture, source.as_ref(), env, flags)
    }

    /// Every key in force, in the order of `rialto.example.toml`.
    pub fn settings(&self) -> &[EffectiveSetting] {
        &self.rows
    }

    fn from_layers(
        posture: Profile,
        source: Option<&ConfigFile>,
        env: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigErrors> {
        let mut layers = Layers::new(posture);
        if let Some(source) = source {
            layers.add_file(source);
        }
        layers.add_env(env);
        layers.add_flags(flags);
        let config = Config::resolve(&mut layers);
        let (rows, mut problems) = layers.finish();
        problems.extend(check_topics(&config, &rows));
        problems.extend(check_public_url(&config, &rows));
        if problems.is_empty() { Ok(Self { config, rows }) } else { Err(ConfigErrors(problems)) }
    }
}

/// Agents call the hub at its public URL, and a wildcard address cannot be called. The URL is never
/// taken from the `Host` header of a request: a caller could then choose where other agents are
/// sent.
fn check_public_url(config: &Config, rows: &[EffectiveSetting]) -> Option<ConfigError> {
    let address = config.http.listen;
    if !address.ip().to_canonical().is_unspecified() || config.http.public_url.is_some() {
        return None;
    }
    let key = "http.listen";
    Some(ConfigError::InvalidValue {
        key: key.to_owned(),
        origin: origin(rows, key),
        found: format!("{address} is a wildcard address that agents cannot call"),
        expected: "http.public_url to be set as well".to_owned(),
        example: format!("--public-url http://hub.example:{}", address.port()),
    })
}

fn origin(rows: &[EffectiveSetting], key: &str) -> String {
    rows.iter().find(|row| row.key == key).map(|row| row.origin.clone()).unwrap_or_default()
}

/// A capability mapped to an unknown topic would silently never match.
fn check_topics(config: &Config, rows: &[EffectiveSetting]) -> Option<ConfigError> {
    let topics = &config.clara.topics;
    let (_, topic) = config.bridge.topics.iter().find(|(_, topic)| !topics.contains(topic))?;
    let key = "bridge.topics";
    let known = topics.iter().collect::<Vec<_>>().join(", ");
    Some(ConfigError::InvalidValue {
        key: key.to_owned(),
        origin: origin(rows, key),
        found: format!("`{topic}` is not in clara.topics"),
        expected: format!("topics among {known}"),
        example: "topics = { write_tweet = \"tweet\" }".to_owned(),
    })
}
