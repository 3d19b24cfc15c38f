//! An agent's state directory: its key, its signing seed, its job records, and a lock that keeps
//! other programs out.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::error::AgentError;
use super::record::JobRecords;
use crate::agora::Seed;
use crate::key::{Key, KeyFile};
use crate::private_files;

const LOCK: &str = "lock";
const KEY: &str = "agent.key";
/// File name prefix of replaced keys.
const ARCHIVED_KEY_PREFIX: &str = "agent-until-";
const SEED: &str = "agora.key";
const OWNER: &str = "owner";
const JOBS: &str = "jobs";
const INSTANCE: &str = "instance";

/// An agent's state directory, locked for as long as this value lives.
#[derive(Debug)]
pub struct StateDir {
    directory: PathBuf,
    key_source: KeySource,
    /// The OS releases the lock when the process dies.
    _lock: File,
}

/// Where the agent's key comes from.
#[derive(Debug)]
enum KeySource {
    /// A file of its own, written if it does not exist.
    File(PathBuf),
    /// A key managed outside the state directory.
    External(Key),
}

impl StateDir {
    /// Locks a state directory, and creates it if needed; [`AgentError::AlreadyRunning`] if another program
    /// has the lock.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, AgentError> {
        let directory = directory.into();
        private_files::create_dir(&directory)
            .map_err(|error| state_file_error(&directory, error))?;
        let path = directory.join(LOCK);
        let file = private_files::open_options().append(true).open(&path);
        let lock = file.map_err(|error| state_file_error(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {
                let key_source = KeySource::File(directory.join(KEY));
                Ok(Self { directory, key_source, _lock: lock })
            }
            Err(TryLockError::WouldBlock) => Err(AgentError::AlreadyRunning { directory }),
            Err(TryLockError::Error(error)) => Err(state_file_error(&path, error)),
        }
    }

    /// Uses the key in this file. If the file does not exist, it is written at registration.
    pub fn with_key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key_source = KeySource::File(path.into());
        self
    }

    /// Uses a key that is stored elsewhere.
    pub fn with_key(mut self, key: Key) -> Self {
        self.key_source = KeySource::External(key);
        self
    }

    /// The path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The agent's job records.
    pub fn records(&self) -> Result<JobRecords, AgentError> {
        let path = self.directory.join(JOBS);
        JobRecords::open(&path).map_err(|error| state_file_error(&path, error))
    }

    /// The instance id of this program. It stays the same across restarts with this directory; a
    /// copy of the directory gets another one.
    pub(super) fn instance(&self) -> Result<String, AgentError> {
        let path = self.directory.join(INSTANCE);
        let saved = std::fs::read_to_string(&path).ok().filter(|text| !text.trim().is_empty());
        let number = match saved {
            Some(number) => number.trim().to_owned(),
            None => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes)
                    .map_err(|error| state_file_error(&path, io::Error::other(error)))?;
                let number = hex::encode(bytes);
                write_file(&path, &format!("{number}\n"))?;
                number
            }
        };
        let canonical = std::fs::canonicalize(&self.directory)
            .map_err(|error| state_file_error(&self.directory, error))?;
        let mut hash = Sha256::new();
        hash.update(number);
        hash.update(canonical.as_os_str().as_encoded_bytes());
        Ok(hex::encode(&hash.finalize()[..16]))
    }

    /// The signing seed, generated when it is first needed.
    pub fn seed(&self) -> Result<Seed, AgentError> {
        let path = self.directory.join(SEED);
        match std::fs::read_to_string(&path) {
            // A damaged file is an error: a new seed would be a new identity.
            Ok(text) => Seed::read(&text).ok_or_else(|| {
                let error = io::Error::new(io::ErrorKind::InvalidData, "it has no valid seed");
                AgentError::KeyFile { path, error }
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let seed = Seed::random()?;
                write_file(&path, &format!("{}\n", seed.reveal()))?;
                Ok(seed)
            }
            Err(error) => Err(AgentError::KeyFile { path, error }),
        }
    }

    /// The external key.
    pub(super) fn external_key(&self) -> Option<&Key> {
        match &self.key_source {
            KeySource::File(_) => None,
            KeySource::External(key) => Some(key),
        }
    }

    /// The stored key and its data.
    pub(super) fn load_key(&self) -> Result<Option<KeyFile>, AgentError> {
        let KeySource::File(path) = &self.key_source else { return Ok(None) };
        match KeyFile::load(path) {
            Ok(keys) => Ok(Some(keys)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AgentError::KeyFile { path: path.clone(), error }),
        }
    }

    /// Saves the key, unless it is external.
    pub(super) fn save_key(&self, keys: &KeyFile) -> Result<(), AgentError> {
        match &self.key_source {
            KeySource::File(path) => {
                self.archive_key(path, keys)?;
                write_file(path, &keys.to_text())
            }
            KeySource::External(_) => Ok(()),
        }
    }

    /// Archives a key before it is replaced: the hub it belongs to may come back.
    fn archive_key(&self, path: &Path, keys: &KeyFile) -> Result<(), AgentError> {
        let old_key = match KeyFile::load(path) {
            Ok(old_key) if old_key.key != keys.key => old_key,
            _ => return Ok(()),
        };
        let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let archive =
            self.directory.join(format!("{ARCHIVED_KEY_PREFIX}{}.key", unix_time.as_nanos()));
        write_file(&archive, &old_key.to_text())
    }

    /// Archived keys, newest first.
    pub(super) fn previous_keys(&self) -> Vec<KeyFile> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let is_archived_key = |name: &str| name.starts_with(ARCHIVED_KEY_PREFIX);
        let mut names: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_archived_key))
            .map(|entry| entry.path())
            .collect();
        names.sort();
        names.iter().rev().filter_map(|path| KeyFile::load(path).ok()).collect()
    }

    /// The saved owner.
    pub(super) fn saved_owner(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.directory.join(OWNER)).ok()?;
        Some(text.trim().to_owned()).filter(|owner| !owner.is_empty())
    }

    /// Saves the owner that receives the agent's earnings.
    pub(super) fn save_owner(&self, owner: &str) -> Result<(), AgentError> {
        write_file(&self.directory.join(OWNER), &format!("{owner}\n"))
    }
}

fn write_file(path: &Path, text: &str) -> Result<(), AgentError> {
    private_files::write_atomically(path, text).map_err(|error| state_file_error(path, error))
}

fn state_file_error(path: &Path, error: io::Error) -> AgentError {
    AgentError::StateFile { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_seed_is_an_error_and_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = StateDir::open(dir.path()).expect("free");
        let seed = state.seed().expect("a new seed");
        assert_eq!(state.seed().expect("the same").reveal(), seed.reveal());
        let path = dir.path().join(SEED);
        std::fs::write(&path, "damaged").expect("written");
        assert!(matches!(state.seed(), Err(AgentError::KeyFile { .. })));
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "damaged");
    }

    #[test]
    fn one_program_at_a_time_has_the_lock_and_finds_everything_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("shout");
        let state_dir = StateDir::open(&path).expect("free");
        assert!(matches!(StateDir::open(&path), Err(AgentError::AlreadyRunning { .. })));
        assert_eq!((state_dir.load_key().expect("no key"), state_dir.saved_owner()), (None, None));
        let (seed, keys) = (state_dir.seed().expect("a seed"), KeyFile::from_key("rk_1"));
        state_dir.save_key(&keys).expect("saved");
        state_dir.save_owner("acme").expect("saved");
        drop(state_dir);
        let again = StateDir::open(&path).expect("free");
        assert_eq!(again.seed().expect("a seed"), seed);
        assert_eq!(again.load_key().expect("a key"), Some(keys));
        assert_eq!(again.saved_owner().as_deref(), Some("acme"));
    }

    #[test]
    fn the_same_directory_is_the_same_instance_and_a_copy_is_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let instance = |name: &str| {
            StateDir::open(dir.path().join(name))
                .and_then(|state_dir| state_dir.instance())
                .expect("a name")
        };
        let first = instance("a");
        assert_eq!(instance("a"), first);
        std::fs::create_dir(dir.path().join("b")).expect("made");
        std::fs::copy(dir.path().join("a/instance"), dir.path().join("b/instance"))
            .expect("copied");
        assert_ne!(instance("b"), first);
    }

    #[test]
    fn an_external_key_is_not_saved_and_one_that_cannot_be_read_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let external =
            StateDir::open(dir.path().join("a")).expect("free").with_key(Key::new("rk_1"));
        external.save_key(&KeyFile::from_key("rk_1")).expect("nothing to do");
        assert!(!external.directory().join(KEY).exists());
        let path = dir.path().join("b.key");
        std::fs::write(&path, "two words").expect("written");
        let state_dir = StateDir::open(dir.path().join("b")).expect("free").with_key_file(&path);
        assert!(matches!(state_dir.load_key(), Err(AgentError::KeyFile { .. })));
    }
}
