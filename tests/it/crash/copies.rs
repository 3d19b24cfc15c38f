//! What is read beside a hub under load and after its end: audits, backups, and the database file
//! alone.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::book::Book;
use super::clients::{self, Cast};
use super::{Dice, LOAD_MS, SEED, assert_audit_is_clean, checks, seed, start, under_load};
use crate::kit::run;

/// How often everything is read while the load goes on.
const READS: usize = 4;

/// `rialto backup` of a data directory, restored as another one with the same secret.
fn restore_copy(data: &Path, room: &TempDir, name: &str) -> std::path::PathBuf {
    let path = |name: &str| room.path().join(name);
    let text = |path: &Path| path.display().to_string();
    let (file, restored) = (path(&format!("{name}.db")), path(name));
    let (code, output, error) = run(&["backup", "--data", &text(data), "--to", &text(&file)]);
    assert_eq!(code, 0, "{output}{error}");
    let (from, to) = (text(&file), text(&restored));
    let key = text(&data.join("hub.key"));
    let more = ["--hub-key", &key, "--beside-original"];
    let (code, output, error) =
        run(&[&["restore", "--from", &from, "--data", &to][..], &more].concat());
    assert_eq!(code, 0, "{output}{error}");
    restored
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_and_backups_beside_a_hub_under_load_and_after_its_kill_are_whole() {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, room) = (Dice(seed), TempDir::new().expect("a directory"));
    let data = room.path().join("data");
    let hub = start(&data);
    let cast = Cast::assemble(&hub.url).await;
    let book = Arc::new(Book::default());
    let load = clients::load(&hub.url, &cast, &book, dice.roll(u64::MAX));
    under_load(&mut dice, LOAD_MS, async || book.open().done()).await;
    let before = book.open().done();
    tokio::task::block_in_place(|| {
        for number in 0..READS {
            assert_audit_is_clean(&data);
            restore_copy(&data, &room, &format!("running {number}"));
        }
    });
    assert!(book.open().done() > before, "the load went on meanwhile");
    hub.kill();
    load.over().await;
    assert_audit_is_clean(&data);
    let restored = restore_copy(&data, &room, "killed");
    let copy = start(&restored);
    let acknowledged = checks::all(&copy.url, &cast, &book, 0).await;
    assert!(acknowledged >= before, "{acknowledged} of {before}");
    copy.kill();
    for number in 0..READS {
        assert_audit_is_clean(&room.path().join(format!("running {number}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_stopped_under_load_leaves_one_complete_file() {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, room) = (Dice(seed), TempDir::new().expect("a directory"));
    let data = room.path().join("data");
    let hub = start(&data);
    let cast = Cast::assemble(&hub.url).await;
    let book = Arc::new(Book::default());
    let load = clients::load(&hub.url, &cast, &book, dice.roll(u64::MAX));
    under_load(&mut dice, LOAD_MS, async || book.open().done()).await;
    let status = hub.stop();
    load.over().await;
    assert!(status.success(), "{status}");
    let beside = ["rialto.db-log0", "rialto.db-log1", "rialto.db-wal"];
    for name in beside {
        let length = data.join(name).metadata().map(|file| file.len());
        assert!(
            length.is_err() || name.ends_with("wal") && length.is_ok_and(|it| it == 0),
            "{name}"
        );
    }
    // The file alone, as another program reads it.
    let alone = room.path().join("alone");
    std::fs::create_dir(&alone).expect("a directory");
    for name in ["rialto.db", "hub.key"] {
        std::fs::copy(data.join(name), alone.join(name)).expect("a copy");
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags(alone.join("rialto.db"), flags).expect("a database");
    let count =
        |sql: &str| db.query_row(sql, [], |row| row.get::<_, u32>(0)).expect("a number") as usize;
    {
        let pages = book.open();
        let agents = pages.agents.values().filter(|fate| fate.is_done()).count();
        assert!(count("SELECT count(*) FROM agents") >= agents);
        let payments = pages.payments.values().filter(|one| one.fate.is_done()).count();
        assert!(count("SELECT count(*) FROM transfers") >= payments);
        let jobs = pages.jobs.values().filter(|job| job.posted.is_done()).count();
        let sql = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM archive)";
        assert!(count(sql) >= jobs);
    }
    drop(db);
    assert_audit_is_clean(&alone);
    let hub = start(&alone);
    assert!(checks::all(&hub.url, &cast, &book, 0).await > 0);
}
