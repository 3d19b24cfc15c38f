//! Backups: copies a running hub's store into one file, and restores a data directory from it.
//!
//! A file with its final name is complete and audited: both directions write under another name,
//! audit the result and rename it last. A backup does not contain the hub secret, since a stolen
//! store must reveal no key; the secret is copied separately.

#[cfg(all(test, unix))]
mod database_tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rialto_core::command::Command;
use rialto_core::time::Timestamp;

use crate::audit::{Report, audit_file};
use crate::offline;
use crate::permissions;
use crate::secret::{self, HubSecret, SecretError};
use crate::store::StoreError;
use crate::store::log::log_paths;
use crate::store::postgres::admin::DatabaseAdmin;
use crate::store::sqlite::backup::{self, BackupMarker};
use crate::store::sqlite::{DB_FILE, check_wal_of_stopped_hub, is_in_use};

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} already exists; choose another path, existing files are never overwritten")]
    Exists(PathBuf),
    #[error("{0} does not exist")]
    Missing(PathBuf),
    /// The given file is not a store of a hub, or has another version.
    #[error("{path} cannot be restored: {source}")]
    NoBackup { path: PathBuf, source: StoreError },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The audit of the copy found breaches. The copy is deleted.
    #[error("the audit of the copy found {} problems, first: {first}", .report.breach_count())]
    AuditFailed { report: Box<Report>, first: String },
    #[error("the hub this backup was taken from is running on {0}")]
    OriginalRunning(PathBuf),
    #[error(
        "a backup does not contain the hub secret, and {0} has none; copy the original's hub.key"
    )]
    SecretMissing(PathBuf),
    /// The file given as the hub secret has another content.
    #[error("{0} is not the hub.key of a hub: it must hold exactly 32 bytes")]
    WrongKey(PathBuf),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// A finished backup or restore.
#[derive(Debug)]
pub struct CopySummary {
    /// The epoch of the copied store, or of the restored hub.
    pub epoch: u64,
    pub bytes: u64,
    pub report: Report,
}

/// Copies the store of a data directory into one file. A hub running on it continues.
pub fn create_backup(dir: &Path, to: &Path, now: Timestamp) -> Result<CopySummary, BackupError> {
    let path = dir.join(DB_FILE);
    if !path.exists() {
        return Err(StoreError::Missing(dir.display().to_string()).into());
    }
    check_target(to)?;
    check_wal_of_stopped_hub(dir)?;
    let from = dir.canonicalize().map_err(io_error_at(dir))?;
    write_backup(to, |copy| backup::copy_store(dir, copy, now, from))
}

/// Copies a hub in PostgreSQL into the same kind of file. Its nodes continue.
pub fn create_backup_of_database(
    url: &str,
    to: &Path,
    now: Timestamp,
) -> Result<CopySummary, BackupError> {
    let mut database = DatabaseAdmin::open(url)?;
    check_target(to)?;
    // No directory: whether the original runs cannot be seen from its lock.
    let from = PathBuf::from(database.name());
    write_backup(to, |copy| {
        backup::write_copy(copy, now, from, |db| {
            match database.read_into(db)?.problems.into_iter().next() {
                None => Ok(()),
                Some(problem) => Err(StoreError::Corrupt(format!("the log: {problem}"))),
            }
        })
    })
}

fn check_target(to: &Path) -> Result<(), BackupError> {
    require_absent(to)?;
    // A missing directory is probably a typing error; only the hub's own directory is created.
    match folder(to).is_dir() {
        true => Ok(()),
        false => Err(BackupError::Missing(folder(to).to_owned())),
    }
}

fn write_backup(
    to: &Path,
    write: impl FnOnce(&Path) -> Result<BackupMarker, StoreError>,
) -> Result<CopySummary, BackupError> {
    let (copy, _draft) = stage_file(to)?;
    let mark = write(&copy)?;
    let report = audit_copy(&copy)?;
    let bytes = publish_file(&copy, to)?;
    Ok(CopySummary { epoch: mark.epoch, bytes, report })
}

/// Where the restored hub's secret comes from.
#[derive(Clone, Debug)]
pub enum SecretSource<'a> {
    /// A copy of the original's file.
    File(&'a Path),
    /// The data directory or the environment, where it must exist already.
    Existing { in_environment: bool },
    /// A new secret: webhook secrets and the hub's own identities change.
    New,
}

/// What to restore, and how.
#[derive(Clone, Debug)]
pub struct RestoreOptions<'a> {
    /// A backup, or the file of a stopped hub.
    pub from: &'a Path,
    pub dir: &'a Path,
    pub secret: SecretSource<'a>,
    /// The original may be running on this machine.
    pub allow_running_original: bool,
}

/// Creates a data directory from a backup, in a new epoch.
pub fn restore_backup(
    order: &RestoreOptions<'_>,
    now: Timestamp,
) -> Result<CopySummary, BackupError> {
    let RestoreOptions { from, dir, ref secret, allow_running_original: beside_original } = *order;
    if !from.is_file() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    let [first, second] = log_paths(dir);
    for path in [dir.join(DB_FILE), dir.join(format!("{DB_FILE}-wal")), first, second] {
        require_absent(&path)?;
    }
    let own_key = dir.join(secret::FILE_NAME);
    match *secret {
        SecretSource::File(_) => require_absent(&own_key)?,
        SecretSource::Existing { in_environment } if !in_environment && !own_key.exists() => {
            return Err(BackupError::SecretMissing(dir.to_owned()));
        }
        SecretSource::Existing { .. } | SecretSource::New => {}
    }
    let draft = StagingDir::create_beside(&dir.join(DB_FILE))?;
    let copy = draft.0.join(DB_FILE);
    let mut content = File::open(from).map_err(io_error_at(from))?;
    io::copy(&mut content, &mut create_private_file(&copy)?).map_err(io_error_at(from))?;
    let mark = backup::read_marker_of_file(&copy)
        .map_err(|source| BackupError::NoBackup { path: from.to_owned(), source })?;
    if let Some(BackupMarker { from: original, .. }) = mark {
        if is_in_use(&original) && !beside_original {
            return Err(BackupError::OriginalRunning(original));
        }
        backup::remove_marker(&copy)?;
    }
    audit_copy(&copy)?;
    // The new epoch marks in the history that what follows did not happen at the original.
    let epoch = offline::run_command(&draft.0, Command::BeginEpoch, now)?.next.epoch;
    let report = audit_copy(&copy)?;
    if let SecretSource::File(key) = *secret {
        HubSecret::import_file(key, dir).map_err(|error| match error {
            SecretError::InvalidFile(path) if path == *key => BackupError::WrongKey(path),
            error => error.into(),
        })?;
    }
    let finished = publish_file(&copy, &dir.join(DB_FILE));
    if finished.is_err() && matches!(secret, SecretSource::File(_)) {
        // It was copied here just now.
        let _ = fs::remove_file(own_key);
    }
    Ok(CopySummary { epoch, bytes: finished?, report })
}

/// A private path beside a file that does not exist yet, for what gets its name with
/// [`publish_staged`]. Whatever is left is deleted with the returned guard.
pub(crate) fn stage_file(to: &Path) -> Result<(PathBuf, StagingDir), BackupError> {
    let draft = StagingDir::create_beside(to)?;
    let path = draft.0.join(DB_FILE);
    create_private_file(&path)?;
    Ok((path, draft))
}

/// Gives a staged file its name, once everything in it is on disk.
pub(crate) fn publish_staged(draft: &Path, to: &Path) -> Result<u64, BackupError> {
    publish_file(draft, to)
}

/// Lets a database that lost its newest changes go on: the hub begins a new epoch, as after a
/// restore. Refused while nodes run.
pub fn accept_database(url: &str, now: Timestamp) -> Result<u64, StoreError> {
    Ok(offline::run_command_in_database(url, Command::BeginEpoch, now)?.next.epoch)
}

/// Audits a copy and refuses one with breaches.
fn audit_copy(path: &Path) -> Result<Report, BackupError> {
    let report = audit_file(path)?;
    let mut breaches = report.checks.iter().flat_map(|check| &check.breaches);
    match breaches.next().cloned() {
        None if report.is_clean() => Ok(report),
        first => {
            let first = first.unwrap_or_default();
            Err(BackupError::AuditFailed { report: Box::new(report), first })
        }
    }
}

/// Gives a finished file its final name: content, name and directory are synced.
fn publish_file(draft: &Path, to: &Path) -> Result<u64, BackupError> {
    let file = File::open(draft).map_err(io_error_at(draft))?;
    file.sync_all().map_err(io_error_at(draft))?;
    let bytes = file.metadata().map_err(io_error_at(draft))?.len();
    require_absent(to)?;
    fs::rename(draft, to).map_err(io_error_at(to))?;
    let folder = folder(to);
    secret::sync_directory(folder).map_err(io_error_at(folder))?;
    Ok(bytes)
}

fn require_absent(path: &Path) -> Result<(), BackupError> {
    if path.symlink_metadata().is_ok() { Err(BackupError::Exists(path.to_owned())) } else { Ok(()) }
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// A new file that only its owner can read: it contains the agents' messages.
fn create_private_file(path: &Path) -> Result<File, BackupError> {
    let mut options = OpenOptions::new();
    secret::set_owner_only(options.write(true).create_new(true))
        .open(path)
        .map_err(io_error_at(path))
}

fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }
}

/// A staging directory, deleted with everything left in it, and with the parent directories that
/// were created for it and are empty.
pub(crate) struct StagingDir(PathBuf, Vec<PathBuf>);

impl StagingDir {
    /// Creates one with an unused name, so that a finished file only needs to be renamed.
    fn create_beside(path: &Path) -> Result<Self, BackupError> {
        let nonce = getrandom::u64().map_err(io::Error::other).map_err(io_error_at(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let dir = folder(path).join(format!(".{name}.{nonce:016x}.new"));
        let above = dir.ancestors().skip(1);
        let new = above.take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let draft = Self(dir.clone(), new.map(Path::to_owned).collect());
        permissions::create_private_dir(&dir).map_err(io_error_at(&dir))?;
        Ok(draft)
    }
}

impl Drop for StagingDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        for made in &self.1 {
            // A directory that is not empty stays, and so do those above it.
            let _ = fs::remove_dir(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::changes::ExpiredRows;
    use rialto_core::event::{Event, HistoryLine};

    use super::*;
    use crate::audit::audit_dir;
    use crate::fixtures::{ModelHub, agent_in, enrol, open};
    use crate::store::sqlite::SqliteStore;
    use crate::store::{PageQuery, Row, Store};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    /// A hub with two agents and a job, and its secret; the store is still open.
    fn running(dir: &Path) -> (SqliteStore, ModelHub) {
        HubSecret::load_or_create(dir, None).expect("a secret");
        let mut store = SqliteStore::open(dir).expect("an empty directory");
        let mut script = ModelHub::default();
        let mut keep = |script: &mut ModelHub, command| {
            let (answer, changes) = script.run(command);
            store.commit(&changes, &ExpiredRows::default()).expect("there is space");
            answer
        };
        let asker = keep(&mut script, Command::Register(Box::new(enrol("ada", "ada", &[]))));
        let worker = enrol("bob", "bob", &[("sum", "0")]);
        keep(&mut script, Command::Register(Box::new(worker)));
        let order = open(1, agent_in(&asker), "sum", "0", script.now);
        keep(&mut script, Command::OpenJob(Box::new(order)));
        (store, script)
    }

    fn order<'a>(from: &'a Path, dir: &'a Path, key: &'a Path) -> RestoreOptions<'a> {
        RestoreOptions { from, dir, secret: SecretSource::File(key), allow_running_original: false }
    }

    fn lines(dir: &Path) -> Vec<HistoryLine> {
        let store = SqliteStore::open(dir).expect("free");
        let page = PageQuery::Lines { after: Default::default(), limit: 1_000 };
        let rows =
            store.open_reader().and_then(|mut reader| reader.load_page(page)).expect("history");
        let line = |row| if let Row::Line(line) = row { line } else { panic!("{row:?}") };
        rows.into_iter().map(line).collect()
    }

    #[test]
    fn a_backup_of_a_running_hub_becomes_a_hub_in_an_epoch_of_its_own() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, script) = running(old.path());
        let (file, dir) = (new.path().join("monday.db"), new.path().join("data"));
        let copied = create_backup(old.path(), &file, NOW).expect("a copy");
        assert_eq!((copied.epoch, copied.report.is_clean()), (1, true));
        assert!(!new.path().join("monday.db-wal").exists(), "a single file");
        drop(store);
        let key = old.path().join(secret::FILE_NAME);
        let restored = restore_backup(&order(&file, &dir, &key), NOW).expect("a hub");
        assert_eq!(restored.epoch, 2);
        assert!(audit_dir(&dir).expect("a store").is_clean());
        assert_eq!(fs::read(dir.join(secret::FILE_NAME)).unwrap(), fs::read(&key).unwrap());
        let (before, after) = (lines(old.path()), lines(&dir));
        assert_eq!(after[..before.len()], before[..], "the earlier history is the same");
        let begun = &after[before.len()..];
        assert_eq!(begun.len(), 1);
        assert_eq!(begun[0].events, [Event::HubRestored { epoch: 2 }]);
        let mut store = SqliteStore::open(&dir).expect("a hub may use it");
        let mut world = rialto_core::world::World::new(Default::default());
        store.load_world(&mut world).unwrap();
        assert_eq!(world.next.job, script.world.next.job);
        assert_eq!(world.live_jobs().count(), 1);
        let left: Vec<_> = fs::read_dir(new.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "no staging directory remains: {left:?}");
    }

    #[test]
    fn a_backup_is_no_hub_until_it_is_restored() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_store, _) = running(old.path());
        create_backup(old.path(), &new.path().join(DB_FILE), NOW).expect("a copy");
        let refused = SqliteStore::open(new.path()).err().expect("not a hub");
        assert!(matches!(refused, StoreError::IsBackup { epoch: 1 }), "{refused}");
        assert!(refused.to_string().contains("rialto restore"), "{refused}");
        let again = create_backup(new.path(), &new.path().join("copy"), NOW);
        assert!(matches!(again, Err(BackupError::Store(StoreError::IsBackup { .. }))));
    }

    #[test]
    fn a_hub_whose_original_runs_on_this_machine_is_made_only_where_that_is_meant() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, _) = running(old.path());
        let (file, dir) = (new.path().join("b"), new.path().join("data"));
        create_backup(old.path(), &file, NOW).expect("a copy");
        let key = old.path().join(secret::FILE_NAME);
        let refused = restore_backup(&order(&file, &dir, &key), NOW);
        assert!(matches!(refused, Err(BackupError::OriginalRunning(_))), "{refused:?}");
        assert!(!dir.join(DB_FILE).exists() && !dir.join(secret::FILE_NAME).exists());
        let beside = RestoreOptions { allow_running_original: true, ..order(&file, &dir, &key) };
        assert_eq!(restore_backup(&beside, NOW).expect("a hub").epoch, 2);
        drop(store);
        let third = new.path().join("third");
        assert_eq!(restore_backup(&order(&file, &third, &key), NOW).expect("a hub").epoch, 2);
    }

    #[test]
    fn nothing_is_written_over_and_what_is_missing_is_named() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_store, _) = running(old.path());
        let file = new.path().join("b");
        let nowhere = create_backup(new.path(), &file, NOW);
        assert!(matches!(nowhere, Err(BackupError::Store(StoreError::Missing(_)))));
        create_backup(old.path(), &file, NOW).expect("a copy");
        let first = fs::read(&file).unwrap();
        assert!(matches!(create_backup(old.path(), &file, NOW), Err(BackupError::Exists(_))));
        assert_eq!(fs::read(&file).unwrap(), first);
        let key = old.path().join(secret::FILE_NAME);
        let over = restore_backup(&order(&file, old.path(), &key), NOW);
        assert!(matches!(over, Err(BackupError::Exists(_))), "{over:?}");
        let dir = new.path().join("data");
        let nothing = restore_backup(&order(&new.path().join("x"), &dir, &key), NOW);
        assert!(matches!(nothing, Err(BackupError::Missing(_))));
        let secret = SecretSource::Existing { in_environment: false };
        let without = RestoreOptions { secret, ..order(&file, &dir, &key) };
        assert!(matches!(restore_backup(&without, NOW), Err(BackupError::SecretMissing(_))));
    }

    #[test]
    fn what_fails_leaves_no_directory_behind_and_names_the_file_that_is_no_backup() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, _) = running(old.path());
        let nowhere = new.path().join("none/monday.db");
        let refused = create_backup(old.path(), &nowhere, NOW);
        assert!(matches!(refused, Err(BackupError::Missing(_))), "{refused:?}");
        drop(store);
        let (text, dir) = (new.path().join("notes.txt"), new.path().join("a/b"));
        create_private_file(&text).unwrap();
        fs::write(&text, "no store ".repeat(1_000)).unwrap();
        let key = old.path().join(secret::FILE_NAME);
        let refused =
            restore_backup(&order(&text, &dir, &key), NOW).expect_err("no backup").to_string();
        assert!(refused.contains("notes.txt cannot be restored"), "{refused}");
        let file = new.path().join("b.db");
        create_backup(old.path(), &file, NOW).expect("a copy");
        let wrong_key = restore_backup(&order(&file, &dir, &text), NOW);
        assert!(matches!(wrong_key, Err(BackupError::WrongKey(_))), "{wrong_key:?}");
        let mut left: Vec<_> =
            fs::read_dir(new.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["b.db", "notes.txt"]);
    }

    #[test]
    fn a_damaged_backup_does_not_become_a_hub() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, _) = running(old.path());
        let (file, dir) = (new.path().join("b"), new.path().join("data"));
        create_backup(old.path(), &file, NOW).expect("a copy");
        drop(store);
        let db = rusqlite::Connection::open(&file).unwrap();
        db.execute("UPDATE agents SET body = replace(body, 'ada', 'eve')", []).unwrap();
        drop(db);
        let key = old.path().join(secret::FILE_NAME);
        let refused = restore_backup(&order(&file, &dir, &key), NOW);
        assert!(matches!(refused, Err(BackupError::AuditFailed { .. })), "{refused:?}");
        assert!(!dir.join(DB_FILE).exists());
    }

    #[test]
    fn a_clean_stop_leaves_everything_in_the_file_though_readers_are_open() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, script) = running(old.path());
        let reader = store.open_reader().expect("a reader");
        drop(store);
        let log =
            fs::metadata(old.path().join(format!("{DB_FILE}-wal"))).map_or(0, |log| log.len());
        assert_eq!(log, 0, "nothing is left in the WAL");
        fs::copy(old.path().join(DB_FILE), new.path().join(DB_FILE)).unwrap();
        drop(reader);
        let mut copy = SqliteStore::open(new.path()).expect("the file alone is complete");
        assert_eq!(copy.load_hot_rows().unwrap().next, Some(script.world.next));
    }
}
