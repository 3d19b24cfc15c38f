//! Corrupted bytes on disk while no hub runs: the hub does not start, or answers correctly, or ends
//! when it detects the damage. It never answers wrongly (T53).

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::disk::{DataDir, Fault};
use super::hub::{Caller, Hub, audit, wait_for};
use super::points::try_each;
use super::reference::reference;
use super::scene::scene;
use super::script::{play, script};
use super::view::View;
use crate::crash::{Dice, SEED, seed};

const FILE: &str = "rialto.db";
const LOG: &str = "rialto.db-wal";

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

/// One corrupted byte.
#[derive(Clone, Copy, Debug)]
struct Rot {
    at: usize,
    mask: u8,
}

/// Random offsets, most of them in used parts of the file.
fn places(file: &Path, count: usize) -> Vec<Rot> {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, bytes) = (Dice(seed), std::fs::read(file).expect("a file"));
    let mut rot = Vec::new();
    while rot.len() < count {
        let at = dice.roll(bytes.len() as u64) as usize;
        if bytes[at] != 0 || dice.roll(8) == 0 {
            rot.push(Rot { at, mask: 1 << dice.roll(8) });
        }
    }
    rot
}

fn spoil(room: &DataDir, name: &str, rot: Rot) {
    let path = room.data().join(name);
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[rot.at] ^= rot.mask;
    std::fs::write(&path, bytes).expect("a file");
}

/// Counts of the results.
#[derive(Default)]
struct Tally {
    refused: AtomicUsize,
    right: AtomicUsize,
    told: AtomicUsize,
}

/// Corrupts one byte at a time. From `unproved` on, damage may lose the newest step, as if it had
/// never been committed.
fn rot_everywhere(name: &str, killed: bool, count: usize, unproved: usize) {
    let (room, tally) = (data(killed), Tally::default());
    let places = places(&room.data().join(name), count);
    try_each(&places, |rot| wait_for(one(room, name, *rot, &tally, rot.at >= unproved)));
    let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (refused, right, told) = (read(&tally.refused), read(&tally.right), read(&tally.told));
    println!("{name}: {count} bytes, {refused} refused, {right} right, audit reports {told}");
}

async fn one(whole: &DataDir, name: &str, rot: Rot, tally: &Tally, unproved: bool) {
    let room = DataDir::with(&whole.data());
    spoil(&room, name, rot);
    let (code, said) = audit(&room.data());
    tally.told.fetch_add(usize::from(code != 0), Ordering::Relaxed);
    let hub = Hub::start(&room, &Fault::none());
    let Some(url) = hub.url.clone() else {
        let (status, complaint) = hub.ended();
        assert_eq!(status.code(), Some(1), "{complaint}");
        tally.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let [.., before, last] = &reference().views[..] else { unreachable!("more than one") };
    match View::unless_it_ends(&Caller::new(), &url, scene()).await {
        Some(view) => {
            let unfinished = unproved && view == *before;
            let wrong = || format!("audit said {code}: {said}\n{}", view.unlike(last));
            assert!(view == *last || unfinished, "a wrong answer: {}", wrong());
            tally.right.fetch_add(1, Ordering::Relaxed);
        }
        None => {
            let (status, complaint) = hub.ended();
            assert_eq!(status.code(), Some(1), "{complaint}");
            tally.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_file_with_one_rotten_byte_never_gives_a_wrong_answer() {
    rot_everywhere(FILE, false, 150, usize::MAX);
}

#[test]
fn a_log_with_one_rotten_byte_never_gives_a_wrong_answer() {
    let log = std::fs::read(data(true).data().join(LOG)).expect("a log");
    rot_everywhere(LOG, true, 70, newest_commit(&log));
}

/// The offset of the newest commit of a log. Nothing follows it, so damage in it cannot be told
/// from an incomplete commit.
fn newest_commit(log: &[u8]) -> usize {
    const HEAD: usize = 32;
    const FRAME: usize = 24 + 4_096;
    let ends = (HEAD..log.len()).step_by(FRAME).filter(|at| log[at + 4..at + 8] != [0; 4]);
    let ends: Vec<usize> = ends.map(|at| at + FRAME).collect();
    let [.., before, _] = ends[..] else { panic!("{} commits", ends.len()) };
    before
}
