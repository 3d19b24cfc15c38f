//! A full disk: writes get 507 and change nothing, reads are correct, and everything works again
//! once there is space (G21, T52).

use super::boundaries::recovered;
use super::disk::{Boundary, DataDir, DiskFault, Fault};
use super::errors::assert_complained;
use super::hub::{Caller, Hub, audit, wait_for};
use super::points::{Fate, Point, chosen, strike_each};
use super::reference::reference;
use super::scene::scene;
use super::script::{Progress, play, script};
use super::view::View;

#[test]
fn a_disk_that_is_full_for_one_write_costs_one_answer_and_nothing_else() {
    let while_it_runs = &reference().boundaries[..reference().while_it_runs];
    let own = while_it_runs.iter().filter(|boundary| boundary.name != ".");
    let own: Vec<_> = own.cloned().collect();
    let points = chosen(&own, &[DiskFault::Enospc, DiskFault::Short], 60);
    strike_each(&points, |point| wait_for(fill(point)));
}

async fn fill(point: &Point) -> Fate {
    let (caller, script) = (Caller::new(), script(scene()));
    let room = DataDir::with(&scene().data());
    let hub = Hub::start(&room, &Fault::at(point.fault, point.boundary.number));
    let Some(url) = hub.url.clone() else {
        let (status, complaint) = hub.ended();
        assert_complained(status, &complaint);
        recovered(&room, &caller, &script, &Progress::default()).await;
        return Fate::Struck;
    };
    let progress = play(&caller, &url, &script).await;
    // A short write has a second fault, which may come to another file.
    let is_uncertain =
        |one: &Boundary| one.kind == "sync" || one.kind == "truncate" && !one.name.contains("-log");
    if room.boundaries().iter().any(|one| one.failed && is_uncertain(one)) {
        // After a failed sync the contents are uncertain, whatever the reason. The hub ends with the
        // next step, if there is one.
        if progress.refused.as_ref().map_or(progress.steps() < script.len(), |it| it.0 == 503) {
            let (status, complaint) = hub.ended();
            assert_complained(status, &complaint);
        } else {
            assert!(!hub.stop().1.is_empty());
        }
        recovered(&room, &caller, &script, &progress).await;
        return Fate::Struck;
    }
    let (done, views) = (progress.steps(), &reference().views);
    if let Some((status, text)) = &progress.refused {
        assert_eq!(*status, 507, "{text}");
        let shown = View::of(&caller, &url, scene()).await;
        assert!(shown == views[done], "after {done}: {}", shown.unlike(&views[done]));
        let rest = play(&caller, &url, &script[done..]).await;
        assert_eq!(done + rest.steps(), script.len(), "{:?}", rest.refused);
    }
    let (shown, last) = (View::of(&caller, &url, scene()).await, &views[script.len()]);
    assert!(shown == *last, "{}", shown.unlike(last));
    let (status, complaint) = hub.stop();
    assert!(status.success(), "{complaint}");
    let (code, said) = audit(&room.data());
    assert_eq!(code, 0, "{said}");
    Fate::of(&room)
}

#[test]
fn while_there_is_no_room_every_read_is_right_and_no_write_is_taken() {
    wait_for(async {
        let (caller, script) = (Caller::new(), script(scene()));
        let room = DataDir::with(&scene().data());
        let hub = Hub::start(&room, &Fault::switched(DiskFault::Enospc, &room).only("write"));
        let (url, views) = (hub.url(), &reference().views);
        for (done, step) in script.iter().enumerate() {
            room.switch_on();
            for _ in 0..2 {
                let (status, text) = step.say(&caller, url).await.expect("an answer");
                assert_eq!(status, 507, "{}: {text}", step.name);
            }
            let shown = View::of(&caller, url, scene()).await;
            assert!(shown == views[done], "{}: {}", step.name, shown.unlike(&views[done]));
            room.switch_off();
            let (status, text) = step.say(&caller, url).await.expect("an answer");
            assert!((200..300).contains(&status), "{}: {status} {text}", step.name);
        }
        let (shown, last) = (View::of(&caller, url, scene()).await, &views[script.len()]);
        assert!(shown == *last, "{}", shown.unlike(last));
        assert!(hub.stop().0.success());
    });
}
