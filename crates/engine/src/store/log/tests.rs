//! Tests of the log's files: which belong to a database, and what is refused.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rialto_core::changes::{Batch, Counters, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use tempfile::TempDir;

use super::{LogOptions, LogSnapshot, LogWriter, Place, log_paths};
use crate::audit::audit_dir;
use crate::backup::create_backup;
use crate::fixtures::{ModelHub, enrol};
use crate::metrics::Histogram;
use crate::store::sqlite::{DB_FILE, SqliteStore};
use crate::store::{BatchLog, Store};

/// Registers an agent in a new batch.
fn register(store: &mut SqliteStore, model: &mut ModelHub, name: &str) {
    let (_, changes) = model.run(Command::Register(Box::new(enrol(name, name, &[]))));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
}

/// What a kill leaves of a hub with three agents: a copy of all its files.
fn killed_hub() -> (TempDir, ModelHub) {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = SqliteStore::open(dir.path()).expect("an empty directory");
    let mut model = ModelHub::default();
    for name in ["ada", "bob", "eve"] {
        register(&mut store, &mut model, name);
    }
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    (copy, model)
}

/// Start, audit and backup refuse a directory, with these words.
#[track_caller]
fn assert_refused(dir: &Path, words: &[&str]) {
    let backup = tempfile::tempdir().unwrap();
    let to = backup.path().join("copy.db");
    let refusals = [
        SqliteStore::open(dir).err().map(|error| error.to_string()),
        audit_dir(dir).err().map(|error| error.to_string()),
        create_backup(dir, &to, Timestamp(1)).err().map(|error| error.to_string()),
    ];
    for (by, refusal) in ["start", "audit", "backup"].iter().zip(refusals) {
        let text = refusal.unwrap_or_else(|| panic!("{by} accepted it"));
        for word in words {
            assert!(text.contains(word), "{by}: {text}");
        }
    }
    assert!(!to.exists());
}

fn agent_count(dir: &Path) -> usize {
    let mut store = SqliteStore::open(dir).expect("a store");
    let mut world = World::new(Rules::default());
    store.load_world(&mut world).expect("rows");
    world.agents().count()
}

#[test]
fn a_log_in_use_needs_both_of_its_files() {
    for missing in 0..2 {
        let (dir, _) = killed_hub();
        let path = &log_paths(dir.path())[missing];
        std::fs::remove_file(path).unwrap();
        let name = format!("rialto.db-log{missing} is missing");
        assert_refused(dir.path(), &[&name, "restore a backup"]);
        assert!(!path.exists(), "the refused start created it");
    }
}

#[test]
fn a_log_without_its_database_is_refused_and_left_alone() {
    let (dir, _) = killed_hub();
    let (wal, [log, _]) = (dir.path().join(format!("{DB_FILE}-wal")), log_paths(dir.path()));
    let before = [&wal, &log].map(|path| std::fs::read(path).unwrap());
    for empty in [false, true] {
        match empty {
            true => std::fs::write(dir.path().join(DB_FILE), "").unwrap(),
            false => std::fs::remove_file(dir.path().join(DB_FILE)).unwrap(),
        }
        let refused = SqliteStore::open(dir.path()).err().expect("refused").to_string();
        assert!(refused.contains("rialto.db is missing or empty"), "{refused}");
        assert_eq!([&wal, &log].map(|path| std::fs::read(path).unwrap()), before);
    }
}

#[test]
fn a_log_with_foreign_content_is_refused_and_left_alone() {
    let (dir, _) = killed_hub();
    let [first, _] = log_paths(dir.path());
    for content in ["notes", &"notes ".repeat(2_000)] {
        std::fs::write(&first, content).unwrap();
        assert_refused(dir.path(), &["rialto.db-log0", "belongs to another database"]);
        assert_eq!(std::fs::read_to_string(&first).unwrap(), content);
    }
}

#[test]
fn the_log_of_another_hub_is_refused() {
    let ((dir, _), (other, _)) = (killed_hub(), killed_hub());
    for (path, foreign) in log_paths(dir.path()).iter().zip(log_paths(other.path())) {
        std::fs::copy(foreign, path).unwrap();
    }
    assert_refused(dir.path(), &["rialto.db-log0", "belongs to another database"]);
}

#[test]
fn a_database_that_was_stopped_cleanly_is_not_started_beside_an_old_log() {
    let (killed, _) = killed_hub();
    let (stopped, _) = killed_hub();
    drop(SqliteStore::open(stopped.path()).expect("it recovers"));
    for file in std::fs::read_dir(killed.path()).unwrap().map(|file| file.unwrap().path()) {
        if !log_paths(killed.path()).contains(&file) {
            std::fs::remove_file(file).unwrap();
        }
    }
    std::fs::copy(stopped.path().join(DB_FILE), killed.path().join(DB_FILE)).unwrap();
    assert_refused(killed.path(), &["rialto.db-log0", "restore a backup into an empty directory"]);
}

#[test]
fn a_log_that_a_clean_stop_could_not_remove_is_used_again() {
    let (dir, mut model) = killed_hub();
    let logs = log_paths(dir.path()).map(|path| (std::fs::read(&path).unwrap(), path));
    let mut store = SqliteStore::open(dir.path()).expect("it recovers");
    register(&mut store, &mut model, "may");
    drop(store);
    assert!(logs.iter().all(|(_, path)| !path.exists()), "a clean stop removes the log");
    for (bytes, path) in &logs {
        std::fs::write(path, bytes).unwrap();
    }
    let mut store = SqliteStore::open(dir.path()).expect("every batch is in the database");
    register(&mut store, &mut model, "zoe");
    drop(store);
    assert_eq!(agent_count(dir.path()), 5);
}

#[test]
fn a_batch_that_is_damaged_before_the_newest_is_refused() {
    let (dir, _) = killed_hub();
    let [first, _] = log_paths(dir.path());
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[4_096 + 200] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    assert_refused(dir.path(), &["batch 2 of the log", "batch 3 follows it", "restore a backup"]);
}

/// A log whose files take one batch each, and of which the database has the batches up to here.
fn short_log(dir: &Path, checkpointed: &Arc<AtomicU64>) -> LogWriter {
    let options = LogOptions {
        id: [7; 16],
        place: Place::default(),
        next: Counters::default(),
        file_bytes: 4_096,
        checkpointed: checkpointed.clone(),
        syncs: Arc::new(Histogram::for_durations()),
        bytes: Arc::default(),
    };
    LogWriter::open(dir, options).expect("an empty directory").0
}

#[test]
fn a_file_is_used_again_only_once_the_database_has_every_batch_in_it() {
    let (dir, checkpointed) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(0)));
    let mut log = short_log(dir.path(), &checkpointed);
    let mut model = ModelHub::default();
    let mut places = vec![Place::default()];
    let mut append = |places: &mut Vec<Place>, name: &str| {
        let (_, changes) = model.run(Command::Register(Box::new(enrol(name, name, &[]))));
        places.push(
            log.append(&Batch::new(changes, ExpiredRows::default())).expect("there is space"),
        );
    };
    let batches_after = |place| {
        let snapshot = LogSnapshot::read(dir.path(), [7; 16]).expect("two files");
        snapshot.batches_after(place).map(|batches| batches.len())
    };
    for name in ["a", "b", "c", "d", "e"] {
        append(&mut places, name);
    }
    assert_eq!(batches_after(places[0]).expect("all are there"), 5);
    checkpointed.store(5, Ordering::Release);
    for name in ["f", "g"] {
        append(&mut places, name);
    }
    assert_eq!(batches_after(places[5]).expect("the newest are there"), 2);
    assert!(batches_after(places[0]).is_err(), "a file was used again");
}
