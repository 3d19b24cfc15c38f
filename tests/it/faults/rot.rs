//! Damaged files while no hub runs: the hub does not start, or answers correctly, or ends when it
//! detects the damage. It never answers wrongly (T53).

use std::sync::atomic::{AtomicUsize, Ordering};

use super::disk::{DataDir, Fault};
use super::hub::{Caller, Hub, audit, wait_for};
use super::points::{point_count, try_each};
use super::reference::reference;
use super::scene::scene;
use super::script::{play, script};
use super::view::View;
use crate::crash::{Dice, SEED, seed};

const DATABASE: &str = "rialto.db";
const WAL: &str = "rialto.db-wal";
const LOGS: [&str; 2] = ["rialto.db-log0", "rialto.db-log1"];
const PAGE_BYTES: usize = 4_096;
/// Bytes that are damaged in each file if all points are tried: more would show nothing new.
const BYTES_MAX: usize = 600;

/// A hub's data after the whole script. Every test makes its own: some minutes later a hub answers
/// differently, because the key that the script replaced has expired.
struct Data {
    room: DataDir,
    /// After a kill, instead of a clean shutdown.
    killed: bool,
}

impl Data {
    fn make(killed: bool) -> Self {
        let make = move || {
            let room = DataDir::with(&scene().data());
            let hub = Hub::start(&room, &Fault::none());
            let script = script(scene());
            let progress = wait_for(play(&Caller::new(), hub.url(), &script));
            assert_eq!(progress.steps(), script.len());
            match killed {
                true => hub.kill(),
                false => assert!(hub.stop().0.success()),
            }
            room
        };
        let room = std::thread::spawn(make).join().expect("a run without faults");
        Self { room, killed }
    }

    fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.room.data().join(name)).expect("a file")
    }
}

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// Some bits of a byte are flipped.
    Byte {
        at: usize,
        mask: u8,
    },
    /// A page becomes zeros.
    Page {
        at: usize,
    },
    /// The file ends earlier.
    Cut {
        length: usize,
    },
    Missing,
}

impl Damage {
    fn apply(self, room: &DataDir, name: &str) {
        let path = room.data().join(name);
        let mut bytes = std::fs::read(&path).expect("a file");
        match self {
            Self::Byte { at, mask } => bytes[at] ^= mask,
            Self::Page { at } => {
                let end = bytes.len().min(at + PAGE_BYTES);
                bytes[at..end].fill(0);
            }
            Self::Cut { length } => bytes.truncate(length),
            Self::Missing => return std::fs::remove_file(&path).expect("a file"),
        }
        std::fs::write(&path, bytes).expect("a file");
    }
}

/// Where the newest batch begins: in which file of the log, and at which offset. Nothing follows it,
/// so damage in it cannot be told from a batch that was not finished.
fn newest_batch(data: &Data) -> (&'static str, usize) {
    let number = |header: &[u8]| header[8..16].try_into().map(u64::from_le_bytes).expect("8 bytes");
    let newest = LOGS.iter().flat_map(|name| {
        let log = data.content(name);
        let pages = log.chunks(PAGE_BYTES).enumerate();
        let records = pages.filter(|(_, page)| page.starts_with(b"rialtolg"));
        let places = records.map(|(page, header)| (number(header), *name, page * PAGE_BYTES));
        places.collect::<Vec<_>>()
    });
    let (_, name, at) = newest.max().expect("a record");
    (name, at)
}

/// How many of the newest steps may be missing after some damage, as if they had never been
/// acknowledged.
fn steps_at_risk(data: &Data, name: &str, damage: Damage) -> usize {
    if !data.killed {
        return 0;
    }
    let (newest_in, newest) = newest_batch(data);
    if name != newest_in {
        return 0;
    }
    match damage {
        Damage::Byte { at, .. } | Damage::Page { at } => usize::from(at >= newest),
        // Nothing says how long the file was.
        Damage::Cut { .. } => usize::MAX,
        Damage::Missing => 0,
    }
}

/// Random bytes, most of them in used parts of the file.
fn some_bytes(data: &Data, name: &str, usually: usize) -> Vec<Damage> {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, bytes) = (Dice(seed), data.content(name));
    let mut places = Vec::new();
    while places.len() < point_count(usually).min(BYTES_MAX) {
        let at = dice.roll(bytes.len() as u64) as usize;
        if bytes[at] != 0 || dice.roll(8) == 0 {
            places.push(Damage::Byte { at, mask: 1 << dice.roll(8) });
        }
    }
    places
}

/// Pages that become zeros, and lengths at which the file ends: of pages, and within them.
fn some_pages(data: &Data, name: &str, usually: usize) -> Vec<Damage> {
    let bytes = data.content(name).len();
    let pages = (0..bytes).step_by(PAGE_BYTES);
    let zeroed = pages.clone().map(|at| Damage::Page { at });
    let cut = pages.flat_map(|at| [at, at + 500]).map(|length| Damage::Cut { length });
    let mut all: Vec<_> = zeroed.chain(cut).collect();
    let mut dice = Dice(seed());
    while all.len() > point_count(usually) {
        all.swap_remove(dice.roll(all.len() as u64) as usize);
    }
    all
}

/// Bits at the beginning of rows in the pages of the database: their lengths and keys. A row with
/// another key is not found any more. Few bytes of a file are of this kind, so random ones rarely are.
fn some_keys(data: &Data, usually: usize) -> Vec<Damage> {
    let bytes = data.content(DATABASE);
    let number = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let mut all = Vec::new();
    for page in (0..bytes.len()).step_by(PAGE_BYTES) {
        // The first page begins with the header of the file.
        let header = if page == 0 { 100 } else { page };
        let (header_bytes, key_bytes) = match bytes[header] {
            // Rows with a number as their key: its length and the number come first.
            13 => (8, 5),
            // Rows with a text as their key, and pages that lead to others.
            10 => (8, 24),
            2 | 5 => (12, 24),
            _ => continue,
        };
        for row in 0..number(header + 3) {
            let start = page + number(header + header_bytes + 2 * row);
            for at in start..(start + key_bytes).min(page + PAGE_BYTES) {
                all.extend((0..8).map(|bit| Damage::Byte { at, mask: 1 << bit }));
            }
        }
    }
    let mut dice = Dice(seed());
    while all.len() > point_count(usually) {
        all.swap_remove(dice.roll(all.len() as u64) as usize);
    }
    all
}

/// Counts of the results.
#[derive(Default)]
struct Tally {
    refused: AtomicUsize,
    correct: AtomicUsize,
    audited: AtomicUsize,
}

/// Damages a file in one way at a time.
fn damage_each(data: &Data, name: &str, damages: &[Damage]) {
    let tally = Tally::default();
    try_each(damages, |damage| wait_for(damage_one(data, name, *damage, &tally)));
    let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (refused, correct) = (read(&tally.refused), read(&tally.correct));
    let (count, audited) = (damages.len(), read(&tally.audited));
    println!(
        "{name}: {count} tried, {refused} refused, {correct} correct, audit reports {audited}"
    );
}

async fn damage_one(data: &Data, name: &str, damage: Damage, tally: &Tally) {
    let room = DataDir::with(&data.room.data());
    damage.apply(&room, name);
    let (code, report) = audit(&room.data());
    tally.audited.fetch_add(usize::from(code != 0), Ordering::Relaxed);
    let hub = Hub::start(&room, &Fault::none());
    let view = match hub.url.clone() {
        Some(url) => View::unless_it_ends(&Caller::new(), &url, scene()).await,
        None => None,
    };
    let Some(view) = view else {
        let (status, complaint) = hub.ended();
        assert_eq!(status.code(), Some(1), "{complaint}");
        tally.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    assert!(!matches!(damage, Damage::Missing), "a start without {name}");
    let (views, at_risk) = (&reference().views, steps_at_risk(data, name, damage));
    let correct = &views[(views.len() - 1).saturating_sub(at_risk)..];
    let [.., last] = correct else { unreachable!("one at least") };
    let wrong = || format!("the audit ended with {code}: {report}\n{}", view.unlike(last));
    assert!(correct.contains(&view), "a wrong answer: {}", wrong());
    tally.correct.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_file_with_one_rotten_byte_never_gives_a_wrong_answer() {
    for (killed, usually) in [(false, 110), (true, 20)] {
        let data = Data::make(killed);
        damage_each(&data, DATABASE, &some_bytes(&data, DATABASE, usually));
    }
}

#[test]
fn a_row_whose_key_is_damaged_never_seems_to_be_missing() {
    for (killed, usually) in [(false, 60), (true, 20)] {
        let data = Data::make(killed);
        damage_each(&data, DATABASE, &some_keys(&data, usually));
    }
}

#[test]
fn a_wal_with_one_rotten_byte_never_gives_a_wrong_answer() {
    let data = Data::make(true);
    damage_each(&data, WAL, &some_bytes(&data, WAL, 40));
}

#[test]
fn a_log_with_one_rotten_byte_never_gives_a_wrong_answer() {
    let data = Data::make(true);
    for name in LOGS {
        damage_each(&data, name, &some_bytes(&data, name, 30));
    }
}

#[test]
fn a_file_that_lost_a_page_or_its_end_never_gives_a_wrong_answer() {
    let data = Data::make(false);
    damage_each(&data, DATABASE, &some_pages(&data, DATABASE, 12));
    let data = Data::make(true);
    for name in [DATABASE, WAL, LOGS[0], LOGS[1]] {
        damage_each(&data, name, &some_pages(&data, name, 12));
    }
}

#[test]
fn a_killed_hub_does_not_start_without_one_of_its_files() {
    let data = Data::make(true);
    for name in [DATABASE, LOGS[0], LOGS[1]] {
        damage_each(&data, name, &[Damage::Missing]);
    }
}

#[test]
fn a_database_that_became_empty_does_not_start_as_a_new_hub() {
    damage_each(&Data::make(false), DATABASE, &[Damage::Cut { length: 0 }]);
}
