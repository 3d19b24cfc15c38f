//! Backups of hubs in a real PostgreSQL, and databases that lost their newest changes.

use rialto_core::changes::ExpiredRows;
use rialto_core::command::Command;
use rialto_core::event::Event;

use super::*;
use crate::audit::audit_database;
use crate::audit::tests::copy;
use crate::cluster::{NodeId, NodeReport};
use crate::fixtures::enrol;
use crate::migrate::migrate;
use crate::migrate::tests::{NOW, database, directory, hub_on, open, world};
use crate::store::sqlite::SqliteStore;
use crate::store::{PageQuery, Row, Store};
use crate::testkit::postgres::TestDatabase;

#[test]
fn a_backup_of_a_database_is_a_file_that_can_be_restored() {
    const NAME: &str = "backup::a_backup_of_a_database_is_a_file_that_can_be_restored";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let source = copy();
    migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    // A node that runs: its newest batch is in the log only.
    let mut store = open(&target);
    let mut hub = hub_on(&mut store);
    let (_, changes) = hub.run(Command::Register(Box::new(enrol("newest", "newest", &[]))));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    let folder = tempfile::tempdir().unwrap();
    let (file, dir) = (folder.path().join("monday.db"), folder.path().join("data"));
    let made = create_backup_of_database(&target.url(), &file, NOW).expect("a copy");
    assert_eq!((made.epoch, made.report.is_clean()), (1, true));
    let order = RestoreOptions {
        from: &file,
        dir: &dir,
        secret: SecretSource::New,
        allow_running_original: false,
    };
    assert_eq!(restore_backup(&order, NOW).expect("a hub").epoch, 2);
    let restored = world(&mut SqliteStore::open(&dir).expect("free"));
    assert_eq!(restored.next.agent, hub.world.next.agent);
    // And on in PostgreSQL again.
    let Some(second) = TestDatabase::create(NAME) else { return };
    let moved = migrate(&directory(&dir), &database(&second), None).expect("it is empty");
    assert_eq!(moved.epoch, 2);
}

#[test]
fn a_database_that_lost_its_end_goes_on_in_an_epoch_of_its_own() {
    const NAME: &str = "backup::a_database_that_lost_its_end_goes_on_in_an_epoch_of_its_own";
    let Some(target) = TestDatabase::create(NAME) else { return };
    let source = copy();
    let done = migrate(&directory(source.path()), &database(&target), None).expect("it is empty");
    let store = open(&target);
    let mut shared = store.open_shared_log().unwrap().expect("nodes share it");
    shared.report(&NodeReport { node: NodeId(7), ..NodeReport::default() }).expect("reported");
    let refused = accept_database(&target.url(), NOW);
    assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
    target.run_sql("UPDATE nodes SET seen = seen - interval '11 seconds'").unwrap();
    drop((shared, store));
    assert_eq!(accept_database(&target.url(), NOW).expect("no node runs"), 2);
    let mut store = open(&target);
    assert_eq!(store.place().number, done.batch + 1);
    assert_eq!(world(&mut store).next.epoch, 2);
    let page = PageQuery::Lines { after: Default::default(), limit: 100_000 };
    let lines = store.open_reader().and_then(|mut reader| reader.load_page(page)).expect("history");
    let Some(Row::Line(last)) = lines.last() else { panic!("there is history") };
    assert_eq!(last.events, [Event::HubRestored { epoch: 2 }]);
    assert_eq!(target.run_sql("SELECT epoch, node FROM lease").unwrap(), "1|0", "it is free again");
    assert!(audit_database(&target.url()).expect("a hub").is_clean());
}
