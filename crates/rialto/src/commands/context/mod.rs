//! Contexts: a hub, the caller's key there, and the agents that run from this machine.
//!
//! A key stays with its hub: a context's key is sent only to the context's own hub.

pub mod address;
pub mod agents;
pub mod home;
mod name;
mod subcommands;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::error::CliError;
use super::key_file::{self, KeyFile};
use super::private_files;
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
    pub fn current(explicit: Option<&str>) -> Result<Self, CliError> {
        Self::current_in(Home::find(), explicit)
    }

    fn current_in(home: Option<Home>, explicit: Option<&str>) -> Result<Self, CliError> {
        explicit.map_or(Ok(()), name::check)?;
        let chosen = match (explicit, &home) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(home)) => home.current()?,
            (None, None) => None,
        };
        let name = chosen.unwrap_or_else(|| DEFAULT.to_owned());
        let kept = home.as_ref().map(|home| Self::load(home, &name)).transpose()?.flatten();
        match kept {
            Some(kept) => Ok(kept),
            None if name == DEFAULT => Ok(Self { name, hub: DEFAULT_HUB.to_owned(), home }),
            None => Err(unknown_context(&name)),
        }
    }

    /// The context of a hub, named after its host if none exists.
    pub fn for_hub(hub: &str) -> Result<Self, CliError> {
        let (hub, home) = (address::normalize(hub)?, Home::find());
        let name = name::slug(address::without_scheme(&hub));
        let kept = home.as_ref().map(|home| Self::load(home, &name)).transpose()?.flatten();
        match kept {
            Some(kept) if address::is_same_hub(&kept.hub, &hub) => Ok(kept),
            Some(kept) => {
                let message = format!("context {name} is for {}, not for {hub}", kept.hub);
                let next = format!("`rialto context add NAME --hub {hub}` creates one for it");
                Err(CliError::usage(message, next))
            }
            None => Ok(Self { name, hub, home }),
        }
    }

    /// A context that is not saved yet.
    fn new(home: &Home, name: &str, hub: &str) -> Result<Self, CliError> {
        name::check(name)?;
        let hub = address::normalize(hub)?;
        Ok(Self { name: name.to_owned(), hub, home: Some(home.clone()) })
    }

    /// A saved context.
    fn load(home: &Home, name: &str) -> Result<Option<Self>, CliError> {
        let path = home.directory_of(name).join("context.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(home::read_error(&path, &error)),
        };
        let written: ContextFile = toml::from_str(&text).map_err(|_| {
            let message = format!("{} has no line `hub = \"URL\"`", path.display());
            CliError::usage(message, format!("`rialto context add {name} --hub URL` rewrites it"))
        })?;
        Ok(Some(Self {
            hub: address::normalize(&written.hub)?,
            ..Self::new(home, name, DEFAULT_HUB)?
        }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hub's address.
    pub fn hub(&self) -> &str {
        &self.hub
    }

    /// The caller's key, if one is saved.
    pub fn load_key(&self) -> Result<Option<KeyFile>, CliError> {
        let Some(path) = self.key_path().filter(|path| path.exists()) else { return Ok(None) };
        let me = key_file::load(&path)?;
        match &me.hub {
            Some(hub) if !address::is_same_hub(hub, &self.hub) => {
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
    pub fn save_key(&self, keys: &KeyFile) -> Result<(), CliError> {
        let path = self.ensure_dir()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        keys.write(&path).map_err(|error| home::write_error(&path, &error))
    }

    /// Saves the key only if there is none yet, and returns the saved one.
    pub fn save_key_if_none(&self, keys: &KeyFile) -> Result<KeyFile, CliError> {
        let path = self.ensure_dir()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        match private_files::write_new(&path, &keys.to_text())
            .map_err(|error| home::write_error(&path, &error))?
        {
            true => Ok(keys),
            false => key_file::load(&path),
        }
    }

    /// Archives the caller's key under another name. This hub does not know the key, but a hub that
    /// does may come back.
    pub fn archive_key(&self, refused: &KeyFile) -> Result<(), CliError> {
        let Some(path) = self.key_path() else { return Ok(()) };
        let unwritable = |error: io::Error| home::write_error(&path, &error);
        // If several commands notice at once, only one archives the key.
        let lock =
            private_files::open_lock_file(&path.with_file_name("me.lock")).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        if self.load_key()?.is_none_or(|me| me.key != refused.key) {
            return Ok(());
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let aside = path.with_file_name(format!("me-until-{}.key", since.as_nanos()));
        fs::rename(&path, aside).map_err(unwritable)
    }

    /// Removes the caller's key.
    pub fn remove_key(&self) -> Result<(), CliError> {
        let Some(path) = self.key_path() else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(home::write_error(&path, &error))
            }
            _ => Ok(()),
        }
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
    pub fn ensure_dir(&self) -> Result<PathBuf, CliError> {
        let home = match &self.home {
            Some(home) => home.clone(),
            None => Home::require()?,
        };
        let directory = home.directory_of(&self.name);
        if !directory.join("context.toml").exists() {
            self.write(&directory)?;
            if self.name == DEFAULT {
                home.set_current_if_none(&self.name)?;
            }
        }
        Ok(directory)
    }

    fn write(&self, directory: &Path) -> Result<(), CliError> {
        let path = directory.join("context.toml");
        let text = toml::to_string(&ContextFile { hub: self.hub.clone() }).unwrap_or_default();
        let kept = private_files::create_dir(directory)
            .and_then(|()| private_files::write_atomically(&path, &text));
        kept.map_err(|error| home::write_error(&path, &error))
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
