//! The worker pool of the direct endpoints. It limits how many jobs run and how many wait, and
//! keeps a started job running when its caller disconnects.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::lock_ignoring_poison;
use crate::agent::Handlers;
use crate::agent::record::JobRecords;

/// How many jobs may wait for a permit.
const QUEUE_MAX: usize = 256;
/// How often old records are pruned.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);

/// The handlers, with the running and the queued jobs.
pub(crate) struct WorkerPool {
    handlers: Handlers,
    permits: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
    /// The records in which handlers keep their state per job.
    records: Option<JobRecords>,
}

/// A permit to run one job; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
}

/// A slot in the queue, held while a job runs or waits for a permit.
#[derive(Debug)]
pub(crate) struct QueueSlot {
    permits: Arc<Semaphore>,
    _slot: OwnedSemaphorePermit,
}

impl WorkerPool {
    pub(crate) fn new(handlers: Handlers, records: Option<JobRecords>) -> Self {
        let concurrency = handlers.concurrency();
        let queue_size = concurrency.saturating_add(QUEUE_MAX).min(Semaphore::MAX_PERMITS);
        Self {
            handlers,
            permits: Arc::new(Semaphore::new(concurrency)),
            queue: Arc::new(Semaphore::new(queue_size)),
            tasks: Mutex::default(),
            records,
        }
    }

    /// The skills and their handlers.
    pub(crate) fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// How many jobs run now.
    pub(crate) fn busy_count(&self) -> usize {
        self.handlers.concurrency().saturating_sub(self.permits.available_permits())
    }

    /// Takes a permit, if one is free now.
    pub(crate) fn try_acquire(&self) -> Option<Permit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(Permit { _permit: permit })
    }

    /// Takes a queue slot, unless the queue is full.
    pub(crate) fn try_enqueue(&self) -> Option<QueueSlot> {
        let slot = Arc::clone(&self.queue).try_acquire_owned().ok()?;
        Some(QueueSlot { permits: Arc::clone(&self.permits), _slot: slot })
    }

    /// Spawns a task that does not depend on its caller.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock_ignoring_poison(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Closes the record of a peer's job. Its answer is stored elsewhere or is not to be stored, so
    /// the record is no longer needed.
    pub(crate) fn close_record(&self, job_id: &str) {
        let Some(records) = &self.records else { return };
        for (assignment, record) in records.list_open().unwrap_or_default() {
            // A hub's job has an epoch above 0; its record is closed when the hub has its outcome.
            if assignment.epoch == 0 && assignment.id == job_id {
                // A record that cannot be removed now is pruned later.
                let _ = record.close();
            }
        }
    }

    /// Prunes old records periodically; never returns.
    pub(crate) async fn prune_records_periodically(&self) {
        let mut hours = interval(PRUNE_INTERVAL);
        loop {
            hours.tick().await;
            if let Some(records) = &self.records {
                // A record that cannot be removed now is tried again at the next prune.
                let _ = records.prune(SystemTime::now());
            }
        }
    }

    /// Waits up to `grace` for running tasks, then aborts the rest.
    pub(crate) async fn shut_down(&self, grace: Duration) {
        let mut tasks = std::mem::take(&mut *lock_ignoring_poison(&self.tasks));
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            tasks.shutdown().await;
        }
        // Tasks spawned in the meantime get no extra time.
        self.abort_all();
    }

    /// Aborts all running tasks.
    pub(crate) fn abort_all(&self) {
        lock_ignoring_poison(&self.tasks).abort_all();
    }
}

impl QueueSlot {
    /// Waits for a permit; `None` if the pool is shut down.
    pub(crate) async fn acquire(&self) -> Option<Permit> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(Permit { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Concurrency, Outcome, Skill};

    fn pool(concurrency: usize) -> WorkerPool {
        let never = |_| std::future::pending::<Outcome>();
        let skill = Skill::new("wait", "0").expect("a skill");
        WorkerPool::new(
            Handlers::builder().skill(skill, never).concurrency(Concurrency(concurrency)).build(),
            None,
        )
    }

    #[tokio::test]
    async fn jobs_run_up_to_the_concurrency_and_a_few_more_wait() {
        let pool = pool(1);
        let slot = pool.try_enqueue().expect("a slot");
        let permit = slot.acquire().await.expect("a permit");
        assert_eq!((pool.busy_count(), pool.try_acquire().is_none()), (1, true));
        let waiting: Vec<_> = std::iter::from_fn(|| pool.try_enqueue()).collect();
        assert_eq!(waiting.len(), QUEUE_MAX);
        drop(permit);
        assert!(waiting[0].acquire().await.is_some());
        assert_eq!(pool.busy_count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_finish_in_time_are_aborted() {
        let pool = pool(1);
        let (quick, slow) = (Arc::new(()), Arc::new(()));
        let [one, two] = [Arc::clone(&quick), Arc::clone(&slow)];
        pool.spawn(async move { drop(one) });
        pool.spawn(async move {
            std::future::pending::<()>().await;
            drop(two);
        });
        pool.shut_down(Duration::from_secs(5)).await;
        assert_eq!((Arc::strong_count(&quick), Arc::strong_count(&slow)), (1, 1));
    }
}
