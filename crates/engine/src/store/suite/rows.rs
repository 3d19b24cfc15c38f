//! Rows read back as written: rebuilt, loaded, in pages, and removed on expiry.

use rialto_core::agent::key::Holder;
use rialto_core::alias::{ClaimTarget, Digest, claim};
use rialto_core::answer::Answer;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::decide::MissingRow;
use rialto_core::id::*;
use rialto_core::idempotency::{Idempotency, Principal, SavedAnswer};
use rialto_core::notice::Notice;

use super::{StoreFixture, rebuild_world, reopen, write_sample_history};
use crate::fixtures::market::submit;
use crate::fixtures::{HOME, ModelHub, snapshot};
use crate::store::{PageQuery, Row, RowKey};

pub fn an_empty_store_is_an_empty_world(place: &mut dyn StoreFixture) {
    let script = ModelHub::default();
    for _ in 0..2 {
        let mut store = place.open();
        let world = rebuild_world(&script, &mut *store);
        assert_eq!(snapshot(&world, script.now), snapshot(&script.world, script.now));
        assert!(
            store
                .open_reader()
                .unwrap()
                .load_page(PageQuery::Lines { after: EventId(0), limit: 9 })
                .unwrap()
                .is_empty()
        );
    }
}

pub fn what_is_committed_is_rebuilt_equal(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    write_sample_history(&mut script, &mut *place.open());
    let world = rebuild_world(&script, &mut *place.open());
    assert_eq!(snapshot(&world, script.now), snapshot(&script.world, script.now));
    assert_eq!(world.footprint(), script.world.footprint(), "the same memory use");
}

pub fn every_kind_of_row_can_be_loaded(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    write_sample_history(&mut script, &mut *place.open());
    let mut store = place.open();
    let mut reader = store.open_reader().expect("readers can be opened");
    let mut same = |key: RowKey, expected: String| {
        let show = |row: Option<Row>| format!("{row:?}");
        assert_eq!(show(store.load(key).expect("the lane can read")), expected, "{key:?}");
        assert_eq!(show(reader.load(key).expect("readers can read")), expected, "{key:?}");
    };
    let rows = &script.rows;
    for one in rows.agents.values() {
        same(RowKey::Agent(one.id), format!("{:?}", Some(Row::Agent(one.clone()))));
    }
    assert!(rows.agents.values().any(|one| !one.active), "also a removed one");
    for one in rows.jobs.values() {
        same(RowKey::Job(one.id), format!("{:?}", Some(Row::Job(one.clone()))));
    }
    for one in &rows.transfers {
        same(RowKey::Transfer(one.id), format!("{:?}", Some(Row::Transfer(one.clone()))));
    }
    for one in &rows.entries {
        same(RowKey::Entry(one.id), format!("{:?}", Some(Row::Entry(one.clone()))));
    }
    for one in &rows.notices {
        same(RowKey::Notice(one.id), format!("{:?}", Some(Row::Notice(Notice::clone(one)))));
    }
    for one in rows.completed_deliveries.values() {
        same(RowKey::Arrival(one.notice), format!("{:?}", Some(Row::Arrival(one.clone()))));
    }
    for one in &rows.outcomes {
        same(RowKey::Outcome(one.id), format!("{:?}", Some(Row::Outcome(one.clone()))));
    }
    for one in &rows.market_records {
        same(RowKey::MarketRecord(one.id), format!("{:?}", Some(Row::Posting(one.clone()))));
    }
    for one in &rows.claims {
        same(RowKey::Claim(one.digest), format!("{:?}", script.claim(one.digest).map(Row::Claim)));
    }
    let some = [rows.jobs.len(), rows.transfers.len(), rows.outcomes.len(), rows.claims.len()];
    assert!(some.iter().all(|count| *count >= 2), "{some:?}");
    assert!(!rows.completed_deliveries.is_empty() && rows.market_records.len() == 6);
    for none in [0, 999, u64::MAX] {
        same(RowKey::Agent(AgentId(none)), "None".to_owned());
        same(RowKey::Job(JobId(none)), "None".to_owned());
        same(RowKey::Transfer(TransferId(none)), "None".to_owned());
        same(RowKey::Entry(EntryId(none)), "None".to_owned());
        same(RowKey::Notice(NoticeId(none)), "None".to_owned());
        same(RowKey::Arrival(NoticeId(none)), "None".to_owned());
        same(RowKey::Outcome(OutcomeId(none)), "None".to_owned());
        same(RowKey::MarketRecord(PostingId(none)), "None".to_owned());
    }
    same(RowKey::Claim(Digest([9; 16])), "None".to_owned());
}

pub fn pages_come_in_order_and_no_longer_than_asked(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    write_sample_history(&mut script, &mut *store);
    let mut reader = store.open_reader().expect("readers can be opened");
    let mut ids = |page: PageQuery| -> Vec<u64> {
        let rows = reader.load_page(page).expect("readers can read");
        let id = |row: &Row| match row {
            Row::Line(line) => line.id.0,
            Row::Entry(entry) => entry.id.0,
            Row::Job(job) => job.id.0,
            other => panic!("pages have no {other:?}"),
        };
        rows.iter().map(id).collect()
    };
    let lines: Vec<u64> = (1..script.world.next.event.0).collect();
    assert_eq!(ids(PageQuery::Lines { after: EventId(0), limit: 999 }), lines);
    assert_eq!(ids(PageQuery::Lines { after: EventId(2), limit: 3 }), [3, 4, 5]);
    assert!(ids(PageQuery::Lines { after: EventId(u64::MAX), limit: 9 }).is_empty());
    assert!(ids(PageQuery::Lines { after: EventId(0), limit: 0 }).is_empty());
    let newest = script.world.next.entry.0;
    let entries: Vec<u64> = (1..newest).rev().collect();
    assert_eq!(ids(PageQuery::Entries { before: EntryId(u64::MAX), limit: 999 }), entries);
    assert_eq!(ids(PageQuery::Entries { before: EntryId(4), limit: 2 }), [3, 2]);
    assert!(ids(PageQuery::Entries { before: EntryId(1), limit: 9 }).is_empty());
    let done = script.rows.jobs.values().rev().filter(|job| job.state.is_final());
    let done: Vec<u64> = done.map(|job| job.id.0).collect();
    assert_eq!(ids(PageQuery::Jobs { before: JobId(u64::MAX), limit: 999 }), done);
    assert_eq!(ids(PageQuery::Jobs { before: JobId(u64::MAX), limit: 1 }), done[..1]);
}

pub fn postings_come_in_pages_in_either_order_between_two_borders(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    write_sample_history(&mut script, &mut *place.open());
    assert_eq!(script.world.next.market_record, PostingId(7));
    let store = place.open();
    let mut reader = store.open_reader().expect("readers can be opened");
    let all = u64::MAX;
    for (after, before, limit, expected) in [
        (0, all, 99, &[1, 2, 3, 4, 5, 6][..]),
        (0, 7, 6, &[1, 2, 3, 4, 5, 6]),
        (2, 5, 99, &[3, 4]),
        (2, 4, 99, &[3]),
        (3, 4, 99, &[]),
        (4, 4, 99, &[]),
        (5, 2, 99, &[]),
        (6, all, 99, &[]),
        (all, all, 99, &[]),
        (0, 1, 99, &[]),
        (0, all, 0, &[]),
    ] {
        for newest_first in [false, true] {
            let (after, before) = (PostingId(after), PostingId(before));
            let page = PageQuery::MarketRecords { after, before, newest_first, limit };
            let mut expected = expected.to_vec();
            if newest_first {
                expected.reverse();
            }
            let found = reader.load_page(page).expect("readers can read");
            let ids: Vec<u64> = found
                .iter()
                .map(|row| match row {
                    Row::Posting(posting) => posting.id.0,
                    other => panic!("a page of market records has no {other:?}"),
                })
                .collect();
            assert_eq!(ids, expected, "{page:?}");
        }
    }
    // A limited page starts at the end it is read from.
    for (newest_first, expected) in [(false, [2, 3]), (true, [5, 4])] {
        let (after, before) = (PostingId(1), PostingId(6));
        let page = PageQuery::MarketRecords { after, before, newest_first, limit: 2 };
        let found = reader.load_page(page).expect("readers can read");
        for (row, id) in found.iter().zip(expected) {
            let Row::Posting(row) = row else { panic!("{row:?}") };
            assert_eq!(**row, *script.rows.market_records[id - 1], "as it was written");
        }
        assert_eq!(found.len(), 2);
    }
}

pub fn what_was_posted_is_known_after_the_store_was_left(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    write_sample_history(&mut script, &mut *place.open());
    let mut store = place.open();
    let mut world = rebuild_world(&script, &mut *store);
    let next = world.next;
    assert_eq!((next.market_record, next.market_orders), (PostingId(7), 5));
    assert_eq!(next.market_messages, script.world.next.market_messages);
    // The first was executed and the second refused; a repeat executes neither.
    for (id, posting) in [("job-5", 1), ("job-6", 3), ("offer", 5)] {
        let again = submit(id, Command::RecordOnly);
        for need in rialto_core::missing_rows(&world, &again) {
            let MissingRow::Claim(digest) = need else { panic!("{need:?}") };
            let found = store.load(RowKey::Claim(digest)).expect("the lane can read");
            let Some(Row::Claim(claim)) = found else { panic!("{id} was submitted") };
            world.load_claim(digest, Some(claim));
        }
        let (changes, answer) =
            rialto_core::decide(&world, again, script.now).expect("repeats are never refused");
        assert!(changes.is_empty());
        let Answer::MarketOrder { record: found, repeated } = answer else { panic!("{answer:?}") };
        assert_eq!((found, repeated), (PostingId(posting), true));
        world.drop_cold_rows();
    }
    let closed = RowKey::Claim(claim::closed_auction(HOME, "job-7"));
    let Some(Row::Claim(closed)) = store.load(closed).unwrap() else { panic!("it has ended") };
    assert_eq!(closed.target, ClaimTarget::MarketRecord(PostingId(6)));
}

/// The command that saves this answer for repeats of request `n`.
fn remember(n: u8, body: &str) -> Command {
    let scope = Digest::of(&[&[n]]);
    let kept = SavedAnswer::Answer { status: 200, body: body.to_owned() };
    let principal = Principal::Operator;
    Idempotency { scope, request: scope, principal }.save(kept)
}

pub fn forgotten_answers_are_gone(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    for n in 0..4_u8 {
        let (_, changes) = script.run(remember(n, "{}"));
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    }
    let answers = vec![AnswerId(1), AnswerId(3)];
    let forgotten = ExpiredRows { answers, ..ExpiredRows::default() };
    store.commit(&Changes::default(), &forgotten).expect("there is space");
    assert!(store.load(RowKey::IdempotencyRecord(AnswerId(1))).unwrap().is_none());
    drop(store);
    let kept: Vec<AnswerId> =
        place.open().load_hot_rows().unwrap().idempotency_entries.into_keys().collect();
    assert_eq!(kept, [AnswerId(2), AnswerId(4)]);
}

pub fn the_body_of_a_kept_answer_is_read_from_its_row_alone(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    let (_, changes) = script.run(remember(1, "the whole answer"));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    let mut store = reopen(place, store);
    let rows = store.load_hot_rows().unwrap();
    assert!(rows.idempotency_records.is_empty(), "a start loads no bodies");
    assert_eq!(rows.idempotency_entries, changes.idempotency_entries);
    let mut reader = store.open_reader().unwrap();
    for found in [
        store.load(RowKey::IdempotencyRecord(AnswerId(1))),
        reader.load(RowKey::IdempotencyRecord(AnswerId(1))),
    ] {
        let Some(Row::Memory(row)) = found.unwrap() else { panic!("it was written") };
        assert_eq!(*row, *changes.idempotency_records[&AnswerId(1)]);
    }
}

pub fn keys_that_stopped_working_are_gone(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    for n in 1..=3_u8 {
        let (holder, hash) = (Holder::Operator, [n; 32]);
        let order = Command::IssueKey { holder, hash, retire_others: true, by_operator: true };
        let (_, changes) = script.run(order);
        let forgotten = script.world.expired_rows(script.now, 10);
        // The previous key expires and is removed in one step.
        assert_eq!(forgotten.keys.len(), usize::from(n > 1));
        store.commit(&changes, &forgotten).expect("there is space");
        script.world.remove_expired(&forgotten);
    }
    drop(store);
    let keys = place.open().load_hot_rows().unwrap().keys;
    assert_eq!(keys.values().map(|key| key.hash).collect::<Vec<_>>(), [[3; 32]]);
}
