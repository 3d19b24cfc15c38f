//! Configuration: flags over environment over `rialto.toml` over the defaults of a profile.
//!
//! `schema` names the hub's keys, and each protocol its own. What a value means is decided where it
//! is used, not here.

mod choices;
mod database_url;
mod names;
mod schema;

#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod tests;

pub use choices::{Backend, Level, LogFormat};
pub use database_url::DatabaseUrl;
pub use names::{BaseUrl, HostName, HostPort, Origin};
pub use rialto_config::{
    ByteSize, ConfigDuration, ConfigError, ConfigErrors, EffectiveSetting, Limit, NonZeroDuration,
    Profile,
};
pub use schema::*;

use std::path::Path;

use rialto_config::{ConfigFile, Layers};

/// The file that is read when no file is named.
const FILE_NAME: &str = "rialto.toml";

/// Every setting with its default and its documentation. Settings are shown in its order.
const EXAMPLE: &str = include_str!("../../../../rialto.example.toml");

/// A configuration, and where each of its values came from.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The values in force.
    pub config: Config,
    rows: Vec<EffectiveSetting>,
}

impl LoadedConfig {
    /// Reads all layers. If no `file` is named, `./rialto.toml` is read if it exists. `flags` are
    /// pairs of key and value, such as `("http.listen", "0.0.0.0:7425")`.
    ///
    /// A value that a higher layer overrides is checked all the same, so that a flag cannot hide an
    /// invalid file.
    pub fn load(
        profile: Profile,
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigErrors> {
        let source = match file {
            Some(named) => Some(ConfigFile::read(named)?),
            None => ConfigFile::read_if_exists(Path::new(FILE_NAME))?,
        };
        Self::from_layers(profile, source.as_ref(), env, flags)
    }

    /// Every key in force, in the order of `rialto.example.toml`.
    pub fn settings(&self) -> &[EffectiveSetting] {
        &self.rows
    }

    fn from_layers(
        profile: Profile,
        source: Option<&ConfigFile>,
        env: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Self, ConfigErrors> {
        let mut layers = Layers::new(profile);
        if let Some(source) = source {
            layers.add_file(source);
        }
        layers.add_env(env);
        layers.add_flags(flags);
        layers.imply("store.database_url", "store.backend", Backend::Postgres.as_str());
        let config = Config::resolve(&mut layers);
        check_public_url(&config, &mut layers);
        check_database(&config, &mut layers);
        check_guest(&config, &mut layers);
        let order: Vec<String> = example_keys().map(|(key, _)| key).collect();
        let (rows, errors) = layers.finish(&order);
        if errors.is_empty() { Ok(Self { config, rows }) } else { Err(ConfigErrors(errors)) }
    }
}

/// Agents call the hub at its public URL, and a wildcard address cannot be called. The URL is never
/// taken from the `Host` header of a request: a caller could then choose where other agents are
/// sent.
fn check_public_url(config: &Config, layers: &mut Layers<'_>) {
    let address = config.http.listen;
    if address.ip().to_canonical().is_unspecified() && config.http.public_url.is_none() {
        layers.add_conflict(
            "http.listen",
            format!("{address} is a wildcard address that agents cannot call"),
            "http.public_url to be set as well".to_owned(),
            &format!("--public-url http://hub.example:{}", address.port()),
        );
    }
}

/// A database URL and the backend belong together. Other nodes connect to the address of a node, and
/// cannot connect to a wildcard address.
fn check_database(config: &Config, layers: &mut Layers<'_>) {
    let (backend, url) = (config.store.backend, &config.store.database_url);
    match (backend, url) {
        (Backend::Postgres, None) => layers.add_conflict(
            "store.backend",
            "`postgres` needs a database".to_owned(),
            "store.database_url to be set as well".to_owned(),
            "--database-url postgres://rialto@db.example/rialto",
        ),
        (Backend::Sqlite | Backend::Memory, Some(_)) => layers.add_conflict(
            "store.backend",
            format!("`{}` does not use store.database_url", backend.as_str()),
            "postgres, or no store.database_url".to_owned(),
            "backend = \"postgres\"",
        ),
        _ => {}
    }
    let address = config.cluster.listen;
    let is_wildcard = address.ip().to_canonical().is_unspecified();
    if backend == Backend::Postgres && is_wildcard && config.cluster.advertise.is_none() {
        layers.add_conflict(
            "cluster.listen",
            format!("{address} is a wildcard address that other nodes cannot connect to"),
            "cluster.advertise to be set as well".to_owned(),
            &format!("--set cluster.advertise=node-1.example:{}", address.port()),
        );
    }
}

/// Whoever reaches the hub could spend what its guest has, so only this machine may.
fn check_guest(config: &Config, layers: &mut Layers<'_>) {
    let address = config.http.listen;
    if config.mcp.guest && !address.ip().to_canonical().is_loopback() {
        layers.add_conflict(
            "mcp.guest",
            format!("callers without a key would act as one agent at {address}, which other machines reach"),
            "false, or http.listen on a loopback address".to_owned(),
            "--set mcp.guest=false",
        );
    }
}

/// Every key of the example in order, and whether it is commented out.
fn example_keys() -> impl Iterator<Item = (String, bool)> {
    let mut section = "";
    EXAMPLE.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        let uncommented = line.strip_prefix("# ");
        let (name, _) = uncommented.unwrap_or(line).split_once(" = ")?;
        let is_key = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        is_key.then(|| (format!("{section}.{name}"), uncommented.is_some()))
    })
}
