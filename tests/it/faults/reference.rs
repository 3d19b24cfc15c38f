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
        Self { views, boundaries, while_it_runs }
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
