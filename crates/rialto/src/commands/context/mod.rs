//! Contexts: a hub, the caller's key there, and the agents that run from this machine.
//!
//! A key stays with its hub: a context's key is sent only to the context's own hub.

pub mod agents;
pub mod home;
mod limited_keys;
mod subcommands;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::{CliError, CliResult, KeyFile, key_file};
pub use home::Home;
pub use subcommands::{Args, run};

/// The default address of a local hub.
pub const DEFAULT_HUB: &str = "http://127.0.0.1:7425";
/// The implied context when none exists.
const DEFAULT: &str = "default";

/// One context, saved or not.
#[derive(Clone, Debug)]
pub struct Context {
    name: String,
    hub: String,
    /// Its home directory, if this machine has one.
    home: Option<Home>,
}

/// The content of `context.toml`.
#[derive(Serialize, Deserialize)]
struct ContextFile {
    hub: String,
}

impl Context {
    /// The named context, or the current one, or the implied default.
    pub fn current(explicit: Option<&str>) -> CliResult<Self> {
        Self::current_in(Home::find(), explicit)
    }

    fn current_in(home: Option<Home>, explicit: Option<&str>) -> CliResult<Self> {
        explicit.map_or(Ok(()), home::check_name)?;
        let chosen = match (explicit, &home) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(home)) => home.current()?,
            (None, None) => None,
        };
        let name = chosen.unwrap_or_else(|| DEFAULT.to_owned());
        let saved = home.as_ref().map(|home| Self::load(home, &name)).transpose()?.flatten();
        match saved {
            Some(saved) => Ok(saved),
            None if name == DEFAULT => Ok(Self { name, hub: DEFAULT_HUB.to_owned(), home }),
            None => Err(unknown_context(&name)),
        }
    }

    /// The context of a hub, named after its host if none exists.
    pub fn for_hub(hub: &str) -> CliResult<Self> {
        let (hub, home) = (home::normalize(hub)?, Home::find());
        let name = home::slug(home::without_scheme(&hub));
        let saved = home.as_ref().map(|home| Self::load(home, &name)).transpose()?.flatten();
        match saved {
            Some(saved) if home::is_same_hub(&saved.hub, &hub) => Ok(saved),
            Some(saved) => {
                let message = format!("context {name} is for {}, not for {hub}", saved.hub);
                let next = format!("`rialto context add NAME --hub {hub}` creates one for it");
                Err(CliError::usage(message, next))
            }
            None => Ok(Self { name, hub, home }),
        }
    }

    /// A context that is not saved yet.
    fn new(home: &Home, name: &str, hub: &str) -> CliResult<Self> {
        home::check_name(name)?;
        let hub = home::normalize(hub)?;
        Ok(Self { name: name.to_owned(), hub, home: Some(home.clone()) })
    }

    /// A saved context.
    fn load(home: &Home, name: &str) -> CliResult<Option<Self>> {
        let path = home.directory_of(name).join("context.toml");
        let Some(text) = home::read_optional(&path)? else { return Ok(None) };
        let file: ContextFile = toml::from_str(&text).map_err(|_| {
            let message = format!("{} has no line `hub = \"URL\"`", path.display());
            CliError::usage(message, format!("`rialto context add {name} --hub URL` rewrites it"))
        })?;
        Ok(Some(Self { hub: home::normalize(&file.hub)?, ..Self::new(home, name, DEFAULT_HUB)? }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hub's address.
    pub fn hub(&self) -> &str {
        &self.hub
    }

    /// The caller's key, if one is saved.
    pub fn load_key(&self) -> CliResult<Option<KeyFile>> {
        let Some(path) = self.key_path().filter(|path| path.exists()) else { return Ok(None) };
        let me = key_file::load(&path)?;
        match &me.hub {
            Some(hub) if !home::is_same_hub(hub, &self.hub) => {
                let message =
                    format!("context {} is for {}, its key for {hub}", self.name, self.hub);
                let next = format!(
                    "set the right key with `rialto context add {} --hub {} --key-file FILE`",
                    self.name, self.hub
                );
                Err(CliError::usage(message, next))
            }
            _ => Ok(Some(KeyFile { hub: Some(self.hub.clone()), ..me })),
        }
    }

    /// Path of the caller's key, whether or not it exists.
    pub fn key_path(&self) -> Option<PathBuf> {
        Some(self.directory()?.join("me.key"))
    }

    /// Saves the caller's key in place of the previous one.
    pub fn save_key(&self, keys: &KeyFile) -> CliResult<()> {
        let path = self.ensure_dir()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        keys.write(&path).map_err(|error| home::write_error(&path, &error))
    }

    /// Saves the key only if there is none yet, and returns the saved one.
    pub fn save_key_if_none(&self, keys: &KeyFile) -> CliResult<KeyFile> {
        let path = self.ensure_dir()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        if key_file::write_new(&path, &keys.to_text())
            .map_err(|error| home::write_error(&path, &error))?
        {
            Ok(keys)
        } else {
            key_file::load(&path)
        }
    }

    /// Archives the caller's key under another name. This hub does not know the key, but a hub that
    /// does may come back.
    pub fn archive_key(&self, refused: &KeyFile) -> CliResult<()> {
        let Some(path) = self.key_path() else { return Ok(()) };
        let unwritable = |error: io::Error| home::write_error(&path, &error);
        // If several commands notice at once, only one archives the key.
        let lock = key_file::open_lock_file(&path.with_file_name("me.lock")).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        if self.load_key()?.is_none_or(|me| me.key != refused.key) {
            return Ok(());
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let aside = path.with_file_name(format!("me-until-{}.key", since.as_nanos()));
        fs::rename(&path, aside).map_err(unwritable)
    }

    /// Removes the caller's key.
    pub fn remove_key(&self) -> CliResult<()> {
        self.key_path().map_or(Ok(()), |path| home::remove_optional(&path))
    }

    /// Whether the context is saved.
    pub fn is_saved(&self) -> bool {
        self.directory().is_some_and(|directory| directory.join("context.toml").exists())
    }

    fn directory(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.directory_of(&self.name))
    }

    /// Creates the context's directory if it does not exist. A hub that is named for one command
    /// does not become the default for later ones.
    pub fn ensure_dir(&self) -> CliResult<PathBuf> {
        let home = self.home.clone().map_or_else(Home::require, Ok)?;
        let directory = home.directory_of(&self.name);
        if !directory.join("context.toml").exists() {
            self.write(&directory)?;
            if self.name == DEFAULT {
                home.set_current_if_none(&self.name)?;
            }
        }
        Ok(directory)
    }

    fn write(&self, directory: &Path) -> CliResult<()> {
        let path = directory.join("context.toml");
        let text = toml::to_string(&ContextFile { hub: self.hub.clone() }).unwrap_or_default();
        let written =
            key_file::create_dir(directory).and_then(|()| key_file::write_atomically(&path, &text));
        written.map_err(|error| home::write_error(&path, &error))
    }
}

fn unknown_context(name: &str) -> CliError {
    let next = format!(
        "`rialto context ls` lists contexts; `rialto context add {name} --hub URL` adds it"
    );
    CliError::not_found(format!("context {name} not found"), next)
}

#[cfg(test)]
mod tests;
