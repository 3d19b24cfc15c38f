//! The schema of a hub: the log, the lease, and the tables of SQLite with the same columns, so that
//! rows can be copied both ways as they are.
//!
//! Two columns differ, because `text` in PostgreSQL has no NUL character and both may contain one:
//! `notices.body` and `turns.skill` are `bytea`.

use rialto_core::encoding::BATCH_VERSION;

use super::session::{Connection, Session, store_error};
use crate::cluster::known_formats;
use crate::store::StoreError;

/// The version this program writes.
pub const SCHEMA_VERSION: i32 = 1;

/// How often creating the schema is tried while other nodes do the same.
const ATTEMPTS: usize = 3;

/// Lets tests use a server that does not sync. Only builds with debug assertions read it.
#[cfg(debug_assertions)]
const ALLOW_FSYNC_OFF: &str = "RIALTO_TEST_ALLOW_FSYNC_OFF";

const TABLES: &str = "
    CREATE TABLE log (seq bigint PRIMARY KEY, epoch bigint NOT NULL, format int NOT NULL,
        at timestamptz NOT NULL DEFAULT now(), body bytea NOT NULL, hash bytea NOT NULL);
    ALTER TABLE log ALTER COLUMN body SET STORAGE EXTERNAL;
    -- Changed often, and never longer than a page.
    CREATE TABLE lease (one bool PRIMARY KEY CHECK (one), epoch bigint NOT NULL,
        node bigint NOT NULL, address text NOT NULL, session int NOT NULL, beat bigint NOT NULL)
        WITH (fillfactor = 10);
    INSERT INTO lease VALUES (true, 0, 0, '', 0, 0);
    CREATE TABLE nodes (node bigint PRIMARY KEY, address text NOT NULL, version text NOT NULL,
        format_oldest int NOT NULL, format_newest int NOT NULL, applied bigint NOT NULL,
        seen timestamptz NOT NULL);
    CREATE TABLE meta (one bool PRIMARY KEY CHECK (one), hub bytea NOT NULL, format int NOT NULL,
        schema_version int NOT NULL, secret_check bytea);
    -- Up to where the tables below are complete.
    CREATE TABLE checkpoint (one bool PRIMARY KEY CHECK (one), seq bigint NOT NULL,
        hash bytea NOT NULL);

    CREATE TABLE agents    (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE desks     (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE owners    (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL,
                            available bigint NOT NULL CHECK (available >= 0 OR id = 0),
                            held bigint NOT NULL CHECK (held >= 0));
    CREATE TABLE keys      (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE aliases   (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    -- Indexed by its hash: an index takes no long values.
    CREATE TABLE turns     (skill bytea NOT NULL, body text NOT NULL, crc bigint NOT NULL);
    CREATE UNIQUE INDEX turns_skill ON turns (sha256(skill));
    CREATE TABLE jobs      (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE archive   (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE pushes    (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE memories  (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE entries   (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL,
                            kind text NOT NULL, payer bigint NOT NULL, payee bigint NOT NULL,
                            amount bigint NOT NULL CHECK (amount > 0));
    CREATE TABLE transfers (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    -- inbox, before, sender and follows are 0 where there is none; without words the body is JSON.
    CREATE TABLE notices   (id bigint PRIMARY KEY, inbox bigint NOT NULL, position bigint NOT NULL,
                            before bigint NOT NULL, at bigint NOT NULL, sender bigint NOT NULL,
                            follows bigint NOT NULL, words text NOT NULL, body bytea NOT NULL,
                            crc bigint NOT NULL);
    CREATE TABLE arrivals  (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE mailboxes (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE outcomes  (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE lines     (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE postings  (id bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
    CREATE TABLE claims    (id bigint PRIMARY KEY, digest bytea NOT NULL, target text NOT NULL,
                            crc bigint NOT NULL);
    CREATE INDEX claims_digest ON claims (digest, id);
    CREATE TABLE state     (name text PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
";

/// What the database says of the hub.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// Random, made with the schema.
    pub hub: [u8; 16],
    /// The format of new batches.
    pub format: i32,
}

/// Creates the schema if there is none, and refuses one that this program cannot use, or a server
/// that may lose commits.
pub fn open(session: &mut Session, schema: &str) -> Result<Meta, StoreError> {
    session.run_again(check_server)?;
    let mut attempts = 0;
    while !session.run_again(|connection| exists(connection, schema))? {
        attempts += 1;
        match session.run(|connection| create(connection, schema)) {
            // Another node may have been faster, and then its tables are there.
            Err(error) if attempts == ATTEMPTS => return Err(error),
            _ => {}
        }
    }
    session.run_again(read_meta)
}

/// Whether the schema has a hub.
pub fn exists(connection: &mut Connection, schema: &str) -> Result<bool, StoreError> {
    let meta = format!("{schema}.meta");
    let found = connection.query_one("SELECT to_regclass($1) IS NOT NULL", &[&meta])?;
    found.try_get(0).map_err(store_error)
}

/// Creates everything in one transaction, so that a schema is whole or not there.
fn create(connection: &mut Connection, schema: &str) -> Result<(), StoreError> {
    connection.run_script(&format!("BEGIN; {}; COMMIT", creation_script(schema)?))
}

/// Creates everything, within a transaction of the caller.
pub fn create_in_transaction(connection: &Connection, schema: &str) -> Result<(), StoreError> {
    connection.run_script(&creation_script(schema)?)
}

fn creation_script(schema: &str) -> Result<String, StoreError> {
    let mut hub = [0; 16];
    getrandom::fill(&mut hub).map_err(|error| StoreError::Failed(error.to_string()))?;
    let (hub, zeros) = (hex::encode(hub), hex::encode([0; 32]));
    Ok(format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; {TABLES}
         INSERT INTO meta VALUES (true, '\\x{hub}', {BATCH_VERSION}, {SCHEMA_VERSION}, NULL);
         INSERT INTO checkpoint VALUES (true, 0, '\\x{zeros}')"
    ))
}

/// Refuses a server that may lose what it has committed.
pub fn check_server(connection: &mut Connection) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('fsync'), current_setting('full_page_writes'),
                      current_setting('server_encoding')";
    let row = connection.query_one(sql, &[])?;
    let setting = |at: usize| row.try_get::<_, String>(at).map_err(store_error);
    if setting(2)? != "UTF8" {
        return Err(StoreError::Failed(format!(
            "the database has the encoding {}; create one with the encoding UTF8",
            setting(2)?
        )));
    }
    match is_unsafe_allowed() {
        true => Ok(()),
        false => check_durability(&setting(0)?, &setting(1)?),
    }
}

fn check_durability(fsync: &str, full_page_writes: &str) -> Result<(), StoreError> {
    for (name, value) in [("fsync", fsync), ("full_page_writes", full_page_writes)] {
        if value != "on" {
            return Err(StoreError::Failed(format!(
                "the database server runs with {name} = {value} and would lose committed changes \
                 in a crash; set {name} = on in postgresql.conf and reload the server"
            )));
        }
    }
    Ok(())
}

#[cfg(debug_assertions)]
fn is_unsafe_allowed() -> bool {
    std::env::var_os(ALLOW_FSYNC_OFF).is_some_and(|value| value == "1")
}

#[cfg(not(debug_assertions))]
const fn is_unsafe_allowed() -> bool {
    false
}

/// What the database says of the hub; refuses what this program cannot read.
pub fn read_meta(connection: &mut Connection) -> Result<Meta, StoreError> {
    let row = connection.query_one("SELECT hub, format, schema_version FROM meta", &[])?;
    let hub: &[u8] = row.try_get(0).map_err(store_error)?;
    let hub = hub
        .try_into()
        .map_err(|_| StoreError::Corrupt("the id of the hub does not have 16 bytes".to_owned()))?;
    let number = |at: usize| row.try_get::<_, i32>(at).map_err(store_error);
    let (format, version) = (number(1)?, number(2)?);
    if version > SCHEMA_VERSION {
        let (found, known) = (i64::from(version), i64::from(SCHEMA_VERSION));
        return Err(StoreError::NewerSchema { found, known });
    }
    check_format(format)?;
    Ok(Meta { hub, format })
}

/// Refuses batches that a newer program wrote.
pub fn check_format(found: i32) -> Result<(), StoreError> {
    let (_, known) = known_formats();
    match found > i32::from(known) {
        true => Err(StoreError::NewerFormat { found, known }),
        false => Ok(()),
    }
}

/// Compares a value that only nodes with the hub's secret have, or stores it if it is the first.
pub fn check_secret(connection: &mut Connection, check: [u8; 32]) -> Result<(), StoreError> {
    let check = &check[..];
    let set = "UPDATE meta SET secret_check = $1 WHERE secret_check IS NULL";
    connection.execute(set, &[&check])?;
    let row = connection.query_one("SELECT secret_check FROM meta", &[])?;
    match row.try_get::<_, &[u8]>(0).map_err(store_error)? == check {
        true => Ok(()),
        false => Err(StoreError::Failed(
            "this node has another secret than the hub in the database; give every node the same \
             RIALTO_HUB_SECRET, or name another schema"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_lose_commits_is_refused() {
        check_durability("on", "on").unwrap();
        for (fsync, full_page_writes, name) in
            [("off", "on", "fsync = on"), ("on", "off", "full_page_writes = on")]
        {
            let error = check_durability(fsync, full_page_writes).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
