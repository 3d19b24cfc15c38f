//! One test suite that every store passes.

mod moves;
mod rows;

use rialto_core::agent::Liveness;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::changes::Forgotten;
use rialto_core::command::{Command, PushEnd, Remember};
use rialto_core::id::JobId;
use rialto_core::job::Selection;
use rialto_core::market::Deed;
use rialto_core::idempotency::{Kept, Principal};
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::Store;
use super::memory::MemoryStore;
use super::sqlite::SqliteStore;
use crate::fixtures::market::{post, post_offer, post_task};
use crate::fixtures::{self, Script, agent_in, enrol, grant, job_in, open, pay, report, said, say};

/// A store that can be closed and opened again.
pub trait Place {
    fn enter(&mut self) -> Box<dyn Store>;
}

#[derive(Default)]
struct Memory(MemoryStore);

impl Place for Memory {
    fn enter(&mut self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }
}

struct Sqlite(tempfile::TempDir);

impl Default for Sqlite {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a directory can be created"))
    }
}

impl Place for Sqlite {
    fn enter(&mut self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(self.0.path()).expect("no other process has it open"))
    }
}

macro_rules! suite {
    ($($file:ident::$name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$file::$name(&mut super::Memory::default()); })+
        }
        mod sqlite {
            $(#[test] fn $name() { super::$file::$name(&mut super::Sqlite::default()); })+
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
    moves::a_job_opened_and_finished_in_one_batch_is_only_history,
    moves::pushes_appear_and_vanish,
    moves::the_newest_claim_of_an_id_counts_wherever_it_is_found,
    moves::a_reader_sees_all_of_a_batch_or_nothing,
}

/// A sample of everything, committed one command at a time.
pub fn history(script: &mut Script, store: &mut dyn Store) {
    let mut run = |command| {
        let (answer, changes) = script.run(command);
        store.commit(&changes, &Forgotten::default()).expect("there is space");
        answer
    };
    let enrolled = |order| Command::Enrol(Box::new(order));
    run(grant("ada", "50"));
    let ada = agent_in(&run(enrolled(enrol("ada", "ada", &[]))));
    let mut polled = enrol("bob", "bob", &[("sum", "1"), ("draw", "0.5")]);
    polled.key = Some([7; 32]);
    let bob = agent_in(&run(enrolled(polled)));
    let mut reached = enrol("cyd", "cyd", &[("sum", "2")]);
    (reached.liveness, reached.endpoint) =
        (Liveness::Reached, Some("https://cyd.example".to_owned()));
    let cyd = agent_in(&run(enrolled(reached)));
    let now = fixtures::DAWN;
    let done = job_in(&run(Command::OpenJob(Box::new(open(1, ada, "draw", "3", now)))));
    run(report(done, bob, true, "0.5"));
    let failed = job_in(&run(Command::OpenJob(Box::new(open(2, ada, "draw", "3", now)))));
    run(report(failed, bob, false, "0"));
    let mut turns = open(3, ada, "sum", "3", now);
    turns.selection = Selection::RoundRobin;
    run(Command::OpenJob(Box::new(turns.clone())));
    (turns.uuid, turns.foreign) = (uuid::Uuid::from_u128(4), "job-4".to_owned());
    let pushed = job_in(&run(Command::OpenJob(Box::new(turns))));
    // Could not be reached, and so unassigned; its id is free again.
    run(Command::Unreachable { job: pushed, epoch: 1 });
    run(Command::Pay(Box::new(pay(1, "ada", "bob", "1.25"))));
    let mut elsewhere = pay(2, "ada", "cyd", "0.25");
    elsewhere.job = Some("elsewhere".to_owned());
    run(Command::Pay(Box::new(elsewhere)));
    run(say(ada, cyd, "\"hello\""));
    let mut sent = said(bob, cyd, "two\nlines, and \u{2028}");
    sent.url = Some("https://cyd.example/in".to_owned());
    let sent = match run(Command::Send(Box::new(sent))) {
        Answer::Sent { notice, .. } => notice,
        other => panic!("{other:?}"),
    };
    let ended = PushEnd::Delivered { reply: Some("{\"status\":\"ok\"}".to_owned()) };
    run(Command::PushDone { notice: sent, ended });
    run(Command::Ack { agent: cyd, up_to: 1 });
    let scope = Digest::of(&[b"once"]);
    let kept = Kept::Answer { status: 201, body: "{}".to_owned() };
    let principal = Principal::Operator;
    run(Command::Remember(Box::new(Remember { scope, request: scope, principal, kept })));
    run(Command::Remove { agent: cyd, by_operator: false });
    // And what the market published: executed orders, one that was refused, and an end.
    run(post_task(open(5, ada, "draw", "3", now)));
    run(post("nothing", Deed::Nothing));
    run(post_task(open(6, ada, "fly", "3", now)));
    let mut wanted = open(7, ada, "draw", "3", now);
    wanted.selection = Selection::Auction { closes: now.plus(Millis::minutes(1)) };
    run(post_task(wanted));
    run(post_offer("offer", JobId(6), bob, "2"));
}

pub fn rebuilt(script: &Script, store: &mut dyn Store) -> World {
    let mut world = World::new(script.world.rules);
    world.apply(&store.rebuild().expect("what was written can be read"));
    world
}
