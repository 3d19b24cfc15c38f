//! The run without faults, which all others are compared with.

use std::sync::OnceLock;

use super::disk::{Boundary, DataDir, Fault};
use super::hub::{Caller, Hub, wait_for};
use super::scene::{Scene, scene};
use super::script::{Step, play, script};
use super::view::View;

/// With fewer boundaries the shim is not active, and there would be nothing to try.
const BOUNDARIES_MIN: usize = 100;

/// The correct results.
pub struct Reference {
    /// The view before the first step, after the first, and so on to the end.
    pub views: Vec<View>,
    /// Every change on disk, from the start of the hub to its clean shutdown.
    pub boundaries: Vec<Boundary>,
    /// How many of them come before the shutdown.
    pub while_it_runs: usize,
}

/// The reference, made once.
pub fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let make = || wait_for(Reference::make(scene()));
        std::thread::spawn(make).join().expect("there is a run without faults")
    })
}

impl Reference {
    async fn make(scene: &Scene) -> Self {
        let (caller, script) = (Caller::new(), script(scene));
        let views = views(&caller, scene, &script).await;
        // Counted in a run without views: they write nothing, but take time.
        let room = DataDir::with(&scene.data());
        let hub = Hub::start(&room, &Fault::none());
        let progress = play(&caller, hub.url(), &script).await;
        assert_eq!(progress.steps(), script.len(), "{:?}", progress.refused);
        let while_it_runs = room.boundaries().len();
        let view = View::of(&caller, hub.url(), scene).await;
        let last = views.last().expect("a last view");
        assert!(&view == last, "two runs must be equal: {}", view.unlike(last));
        assert!(hub.stop().0.success());
        let boundaries = room.boundaries();
        assert!(
            boundaries.len() > BOUNDARIES_MIN,
            "only {} boundaries were counted",
            boundaries.len()
        );
        assert_crosses_every_kind(&boundaries[..while_it_runs], &boundaries[while_it_runs..]);
        Self { views, boundaries, while_it_runs }
    }
}

/// The script must reach all that a hub does on disk: the log in one file, the other and the first
/// again, the tables, the WAL into the database, and what a clean stop does.
fn assert_crosses_every_kind(running: &[Boundary], stopping: &[Boundary]) {
    let logs = running.iter().filter(|one| one.kind == "write" && one.name.contains("-log"));
    let mut files: Vec<&str> = logs.map(|one| one.name.as_str()).collect();
    files.dedup();
    assert!(files.len() > 2, "the log changed files too rarely: {files:?}");
    for (during, kind, name) in [
        (running, "sync", "rialto.db-log0"),
        (running, "sync", "rialto.db-log1"),
        (running, "write", "rialto.db-wal"),
        (running, "sync", "rialto.db-wal"),
        (running, "write", "rialto.db"),
        (running, "sync", "rialto.db"),
        (stopping, "write", "rialto.db"),
        (stopping, "truncate", "rialto.db-wal"),
        (stopping, "unlink", "rialto.db-log0"),
        (stopping, "unlink", "rialto.db-log1"),
    ] {
        let is_there = during.iter().any(|one| one.kind == kind && one.name == name);
        assert!(is_there, "no {kind} of {name} in {during:?}");
    }
}

async fn views(caller: &Caller, scene: &Scene, script: &[Step]) -> Vec<View> {
    let room = DataDir::with(&scene.data());
    let hub = Hub::start(&room, &Fault::none());
    let mut views = vec![View::of(caller, hub.url(), scene).await];
    for step in script {
        let told = step.say(caller, hub.url()).await.expect("an answer");
        assert!((200..300).contains(&told.0), "{}: {told:?}", step.name);
        views.push(View::of(caller, hub.url(), scene).await);
        let [.., before, after] = &views[..] else { unreachable!("two at least") };
        // A step without a visible effect would prove nothing.
        assert!(before != after || step.name == "rotate", "{} has no visible effect", step.name);
    }
    // A hub restarted from disk shows the same, and a repeat changes nothing.
    hub.kill();
    let hub = Hub::start(&room, &Fault::none());
    let last = views.last().expect("a last view");
    let again = View::of(caller, hub.url(), scene).await;
    assert!(&again == last, "{}", again.unlike(last));
    for step in script {
        step.repeat(caller, hub.url()).await;
        let again = View::of(caller, hub.url(), scene).await;
        assert!(&again == last, "{}: {}", step.name, again.unlike(last));
    }
    views
}
