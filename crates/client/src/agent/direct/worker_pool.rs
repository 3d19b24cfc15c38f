//! The worker pool of the direct endpoints. It limits how many jobs run and how many wait, and
//! keeps a started job running when its caller disconnects.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use crate::agent::Workshop;
use crate::agent::record::Records;

/// How many jobs may wait for a permit.
const WAITING_MAX: usize = 256;
/// How often old records are pruned.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// The handlers, with the running and the queued jobs.
pub(crate) struct Bench {
    shop: Workshop,
    seats: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
    /// The records in which handlers keep their state per job.
    records: Option<Records>,
}

/// A permit to run one job; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Seat {
    _at_work: OwnedSemaphorePermit,
}

/// A slot in the queue, held while a job runs or waits for a permit.
#[derive(Debug)]
pub(crate) struct Place {
    seats: Arc<Semaphore>,
    _in_queue: OwnedSemaphorePermit,
}

impl Bench {
    pub(crate) fn new(shop: Workshop, records: Option<Records>) -> Self {
        let at_once = shop.at_once();
        let waiting = at_once.saturating_add(WAITING_MAX).min(Semaphore::MAX_PERMITS);
        let (seats, queue) = (Arc::new(Semaphore::new(at_once)), Arc::new(Semaphore::new(waiting)));
        Self { shop, seats, queue, tasks: Mutex::default(), records }
    }

    /// The skills and their handlers.
    pub(crate) fn shop(&self) -> &Workshop {
        &self.shop
    }

    /// How many jobs run now.
    pub(crate) fn busy(&self) -> usize {
        self.shop.at_once().saturating_sub(self.seats.available_permits())
    }

    /// Takes a permit, if one is free now.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let at_work = Arc::clone(&self.seats).try_acquire_owned().ok()?;
        Some(Seat { _at_work: at_work })
    }

    /// Takes a queue slot, unless the queue is full.
    pub(crate) fn place(&self) -> Option<Place> {
        let in_queue = Arc::clone(&self.queue).try_acquire_owned().ok()?;
        Some(Place { seats: Arc::clone(&self.seats), _in_queue: in_queue })
    }

    /// Spawns a task that does not depend on its caller.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Closes the record of a peer's job. Its answer is stored elsewhere or is not to be stored, so
    /// the record is no longer needed.
    pub(crate) fn put_away(&self, job_id: &str) {
        let Some(records) = &self.records else { return };
        for (turn, record) in records.open_ones().unwrap_or_default() {
            // A hub's job has an epoch above 0; its record is closed when the hub has its outcome.
            if turn.turn == 0 && turn.id == job_id {
                // A record that cannot be removed now is pruned later.
                let _ = record.close();
            }
        }
    }

    /// Prunes old records periodically; never returns.
    pub(crate) async fn tidy(&self) {
        let mut hours = interval(TIDY_EVERY);
        loop {
            hours.tick().await;
            if let Some(records) = &self.records {
                // A record that cannot be removed now is tried again at the next prune.
                let _ = records.prune(SystemTime::now());
            }
        }
    }

    /// Waits up to `grace` for running tasks, then aborts the rest.
    pub(crate) async fn close(&self, grace: Duration) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            tasks.shutdown().await;
        }
        // Tasks spawned in the meantime get no extra time.
        self.abandon();
    }

    /// Aborts all running tasks.
    pub(crate) fn abandon(&self) {
        lock(&self.tasks).abort_all();
    }
}

impl Place {
    /// Waits for a permit; `None` if the pool is shut down.
    pub(crate) async fn seat(&self) -> Option<Seat> {
        let at_work = Arc::clone(&self.seats).acquire_owned().await.ok()?;
        Some(Seat { _at_work: at_work })
    }
}

/// Locks a mutex and ignores poisoning: the guarded data is consistent after every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Outcome, Room, Skill};

    fn bench(at_once: usize) -> Bench {
        let never = |_| std::future::pending::<Outcome>();
        let skill = Skill::new("wait", "0").expect("a skill");
        Bench::new(Workshop::setup().skill(skill, never).room(Room(at_once)).open(), None)
    }

    #[tokio::test]
    async fn so_many_sit_and_a_few_more_wait() {
        let bench = bench(1);
        let place = bench.place().expect("a place");
        let seat = place.seat().await.expect("a seat");
        assert_eq!((bench.busy(), bench.seat().is_none()), (1, true));
        let waiting: Vec<_> = std::iter::from_fn(|| bench.place()).collect();
        assert_eq!(waiting.len(), WAITING_MAX);
        drop(seat);
        assert!(waiting[0].seat().await.is_some());
        assert_eq!(bench.busy(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_finish_in_time_is_ended() {
        let bench = bench(1);
        let (quick, slow) = (Arc::new(()), Arc::new(()));
        let held = [Arc::clone(&quick), Arc::clone(&slow)];
        let [one, two] = held;
        bench.run(async move { drop(one) });
        bench.run(async move {
            std::future::pending::<()>().await;
            drop(two);
        });
        bench.close(Duration::from_secs(5)).await;
        assert_eq!((Arc::strong_count(&quick), Arc::strong_count(&slow)), (1, 1));
    }
}
