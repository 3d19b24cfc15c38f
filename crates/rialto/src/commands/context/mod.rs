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

use super::private_files;
use super::key_file::{self, KeyFile};
use super::error::Trouble;
pub use home::Home;
pub use subcommands::{Args, run};

/// The default address of a local hub.
pub const OWN_HUB: &str = "http://127.0.0.1:7425";
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
struct Written {
    hub: String,
}

impl Context {
    /// The named context, or the current one, or the implied default.
    pub fn current(explicit: Option<&str>) -> Result<Self, Trouble> {
        Self::current_in(Home::find(), explicit)
    }

    fn current_in(home: Option<Home>, explicit: Option<&str>) -> Result<Self, Trouble> {
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
            None if name == DEFAULT => Ok(Self { name, hub: OWN_HUB.to_owned(), home }),
            None => Err(unknown(&name)),
        }
    }

    /// The context of a hub, named after its host if none exists.
    pub fn of_hub(hub: &str) -> Result<Self, Trouble> {
        let (hub, home) = (address::check(hub)?, Home::find());
        let name = name::of(address::without_scheme(&hub));
        let kept = home.as_ref().map(|home| Self::load(home, &name)).transpose()?.flatten();
        match kept {
            Some(kept) if address::same(&kept.hub, &hub) => Ok(kept),
            Some(kept) => {
                let message = format!("context {name} is for {}, not for {hub}", kept.hub);
                let next = format!("`rialto context add NAME --hub {hub}` creates one for it");
                Err(Trouble::usage(message, next))
            }
            None => Ok(Self { name, hub, home }),
        }
    }

    /// A context that is not saved yet.
    fn new(home: &Home, name: &str, hub: &str) -> Result<Self, Trouble> {
        name::check(name)?;
        let hub = address::check(hub)?;
        Ok(Self { name: name.to_owned(), hub, home: Some(home.clone()) })
    }

    /// A saved context.
    fn load(home: &Home, name: &str) -> Result<Option<Self>, Trouble> {
        let path = home.directory_of(name).join("context.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(home::unreadable(&path, &error)),
        };
        let written: Written = toml::from_str(&text).map_err(|_| {
            let message = format!("{} has no line `hub = \"URL\"`", path.display());
            Trouble::usage(message, format!("`rialto context add {name} --hub URL` rewrites it"))
        })?;
        Ok(Some(Self { hub: address::check(&written.hub)?, ..Self::new(home, name, OWN_HUB)? }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hub's address.
    pub fn hub(&self) -> &str {
        &self.hub
    }

    /// The caller's key, if one is saved.
    pub fn me(&self) -> Result<Option<KeyFile>, Trouble> {
        let Some(path) = self.me_path().filter(|path| path.exists()) else { return Ok(None) };
        let me = key_file::load(&path)?;
        match &me.hub {
            Some(hub) if !address::same(hub, &self.hub) => {
                let message =
                    format!("context {} is for {}, its key for {hub}", self.name, self.hub);
                let next = format!(
                    "set the right key with `rialto context add {} --hub {} --key-file FILE`",
                    self.name, self.hub
                );
                Err(Trouble::usage(message, next))
            }
            _ => Ok(Some(KeyFile { hub: Some(self.hub.clone()), ..me })),
        }
    }

    /// Path of the caller's key, whether or not it exists.
    pub fn me_path(&self) -> Option<PathBuf> {
        Some(self.directory()?.join("me.key"))
    }

    /// Saves the caller's key in place of the previous one.
    pub fn keep_me(&self, keys: &KeyFile) -> Result<(), Trouble> {
        let path = self.made()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        keys.replace(&path).map_err(|error| home::unwritable(&path, &error))
    }

    /// Saves the key only if there is none yet, and returns the saved one.
    pub fn keep_first_me(&self, keys: &KeyFile) -> Result<KeyFile, Trouble> {
        let path = self.made()?.join("me.key");
        let keys = KeyFile { hub: Some(self.hub.clone()), ..keys.clone() };
        match private_files::new_file(&path, &keys.text())
            .map_err(|error| home::unwritable(&path, &error))?
        {
            true => Ok(keys),
            false => key_file::load(&path),
        }
    }

    /// Archives the caller's key under another name. This hub does not know the key, but a hub that
    /// does may come back.
    pub fn set_me_aside(&self, refused: &KeyFile) -> Result<(), Trouble> {
        let Some(path) = self.me_path() else { return Ok(()) };
        let unwritable = |error: io::Error| home::unwritable(&path, &error);
        // If several commands notice at once, only one archives the key.
        let lock = private_files::lock_file(&path.with_file_name("me.lock")).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        if self.me()?.is_none_or(|me| me.key != refused.key) {
            return Ok(());
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let aside = path.with_file_name(format!("me-until-{}.key", since.as_nanos()));
        fs::rename(&path, aside).map_err(unwritable)
    }

    /// Removes the caller's key.
    pub fn forget_me(&self) -> Result<(), Trouble> {
        let Some(path) = self.me_path() else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(home::unwritable(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Whether the context is saved.
    pub fn is_kept(&self) -> bool {
        self.directory().is_some_and(|directory| directory.join("context.toml").exists())
    }

    fn directory(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.directory_of(&self.name))
    }

    /// Creates the context's directory if it does not exist. A hub that is named for one command
    /// does not become the default for later ones.
    pub fn made(&self) -> Result<PathBuf, Trouble> {
        let home = match &self.home {
            Some(home) => home.clone(),
            None => Home::needed()?,
        };
        let directory = home.directory_of(&self.name);
        if !directory.join("context.toml").exists() {
            self.write(&directory)?;
            if self.name == DEFAULT {
                home.choose_first(&self.name)?;
            }
        }
        Ok(directory)
    }

    fn write(&self, directory: &Path) -> Result<(), Trouble> {
        let path = directory.join("context.toml");
        let text = toml::to_string(&Written { hub: self.hub.clone() }).unwrap_or_default();
        let kept = private_files::directory(directory).and_then(|()| private_files::file(&path, &text));
        kept.map_err(|error| home::unwritable(&path, &error))
    }
}

fn unknown(name: &str) -> Trouble {
    let next = format!(
        "`rialto context ls` lists contexts; `rialto context add {name} --hub URL` adds it"
    );
    Trouble::not_found(format!("context {name} not found"), next)
}

#[cfg(test)]
mod tests;
