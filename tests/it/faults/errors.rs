//! EIO: nothing is acknowledged from then on, the hub ends with an error message, and everything
//! acknowledged before is there (G21, T52).

use std::process::ExitStatus;

use super::boundaries::recovered;
use super::disk::{Boundary, DataDir, DiskFault, Fault};
use super::hub::{Caller, Hub, wait_for};
use super::points::{Fate, Point, chosen, strike_each};
use super::reference::reference;
use super::scene::scene;
use super::script::{Progress, play, script};

#[test]
fn a_disk_that_fails_once_anywhere_ends_the_hub_and_loses_nothing() {
    let while_it_runs = &reference().boundaries[..reference().while_it_runs];
    // SQLite ignores an error when it syncs a directory; the hub syncs it itself and does not.
    let own = while_it_runs.iter().filter(|boundary| boundary.name != ".");
    let points = chosen(&own.cloned().collect::<Vec<_>>(), &[DiskFault::Eio], 60);
    strike_each(&points, |point| wait_for(fail(point)));
}

async fn fail(point: &Point) -> Fate {
    let (caller, script) = (Caller::new(), script(scene()));
    let room = DataDir::with(&scene().data());
    let hub = Hub::start(&room, &Fault::at(DiskFault::Eio, point.boundary.number));
    let mut progress = Progress::default();
    if let Some(url) = &hub.url {
        progress = play(&caller, url, &script).await;
        if let Some((status, text)) = &progress.refused {
            assert_eq!(*status, 503, "{text}");
        }
        // The disk works again, but its contents are uncertain.
        if let Some(next) = script.get(progress.steps()) {
            let told = next.say(&caller, url).await;
            assert!(told.is_none_or(|(status, _)| status >= 500), "{} was accepted", next.name);
        }
    }
    let mut fate = Fate::of(&room);
    if progress.steps() < script.len() {
        assert_eq!(fate, Fate::Struck, "{progress:?}");
        let (status, complaint) = hub.ended();
        assert_complained(status, &complaint);
    } else {
        // The tables are written behind, at varying times: an error there ends the hub with the next
        // step, and after the last step there is none. Or this run has fewer boundaries than the
        // counted one.
        let (_, complaint) = hub.stop();
        fate = Fate::of(&room);
        assert!(fate == Fate::Missed || !complaint.is_empty(), "it says nothing about the error");
    }
    if fate == Fate::Struck {
        assert_not_retried(&room.boundaries());
    }
    recovered(&room, &caller, &script, &progress).await;
    fate
}

/// It ended by itself, with a failure exit code and a reason.
pub fn assert_complained(status: ExitStatus, complaint: &str) {
    assert_eq!(status.code(), Some(1), "{complaint}");
    assert!(!complaint.is_empty());
}

/// A failed sync is not retried: the second one would succeed and prove nothing.
fn assert_not_retried(boundaries: &[Boundary]) {
    let at = boundaries.iter().position(|boundary| boundary.failed).expect("it failed");
    let (failed, after) = (&boundaries[at], &boundaries[at + 1..]);
    let again = after.iter().any(|one| one.kind == "sync" && one.name == failed.name);
    assert!(failed.kind != "sync" || !again, "{after:?}");
}

#[test]
fn a_directory_that_cannot_be_synced_keeps_the_hub_from_starting() {
    let room = DataDir::with(&scene().data());
    let fault = Fault::at(DiskFault::Eio, 1).lasting().only("sync").on("/data");
    let hub = Hub::start(&room, &fault);
    assert_eq!(hub.url, None);
    let (status, complaint) = hub.ended();
    assert_complained(status, &complaint);
}
