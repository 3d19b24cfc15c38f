//! Several nodes over one schema. What one store must do alone is in `store/suite`.

mod chains;
mod leases;
mod log;
mod nodes;
mod opening;
mod sessions;

use std::sync::Arc;

use rialto_core::changes::{Batch, Changes, Counters, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::event::{Event, HistoryLine};
use rialto_core::id::{AgentId, EventId};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;

use super::{PostgresOptions, PostgresStore};
use crate::cluster::{Look, LookQuery, SharedLog};
use crate::fixtures::{
    self, ModelHub, agent_in, enrol, job_in, open, report, send_message, snapshot,
};
use crate::store::log::{LoggedBatch, Place};
use crate::store::{Row, RowKey, Store, StoreError};
use crate::testkit::postgres::TestDatabase;

/// A schema that several stores use.
struct Cluster {
    database: TestDatabase,
}

impl Cluster {
    fn create(test: &str) -> Option<Self> {
        TestDatabase::create(test).map(|database| Self { database })
    }

    /// Sessions of this cluster are known by the name of its schema.
    fn url(&self) -> String {
        format!("{}&application_name={}", self.database.url(), self.database.schema())
    }

    fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.url(), PostgresOptions::default()).expect("it can be reached")
    }

    fn open_writer(&self) -> PostgresStore {
        let mut store = self.open();
        store.set_writing(true);
        store
    }

    fn sql(&self, sql: &str) -> String {
        self.database.run_sql(sql).expect("the statement is valid")
    }
}

/// A node that follows the log.
struct Follower {
    store: PostgresStore,
    shared: Box<dyn SharedLog>,
    world: World,
}

impl Follower {
    /// Starts from what the database has.
    fn start(cluster: &Cluster) -> Self {
        let mut store = cluster.open();
        let mut world = World::new(ModelHub::default().world.rules);
        store.load_world(&mut world).expect("it can be loaded");
        let shared = shared_log(&store);
        Self { store, shared, world }
    }

    fn look(&mut self) -> Result<Look, StoreError> {
        self.shared.look(LookQuery { after: self.store.place(), with_batches: true })
    }

    /// Applies everything that is in the log.
    fn catch_up(&mut self) {
        loop {
            let look = self.look().expect("the log can be followed");
            for LoggedBatch { place, batch, .. } in &look.batches {
                self.store.publish(Some(*place), &batch.changes, &batch.expired);
                self.world.replay(&batch.changes, &batch.expired);
            }
            assert_eq!(look.head, self.store.place());
            if !look.has_more {
                return;
            }
        }
    }
}

fn shared_log(store: &PostgresStore) -> Box<dyn SharedLog> {
    store.open_shared_log().unwrap().expect("nodes share it")
}

/// A batch with one line of history.
fn line(n: u64) -> Changes {
    let event = Event::AgentRemoved { agent: AgentId(n), by_operator: false };
    let line =
        HistoryLine { id: EventId(n), at: Timestamp(1), events: vec![event], by_operator: false };
    let next = Counters { event: EventId(n + 1), ..Counters::default() };
    Changes { history_lines: vec![Arc::new(line)], next: Some(next), ..Changes::default() }
}

fn commit(store: &mut PostgresStore, changes: &Changes) -> Place {
    store.commit(changes, &ExpiredRows::default()).expect("there is space");
    store.place()
}

/// Commands of all kinds that leave many rows, a few of them in each batch.
fn sample_batches(script: &mut ModelHub, rounds: u64) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut run = |script: &mut ModelHub, command: Command| {
        let (answer, changes) = script.run(command);
        batches.push(Batch::new(changes, ExpiredRows::default()));
        answer
    };
    let register = |name: &str, skills: &[(&str, &str)]| {
        Command::Register(Box::new(enrol(name, name, skills)))
    };
    let ada = agent_in(&run(script, register("ada", &[])));
    let bob = agent_in(&run(script, register("bob", &[("sum", "0.1"), ("draw", "0.1")])));
    for n in 1..=rounds {
        run(script, send_message(ada, bob, &format!("message {n}, \"before\":{n}")));
        run(script, send_message(bob, ada, "\"answer\" with\n\u{0}NUL"));
        let order = open(n, ada, if n % 2 == 0 { "sum" } else { "draw" }, "1", script.now);
        let job = job_in(&run(script, Command::OpenJob(Box::new(order))));
        run(script, report(job, bob, n % 3 != 0, if n % 3 == 0 { "0" } else { "0.1" }));
        run(script, Command::Ack { agent: bob, up_to: n });
    }
    let expired = script.world.expired_rows(script.now.plus(Millis(i64::MAX / 4)), 99);
    script.world.remove_expired(&expired);
    batches.push(Batch::new(Changes::default(), expired));
    batches
}

fn commit_batch(store: &mut PostgresStore, batch: &Batch) {
    store.make_room().expect("the tables can be written");
    let place = store.log().lock().append(batch).expect("there is space");
    store.publish(Some(place), &batch.changes, &batch.expired);
}

/// The keys of all rows that a hub ever wrote.
fn all_keys(script: &ModelHub) -> Vec<RowKey> {
    let rows = &script.rows;
    let mut keys: Vec<RowKey> = rows.agents.keys().map(|id| RowKey::Agent(*id)).collect();
    keys.extend(rows.jobs.keys().map(|id| RowKey::Job(*id)));
    keys.extend(rows.transfers.iter().map(|row| RowKey::Transfer(row.id)));
    keys.extend(rows.entries.iter().map(|row| RowKey::Entry(row.id)));
    keys.extend(rows.notices.iter().map(|row| RowKey::Notice(row.id)));
    keys.extend(rows.outcomes.iter().map(|row| RowKey::Outcome(row.id)));
    keys.extend(rows.claims.iter().map(|row| RowKey::Claim(row.digest)));
    keys.extend(rows.market_records.iter().map(|row| RowKey::MarketRecord(row.id)));
    keys
}

/// All rows, as text.
fn all_rows(store: &mut PostgresStore, keys: &[RowKey]) -> Vec<String> {
    let show = |row: &Option<Row>| format!("{row:?}");
    let loaded = store.load_all(keys).expect("the lane can read");
    let mut reader = store.open_reader().expect("readers can be opened");
    for (key, row) in keys.iter().zip(&loaded) {
        assert!(row.is_some(), "{key:?}");
        assert_eq!(show(&reader.load(*key).expect("readers can read")), show(row), "{key:?}");
    }
    loaded.iter().map(show).collect()
}

fn assert_same_world(world: &World, script: &ModelHub) {
    assert_eq!(snapshot(world, script.now), snapshot(&script.world, script.now));
    assert_eq!(world.footprint(), script.world.footprint(), "the same memory use");
}

#[test]
fn the_fixture_has_rows_of_many_kinds() {
    let mut script = ModelHub::default();
    sample_batches(&mut script, 9);
    let rows = &script.rows;
    assert!(rows.jobs.len() == 9 && rows.notices.len() > 20 && rows.outcomes.len() > 5);
    assert!(rows.entries.len() > 20 && rows.claims.len() >= 9);
    assert!(fixtures::START < script.now);
}
