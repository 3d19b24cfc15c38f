//! The first start, when the data directory, its secret and its tables are created: after any fault
//! the next start finds nothing or something complete (G1, G2).

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::disk::{Boundary, DataDir, DiskFault, Fault};
use super::errors::assert_complained;
use super::hub::{Caller, Hub, Request, audit, wait_for, was_killed};
use super::points::{Fate, Point, chosen, strike_each};
use crate::kit::run;

/// The secret, in the data directory.
const SECRET: &str = "hub.key";

/// The minimum number of boundaries in a first start.
const BOUNDARIES_MIN: usize = 20;

/// Longer than an idle hub waits before it writes its tables.
const QUIET: Duration = Duration::from_millis(1_500);

/// Waits until a hub has also done what it does after it has started: nothing changes on disk any
/// more, or the fault has happened.
fn wait_until_quiet(room: &DataDir) {
    let mut before = room.boundaries().len();
    while Fate::of(room) == Fate::Missed {
        std::thread::sleep(QUIET);
        let now = room.boundaries().len();
        if std::mem::replace(&mut before, now) == now {
            return;
        }
    }
}

/// Every change on disk in a first start.
fn boundaries() -> &'static [Boundary] {
    static BOUNDARIES: OnceLock<Vec<Boundary>> = OnceLock::new();
    BOUNDARIES.get_or_init(|| {
        let room = DataDir::empty();
        let hub = Hub::first(&room, &Fault::none());
        assert!(hub.url.is_some());
        wait_until_quiet(&room);
        let boundaries = room.boundaries();
        hub.kill();
        assert!(boundaries.len() >= BOUNDARIES_MIN, "too few boundaries: {boundaries:?}");
        // The secret is first written under a random name.
        let named = boundaries.into_iter().map(|one| match one.name.starts_with(SECRET) {
            true => Boundary { name: SECRET.to_owned(), ..one },
            false => one,
        });
        named.collect()
    })
}

#[test]
fn a_first_start_that_is_cut_short_anywhere_leaves_nothing_in_the_way_of_the_second() {
    let deeds =
        [DiskFault::Before, DiskFault::After, DiskFault::Torn, DiskFault::Cut, DiskFault::Mess];
    strike_each(&chosen(boundaries(), &deeds, 60), |point| wait_for(cut_short(point)));
}

async fn cut_short(point: &Point) -> Fate {
    let room = DataDir::empty();
    let hub = Hub::first(&room, &Fault::at(point.fault, point.boundary.number));
    // It may have printed its address; then it has everything it needs.
    let secret = hub.url.as_ref().map(|_| secret(&room));
    if hub.url.is_some() {
        wait_until_quiet(&room);
    }
    if Fate::of(&room) == Fate::Missed {
        hub.kill();
        return Fate::Missed;
    }
    let (status, complaint) = hub.ended();
    assert!(was_killed(status), "{status} {complaint}");
    second_start(&room, secret).await;
    Fate::Struck
}

#[test]
fn a_first_start_on_a_disk_that_fails_ends_and_leaves_nothing_in_the_way_of_the_second() {
    let own: Vec<_> = boundaries().iter().filter(|one| one.name != ".").cloned().collect();
    let points = chosen(&own, &[DiskFault::Eio, DiskFault::Enospc], 30);
    strike_each(&points, |point| wait_for(refused(point)));
}

async fn refused(point: &Point) -> Fate {
    let room = DataDir::empty();
    let hub = Hub::first(&room, &Fault::at(point.fault, point.boundary.number));
    let secret = hub.url.as_ref().map(|_| secret(&room));
    if hub.url.is_some() {
        wait_until_quiet(&room);
    }
    if Fate::of(&room) == Fate::Missed {
        hub.kill();
        return Fate::Missed;
    }
    let (status, complaint) = hub.ended();
    assert_complained(status, &complaint);
    second_start(&room, secret).await;
    Fate::Struck
}

/// SQLite reports the new mode before it is on disk; a hub that relied on it would run without a
/// log.
#[test]
fn a_failed_switch_to_the_log_keeps_the_hub_from_starting() {
    let switching = |one: &&Boundary| ["rialto.db", "rialto.db-journal"].contains(&&*one.name);
    let switching: Vec<_> = boundaries().iter().filter(switching).cloned().collect();
    assert!(switching.len() > 4, "{switching:?}");
    let points = switching.into_iter().map(|boundary| Point { fault: DiskFault::Eio, boundary });
    strike_each(&points.collect::<Vec<_>>(), |point| wait_for(refused(point)));
}

fn secret(room: &DataDir) -> Vec<u8> {
    std::fs::read(room.data().join(SECRET)).expect("a secret")
}

/// The second start works, and so do later ones, with the same secret. A key that was stored just
/// before the failure may never have been printed; then the operator creates another while the hub
/// is stopped.
async fn second_start(room: &DataDir, first: Option<Vec<u8>>) {
    let caller = Caller::new();
    let hub = Hub::first(room, &Fault::none());
    assert!(hub.url.is_some());
    let made = secret(room);
    assert_eq!(made.len(), 32);
    assert!(first.is_none_or(|first| first == made), "the secret has changed");
    hub.kill();
    let data = room.data().display().to_string();
    let (code, told, error) = run(&["operator", "key", "rotate", "--data", &data, "--json"]);
    assert_eq!(code, 0, "{error}");
    let told: Value = serde_json::from_str(&told).expect("one document");
    let operator = told["key"].as_str().expect("a key").to_owned();
    let hub = Hub::with_key(room, &Fault::none(), &operator);
    let grant = json!({"owner": "somebody", "amount": 1, "create": true});
    caller.must(hub.url(), &Request::post("/v1/operator/grants", Some(&operator), &grant)).await;
    hub.kill();
    let (code, said) = audit(&room.data());
    assert_eq!(code, 0, "{said}");
    let hub = Hub::with_key(room, &Fault::none(), &operator);
    assert_eq!(secret(room), made);
    let account = Request::get("/v1/accounts/somebody", Some(&operator));
    assert_eq!(caller.must(hub.url(), &account).await["available"], 1.0);
}
