//! A data directory from before there was a log: it migrates at the first start, and a fault during
//! that start leaves it as it was or migrated (G1, G2).
//!
//! `schema_2` holds throw-away data that an older version wrote, as SQL, and what it answered.

use std::sync::OnceLock;

use rusqlite::Connection;
use serde_json::Value;

use super::disk::{Boundary, DataDir, DiskFault, Fault};
use super::hub::{Caller, Hub, Request, audit, wait_for, was_killed};
use super::points::{Fate, Point, chosen, strike_each};

const SQL: &str = include_str!("schema_2/data.sql");
const FILE: &str = "rialto.db";

/// The secret, the keys and the answers of the older version.
fn expected() -> &'static Value {
    static EXPECTED: OnceLock<Value> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        serde_json::from_str(include_str!("schema_2/answers.json")).expect("a JSON document")
    })
}

fn operator() -> &'static str {
    expected()["keys"]["operator"].as_str().expect("a key")
}

/// The directory as the older version left it: after a clean stop in one file, after a kill with the
/// newest rows in the WAL.
fn old_data(killed: bool) -> DataDir {
    let (room, made) = (DataDir::empty(), tempfile::TempDir::new().expect("a directory"));
    std::fs::create_dir(room.data()).expect("a directory");
    let db = Connection::open(made.path().join(FILE)).expect("a database");
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").expect("a mode");
    let half = SQL.find("CREATE TABLE jobs").expect("a table in the middle");
    db.execute_batch(&SQL[..half]).expect("valid SQL");
    if killed {
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("no reader");
    }
    db.execute_batch(&format!("BEGIN; {} COMMIT;", &SQL[half..])).expect("valid SQL");
    if !killed {
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("no reader");
    }
    for name in [FILE, "rialto.db-wal"] {
        std::fs::copy(made.path().join(name), room.data().join(name)).expect("a copy");
    }
    let wal = room.data().join("rialto.db-wal").metadata().expect("a WAL");
    assert_eq!(wal.len() > 0, killed);
    let secret = expected()["hub_key"].as_str().expect("hex digits");
    let path = room.data().join("hub.key");
    std::fs::write(&path, hex(secret)).expect("a file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).expect("its owner");
    room
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

/// The hub answers everything as the older version did.
async fn assert_answers_the_same(hub: &Hub) {
    let caller = Caller::new();
    for (name, answers) in expected()["answers"].as_object().expect("callers") {
        let key = expected()["keys"][name].as_str();
        for (path, answer) in answers.as_object().expect("paths") {
            let shown = caller.must(hub.url(), &Request::get(path, key)).await;
            assert_eq!(&shown, answer, "{name} {path}");
        }
    }
}

fn assert_audited(room: &DataDir) {
    let (code, report) = audit(&room.data());
    assert_eq!(code, 0, "{report}");
}

fn schema_version(room: &DataDir) -> i64 {
    let db = Connection::open(room.data().join(FILE)).expect("a database");
    db.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a number")
}

#[test]
fn a_directory_from_before_the_log_migrates_and_answers_the_same() {
    wait_for(async {
        for killed in [false, true] {
            let room = old_data(killed);
            assert_audited(&room);
            let hub = Hub::with_key(&room, &Fault::none(), operator());
            assert_answers_the_same(&hub).await;
            hub.kill();
            assert_audited(&room);
            let hub = Hub::with_key(&room, &Fault::none(), operator());
            assert_answers_the_same(&hub).await;
            let (status, complaint) = hub.stop();
            assert!(status.success(), "{complaint}");
            assert_audited(&room);
            assert_eq!(schema_version(&room), 3, "older versions refuse it");
        }
    });
}

/// Every change on disk in the start that migrates.
fn boundaries() -> Vec<Boundary> {
    let room = old_data(true);
    let hub = Hub::with_key(&room, &Fault::none(), operator());
    assert!(hub.url.is_some());
    let boundaries = room.boundaries();
    hub.kill();
    for name in ["rialto.db-wal", "rialto.db-log0", "rialto.db-log1"] {
        assert!(boundaries.iter().any(|one| one.name == name), "{name}: {boundaries:?}");
    }
    boundaries
}

#[test]
fn a_migration_that_is_cut_short_anywhere_loses_nothing() {
    let faults =
        [DiskFault::Before, DiskFault::After, DiskFault::Torn, DiskFault::Cut, DiskFault::Mess];
    strike_each(&chosen(&boundaries(), &faults, 30), |point| wait_for(cut_short(point)));
}

async fn cut_short(point: &Point) -> Fate {
    let room = old_data(true);
    let hub = Hub::with_key(&room, &Fault::at(point.fault, point.boundary.number), operator());
    if Fate::of(&room) == Fate::Missed {
        hub.kill();
        return Fate::Missed;
    }
    let (status, complaint) = hub.ended();
    assert!(was_killed(status), "{status} {complaint}");
    assert_audited(&room);
    let hub = Hub::with_key(&room, &Fault::none(), operator());
    assert_answers_the_same(&hub).await;
    hub.kill();
    assert_audited(&room);
    Fate::Struck
}
