//! Restarts: a restarted hub has the same state as before.

use super::*;
use crate::fixtures::{Life, picture};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_hub_is_the_one_that_stopped() {
    for seed in 1..=3 {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = StandingClock::at(DAWN);
        let mut life = Life::new(seed);
        let mut done = 0;
        for _ in 0..3 {
            let hub = Hub::on_disk(dir.path(), &clock);
            done += life.lead(&hub.engine, &clock, 60).await;
            // Everything due has happened before the snapshot is taken.
            hub.until(|engine| {
                engine.wake();
                let now = engine.now();
                engine.look(|world| {
                    world.due(now).next().is_none()
                        && world.next_offline().is_none_or(|at| now <= at)
                })
            })
            .await;
            let (now, engine) = (hub.engine.now(), hub.engine.clone());
            hub.stop().await;
            let before = engine.look(|world| picture(world, now));
            drop(engine);
            let again = Hub::on_disk(dir.path(), &clock);
            assert_eq!(again.engine.look(|world| picture(world, now)), before, "seed {seed}");
            again.stop().await;
        }
        assert!(done > 250, "seed {seed} ran only {done} commands");
        let report = crate::audit::audit(dir.path()).expect("readable");
        assert!(report.is_clean(), "seed {seed}: {report:#?}");
    }
}
