//! Hubs that move between a directory and a real PostgreSQL, and are audited there.

use rialto_core::changes::ExpiredRows;
use rialto_core::command::Command;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};

use super::*;
use crate::audit::tests::copy;
use crate::audit::{audit_database, audit_dir};
use crate::cluster::{NodeId, NodeReport};
use crate::fixtures::{ModelHub, enrol, snapshot};
use crate::store::Store;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::sqlite::{SqliteStore, claims};
use crate::testkit::postgres::TestDatabase;

pub const NOW: Timestamp = Timestamp(1_800_000_000_000);

pub fn directory(path: &Path) -> Location {
    Location::Directory(path.to_owned())
}

pub fn database(database: &TestDatabase) -> Location {
    Location::Database(database.url())
}

fn exists(database: &TestDatabase) -> bool {
    let sql = format!("SELECT to_regclass('{}.meta') IS NOT NULL", database.schema());
    database.run_sql(&sql).expect("the server runs") == "t"
}

pub fn world(store: &mut dyn Store) -> World {
    let mut world = World::new(Rules::default());
    store.load_world(&mut world).expect("it can be loaded");
    world
}

/// A hub that goes on from what a store has.
pub fn hub_on(store: &mut dyn Store) -> ModelHub {
    let mut hub = ModelHub::default();
    (hub.world, hub.now) = (world(store), NOW);
    hub
}

fn contents(dir: &Path) -> TableDigests {
    let db = Connection::open(dir.join(DB_FILE)).expect("a file");
    TableDigests::of(&db).expect("tables")
}

fn breaches(report: &Report) -> Vec<&'static str> {
    let checks = report.checks.iter().filter(|check| check.breaches_total > 0);
    checks.map(|check| check.name).collect()
}

pub fn open(database: &TestDatabase) -> PostgresStore {
    PostgresStore::open(&database.url(), PostgresOptions::default()).expect("it can be reached")
}

#[test]
fn a_hub_moves_to_postgresql_and_back_with_every_row_as_it_was() {
    const NAME: &str = "migrate::a_hub_moves_to_postgresql_and_back_with_every_row_as_it_was";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let (source, folder) = (copy(), tempfile::tempdir().unwrap());
    let before = contents(source.path());
    let done = migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    assert!(done.rows > 1_000 && done.rows == before.rows(), "{done:?}");
    assert!(!done.has_secret, "it is not in a database");
    assert_eq!(contents(source.path()), before, "the source is not changed");
    let report = audit_database(&target.url()).expect("it is a hub");
    assert_eq!(breaches(&report), [""; 0]);
    let dir_report = audit_dir(source.path()).expect("a hub");
    for check in dir_report.checks.iter().filter(|check| check.name != "file") {
        let found = report.checks.iter().find(|one| one.name == check.name).expect(check.name);
        // Rows of state that only SQLite has are checked too.
        assert!(
            found.rows.abs_diff(check.rows) <= 2,
            "{}: {} {}",
            check.name,
            found.rows,
            check.rows
        );
    }
    let mut there = open(&target);
    let mut old = SqliteStore::open(source.path()).expect("free");
    assert_eq!(snapshot(&world(&mut there), NOW), snapshot(&world(&mut old), NOW));
    drop((there, old));
    let back = folder.path().join("back");
    let done = migrate(&database(&target), &directory(&back), Some(HubSecret::from_bytes([7; 32])))
        .expect("it does not exist");
    assert!(done.has_secret && back.join(secret::FILE_NAME).exists());
    assert_eq!(contents(&back), before);
    assert!(audit_dir(&back).expect("a hub").is_clean());
    // A start neither reads all notices again nor keeps all claims in memory.
    let db = Connection::open(back.join(DB_FILE)).unwrap();
    let newest = |table: &str| {
        let sql = format!("SELECT max(id) FROM {table}");
        db.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
    };
    assert_eq!(inboxes::last_written_notice(&db).unwrap().0, newest("notices"));
    assert_eq!(claims::last_indexed(&db).unwrap().0, newest("claims"));
    drop(db);
    // The hub in the directory goes on.
    let mut store = SqliteStore::open(&back).expect("free");
    let mut hub = hub_on(&mut store);
    let (_, changes) = hub.run(Command::Register(Box::new(enrol("newest", "newest", &[]))));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    drop(store);
    assert!(audit_dir(&back).expect("a hub").is_clean());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no staging directory remains: {left:?}");
}

#[test]
fn the_log_goes_on_where_the_directory_was() {
    const NAME: &str = "migrate::the_log_goes_on_where_the_directory_was";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let source = copy();
    let done = migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    let mut store = open(&target);
    let mut hub = hub_on(&mut store);
    assert_eq!(store.place().number, done.batch);
    let (_, changes) = hub.run(Command::Register(Box::new(enrol("newest", "newest", &[]))));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    assert_eq!(store.place().number, done.batch + 1);
    // Not in the tables yet: the audit adds it, and so does the way back.
    let report = audit_database(&target.url()).expect("a hub");
    assert_eq!(breaches(&report), [""; 0]);
    let folder = tempfile::tempdir().unwrap();
    let back = folder.path().join("back");
    drop(store);
    let again = migrate(&database(&target), &directory(&back), None).expect("it does not exist");
    assert_eq!((again.batch, again.has_secret), (done.batch + 1, false));
    let mut store = SqliteStore::open(&back).expect("free");
    assert_eq!(snapshot(&world(&mut store), NOW), snapshot(&hub.world, NOW));
}

#[test]
fn what_has_a_hub_is_not_written_over_and_a_hub_in_use_is_not_moved() {
    const NAME: &str = "migrate::what_has_a_hub_is_not_written_over";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let (source, other) = (copy(), copy());
    let running = SqliteStore::open(source.path()).expect("free");
    let refused = migrate(&directory(source.path()), &database(&target), None);
    assert!(matches!(refused, Err(MigrateError::Store(StoreError::InUse(_)))), "{refused:?}");
    assert!(!exists(&target));
    drop(running);
    migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    let refused = migrate(&directory(other.path()), &database(&target), None);
    assert!(matches!(refused, Err(MigrateError::NotEmpty(_))), "{refused:?}");
    let before = contents(other.path());
    let refused = migrate(&database(&target), &directory(other.path()), None);
    assert!(matches!(refused, Err(MigrateError::NotEmpty(_))), "{refused:?}");
    assert_eq!(contents(other.path()), before);
    let store = open(&target);
    let mut shared = store.open_shared_log().unwrap().expect("nodes share it");
    shared.report(&NodeReport { node: NodeId(7), ..NodeReport::default() }).expect("reported");
    let folder = tempfile::tempdir().unwrap();
    let refused = migrate(&database(&target), &directory(&folder.path().join("x")), None);
    assert!(matches!(refused, Err(MigrateError::NodesRunning { count: 1, .. })), "{refused:?}");
    assert!(!folder.path().join("x").exists());
}

#[test]
fn a_source_with_a_breach_moves_nowhere() {
    const NAME: &str = "migrate::a_source_with_a_breach_moves_nowhere";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let source = copy();
    let db = Connection::open(source.path().join(DB_FILE)).unwrap();
    db.execute("UPDATE owners SET available = available + 1 WHERE id = 1", []).unwrap();
    drop(db);
    let refused = migrate(&directory(source.path()), &database(&target), None);
    assert!(
        matches!(refused, Err(MigrateError::AuditFailed { side: "source", .. })),
        "{refused:?}"
    );
    assert!(!exists(&target));
    let honest = copy();
    migrate(&directory(honest.path()), &database(&target), None).expect("it is empty");
    target.run_sql("UPDATE owners SET available = available + 1 WHERE id = 1").unwrap();
    assert_eq!(breaches(&audit_database(&target.url()).unwrap()), ["ledger.sums"]);
    let folder = tempfile::tempdir().unwrap();
    let refused = migrate(&database(&target), &directory(&folder.path().join("x")), None);
    assert!(
        matches!(refused, Err(MigrateError::AuditFailed { side: "source", .. })),
        "{refused:?}"
    );
    assert!(!folder.path().join("x").exists());
}

#[test]
fn another_secret_is_noticed_on_the_way_there_and_back() {
    const NAME: &str = "migrate::another_secret_is_noticed_on_the_way_there_and_back";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let source = copy();
    let own = HubSecret::from_bytes([7; 32]);
    own.write_file(source.path()).expect("it has none");
    migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    let store = open(&target);
    store.check_secret(own.cluster_check()).expect("the same");
    let other = HubSecret::from_bytes([8; 32]);
    assert!(store.check_secret(other.cluster_check()).is_err(), "a node with another one");
    drop(store);
    let folder = tempfile::tempdir().unwrap();
    let refused = migrate(&database(&target), &directory(&folder.path().join("x")), Some(other));
    assert!(matches!(refused, Err(MigrateError::OtherSecret)), "{refused:?}");
}

#[test]
fn the_audit_of_a_database_checks_the_chain_of_its_log() {
    const NAME: &str = "migrate::the_audit_of_a_database_checks_the_chain_of_its_log";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let mut store = open(&target);
    let mut hub = ModelHub::default();
    for name in ["ada", "bob", "cid", "dan"] {
        let (_, changes) = hub.run(Command::Register(Box::new(enrol(name, name, &[]))));
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    }
    let check = |sql: &str| {
        target.run_sql(sql).expect("valid");
        let report = audit_database(&target.url()).expect("a hub");
        let log = report.checks.iter().find(|check| check.name == "log").expect("it is checked");
        (log.rows, log.breaches.clone())
    };
    assert_eq!(check("SELECT 1"), (4, Vec::new()));
    let (_, found) = check("UPDATE checkpoint SET seq = 9");
    assert!(found[0].contains("complete up to batch 9"), "{found:?}");
    target.run_sql("UPDATE checkpoint SET seq = 0").unwrap();
    let (_, found) = check("UPDATE log SET body = body || '\\x00' WHERE seq = 3");
    assert!(found[0].contains("batch 3 is damaged"), "{found:?}");
    let (_, found) = check("DELETE FROM log WHERE seq = 3");
    assert!(found[0].contains("batch 3 is missing"), "{found:?}");
    let (_, found) = check("UPDATE log SET epoch = 5 WHERE seq = 2");
    assert!(found.iter().any(|one| one.contains("epoch")), "{found:?}");
}
