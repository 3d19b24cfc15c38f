//! A kill or a power cut at every boundary of the script: an acknowledged step is there once, an
//! unacknowledged one is there whole or not at all, and repeating it has one effect (G1, G2, T51).

use super::disk::{DataDir, DiskFault, Fault};
use super::hub::{Caller, Hub, Request, audit, wait_for, was_killed};
use super::points::{Fate, Point, chosen, strike_each};
use super::reference::reference;
use super::scene::scene;
use super::script::{Progress, Step, play, script};
use super::view::View;

#[test]
fn a_kill_at_any_boundary_loses_nothing_and_halves_nothing() {
    everywhere(&[DiskFault::Before, DiskFault::After, DiskFault::Torn], 110);
}

#[test]
fn a_power_cut_at_any_boundary_loses_nothing_and_halves_nothing() {
    everywhere(&[DiskFault::Cut, DiskFault::Mess], 80);
}

fn everywhere(deeds: &[DiskFault], usually: usize) {
    let points = chosen(&reference().boundaries, deeds, usually);
    strike_each(&points, |point| wait_for(strike(point)));
}

/// One run with its fault, and its result.
async fn strike(point: &Point) -> Fate {
    let (caller, script) = (Caller::new(), script(scene()));
    let room = DataDir::with(&scene().data());
    let hub = Hub::start(&room, &Fault::at(point.fault, point.boundary.number));
    let progress = match &hub.url {
        Some(url) => play(&caller, url, &script).await,
        None => Progress::default(),
    };
    assert!(progress.refused.is_none(), "a killed hub must not refuse: {progress:?}");
    let (status, complaint) = match progress.steps() == script.len() {
        // The boundary belongs to the shutdown, or this run has fewer than the counted one.
        true => hub.stop(),
        false => hub.ended(),
    };
    let fate = Fate::of(&room);
    assert_eq!(fate == Fate::Struck, was_killed(status), "{status} {complaint}");
    assert!(fate == Fate::Struck || progress.steps() == script.len(), "{progress:?}");
    recovered(&room, &caller, &script, &progress).await;
    fate
}

/// A hub without faults over the same data shows every acknowledged step, and perhaps the next one.
pub async fn recovered(room: &DataDir, caller: &Caller, script: &[Step], progress: &Progress) {
    let done = progress.steps();
    assert_audited(room);
    let hub = Hub::start(room, &Fault::none());
    let views = &reference().views;
    let found = View::of(caller, hub.url(), scene()).await;
    let whole = views.get(done + 1).filter(|next| **next == found).is_some();
    assert!(whole || found == views[done], "after {done}: {}", found.unlike(&views[done]));
    for key in progress.keys() {
        let (status, text) =
            caller.send(hub.url(), &Request::get("/v1/me", Some(&key))).await.expect("an answer");
        assert_eq!(status, 200, "an issued key is invalid: {text}");
    }
    // Repeats the last acknowledged step and, twice, the first unacknowledged one.
    if let Some(last) = script[..done].last() {
        last.repeat(caller, hub.url()).await;
    }
    if let Some(next) = script.get(done) {
        next.repeat(caller, hub.url()).await;
        next.repeat(caller, hub.url()).await;
    }
    let next = &views[(done + 1).min(script.len())];
    let found = View::of(caller, hub.url(), scene()).await;
    assert!(&found == next, "after {done} and a repeat: {}", found.unlike(next));
    hub.kill();
    assert_audited(room);
}

fn assert_audited(room: &DataDir) {
    let (code, said) = audit(&room.data());
    assert_eq!(code, 0, "{said}");
}
