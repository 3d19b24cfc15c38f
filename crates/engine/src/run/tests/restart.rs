//! Restarts: a restarted hub has the same state as before.

use super::*;
use crate::fixtures::{RandomWorkload, snapshot};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_hub_is_the_one_that_stopped() {
    for seed in 1..=3 {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = ManualClock::at(START);
        let mut life = RandomWorkload::new(seed);
        let mut done = 0;
        for _ in 0..3 {
            let hub = Hub::on_disk(dir.path(), &clock);
            done += life.run(&hub.engine, &clock, 60).await;
            // Everything due has happened before the snapshot is taken.
            hub.until(|engine| {
                engine.wake_lane();
                let now = engine.now();
                engine.with_world(|world| {
                    world.due_timers(now).next().is_none()
                        && world.next_offline_at().is_none_or(|at| now <= at)
                })
            })
            .await;
            let (now, engine) = (hub.engine.now(), hub.engine.clone());
            hub.stop().await;
            let before = engine.with_world(|world| snapshot(world, now));
            drop(engine);
            let again = Hub::on_disk(dir.path(), &clock);
            assert_eq!(
                again.engine.with_world(|world| snapshot(world, now)),
                before,
                "seed {seed}"
            );
            again.stop().await;
        }
        assert!(done > 250, "seed {seed} ran only {done} commands");
        let report = crate::audit::audit_dir(dir.path()).expect("readable");
        assert!(report.is_clean(), "seed {seed}: {report:#?}");
    }
}
