//! The tables, and the migrations from older schema versions.
//!
//! Every row has a key assigned in order and a readable JSON body, protected by a checksum. Hot
//! tables have no other index: rows are only appended or changed by key.

use rusqlite::Connection;

use crate::store::StoreError;

/// One migration per schema version; a file goes through all that are new to it.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE agents   (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE desks    (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE owners   (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL,
                           available INTEGER NOT NULL CHECK (available >= 0 OR id = 0),
                           held INTEGER NOT NULL CHECK (held >= 0));
    CREATE TABLE keys     (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE aliases  (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE turns    (skill TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE jobs     (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE archive  (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE pushes   (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE memories (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE entries  (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL,
                           kind TEXT NOT NULL, payer INTEGER NOT NULL, payee INTEGER NOT NULL,
                           amount INTEGER NOT NULL CHECK (amount > 0));
    CREATE TABLE transfers(id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    -- inbox, before, sender and follows are 0 where there is none; without words the body is JSON.
    CREATE TABLE notices  (id INTEGER PRIMARY KEY, inbox INTEGER NOT NULL, position INTEGER NOT NULL,
                           before INTEGER NOT NULL, at INTEGER NOT NULL, sender INTEGER NOT NULL,
                           follows INTEGER NOT NULL, words TEXT NOT NULL, body TEXT NOT NULL,
                           crc INTEGER NOT NULL);
    CREATE TABLE arrivals (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    -- May lag behind the notices; opening the store catches up.
    CREATE TABLE mailboxes(id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE outcomes (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE lines    (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE claims   (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, target TEXT NOT NULL,
                           crc INTEGER NOT NULL);
    -- Filled behind, in slices, when the lane is idle: random keys are what makes writing slow.
    CREATE TABLE claim_index (digest BLOB PRIMARY KEY, claim INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE state    (name TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
", "
    CREATE TABLE postings (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
", "
    -- The same tables, but the newest batches are in the log beside the file. The rows `log` and
    -- `log_place` of `state` say which log, and up to which batch the tables are complete.
"];

/// The version this program writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Identifies a file as ours: "rial".
const APPLICATION_ID: i64 = 0x7269_616C;

/// Refuses a file of another program or of a later version, before anything is changed in it.
pub fn check_version(db: &Connection) -> Result<(), StoreError> {
    let number =
        |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(super::store_error);
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if tables > 0 && number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(StoreError::Corrupt("the database file was not created by rialto".to_owned()));
    }
    let found = number("PRAGMA user_version")?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION });
    }
    Ok(())
}

/// The version of a file; 0 for an empty one.
pub fn version(db: &Connection) -> Result<i64, StoreError> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(super::store_error)
}

/// Migrates the file to the current version.
pub fn migrate(db: &Connection) -> Result<(), StoreError> {
    let found = version(db)?;
    for (version, step) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let whole = format!(
            "BEGIN IMMEDIATE; {step} PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {version}; COMMIT;"
        );
        db.execute_batch(&whole).map_err(super::store_error)?;
    }
    Ok(())
}

/// An empty store in memory, with all its tables.
pub fn open_empty_in_memory() -> Result<Connection, StoreError> {
    let db = Connection::open_in_memory().map_err(super::store_error)?;
    migrate(&db)?;
    Ok(db)
}
