//! Tests of what only the SQLite store guarantees.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rialto_core::alias::{Claim, ClaimTarget, Digest, Protocol};
use rialto_core::changes::{Changes, Counters, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::event::HistoryLine;
use rialto_core::id::*;
use rialto_core::money::Credits;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::owner::Owner;
use rialto_core::time::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

use super::checkpoint::WalLimits;
use super::{DB_FILE, PAGE_BYTES, SqliteStore};
use crate::fixtures::market::{markets, submit};
use crate::fixtures::{ModelHub, enrol};
use crate::store::suite::write_sample_history;
use crate::store::{PageQuery, Row, RowKey, Store, StoreError};

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory can be created")
}

/// Opens the file beside the store.
fn behind(dir: &Path) -> Connection {
    Connection::open(dir.join(DB_FILE)).expect("the file exists")
}

/// A line and a notice with this much text.
fn filler(n: u64, bytes: usize) -> Changes {
    let at = Timestamp(i64::try_from(n).expect("small"));
    let (words, body) = (Protocol::new("test"), "x".repeat(bytes));
    let news =
        NoticeKind::Message { from: Some(AgentId(1)), protocol: words, body, previous: None };
    let notice = Notice { id: NoticeId(n), to: None, position: 0, before: None, at, news };
    Changes {
        notices: vec![Arc::new(notice)],
        history_lines: vec![Arc::new(HistoryLine {
            id: EventId(n),
            at,
            by_operator: false,
            events: Vec::new(),
        })],
        next: Some(Counters::default()),
        ..Changes::default()
    }
}

fn log_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join(format!("{DB_FILE}-wal"))).map_or(0, |found| found.len())
}

#[test]
fn the_log_is_really_a_wal_and_really_synced() {
    let dir = dir();
    let store = SqliteStore::open(dir.path()).unwrap();
    let text = |sql| store.db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |sql| store.db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    assert_eq!(number("PRAGMA synchronous"), 2, "full");
    assert_eq!(number("PRAGMA wal_autocheckpoint"), 0, "the store checkpoints itself");
}

#[test]
fn an_empty_file_becomes_a_store_and_stays_one() {
    let dir = dir();
    std::fs::write(dir.path().join(DB_FILE), b"").unwrap();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    drop(store);
    let mut again = SqliteStore::open(dir.path()).unwrap();
    assert!(again.load(RowKey::Notice(NoticeId(1))).unwrap().is_some());
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let dir = dir();
    drop(SqliteStore::open(dir.path()).unwrap());
    behind(dir.path()).execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = SqliteStore::open(dir.path()).err().expect("the schema is too new");
    assert!(matches!(refused, StoreError::NewerSchema { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("use a newer rialto"));
    let sql = "PRAGMA user_version";
    let found: i64 = behind(dir.path()).query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(found, 99);
}

/// Downgrades the file to the version before there were markets.
fn step_one(dir: &Path) {
    let db = behind(dir);
    let sql = "SELECT body FROM state WHERE name = 'counters'";
    let body: String = db.query_row(sql, [], |row| row.get(0)).expect("there");
    let mut next: serde_json::Value = serde_json::from_str(&body).expect("rows are JSON");
    for name in ["posting", "posts", "sent"] {
        next.as_object_mut().expect("counters").remove(name).expect("it is counted");
    }
    let body = next.to_string();
    let crc = super::row::checksum(rusqlite::types::ValueRef::Text(b"counters"), body.as_bytes());
    let sql = "UPDATE state SET body = ?1, crc = ?2 WHERE name = 'counters'";
    db.execute(sql, rusqlite::params![body, crc]).expect("rewritten");
    db.execute_batch("DROP TABLE postings; PRAGMA user_version = 1").expect("downgraded");
}

#[test]
fn a_file_from_before_there_were_markets_becomes_a_current_one() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let mut script = ModelHub::default();
    for name in ["ada", "bob"] {
        let order = Command::Register(Box::new(enrol(name, name, &[("sum", "1")])));
        store.commit(&script.run(order).1, &ExpiredRows::default()).unwrap();
    }
    drop(store);
    step_one(dir.path());
    // It can be audited before it is used.
    let report = crate::audit::audit_dir(dir.path()).expect("an old file can be read");
    assert!(report.is_clean(), "{report:#?}");
    script.world.markets = markets();
    for posted in 0..2 {
        let mut store = SqliteStore::open(dir.path()).unwrap();
        let version = store.db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        assert_eq!(version.unwrap(), super::schema::SCHEMA_VERSION);
        let rebuilt = store.load_hot_rows().unwrap();
        assert_eq!(rebuilt.next, Some(script.world.next), "counters start from the beginning");
        assert_eq!(rebuilt.agents.len(), 2);
        let page = PageQuery::MarketRecords {
            after: PostingId(0),
            before: PostingId(9),
            newest_first: false,
            limit: 9,
        };
        assert_eq!(store.open_reader().unwrap().load_page(page).unwrap().len(), posted);
        let (_, changes) = script.run(submit(&format!("order-{posted}"), Command::RecordOnly));
        store.commit(&changes, &ExpiredRows::default()).unwrap();
    }
    assert!(crate::audit::audit_dir(dir.path()).unwrap().is_clean());
}

#[test]
fn a_second_opener_is_refused_until_the_first_has_gone() {
    let dir = dir();
    let first = SqliteStore::open(dir.path()).unwrap();
    let second = SqliteStore::open(dir.path()).err().expect("it is in use");
    assert!(matches!(second, StoreError::InUse(_)), "{second}");
    drop(first);
    assert!(SqliteStore::open(dir.path()).is_ok());
}

#[test]
fn garbage_and_files_of_other_programs_are_refused() {
    let garbage = dir();
    std::fs::write(garbage.path().join(DB_FILE), vec![b'?'; 9_000]).unwrap();
    let refused = SqliteStore::open(garbage.path()).err().expect("it is not a database");
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
    let other = dir();
    behind(other.path()).execute_batch("CREATE TABLE recipes (id INTEGER)").unwrap();
    let refused = SqliteStore::open(other.path()).err().expect("it belongs to another program");
    assert!(refused.to_string().contains("not created by rialto"), "{refused}");
    let tables = "SELECT count(*) FROM sqlite_schema";
    let count: i64 = behind(other.path()).query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1, "nothing was added to it");
}

#[test]
fn a_truncated_file_is_refused() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    write_sample_history(&mut ModelHub::default(), &mut store);
    drop(store);
    let path = dir.path().join(DB_FILE);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let opened = SqliteStore::open(dir.path()).and_then(|mut store| store.load_hot_rows());
    let refused = opened.expect_err("half of it is missing");
    assert!(matches!(refused, StoreError::Corrupt(_) | StoreError::Failed(_)), "{refused}");
}

#[test]
fn a_flipped_byte_in_any_row_is_noticed() {
    let at_hand =
        ["agents", "desks", "owners", "keys", "aliases", "turns", "jobs", "memories", "state"];
    let loaded =
        ["archive", "entries", "transfers", "notices", "outcomes", "lines", "claims", "postings"];
    let dir = dir();
    let mut script = ModelHub::default();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    write_sample_history(&mut script, &mut store);
    drop(store);
    let file = std::fs::read(dir.path().join(DB_FILE)).unwrap();
    for table in at_hand.into_iter().chain(loaded) {
        std::fs::write(dir.path().join(DB_FILE), &file).unwrap();
        let body = if table == "claims" { "target" } else { "body" };
        let flip = format!("UPDATE {table} SET {body} = upper({body})");
        let flipped = behind(dir.path()).execute(&flip, []).unwrap();
        assert!(flipped > 0, "{table}");
        let found = read_everything(dir.path(), &script);
        assert!(matches!(&found, Err(StoreError::Corrupt(_))), "{table}: {found:?}");
    }
}

/// Opens, rebuilds and loads every row.
fn read_everything(dir: &Path, script: &ModelHub) -> Result<(), StoreError> {
    let mut store = SqliteStore::open(dir)?;
    store.load_hot_rows()?;
    for claim in &script.rows.claims {
        store.load(RowKey::Claim(claim.digest))?;
    }
    for id in 1..50 {
        let keys = [
            RowKey::Job(JobId(id)),
            RowKey::Transfer(TransferId(id)),
            RowKey::Entry(EntryId(id)),
            RowKey::Notice(NoticeId(id)),
            RowKey::Outcome(OutcomeId(id)),
            RowKey::MarketRecord(PostingId(id)),
        ];
        for key in keys {
            store.load(key)?;
        }
    }
    store.open_reader()?.load_page(PageQuery::Lines { after: EventId(0), limit: 99 })?;
    Ok(())
}

#[test]
fn a_row_in_the_wrong_place_is_noticed() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    behind(dir.path()).execute_batch("UPDATE notices SET id = 7 WHERE id = 1").unwrap();
    let found = store.load(RowKey::Notice(NoticeId(7)));
    assert!(matches!(&found, Err(StoreError::Corrupt(_))), "{found:?}");
}

#[test]
fn a_claim_that_was_lost_does_not_look_unused() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let claim = |id: u64| {
        let digest = Digest::of(&[&id.to_be_bytes()]);
        Claim { id: ClaimId(id), digest, target: ClaimTarget::Job(JobId(id)) }
    };
    let claims: Vec<Claim> = (1..=512).map(claim).collect();
    let batch = Changes { claims: claims.clone(), ..filler(1, 10) };
    store.commit(&batch, &ExpiredRows::default()).unwrap();
    assert!(!store.run_maintenance().unwrap(), "all are in the index");
    assert!(store.load(RowKey::Claim(claims[0].digest)).unwrap().is_some());
    behind(dir.path()).execute_batch("DELETE FROM claims WHERE id = 1").unwrap();
    let found = store.load(RowKey::Claim(claims[0].digest));
    assert!(matches!(&found, Err(StoreError::Corrupt(_))), "{found:?}");
}

#[test]
fn the_sieve_denies_only_what_was_never_claimed_also_after_a_restart() {
    let dir = dir();
    let claim = |id: u64| {
        let digest = Digest::of(&[&id.to_be_bytes()]);
        Claim { id: ClaimId(id), digest, target: ClaimTarget::Job(JobId(id)) }
    };
    let some = |ids: std::ops::Range<u64>| Changes {
        claims: ids.map(claim).collect(),
        next: Some(Counters::default()),
        ..Changes::default()
    };
    let all_there = |store: &mut SqliteStore, ids: std::ops::Range<u64>| {
        ids.map(claim).all(|claim| {
            let found = store.load(RowKey::Claim(claim.digest)).unwrap();
            matches!(found, Some(Row::Claim(found)) if found == claim)
        })
    };
    let mut store = SqliteStore::open(dir.path()).unwrap();
    // More than is read in one part, and a rest that is not indexed yet.
    store.commit(&some(1..3_000), &ExpiredRows::default()).unwrap();
    while store.run_maintenance().unwrap() {}
    assert!(all_there(&mut store, 1..3_000));
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert!(all_there(&mut store, 1..3_000), "whether or not the filter is ready");
    // Indexed while the index is being read.
    store.commit(&some(3_000..6_000), &ExpiredRows::default()).unwrap();
    while store.run_maintenance().unwrap() {}
    let until = Instant::now() + Duration::from_secs(60);
    while !store.unindexed.read().is_filter_complete() {
        assert!(Instant::now() < until, "the filter is never ready");
        std::thread::yield_now();
    }
    assert!(all_there(&mut store, 1..6_000));
    let absent = (6_000..16_000).map(|id| claim(id).digest);
    let tail = store.unindexed.read();
    let suspected = absent.filter(|digest| tail.may_be_indexed(*digest)).count();
    assert!(suspected < 100, "{suspected} of 10,000 are false positives");
}

#[test]
fn the_database_itself_refuses_a_negative_balance() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let broke = |id: u64, available: i64, held: i64| {
        let owner = Owner {
            id: OwnerId(id),
            name: format!("owner-{id}"),
            available: Credits::from_micros(available),
            held: Credits::from_micros(held),
            welcomed: true,
            opened_at: Timestamp(0),
            newest_entry: None,
            payment_count: 0,
            suspended: false,
        };
        let mut changes = filler(id + 10, 10);
        changes.owners.insert(owner.id, Arc::new(owner));
        changes
    };
    assert!(
        store.commit(&broke(0, -5, 0), &ExpiredRows::default()).is_ok(),
        "the issuing account may go negative"
    );
    for (available, held) in [(-1, 0), (0, -1)] {
        let refused = store.commit(&broke(1, available, held), &ExpiredRows::default());
        assert!(matches!(&refused, Err(StoreError::Failed(_))), "{refused:?}");
    }
    assert_eq!(store.load_hot_rows().unwrap().owners.len(), 1);
    assert!(store.load(RowKey::Notice(NoticeId(11))).unwrap().is_none(), "a batch is atomic");
}

#[test]
fn history_is_never_written_twice() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    let again = store.commit(&filler(1, 20), &ExpiredRows::default());
    assert!(matches!(&again, Err(StoreError::Failed(_))), "{again:?}");
    let Some(Row::Notice(kept)) = store.load(RowKey::Notice(NoticeId(1))).unwrap() else {
        panic!("the first one exists")
    };
    assert!(matches!(kept.news, NoticeKind::Message { body, .. } if body.len() == 10));
}

#[test]
fn a_full_disk_refuses_the_whole_batch_and_nothing_else() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    store.db.execute_batch("PRAGMA max_page_count = 40").unwrap();
    let digest = Digest([3; 16]);
    let mut large = filler(2, 500_000);
    large.claims.push(Claim { id: ClaimId(1), digest, target: ClaimTarget::Released });
    let full = store.commit(&large, &ExpiredRows::default());
    assert!(matches!(&full, Err(StoreError::Full)), "{full:?}");
    for key in [RowKey::Notice(NoticeId(2)), RowKey::Claim(digest)] {
        assert!(store.load(key).unwrap().is_none());
        assert!(store.open_reader().unwrap().load(key).unwrap().is_none());
    }
    store.commit(&filler(2, 10), &ExpiredRows::default()).expect("a small batch still fits");
    store.db.execute_batch("PRAGMA max_page_count = 1000000").unwrap();
    large.notices = filler(3, 500_000).notices;
    large.history_lines.clear();
    store.commit(&large, &ExpiredRows::default()).expect("there is space again");
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert!(store.load(RowKey::Claim(digest)).unwrap().is_some());
    assert!(store.load(RowKey::Notice(NoticeId(3))).unwrap().is_some());
}

const SMALL: WalLimits = WalLimits { checkpoint_pages: 128, pages_max: 512 };

#[test]
fn the_log_stays_short_while_commits_and_readers_never_stop() {
    let dir = dir();
    let mut store = SqliteStore::open_with_limits(dir.path(), SMALL).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (mut reader, stop) = (store.open_reader().unwrap(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    reader.load_page(PageQuery::Lines { after: EventId(0), limit: 20 }).unwrap();
                    reader.load(RowKey::Notice(NoticeId(1))).unwrap().expect("it was committed");
                }
            })
        })
        .collect();
    let (mut longest, mut written) = (0, 0);
    for n in 2..=120 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).unwrap();
        longest = longest.max(log_bytes(dir.path()));
        written += 100_000;
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("readers were never rejected");
    }
    // A page of the WAL has a header of 24 bytes; one commit may exceed the limit.
    let most = u64::from(SMALL.pages_max + 40) * u64::from(PAGE_BYTES + 24);
    assert!(longest <= most, "{longest} bytes of WAL, {most} allowed");
    assert!(written > 4 * most, "enough was written to check the limit");
}

#[test]
fn a_reader_from_outside_lets_the_log_grow_only_while_it_reads() {
    let dir = dir();
    let mut store = SqliteStore::open_with_limits(dir.path(), SMALL).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    let outside = behind(dir.path());
    outside.execute_batch("BEGIN; SELECT count(*) FROM lines;").unwrap();
    for n in 2..=30 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).expect("commits continue");
    }
    let most = u64::from(SMALL.pages_max + 40) * u64::from(PAGE_BYTES + 24);
    assert!(log_bytes(dir.path()) > most, "the outside reader still needs the old WAL");
    drop(outside);
    for n in 31..=60 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).unwrap();
    }
    assert!(log_bytes(dir.path()) <= most, "{} bytes of WAL", log_bytes(dir.path()));
}

#[test]
fn what_a_killed_hub_committed_is_there_after_the_restart() {
    let dir = dir();
    let copy = self::dir();
    let mut script = ModelHub::default();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    write_sample_history(&mut script, &mut store);
    // As after a crash: file and WAL, without a clean close.
    for name in [DB_FILE.to_owned(), format!("{DB_FILE}-wal")] {
        std::fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
    }
    let mut restarted = SqliteStore::open(copy.path()).unwrap();
    assert_eq!(restarted.load_hot_rows().unwrap().next, Some(script.world.next));
    assert!(read_everything(dir.path(), &script).is_err(), "the first one is still open");
}
