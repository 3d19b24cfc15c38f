//! Backups: a hub's store copied into one file while it runs, and a new data directory made of one.
//!
//! Whatever has its final name is whole and was audited: both directions write under another name,
//! recount the result and rename it last. The hub's secret is not in a backup, since a stolen store
//! must give away no key; it is copied by itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rialto_core::command::Command;
use rialto_core::time::Timestamp;

use crate::audit::{Report, audit_file};
use crate::offline;
use crate::secret::{self, HubSecret, NoSecret};
use crate::store::StoreError;
use crate::store::sqlite::backup::{self, Mark};
use crate::store::sqlite::{FILE, is_in_use, log_is_sound};

/// Why there is no backup, or no hub made of one.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} is already there; nothing is ever written over")]
    Exists(PathBuf),
    #[error("there is no {0}")]
    Missing(PathBuf),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The copy does not add up. It is not kept.
    #[error("the audit of the copy found {} mistakes: {first}", .report.breaches())]
    Unsound { report: Box<Report>, first: String },
    #[error("the hub this backup was taken from is running on {0}")]
    OriginalRuns(PathBuf),
    #[error("the hub secret is not in a backup, and there is none in {0}")]
    NoSecret(PathBuf),
    #[error(transparent)]
    Secret(#[from] NoSecret),
}

/// A finished backup or restore.
#[derive(Debug)]
pub struct Copied {
    /// The epoch of the store that was copied, or of the hub that was made.
    pub epoch: u64,
    pub bytes: u64,
    pub report: Report,
}

/// Copies the store of a data directory into one file. A hub that runs on it goes on.
pub fn backup(dir: &Path, to: &Path, now: Timestamp) -> Result<Copied, BackupError> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Err(StoreError::Missing(dir.display().to_string()).into());
    }
    is_free(to)?;
    log_is_sound(dir)?;
    let from = dir.canonicalize().map_err(at(dir))?;
    let draft = Draft(beside(to)?);
    own_file(&draft.0)?;
    let mark = backup::copy(&path, &draft.0, now, from)?;
    let report = sound(&draft.0)?;
    let bytes = finish(&draft.0, to)?;
    Ok(Copied { epoch: mark.epoch, bytes, report })
}

/// Where the restored hub's secret comes from.
#[derive(Clone, Debug)]
pub enum SecretFrom<'a> {
    /// A copy of the original's file.
    File(&'a Path),
    /// The data directory or the environment, where it must be already.
    Place { in_environment: bool },
    /// There is none any more: webhook secrets and the hub's own identities change.
    New,
}

/// What to restore, and how.
#[derive(Clone, Debug)]
pub struct Restore<'a> {
    /// A backup, or the file of a hub that was stopped.
    pub from: &'a Path,
    pub dir: &'a Path,
    pub secret: SecretFrom<'a>,
    /// The original may be running on this machine.
    pub beside_original: bool,
}

/// Makes a data directory of a backup, in an epoch of its own.
pub fn restore(order: &Restore<'_>, now: Timestamp) -> Result<Copied, BackupError> {
    let Restore { from, dir, ref secret, beside_original } = *order;
    if !from.is_file() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    for name in [FILE.to_owned(), format!("{FILE}-wal")] {
        is_free(&dir.join(name))?;
    }
    let own_key = dir.join(secret::FILE);
    match *secret {
        SecretFrom::File(_) => is_free(&own_key)?,
        SecretFrom::Place { in_environment } if !in_environment && !own_key.exists() => {
            return Err(BackupError::NoSecret(dir.to_owned()));
        }
        SecretFrom::Place { .. } | SecretFrom::New => {}
    }
    let draft = Draft(beside(&dir.join(FILE))?);
    own_directory(&draft.0)?;
    let copy = draft.0.join(FILE);
    own_file(&copy)?;
    fs::copy(from, &copy).map_err(at(from))?;
    if let Some(Mark { from: original, .. }) = backup::mark_of(&copy)? {
        if is_in_use(&original) && !beside_original {
            return Err(BackupError::OriginalRuns(original));
        }
        backup::unmark(&copy)?;
    }
    sound(&copy)?;
    // The history says that what follows did not happen at the original.
    let epoch = offline::run(&draft.0, Command::BeginEpoch, now)?.next.epoch;
    let report = sound(&copy)?;
    if let SecretFrom::File(key) = *secret {
        HubSecret::copy(key, dir)?;
    }
    let bytes = finish(&copy, &dir.join(FILE))?;
    Ok(Copied { epoch, bytes, report })
}

/// Recounts a copy, which must add up.
fn sound(path: &Path) -> Result<Report, BackupError> {
    let report = audit_file(path)?;
    let mut breaches = report.checks.iter().flat_map(|check| &check.breaches);
    match breaches.next().cloned() {
        None if report.is_clean() => Ok(report),
        first => {
            let first = first.unwrap_or_default();
            Err(BackupError::Unsound { report: Box::new(report), first })
        }
    }
}

/// Gives a finished file its name, for good: content, name and directory are synced.
fn finish(draft: &Path, to: &Path) -> Result<u64, BackupError> {
    let file = File::open(draft).map_err(at(draft))?;
    file.sync_all().map_err(at(draft))?;
    let bytes = file.metadata().map_err(at(draft))?.len();
    is_free(to)?;
    fs::rename(draft, to).map_err(at(to))?;
    let folder = folder(to);
    secret::sync_directory(folder).map_err(at(folder))?;
    Ok(bytes)
}

fn is_free(path: &Path) -> Result<(), BackupError> {
    if path.symlink_metadata().is_ok() { Err(BackupError::Exists(path.to_owned())) } else { Ok(()) }
}

/// A name that is nobody's yet, in the same directory.
fn beside(path: &Path) -> Result<PathBuf, BackupError> {
    let folder = folder(path);
    own_directory(folder)?;
    let nonce = getrandom::u64().map_err(io::Error::other).map_err(at(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(folder.join(format!(".{name}.{nonce:016x}.new")))
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// A new file that only its owner can read: what agents say to each other stands in it.
fn own_file(path: &Path) -> Result<(), BackupError> {
    let mut options = OpenOptions::new();
    secret::owner_only(options.write(true).create_new(true)).open(path).map_err(at(path))?;
    Ok(())
}

fn own_directory(path: &Path) -> Result<(), BackupError> {
    let mut make = fs::DirBuilder::new();
    make.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.create(path).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }
}

/// What is being made, and is gone if it is not finished.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ =
            if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}
