//! Which boundaries are tried: all of them, or a sample of every sort, reproducible from the seed.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::disk::{Boundary, DataDir, DiskFault};
use crate::crash::{Dice, SEED, seed};

/// Environment variable: how many points to try, a number or `all`.
pub const POINTS: &str = "RIALTO_FAULT_POINTS";
/// Deferred writes happen at varying times, so some runs have fewer boundaries than the counted
/// one; but not many.
const STRUCK_PERCENT_MIN: usize = 80;
/// Points tried at the same time.
const AT_ONCE: usize = 3;

/// One fault at one boundary.
#[derive(Clone, Debug)]
pub struct Point {
    pub fault: DiskFault,
    pub boundary: Boundary,
}

/// How many points to try; `usually` is the default number.
pub fn point_count(usually: usize) -> usize {
    match std::env::var(POINTS) {
        Ok(all) if all == "all" => usize::MAX,
        Ok(number) => number.parse().expect("a number, or all"),
        Err(_) => usually,
    }
}

/// The points to try; `usually` is the default number.
pub fn chosen(boundaries: &[Boundary], faults: &[DiskFault], usually: usize) -> Vec<Point> {
    let seed = seed();
    println!("{SEED}={seed}");
    let (all, there) = (every(boundaries, faults), boundaries.len());
    let points = some(all, point_count(usually), seed);
    println!("{faults:?}: {} points, {there} boundaries", points.len());
    points
}

/// Every fault at every boundary where it differs from the others.
fn every(boundaries: &[Boundary], deeds: &[DiskFault]) -> Vec<Point> {
    let mut all = Vec::new();
    for boundary in boundaries {
        for fault in deeds {
            let writes = boundary.kind == "write";
            if writes || !matches!(fault, DiskFault::Torn | DiskFault::Short) {
                all.push(Point { fault: *fault, boundary: boundary.clone() });
            }
        }
    }
    all
}

/// Takes a sample: of every sort (fault, call, file) in turn, and within a sort at random.
fn some(all: Vec<Point>, wanted: usize, seed: u64) -> Vec<Point> {
    let mut sorts = std::collections::BTreeMap::<String, Vec<Point>>::new();
    for point in all {
        let Boundary { kind, name, .. } = &point.boundary;
        sorts.entry(format!("{:?} {kind} {name}", point.fault)).or_default().push(point);
    }
    let (mut dice, mut taken) = (Dice(seed), Vec::new());
    while taken.len() < wanted && sorts.values().any(|left| !left.is_empty()) {
        for left in sorts.values_mut().filter(|left| !left.is_empty()) {
            let which = dice.roll(left.len() as u64) as usize;
            taken.push(left.swap_remove(which));
        }
    }
    taken.truncate(wanted);
    taken
}

/// The result of the fault at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Struck,
    /// The run had fewer boundaries than the counted one.
    Missed,
}

impl Fate {
    /// Read from the shim's log.
    pub fn of(room: &DataDir) -> Self {
        match room.boundaries().iter().any(|boundary| boundary.failed) {
            true => Self::Struck,
            false => Self::Missed,
        }
    }
}

/// Injects the fault of each point; most of them must have happened, or the test would prove
/// nothing.
pub fn strike_each(points: &[Point], attempt: impl Fn(&Point) -> Fate + Sync) {
    let struck = AtomicUsize::new(0);
    try_each(points, |point| {
        let hit = attempt(point) == Fate::Struck;
        struck.fetch_add(usize::from(hit), Ordering::Relaxed);
    });
    let struck = struck.into_inner();
    println!("{struck} of {} faults happened", points.len());
    assert!(struck * 100 >= points.len() * STRUCK_PERCENT_MIN, "only {struck} faults happened");
}

/// Tries each point, a few at a time, and reports those that failed.
pub fn try_each<P: Debug + Sync>(points: &[P], attempt: impl Fn(&P) + Sync) {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let tried = AssertUnwindSafe(|| attempt(point));
            if catch_unwind(tried).is_err() {
                failed.lock().expect("no panic").push(point);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{} of {} failed: {failed:#?}", failed.len(), points.len());
}

#[test]
fn a_choice_has_something_of_every_sort_and_is_the_same_again() {
    let boundary = |number: u64| Boundary {
        number,
        kind: if number.is_multiple_of(10) { "sync" } else { "write" }.to_owned(),
        name: "f".to_owned(),
        failed: false,
    };
    let boundaries: Vec<_> = (1..=100).map(boundary).collect();
    let all = every(&boundaries, &[DiskFault::Before, DiskFault::Torn]);
    assert_eq!(all.len(), 190, "a sync cannot be torn");
    let numbers = |seed| -> Vec<u64> {
        some(all.clone(), 30, seed).iter().map(|point| point.boundary.number).collect()
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
    let syncs = some(all.clone(), 30, 1);
    assert_eq!(syncs.iter().filter(|point| point.boundary.kind == "sync").count(), 10);
}
