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
use rialto_core::world::{Rules, World};
use rusqlite::Connection;
use tempfile::TempDir;

use super::checkpoint::CheckpointLimits;
use super::{DB_FILE, PAGE_BYTES, SqliteStore};
use crate::fixtures::market::{markets, submit};
use crate::fixtures::{ModelHub, enrol};
use crate::store::suite::write_sample_history;
use crate::store::unwritten::Generation;
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

#[test]
fn the_tables_are_really_in_wal_mode_and_really_synced() {
    let dir = dir();
    let db = super::open_for_writing(&dir.path().join(DB_FILE)).unwrap();
    let text = |sql| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
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

/// Tables that the sample history fills: those a start loads, and those it does not.
const HOT_TABLES: [&str; 8] =
    ["agents", "desks", "owners", "keys", "aliases", "turns", "jobs", "memories"];
const COLD_TABLES: [&str; 8] =
    ["archive", "entries", "transfers", "notices", "outcomes", "lines", "claims", "postings"];

#[test]
fn a_flipped_byte_in_any_row_is_noticed() {
    let dir = dir();
    let mut script = ModelHub::default();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    write_sample_history(&mut script, &mut store);
    drop(store);
    let file = std::fs::read(dir.path().join(DB_FILE)).unwrap();
    for table in HOT_TABLES.into_iter().chain(COLD_TABLES).chain(["state"]) {
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
fn a_row_that_a_damaged_key_would_hide_stops_the_start() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let mut script = ModelHub::default();
    write_sample_history(&mut script, &mut store);
    let newest = script.rows.claims.last().unwrap().id.0;
    let claim = |id: u64| {
        let digest = Digest::of(&[&id.to_be_bytes()]);
        Claim { id: ClaimId(id), digest, target: ClaimTarget::Released }
    };
    // Enough that some of them are moved to the index.
    let claims = (newest + 1..newest + 600).map(claim).collect();
    store.commit(&Changes { claims, ..Changes::default() }, &ExpiredRows::default()).unwrap();
    store.write_tables();
    drop(store);
    let file = std::fs::read(dir.path().join(DB_FILE)).unwrap();
    let start = || SqliteStore::open(dir.path()).and_then(|mut store| store.load_hot_rows());
    start().unwrap();

    let numbered = HOT_TABLES.iter().chain(&COLD_TABLES).filter(|table| **table != "turns");
    let moved = numbered.map(|table| {
        format!("UPDATE {table} SET id = 1 << 40 WHERE id = (SELECT max(id) FROM {table})")
    });
    let first = COLD_TABLES
        .map(|table| format!("UPDATE {table} SET id = 0 WHERE id = (SELECT min(id) FROM {table})"));
    let named = ["counters", "log", "log_place", "mailboxes_written", "claims_indexed"];
    let renamed = named.map(|name| format!("UPDATE state SET name = 'x' WHERE name = '{name}'"));
    let others = [
        "UPDATE turns SET skill = 'x'",
        "UPDATE claim_index SET digest = zeroblob(16)
          WHERE claim = (SELECT min(claim) FROM claim_index)",
    ];
    for damage in moved.chain(first).chain(renamed).chain(others.map(str::to_owned)) {
        std::fs::write(dir.path().join(DB_FILE), &file).unwrap();
        assert_eq!(behind(dir.path()).execute(&damage, []).unwrap(), 1, "{damage}");
        let found = start();
        assert!(matches!(&found, Err(StoreError::Corrupt(_))), "{damage}: {found:?}");
    }
}

#[test]
fn a_row_in_the_wrong_place_is_noticed() {
    let dir = dir();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    store.write_tables();
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
    store.write_tables();
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
    store.write_tables();
    assert!(all_there(&mut store, 1..3_000));
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert!(all_there(&mut store, 1..3_000), "whether or not the filter is ready");
    // Indexed while the index is being read.
    store.commit(&some(3_000..6_000), &ExpiredRows::default()).unwrap();
    store.write_tables();
    let until = Instant::now() + Duration::from_secs(60);
    while !store.shared.claims.read().is_filter_complete() {
        assert!(Instant::now() < until, "the filter is never ready");
        std::thread::yield_now();
    }
    assert!(all_there(&mut store, 1..6_000));
    let absent = (6_000..16_000).map(|id| claim(id).digest);
    let tail = store.shared.claims.read();
    let suspected = absent.filter(|digest| tail.may_be_indexed(*digest)).count();
    assert!(suspected < 100, "{suspected} of 10,000 are false positives");
}

#[test]
fn a_negative_balance_is_refused_before_it_is_written() {
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
    let refused = store.commit(&broke(1, -1, 0), &ExpiredRows::default());
    assert!(matches!(&refused, Err(StoreError::Failed(_))), "{refused:?}");
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let refused = store.commit(&broke(1, 0, -1), &ExpiredRows::default());
    assert!(matches!(&refused, Err(StoreError::Failed(_))), "{refused:?}");
    let mut world = World::new(Rules::default());
    store.load_world(&mut world).unwrap();
    assert_eq!(world.owners().count(), 1);
    assert!(store.load(RowKey::Notice(NoticeId(11))).unwrap().is_none(), "a batch is atomic");
    // The database would refuse it, too.
    let db = super::open_for_writing(&self::dir().path().join(DB_FILE)).unwrap();
    let generation = |changes| Generation { changes, ..Generation::default() };
    for (available, held) in [(-1, 0), (0, -1)] {
        let written = super::checkpoint::in_transaction(&db, || {
            super::checkpoint::write_generation(&db, &generation(broke(1, available, held)))
        });
        assert!(matches!(&written, Err(StoreError::Failed(_))), "{written:?}");
    }
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

/// Small enough that a test reaches them.
const SMALL: CheckpointLimits = CheckpointLimits {
    file_bytes: 256 << 10,
    log_bytes: 256 << 10,
    log_bytes_max: 512 << 10,
    wal_pages: 128,
    wal_pages_max: 512,
};

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// All files of the log and of SQLite's WAL together.
fn unwritten_bytes(dir: &Path) -> (u64, u64) {
    let log = crate::store::log::log_paths(dir).iter().map(|path| file_bytes(path)).sum();
    (log, file_bytes(&dir.join(format!("{DB_FILE}-wal"))))
}

#[test]
fn log_and_wal_stay_short_while_commits_and_readers_never_stop() {
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
    let (mut longest, mut written) = ((0, 0), 0);
    for n in 2..=200 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).unwrap();
        let (log, wal) = unwritten_bytes(dir.path());
        longest = (longest.0.max(log), longest.1.max(wal));
        written += 100_000;
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("readers were never rejected");
    }
    // A file of the log grows beyond its limit while the other is still needed.
    assert!(longest.0 <= 16 * SMALL.file_bytes, "{} bytes of log", longest.0);
    // A page of the WAL has a header of 24 bytes; one transaction may exceed the limit.
    let most = u64::from(2 * SMALL.wal_pages_max) * u64::from(PAGE_BYTES + 24);
    assert!(longest.1 <= most, "{} bytes of WAL, {most} allowed", longest.1);
    assert!(written > 2 * most, "enough was written to check the limit");
}

#[test]
fn a_reader_from_outside_lets_the_wal_grow_only_while_it_reads() {
    let dir = dir();
    let mut store = SqliteStore::open_with_limits(dir.path(), SMALL).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    store.write_tables();
    let outside = behind(dir.path());
    outside.execute_batch("BEGIN; SELECT count(*) FROM lines;").unwrap();
    for n in 2..=60 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).expect("commits continue");
    }
    store.write_tables();
    let most = u64::from(2 * SMALL.wal_pages_max) * u64::from(PAGE_BYTES + 24);
    assert!(unwritten_bytes(dir.path()).1 > most, "the outside reader still needs the old WAL");
    drop(outside);
    for n in 61..=120 {
        store.commit(&filler(n, 100_000), &ExpiredRows::default()).unwrap();
    }
    store.write_tables();
    drop(store);
    assert_eq!(unwritten_bytes(dir.path()), (0, 0));
}

#[test]
fn a_start_replays_only_what_the_tables_lack() {
    let (dir, copy) = (dir(), dir());
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.commit(&filler(1, 10), &ExpiredRows::default()).unwrap();
    store.write_tables();
    store.commit(&filler(2, 10), &ExpiredRows::default()).unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let tail = SqliteStore::open(copy.path()).unwrap().take_tail();
    assert_eq!(tail.iter().map(|batch| batch.place.number).collect::<Vec<_>>(), [2]);
}

#[test]
fn what_a_killed_hub_committed_is_there_after_the_restart() {
    let dir = dir();
    let copy = self::dir();
    let mut script = ModelHub::default();
    let mut store = SqliteStore::open(dir.path()).unwrap();
    write_sample_history(&mut script, &mut store);
    // As after a crash: all files, without a clean close.
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let mut restarted = SqliteStore::open(copy.path()).unwrap();
    let mut world = World::new(Rules::default());
    restarted.load_world(&mut world).unwrap();
    assert_eq!(world.next, script.world.next);
    assert!(read_everything(dir.path(), &script).is_err(), "the first one is still open");
}
