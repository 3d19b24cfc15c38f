//! Damaged files while no hub runs: the hub does not start, or answers correctly, or ends when it
//! detects the damage. It never answers wrongly (T53).

use std::sync::OnceLock;
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

/// A hub's data after the whole script: after a clean shutdown, or a kill.
fn data(killed: bool) -> &'static DataDir {
    static DATA: [OnceLock<DataDir>; 2] = [const { OnceLock::new() }; 2];
    DATA[usize::from(killed)].get_or_init(|| {
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
        std::thread::spawn(make).join().expect("a run without faults")
    })
}

fn content(killed: bool, name: &str) -> Vec<u8> {
    std::fs::read(data(killed).data().join(name)).expect("a file")
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
fn newest_batch() -> (&'static str, usize) {
    let number = |header: &[u8]| header[8..16].try_into().map(u64::from_le_bytes).expect("8 bytes");
    let newest = LOGS.iter().flat_map(|name| {
        let log = content(true, name);
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
fn steps_at_risk(killed: bool, name: &str, damage: Damage) -> usize {
    let (newest_in, newest) = newest_batch();
    if !killed || name != newest_in {
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
fn some_bytes(killed: bool, name: &str, usually: usize) -> Vec<Damage> {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, bytes) = (Dice(seed), content(killed, name));
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
fn some_pages(killed: bool, name: &str, usually: usize) -> Vec<Damage> {
    let bytes = content(killed, name).len();
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

/// Counts of the results.
#[derive(Default)]
struct Tally {
    refused: AtomicUsize,
    correct: AtomicUsize,
    audited: AtomicUsize,
}

/// Damages a file in one way at a time.
fn damage_each(killed: bool, name: &str, damages: &[Damage]) {
    let tally = Tally::default();
    try_each(damages, |damage| wait_for(damage_one(killed, name, *damage, &tally)));
    let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (refused, correct) = (read(&tally.refused), read(&tally.correct));
    let (count, audited) = (damages.len(), read(&tally.audited));
    println!(
        "{name}: {count} tried, {refused} refused, {correct} correct, audit reports {audited}"
    );
}

async fn damage_one(killed: bool, name: &str, damage: Damage, tally: &Tally) {
    let room = DataDir::with(&data(killed).data());
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
    let (views, at_risk) = (&reference().views, steps_at_risk(killed, name, damage));
    let correct = &views[(views.len() - 1).saturating_sub(at_risk)..];
    let [.., last] = correct else { unreachable!("one at least") };
    let wrong = || format!("the audit ended with {code}: {report}\n{}", view.unlike(last));
    assert!(correct.contains(&view), "a wrong answer: {}", wrong());
    tally.correct.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_file_with_one_rotten_byte_never_gives_a_wrong_answer() {
    damage_each(false, DATABASE, &some_bytes(false, DATABASE, 110));
    damage_each(true, DATABASE, &some_bytes(true, DATABASE, 20));
}

#[test]
fn a_wal_with_one_rotten_byte_never_gives_a_wrong_answer() {
    damage_each(true, WAL, &some_bytes(true, WAL, 40));
}

#[test]
fn a_log_with_one_rotten_byte_never_gives_a_wrong_answer() {
    for name in LOGS {
        damage_each(true, name, &some_bytes(true, name, 30));
    }
}

#[test]
fn a_file_that_lost_a_page_or_its_end_never_gives_a_wrong_answer() {
    damage_each(false, DATABASE, &some_pages(false, DATABASE, 12));
    for name in [DATABASE, WAL, LOGS[0], LOGS[1]] {
        damage_each(true, name, &some_pages(true, name, 12));
    }
}

#[test]
fn a_killed_hub_does_not_start_without_one_of_its_files() {
    for name in [DATABASE, LOGS[0], LOGS[1]] {
        damage_each(true, name, &[Damage::Missing]);
    }
}

#[test]
fn a_database_that_became_empty_does_not_start_as_a_new_hub() {
    damage_each(false, DATABASE, &[Damage::Cut { length: 0 }]);
}
