//! Moves a hub between a data directory and a PostgreSQL database, both ways.
//!
//! The source is read as of one moment into a scratch file and audited there. The target must be
//! empty. What was written to it is read again, audited, and compared with the scratch file row by
//! row, before it becomes visible. If anything fails, the target is as it was. The source is never
//! changed.

#[cfg(all(test, unix))]
pub(crate) mod tests;

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

use crate::audit::{Report, audit, open_scratch};
use crate::backup::{self, BackupError};
use crate::secret::{self, HubSecret, SecretError};
use crate::store::StoreError;
use crate::store::log::{Place, log_paths};
use crate::store::postgres::admin::DatabaseAdmin;
use crate::store::sqlite::snapshot::StoreSnapshot;
use crate::store::sqlite::{
    DB_FILE, acquire_lock, check_wal_of_stopped_hub, checkpoint, inboxes, read, schema, store_error,
};

/// Where a hub is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Directory(PathBuf),
    /// The URL of a PostgreSQL database.
    Database(String),
}

impl Location {
    /// A database URL begins with its scheme; anything else is a path.
    pub fn parse(text: &str) -> Self {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        if is_url { Self::Database(text.to_owned()) } else { Self::Directory(text.into()) }
    }
}

/// Why nothing was migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{0} already contains a hub")]
    NotEmpty(String),
    /// What nodes append after the snapshot would be missing in the target.
    #[error("{count} nodes are running on {name}")]
    NodesRunning { name: String, count: usize },
    #[error("the audit of the {side} found {} problems, first: {first}", .report.breach_count())]
    AuditFailed { side: &'static str, report: Box<Report>, first: String },
    #[error("the copy differs from the source in the table {0}")]
    Differs(String),
    #[error("the secret at hand is not the one of this hub")]
    OtherSecret,
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A finished migration.
#[derive(Debug)]
pub struct MigrationSummary {
    pub rows: u64,
    /// The number of the newest batch, which the target continues.
    pub batch: u64,
    /// The hub's epoch, which stays the same.
    pub epoch: u64,
    /// Whether the target has the hub's secret already.
    pub has_secret: bool,
    pub report: Report,
}

/// Copies a hub to an empty place. `secret` is the hub's secret if it is at hand, in the
/// environment or in a file; that of a source directory is found there.
pub fn migrate(
    from: &Location,
    to: &Location,
    secret: Option<HubSecret>,
) -> Result<MigrationSummary, MigrateError> {
    let mut scratch = open_scratch()?;
    let (secret, secret_check) = match from {
        Location::Directory(dir) => {
            read_directory(dir, &mut scratch)?;
            let secret = match secret {
                Some(secret) => Some(secret),
                None => HubSecret::load_if_exists(dir)?,
            };
            (secret, None)
        }
        Location::Database(url) => (secret, read_database(url, &scratch)?),
    };
    let own_check = secret.as_ref().map(HubSecret::cluster_check);
    if let (Some(own), Some(expected)) = (own_check, secret_check)
        && own != expected
    {
        return Err(MigrateError::OtherSecret);
    }
    accept(&scratch, "source")?;
    let contents = TableDigests::of(&scratch)?;
    let (report, has_secret) = match to {
        Location::Directory(dir) => {
            (write_directory(dir, &scratch, &contents, secret.as_ref())?, secret.is_some())
        }
        Location::Database(url) => {
            let check = own_check.or(secret_check);
            (write_database(url, &scratch, &contents, check)?, false)
        }
    };
    let place = checkpoint::read_place(&scratch)?;
    let epoch = read::load_counters(&scratch)?.unwrap_or_default().epoch;
    Ok(MigrationSummary { rows: contents.rows(), batch: place.number, epoch, has_secret, report })
}

/// Copies a stopped hub into the scratch database, in the form of the current version.
fn read_directory(dir: &Path, scratch: &mut Connection) -> Result<(), MigrateError> {
    if !dir.join(DB_FILE).exists() {
        return Err(StoreError::Missing(dir.display().to_string()).into());
    }
    let _lock = acquire_lock(dir)?;
    check_wal_of_stopped_hub(dir)?;
    StoreSnapshot::open(dir)?.copy_to(scratch)?;
    schema::migrate(scratch)?;
    inboxes::complete_table(scratch)?;
    checkpoint::forget_log(scratch)?;
    Ok(())
}

/// Copies a hub without running nodes into the scratch database, and returns what its secret is
/// recognized by.
fn read_database(url: &str, scratch: &Connection) -> Result<Option<[u8; 32]>, MigrateError> {
    let mut database = DatabaseAdmin::open(url)?;
    let count = database.live_nodes()?.len();
    if count > 0 {
        return Err(MigrateError::NodesRunning { name: database.name(), count });
    }
    let log = database.read_into(scratch)?;
    if let Some(problem) = log.problems.into_iter().next() {
        return Err(StoreError::Corrupt(format!("the log: {problem}")).into());
    }
    let check = database.secret_check()?;
    Ok(check.and_then(|check| check.try_into().ok()))
}

fn write_directory(
    dir: &Path,
    scratch: &Connection,
    contents: &TableDigests,
    secret: Option<&HubSecret>,
) -> Result<Report, MigrateError> {
    let [first, second] = log_paths(dir);
    for path in [dir.join(DB_FILE), dir.join(format!("{DB_FILE}-wal")), first, second] {
        if path.symlink_metadata().is_ok() {
            return Err(MigrateError::NotEmpty(dir.display().to_string()));
        }
    }
    let own_secret = HubSecret::load_if_exists(dir)?;
    if let (Some(own), Some(secret)) = (&own_secret, secret)
        && own.cluster_check() != secret.cluster_check()
    {
        return Err(MigrateError::OtherSecret);
    }
    let (path, staging) = backup::stage_file(&dir.join(DB_FILE)).map_err(file_error)?;
    // `VACUUM INTO` needs a file that does not exist or is empty, and syncs nothing: publishing does.
    let name = path.display().to_string();
    scratch.execute("VACUUM INTO ?1", [&name]).map_err(store_error)?;
    let copy = Connection::open(&path).map_err(store_error)?;
    let report = accept(&copy, "target")?;
    contents.compare(&copy)?;
    copy.close().map_err(|(_, error)| store_error(error))?;
    if let Some(secret) = secret.filter(|_| own_secret.is_none()) {
        secret.write_file(dir)?;
    }
    let published = backup::publish_staged(&path, &dir.join(DB_FILE));
    if published.is_err() && own_secret.is_none() {
        // It was written here just now.
        let _ = std::fs::remove_file(dir.join(secret::FILE_NAME));
    }
    drop(staging);
    published.map_err(file_error)?;
    Ok(report)
}

fn write_database(
    url: &str,
    scratch: &Connection,
    contents: &TableDigests,
    secret_check: Option<[u8; 32]>,
) -> Result<Report, MigrateError> {
    let mut database = DatabaseAdmin::connect(url)?;
    if database.has_hub()? {
        return Err(MigrateError::NotEmpty(database.name()));
    }
    let again = open_scratch()?;
    let mut report = None;
    database.write_from(scratch, &again, secret_check, || {
        report = Some(accept(&again, "target")?);
        contents.compare(&again)
    })?;
    report.ok_or_else(|| StoreError::Failed("the copy was not audited".to_owned()).into())
}

/// Audits a copy and refuses one with breaches.
fn accept(copy: &Connection, side: &'static str) -> Result<Report, MigrateError> {
    let report = audit(copy)?;
    if report.is_clean() {
        return Ok(report);
    }
    let first = report.checks.iter().flat_map(|check| &check.breaches).next().cloned();
    let first = first.unwrap_or_default();
    Err(MigrateError::AuditFailed { side, report: Box::new(report), first })
}

fn file_error(error: BackupError) -> MigrateError {
    match error {
        BackupError::Store(error) => error.into(),
        BackupError::Secret(error) => error.into(),
        BackupError::Io { path, source } => MigrateError::Io { path, source },
        error => StoreError::Failed(error.to_string()).into(),
    }
}

/// The content of every table as a number of rows and a hash.
#[derive(Debug, PartialEq, Eq)]
struct TableDigests {
    tables: Vec<(String, u64, [u8; 32])>,
    place: Place,
}

impl TableDigests {
    fn of(db: &Connection) -> Result<Self, StoreError> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let mut statement = db.prepare(sql).map_err(store_error)?;
        let names = statement.query_map([], |row| row.get(0)).map_err(store_error)?;
        let names = names.collect::<Result<Vec<String>, _>>().map_err(store_error)?;
        let mut tables = Vec::new();
        for name in names {
            // What only SQLite has is made anew.
            let condition = match name.as_str() {
                "claim_index" => continue,
                "state" => "WHERE name = 'counters'",
                _ => "ORDER BY 1",
            };
            let (rows, hash) = digest(db, &format!("SELECT * FROM {name} {condition}"))?;
            tables.push((name, rows, hash));
        }
        Ok(Self { tables, place: checkpoint::read_place(db)? })
    }

    fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows, _)| rows).sum()
    }

    /// Compares a copy with this content.
    fn compare(&self, copy: &Connection) -> Result<(), MigrateError> {
        let copied = Self::of(copy)?;
        let different =
            std::iter::zip(&self.tables, &copied.tables).find(|(own, copy)| own != copy);
        match different {
            Some(((name, ..), _)) => Err(MigrateError::Differs(name.clone())),
            None if *self == copied => Ok(()),
            None => Err(MigrateError::Differs("state".to_owned())),
        }
    }
}

fn digest(db: &Connection, sql: &str) -> Result<(u64, [u8; 32]), StoreError> {
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(store_error)?;
    let (mut count, mut hash) = (0, Sha256::new());
    while let Some(row) = rows.next().map_err(store_error)? {
        count += 1;
        for column in 0..columns {
            let (kind, bytes) = match row.get_ref(column).map_err(store_error)? {
                ValueRef::Null => (0_u8, Vec::new()),
                ValueRef::Integer(number) => (1, number.to_le_bytes().to_vec()),
                ValueRef::Real(number) => (2, number.to_le_bytes().to_vec()),
                ValueRef::Text(bytes) => (3, bytes.to_vec()),
                ValueRef::Blob(bytes) => (4, bytes.to_vec()),
            };
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
    }
    Ok((count, hash.finalize().into()))
}
