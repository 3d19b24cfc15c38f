//! Sessions that are ended, and sessions that are in the way.

use std::time::Duration;

use tokio_postgres::SimpleQueryMessage;

use super::*;
use crate::cluster::Lease;
use crate::store::postgres::session::{Connection, Session, SessionSettings};
use crate::store::postgres::url::Database;
use crate::store::postgres::{chains, shared_log as shared_log_sql};
use crate::testkit::postgres::{PrivatePostgres, Replication, ServerOptions};

impl Cluster {
    /// Ends all sessions of this cluster.
    fn end_sessions(&self) {
        let name = self.database.schema();
        self.sql(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
        ));
    }
}

impl Connection {
    /// The plan of a prepared statement with these arguments.
    fn explain(&self, execution: &str) -> String {
        let sql = format!("EXPLAIN EXECUTE {execution}");
        let rows = self.wait(self.client.simple_query(&sql)).expect("the statement was prepared");
        let line = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        rows.iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn every_part_connects_again_after_its_session_was_ended() {
    let Some(cluster) = Cluster::create("every_part_connects_again_after_its") else { return };
    let mut store = cluster.open_writer();
    let mut follower = Follower::start(&cluster);
    commit(&mut store, &line(1));
    let mut reader = store.open_reader().unwrap();
    let page = crate::store::PageQuery::Lines { after: EventId(0), limit: 9 };
    for n in 2..=4 {
        store.write_tables();
        follower.catch_up();
        assert_eq!(reader.load_page(page).unwrap().len() as u64, n - 1);
        cluster.end_sessions();
        let (log, batch) = (store.log(), Batch::new(line(n), ExpiredRows::default()));
        let doubt = log.lock().append(&batch).unwrap_err();
        assert!(matches!(doubt, StoreError::Unreachable(_)), "{doubt}");
        follower.catch_up();
        assert_eq!(reader.load_page(page).unwrap().len() as u64, n - 1);
        assert_eq!(follower.store.place(), store.place(), "it was not written");
        log.lock().continue_at(store.place(), n, line(n - 1).next.unwrap());
        commit(&mut store, &line(n));
    }
    store.write_tables();
    assert_eq!(cluster.sql("SELECT seq FROM checkpoint"), "4");
}

#[test]
fn rows_are_found_by_index_with_a_plan_made_while_the_tables_were_empty() {
    let Some(cluster) = Cluster::create("rows_are_found_by_index_with_a_plan_made") else { return };
    let _tables = cluster.open();
    let database = Arc::new(Database::parse(&cluster.url()).unwrap());
    let mut session = Session::new(database, SessionSettings::default());
    let connection = session.connect().unwrap();
    connection.run_script("SET plan_cache_mode = force_generic_plan").unwrap();
    let statements = [
        (shared_log_sql::BATCHES, "1"),
        (shared_log_sql::HEAD, "1"),
        (chains::INBOX, "1, 256"),
        (chains::REQUESTED, "1, 256"),
    ];
    for (sql, arguments) in statements {
        connection.run_script(&format!("DEALLOCATE ALL; PREPARE plan AS {sql}")).unwrap();
        let plan = connection.explain(&format!("plan ({arguments})"));
        for step in ["Seq Scan on log", "Seq Scan on notices", "Seq Scan on jobs", "Hash", "Sort"] {
            assert!(!plan.contains(step), "{step} in the plan of {sql}\n{plan}");
        }
        assert!(plan.contains("Index"), "{plan}");
    }
}

#[test]
fn a_session_that_holds_the_next_place_can_be_ended() {
    let Some(cluster) = Cluster::create("a_session_that_holds_the_next_place_can_be") else {
        return;
    };
    let mut store = cluster.open();
    commit(&mut store, &line(1));
    let database = Arc::new(Database::parse(&cluster.url()).unwrap());
    let mut other = Session::new(database, SessionSettings::default());
    let hold = "BEGIN; INSERT INTO log (seq, epoch, format, body, hash)
                VALUES (2, 1, 3, '\\x00', '\\x00')";
    other.connect().unwrap().run_script(hold).unwrap();
    let session = other.connect().unwrap().pid;
    let log = store.log();
    let append = || log.lock().append(&Batch::new(line(2), ExpiredRows::default()));
    let locked = append().unwrap_err();
    assert!(matches!(locked, StoreError::Locked(_)), "{locked}");
    shared_log(&store).end_session_of(&Lease { session, ..Lease::default() }).unwrap();
    let next = line(1).next.unwrap();
    let appended = (0..50).find_map(|_| {
        log.lock().continue_at(store.place(), 2, next);
        append().ok()
    });
    assert_eq!(appended.expect("the session is ended").number, 2);
    assert!(other.connect().unwrap().run_script("COMMIT").is_err());
    // A session that is not there any more is none of our concern.
    shared_log(&store).end_session_of(&Lease { session, ..Lease::default() }).unwrap();
}

#[test]
fn a_session_that_waits_for_a_standby_is_left_alone() {
    let name = "a_session_that_waits_for_a_standby_is_left";
    let Some(primary) = PrivatePostgres::start(name, &ServerOptions::default()) else { return };
    let url = primary.url("hub");
    let open = || PostgresStore::open(&url, PostgresOptions::default()).unwrap();
    let (mut writer, second) = (open(), open());
    let session = writer.log().lock().session().unwrap();
    let standby = primary.standby(Replication::Synchronous);
    standby.pause();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| commit(&mut writer, &line(1)));
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {session} AND wait_event = 'SyncRep'"
        );
        while primary.run_sql(&waits).unwrap() != "1" {
            std::thread::sleep(Duration::from_millis(10));
        }
        // No session sees the batch, and no other one gets its place.
        let look =
            shared_log(&second).look(LookQuery { after: Place::default(), with_batches: true });
        assert!(look.unwrap().batches.is_empty());
        let batch = Batch::new(line(1), ExpiredRows::default());
        let locked = second.log().lock().append(&batch).unwrap_err();
        assert!(matches!(locked, StoreError::Locked(_)), "{locked}");
        shared_log(&second).end_session_of(&Lease { session, ..Lease::default() }).unwrap();
        assert_eq!(primary.run_sql(&waits).unwrap(), "1", "it still waits");
        standby.resume();
        assert_eq!(waiting.join().expect("it was committed").number, 1);
    });
    let look = shared_log(&second).look(LookQuery { after: Place::default(), with_batches: true });
    assert_eq!(look.unwrap().batches.len(), 1);
}

#[test]
fn a_store_without_its_database_says_so_and_can_be_dropped() {
    let name = "a_store_without_its_database_says_so_and";
    let Some(server) = PrivatePostgres::start(name, &ServerOptions::default()) else { return };
    let url = server.url("hub");
    let mut store = PostgresStore::open(&url, PostgresOptions::default()).unwrap();
    store.set_writing(true);
    commit(&mut store, &line(1));
    server.crash();
    let errors = [
        store.log().lock().append(&Batch::new(line(2), ExpiredRows::default())).unwrap_err(),
        shared_log(&store)
            .look(LookQuery { after: store.place(), with_batches: true })
            .unwrap_err(),
        store.load(RowKey::Agent(AgentId(1))).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Unreachable(_)), "{error}");
    }
    drop(store);
    server.restart();
    let mut store = PostgresStore::open(&url, PostgresOptions::default()).unwrap();
    assert_eq!(store.take_tail().len(), 1, "it was committed, and is not in the tables");
    store.set_writing(true);
    store.write_tables();
    server.crash();
    server.restart();
    store.log().lock().continue_at(store.place(), 2, line(1).next.unwrap());
    let doubt = store.log().lock().append(&Batch::new(line(2), ExpiredRows::default()));
    assert!(matches!(doubt, Err(StoreError::Unreachable(_)) | Ok(_)), "{doubt:?}");
    assert_eq!(server.run_sql("SELECT count(*) FROM hub.lines").unwrap(), "1");
}
