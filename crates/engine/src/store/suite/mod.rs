//! One test suite that every store passes.

mod moves;
mod rows;

use rialto_core::agent::Liveness;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::changes::ExpiredRows;
use rialto_core::command::{Command, DeliveryResult};
use rialto_core::id::JobId;
use rialto_core::idempotency::{Idempotency, Principal, SavedAnswer};
use rialto_core::job::Selection;
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::Store;
use super::memory::MemoryStore;
use super::postgres::{PostgresOptions, PostgresStore};
use super::sqlite::SqliteStore;
use crate::fixtures::market::{markets, submit, submit_offer, submit_task};
use crate::fixtures::{
    self, ModelHub, agent_in, enrol, grant, job_in, message, open, pay, report, send_message,
};
use crate::testkit::postgres::TestDatabase;

/// A store that can be closed and opened again.
pub trait StoreFixture {
    fn open(&mut self) -> Box<dyn Store>;
}

#[derive(Default)]
struct MemoryFixture(MemoryStore);

impl StoreFixture for MemoryFixture {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }
}

struct SqliteFixture(tempfile::TempDir);

impl Default for SqliteFixture {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a directory can be created"))
    }
}

impl StoreFixture for SqliteFixture {
    fn open(&mut self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(self.0.path()).expect("no other process has it open"))
    }
}

/// Has a schema of its own, and writes its tables, as the only node of a hub does.
struct PostgresFixture(TestDatabase);

impl StoreFixture for PostgresFixture {
    fn open(&mut self) -> Box<dyn Store> {
        let store = PostgresStore::open(&self.0.url(), PostgresOptions::default());
        let mut store = store.expect("the database can be reached");
        store.set_writing(true);
        Box::new(store)
    }
}

macro_rules! suite {
    ($($file:ident::$name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$file::$name(&mut super::MemoryFixture::default()); })+
        }
        mod sqlite {
            $(#[test] fn $name() { super::$file::$name(&mut super::SqliteFixture::default()); })+
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(database) = super::TestDatabase::create(stringify!($name)) {
                    super::$file::$name(&mut super::PostgresFixture(database));
                }
            })+
        }
    };
}

suite! {
    rows::an_empty_store_is_an_empty_world,
    rows::what_is_committed_is_rebuilt_equal,
    rows::every_kind_of_row_can_be_loaded,
    rows::pages_come_in_order_and_no_longer_than_asked,
    rows::postings_come_in_pages_in_either_order_between_two_borders,
    rows::what_was_posted_is_known_after_the_store_was_left,
    rows::forgotten_answers_are_gone,
    rows::the_body_of_a_kept_answer_is_read_from_its_row_alone,
    rows::keys_that_stopped_working_are_gone,
    moves::a_finished_job_moves_to_the_archive,
    moves::a_finished_job_may_still_get_and_lose_webhooks,
    moves::a_job_opened_and_finished_in_one_batch_is_only_history,
    moves::pushes_appear_and_vanish,
    moves::the_newest_claim_of_an_id_counts_wherever_it_is_found,
    moves::a_reader_sees_all_of_a_batch_or_nothing,
}

/// Leaves the store, so that its tables are complete, and opens it again.
pub fn reopen(place: &mut dyn StoreFixture, store: Box<dyn Store>) -> Box<dyn Store> {
    drop(store);
    place.open()
}

/// A sample of everything, committed one command at a time.
pub fn write_sample_history(script: &mut ModelHub, store: &mut dyn Store) {
    let mut run = |command| {
        let (answer, changes) = script.run(command);
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
        answer
    };
    let enrolled = |order| Command::Register(Box::new(order));
    run(grant("ada", "50"));
    let ada = agent_in(&run(enrolled(enrol("ada", "ada", &[]))));
    let mut polled = enrol("bob", "bob", &[("sum", "1"), ("draw", "0.5")]);
    polled.key = Some([7; 32]);
    let bob = agent_in(&run(enrolled(polled)));
    let mut reached = enrol("cyd", "cyd", &[("sum", "2")]);
    (reached.liveness, reached.endpoint) =
        (Liveness::ByEndpoint, Some("https://cyd.example".to_owned()));
    let cyd = agent_in(&run(enrolled(reached)));
    let now = fixtures::START;
    let done = job_in(&run(Command::OpenJob(Box::new(open(1, ada, "draw", "3", now)))));
    run(report(done, bob, true, "0.5"));
    let failed = job_in(&run(Command::OpenJob(Box::new(open(2, ada, "draw", "3", now)))));
    run(report(failed, bob, false, "0"));
    let mut turns = open(3, ada, "sum", "3", now);
    turns.selection = Selection::RoundRobin;
    run(Command::OpenJob(Box::new(turns.clone())));
    (turns.uuid, turns.foreign_id) = (uuid::Uuid::from_u128(4), "job-4".to_owned());
    let pushed = job_in(&run(Command::OpenJob(Box::new(turns))));
    // Could not be reached, and so unassigned; its id is free again.
    run(Command::MarkUnreachable { job: pushed, epoch: 1 });
    run(Command::Pay(Box::new(pay(1, "ada", "bob", "1.25"))));
    let mut elsewhere = pay(2, "ada", "cyd", "0.25");
    elsewhere.job = Some("elsewhere".to_owned());
    run(Command::Pay(Box::new(elsewhere)));
    run(send_message(ada, cyd, "\"hello\""));
    let mut sent = message(bob, cyd, "two\nlines, and \u{2028}");
    sent.url = Some("https://cyd.example/in".to_owned());
    let sent = match run(Command::SendMessage(Box::new(sent))) {
        Answer::Message { notice, .. } => notice,
        other => panic!("{other:?}"),
    };
    let ended = DeliveryResult::Delivered { reply: Some("{\"status\":\"ok\"}".to_owned()) };
    run(Command::RecordDelivery { notice: sent, result: ended, report: None });
    run(Command::Ack { agent: cyd, up_to: 1 });
    let scope = Digest::of(&[b"once"]);
    let kept = SavedAnswer::Answer { status: 201, body: "{}".to_owned() };
    let principal = Principal::Operator;
    run(Idempotency { scope, request: scope, principal }.save(kept));
    run(Command::Remove { agent: cyd, by_operator: false });
    // And what the market published: executed orders, one that was refused, and an end.
    script.world.markets = markets();
    let mut run = |command| {
        let (_, changes) = script.run(command);
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    };
    run(submit_task(open(5, ada, "draw", "3", now)));
    run(submit("nothing", Command::RecordOnly));
    run(submit_task(open(6, ada, "fly", "3", now)));
    let mut wanted = open(7, ada, "draw", "3", now);
    wanted.selection = Selection::Auction { closes: now.plus(Millis::minutes(1)) };
    run(submit_task(wanted));
    run(submit_offer("offer", JobId(6), bob, "2"));
}

pub fn rebuild_world(script: &ModelHub, store: &mut dyn Store) -> World {
    let mut world = World::new(script.world.rules);
    world.markets = script.world.markets.clone();
    store.load_world(&mut world).expect("what was written can be read");
    world
}
