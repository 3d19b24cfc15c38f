//! The agents of a context: their names, the folder each belongs to, and where its key is.
//!
//! An agent with an `agent.toml` keeps its key beside that file, so its identity belongs to the
//! folder and moves with it. The context only stores the name: a *claim* says which folder has it.
//! An agent started by flags alone has no file. Its key is in the context, under its name, and the
//! name belongs to the folder it was first started in.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rialto_client::Key;
use rialto_client::agent::{StateDir, slug};
use rialto_core::alias::Digest;
use serde::{Deserialize, Serialize};

use super::{Context, home};
use crate::commands::{CliError, CliResult, KeyFile, key_file};

/// The directory with one subdirectory per name.
const AGENTS: &str = "agents";
/// The folder a name belongs to.
const CLAIM: &str = "claim.json";
/// Lock: claims are made one at a time.
const CLAIMS: &str = "claims.lock";
/// The key in an agent's state directory.
const KEY: &str = "agent.key";
/// The lock file of a running agent.
const LOCK: &str = "lock";
/// The state directory beside an `agent.toml`.
const STATE: &str = ".rialto";

/// An agent about to start: its name and folder.
pub struct AgentStart<'a> {
    pub name: &'a str,
    /// Absolute and without links.
    pub folder: &'a Path,
    /// Name of its state directory in the folder; `None` for an agent without a file.
    pub state_name: Option<&'a str>,
}

/// The content of `claim.json`.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct NameClaim {
    folder: PathBuf,
    /// The state directory, if it is not in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<PathBuf>,
}

impl Context {
    /// Names of the agents of this machine.
    pub fn agents(&self) -> CliResult<Vec<String>> {
        let Some(directory) = self.directory() else { return Ok(Vec::new()) };
        let mut names = home::list_dir(&directory.join(AGENTS))?;
        names.retain(|name| home::is_valid_name(name));
        Ok(names)
    }

    /// Path of the key of an agent of this machine, whether or not it exists.
    pub fn agent_key_path(&self, name: &str) -> CliResult<Option<PathBuf>> {
        let Some(directory) = self.directory() else { return Ok(None) };
        let entry = directory.join(AGENTS).join(dir_name(name));
        Ok(Some(state_of(&entry)?.join(KEY)))
    }

    /// Whether an agent's key is in the context itself rather than in its own folder.
    pub fn holds_key_of(&self, name: &str) -> CliResult<bool> {
        let directory = self.directory();
        let path = self.agent_key_path(name)?.filter(|path| path.exists());
        Ok(path.zip(directory).is_some_and(|(path, directory)| path.starts_with(directory)))
    }

    /// The context's directory for an agent that brings its own key; created if missing.
    pub fn ensure_agent_dir(&self, name: &str) -> CliResult<PathBuf> {
        home::check_name(name)?;
        let path = self.ensure_dir()?.join(AGENTS).join(name);
        key_file::create_dir(&path).map_err(|error| home::write_error(&path, &error))?;
        Ok(path)
    }

    /// Claims a name for a folder and returns the agent's state directory. A name claimed by
    /// another folder is refused, so that no agent runs with the key of another.
    pub fn claim_name(&self, agent: &AgentStart<'_>) -> CliResult<PathBuf> {
        let entry = self.ensure_agent_dir(&dir_name(agent.name))?;
        let _held = lock(&entry.with_file_name(CLAIMS))?;
        let free = self.state_for(agent, &entry).and_then(|state| {
            self.check_not_copied(agent, &entry, &state)?;
            self.remove_other_claims(&entry, &state)?;
            Ok(state)
        });
        let state = free.inspect_err(|_| {
            // A refused name does not belong to the context. A directory with files in it stays.
            let _ = fs::remove_dir(&entry);
        })?;
        let beside = (state != entry).then(|| state.clone());
        let claim = NameClaim { folder: agent.folder.to_owned(), state: beside };
        if read_claim(&entry)?.is_none_or(|before| before != claim) {
            write_claim(&entry, &claim)?;
        }
        Ok(state)
    }

    /// The state directory for the agent, if its name is free.
    fn state_for(&self, agent: &AgentStart<'_>, entry: &Path) -> CliResult<PathBuf> {
        let own = agent
            .state_name
            .map(|beside| self.ensure_state_dir(agent.folder, beside))
            .transpose()?;
        let in_context = entry.to_owned();
        let folder = match read_claim(entry)? {
            Some(NameClaim { folder, state: Some(theirs) }) => {
                return match own {
                    Some(own) if own == theirs => Ok(own),
                    // One folder and one name are one agent, with or without a file.
                    None if folder == agent.folder => Ok(theirs),
                    _ if has_agent(&theirs) => Err(self.name_taken(agent, &folder)),
                    own => Ok(own.unwrap_or(in_context)),
                };
            }
            Some(NameClaim { folder, state: None }) => Some(folder),
            // Older versions kept all keys here; the first folder that claims the name gets the
            // key.
            None => None,
        };
        let is_ours =
            folder.as_ref().is_none_or(|folder| folder == agent.folder || !folder.exists());
        match own {
            None if is_ours || !has_agent(entry) => Ok(in_context),
            Some(own) if !has_agent(entry) => Ok(own),
            Some(own) if is_ours && !own.join(KEY).exists() => {
                move_state(entry, &own)?;
                Ok(own)
            }
            _ => Err(self.name_taken(agent, folder.as_deref().unwrap_or(entry))),
        }
    }

    /// The state directory beside an `agent.toml`: one per hub, since keys belong to hubs.
    fn ensure_state_dir(&self, folder: &Path, beside: &str) -> CliResult<PathBuf> {
        let all = folder.join(STATE);
        let state = all.join(home::slug(home::without_scheme(self.hub()))).join(beside);
        let unwritable = |error: io::Error| {
            let message = format!("cannot write {}: {error}", state.display());
            CliError::failed(message, "make the folder writable, or use a key file with --key-file")
        };
        key_file::create_dir(&state).map_err(unwritable)?;
        // Keys must not be committed to a repository.
        key_file::write_new(&all.join(".gitignore"), "*\n").map_err(unwritable)?;
        let path = state.join(KEY);
        let keys = path.exists().then(|| key_file::load(&path)).transpose()?;
        match keys.and_then(|keys| keys.hub) {
            Some(hub) if !home::is_same_hub(&hub, self.hub()) => {
                let message = format!("{} is for {hub}, not for {}", path.display(), self.hub());
                Err(CliError::conflict(message, "use the key's hub with --hub"))
            }
            _ => Ok(state),
        }
    }

    /// A copied folder contains the original's key and would be the same agent.
    fn check_not_copied(
        &self,
        agent: &AgentStart<'_>,
        entry: &Path,
        state: &Path,
    ) -> CliResult<()> {
        let Some(own) = key_in(state) else { return Ok(()) };
        for other in self.agents()? {
            let other = entry.with_file_name(other);
            let there = state_of(&other)?;
            if other != entry && there != state && key_in(&there).as_ref() == Some(&own) {
                let message = format!(
                    "the key of {} is a copy of the one in {}",
                    agent.folder.display(),
                    there.display()
                );
                let next = format!("remove {} to give this agent its own key", state.display());
                return Err(CliError::conflict(message, next));
            }
        }
        Ok(())
    }

    /// Removes the previous name of an agent that was renamed in its file.
    fn remove_other_claims(&self, entry: &Path, state: &Path) -> CliResult<()> {
        for other in self.agents()? {
            let other = entry.with_file_name(other);
            let is_ours =
                read_claim(&other)?.is_some_and(|claim| claim.state.as_deref() == Some(state));
            if other != entry && is_ours {
                let path = other.join(CLAIM);
                fs::remove_file(&path).map_err(|error| home::write_error(&path, &error))?;
                // An agent without a file may still need other files in there.
                let _ = fs::remove_dir(&other);
            }
        }
        Ok(())
    }

    fn name_taken(&self, agent: &AgentStart<'_>, folder: &Path) -> CliError {
        let (name, context, folder) = (agent.name, self.name(), folder.display());
        let message = format!("agent name {name} in context {context} is used by {folder}");
        let other = match agent.state_name {
            Some(_) => "change `name` in its file, or use --name",
            None => "use --name",
        };
        CliError::conflict(message, format!("run it there, or choose another name: {other}"))
    }
}

/// An agent's directory name. Names with the same plain form get different directories.
pub fn dir_name(name: &str) -> String {
    if slug(name) == name { name.to_owned() } else { dir_name_with_digest(name, name) }
}

/// The same, for an agent that is identified by something other than its name.
pub fn dir_name_with_digest(name: &str, apart: &str) -> String {
    let digest = Digest::of(&[b"seat", apart.as_bytes()]);
    let number = digest.0.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}-{number}", slug(name))
}

/// The state directory of the agent of a name.
fn state_of(entry: &Path) -> CliResult<PathBuf> {
    let claim = read_claim(entry)?;
    Ok(claim.and_then(|claim| claim.state).unwrap_or_else(|| entry.to_owned()))
}

fn key_in(state: &Path) -> Option<Key> {
    KeyFile::load(&state.join(KEY)).ok().map(|keys| keys.key)
}

fn lock(path: &Path) -> CliResult<File> {
    let locked = key_file::open_lock_file(path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| home::write_error(path, &error))
}

/// Whether an agent exists: it has a key, or runs and waits for one.
fn has_agent(state: &Path) -> bool {
    let runs = || {
        let lock = File::open(state.join(LOCK));
        lock.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    };
    state.join(KEY).exists() || runs()
}

/// Moves an agent's state from the context to its folder, the key last. Until the key is moved, the
/// next start moves the rest.
fn move_state(entry: &Path, own: &Path) -> CliResult<()> {
    let _alone = StateDir::open(entry).map_err(|error| {
        CliError::conflict(error.to_string(), "stop it first; then its key moves to this folder")
    })?;
    let mut names = home::list_dir(entry)?;
    names.retain(|name| ![CLAIM, LOCK, KEY].contains(&name.as_str()));
    for name in names.iter().map(String::as_str).chain([KEY]) {
        fs::rename(entry.join(name), own.join(name)).map_err(|error| {
            let (from, to) = (entry.display(), own.display());
            let message = format!("cannot move {name} from {from} to {to}: {error}");
            CliError::failed(message, format!("move everything in {from} to {to} by hand"))
        })?;
    }
    // A leftover lock file is harmless.
    let _ = fs::remove_file(entry.join(LOCK));
    Ok(())
}

fn read_claim(entry: &Path) -> CliResult<Option<NameClaim>> {
    let path = entry.join(CLAIM);
    let Some(text) = home::read_optional(&path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let message = format!("{} is not a valid claim file: {error}", path.display());
        CliError::failed(message, "remove it; the next `rialto agent run` writes a new one")
    })
}

fn write_claim(entry: &Path, claim: &NameClaim) -> CliResult<()> {
    let path = entry.join(CLAIM);
    let written = serde_json::to_string(claim).map_err(io::Error::other);
    let kept = written.and_then(|text| key_file::write_atomically(&path, &format!("{text}\n")));
    kept.map_err(|error| home::write_error(&path, &error))
}
