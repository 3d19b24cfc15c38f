//! The home directory of the command line: its contexts, and which is current.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::error::CliError;
use super::super::private_files;
use super::{Context, name};

/// The file with the name of the current context.
const CURRENT: &str = "current";
/// The directory with one subdirectory per context.
const CONTEXTS: &str = "contexts";

/// Where contexts and their keys are stored.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// `RIALTO_HOME`, or `rialto` in the user's configuration directory.
    pub fn find() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // The XDG specification says to ignore relative paths.
        let absolute = |name: &str| set(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = set("RIALTO_HOME").map(PathBuf::from);
        let shared = || absolute("XDG_CONFIG_HOME").map(|path| path.join("rialto"));
        let users = || absolute("HOME").map(|path| path.join(".config/rialto"));
        own.or_else(shared).or_else(users).map(Self)
    }

    /// The same, or an error for commands that save something.
    pub fn require() -> Result<Self, CliError> {
        Self::find().ok_or_else(|| {
            let message = "no home directory is set";
            CliError::usage(message, "set RIALTO_HOME")
        })
    }

    #[cfg(test)]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of a context, whether or not it exists.
    pub fn directory_of(&self, name: &str) -> PathBuf {
        self.0.join(CONTEXTS).join(name)
    }

    /// The name of the current context, if one is set.
    pub fn current(&self) -> Result<Option<String>, CliError> {
        let path = self.0.join(CURRENT);
        let name = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read_error(&path, &error)),
        };
        match name::is_valid(&name) {
            true => Ok(Some(name)),
            false => {
                let message = format!("{} does not contain a context name", path.display());
                Err(CliError::usage(message, "choose one with `rialto context use NAME`"))
            }
        }
    }

    /// Makes a context the current one.
    pub fn set_current(&self, name: &str) -> Result<(), CliError> {
        let path = self.0.join(CURRENT);
        let kept = private_files::create_dir(&self.0)
            .and_then(|()| private_files::write_atomically(&path, &format!("{name}\n")));
        kept.map_err(|error| write_error(&path, &error))
    }

    /// Makes a context the current one if there is none.
    pub fn set_current_if_none(&self, name: &str) -> Result<(), CliError> {
        match self.current()? {
            Some(_) => Ok(()),
            None => self.set_current(name),
        }
    }

    /// Unsets the current context.
    pub fn clear_current(&self) -> Result<(), CliError> {
        let path = self.0.join(CURRENT);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(write_error(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// All saved contexts, by name.
    pub fn contexts(&self) -> Result<Vec<Context>, CliError> {
        let mut names = list_dir(&self.0.join(CONTEXTS))?;
        names.retain(|name| name::is_valid(name));
        names.iter().filter_map(|name| Context::load(self, name).transpose()).collect()
    }
}

/// The sorted entries of a directory; empty if it does not exist.
pub fn list_dir(path: &Path) -> Result<Vec<String>, CliError> {
    let found = match fs::read_dir(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read_error(path, &error)),
    };
    let mut names: Vec<String> =
        found.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

pub fn read_error(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot read {}: {error}", path.display());
    CliError::failed(message, "`rialto doctor` checks the files of the command line")
}

pub fn write_error(path: &Path, error: &io::Error) -> CliError {
    let message = format!("cannot write {}: {error}", path.display());
    CliError::failed(message, "make it writable, or set RIALTO_HOME to another directory")
}
