//! The worker runtime: what every protocol's worker does in the same way.
//!
//! Work reaches an agent in two ways. From a hub it is read as events: [`run`] is the loop of all
//! such workers, and a [`WorkSource`] says what an event of its protocol means. From a peer it is
//! an HTTP request: a [`RequestLog`](request_log::RequestLog) executes each request once and
//! answers repeats, and a [`PeerRequest`](request_log::PeerRequest) says what its protocol writes
//! down. Both run jobs with the permits of a [`WorkerPool`](pool::WorkerPool) or of the handlers,
//! and give running jobs a grace period when the agent stops.

pub(crate) mod bounded_cache;
pub(crate) mod journal;
pub(crate) mod pool;
pub(crate) mod request_log;

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::timeout;

use crate::call::CallError;
use crate::retry::repeat;

/// How long running jobs may continue after shutdown.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long to wait until aborted tasks have stopped.
const ABORT_TIME_MAX: Duration = Duration::from_secs(2);

/// An error around a job, which does not stop the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeError {
    /// The job's id in its protocol, if the error is about one.
    pub job_id: Option<String>,
    /// The action that failed.
    pub action: &'static str,
    /// The reason.
    pub reason: String,
}

/// One protocol's side of a worker: what its events mean, how its answers are sent, and what
/// happens to jobs that are unfinished at shutdown.
pub(crate) trait WorkSource: Send {
    /// What arrives: a job, a cancellation, or a timer.
    type Event: Send;
    /// Identifies what a task works on.
    type Job: Send;
    /// How a task ended.
    type End: Send + 'static;

    /// Handles an event: starts tasks, or cancels them.
    fn handle_event(
        &mut self,
        event: Self::Event,
        tasks: &mut Tasks<Self::Job, Self::End>,
    ) -> impl Future<Output = ()> + Send;

    /// Handles the end of a task that was not cancelled; an error means that it panicked.
    fn handle_end(
        &mut self,
        job: Self::Job,
        end: Result<Self::End, JoinError>,
        tasks: &mut Tasks<Self::Job, Self::End>,
    ) -> impl Future<Output = ()> + Send;

    /// Accepts no more work, and returns how long running tasks may continue.
    fn begin_shutdown(
        &mut self,
        _tasks: &mut Tasks<Self::Job, Self::End>,
        _result: &Result<(), CallError>,
    ) -> impl Future<Output = Duration> + Send {
        std::future::ready(GRACE)
    }

    /// Returns the jobs that did not finish, and sends the last reports.
    fn end_shutdown(
        &mut self,
        _unfinished: Vec<Self::Job>,
        _result: &Result<(), CallError>,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Works until `stop`, or until the events end. Running tasks then have a grace period; the rest is
/// aborted and returned.
pub(crate) async fn run<S: WorkSource>(
    mut source: S,
    mut tasks: Tasks<S::Job, S::End>,
    events: impl Stream<Item = Result<S::Event, CallError>>,
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    // The events are dropped before the shutdown: nothing is read that would not be handled.
    let result = {
        let (mut events, mut stop) = (pin!(events), pin!(stop));
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break Ok(()),
                Some((job, end)) = tasks.next_finished() => {
                    source.handle_end(job, end, &mut tasks).await;
                }
                event = events.next() => match event {
                    Some(Ok(event)) => source.handle_event(event, &mut tasks).await,
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                },
            }
        }
    };
    let grace = source.begin_shutdown(&mut tasks, &result).await;
    let finish = async {
        while let Some((job, end)) = tasks.next_finished().await {
            source.handle_end(job, end, &mut tasks).await;
        }
    };
    let _ = timeout(grace, finish).await;
    let unfinished = tasks.abort_all().await;
    source.end_shutdown(unfinished, &result).await;
    result
}

/// The running tasks of a worker, each with the job it works on. Dropping this aborts them.
#[derive(Debug)]
pub(crate) struct Tasks<J, E> {
    tasks: JoinSet<E>,
    running: HashMap<Id, (J, AbortHandle)>,
}

impl<J, E> Default for Tasks<J, E> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), running: HashMap::new() }
    }
}

impl<J, E: Send + 'static> Tasks<J, E> {
    /// Starts a task.
    pub(crate) fn spawn(&mut self, job: J, work: impl Future<Output = E> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.running.insert(task.id(), (job, task));
    }

    /// What the running tasks work on.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &J> {
        self.running.values().map(|(job, _)| job)
    }

    /// Aborts tasks. How they end does not matter any more.
    pub(crate) fn cancel(&mut self, mut is_cancelled: impl FnMut(&J) -> bool) -> Vec<J> {
        let cancelled = self.running.extract_if(|_, (job, _)| is_cancelled(job));
        cancelled
            .map(|(_, (job, task))| {
                task.abort();
                job
            })
            .collect()
    }

    /// Waits for the next task that ends; `None` if none is running.
    async fn next_finished(&mut self) -> Option<(J, Result<E, JoinError>)> {
        loop {
            let (id, end) = match self.tasks.join_next_with_id().await? {
                Ok((id, end)) => (id, Ok(end)),
                Err(error) => (error.id(), Err(error)),
            };
            // A task without a job was cancelled.
            if let Some((job, _)) = self.running.remove(&id) {
                return Some((job, end));
            }
        }
    }

    /// Aborts all tasks, waits until they have stopped, and returns what they worked on.
    async fn abort_all(&mut self) -> Vec<J> {
        let _ = timeout(ABORT_TIME_MAX, self.tasks.shutdown()).await;
        std::mem::take(&mut self.running).into_values().map(|(job, _)| job).collect()
    }
}

/// Repeats a call until the server answers it, well or badly. `delay` says how long to wait after
/// so many failures; `None` means that the error is an answer.
pub(crate) async fn retry_until_answered<T, F>(
    delay: impl Fn(&CallError, u32) -> Option<Duration>,
    on_retry: impl Fn(&CallError),
    call: impl FnMut() -> F,
) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let delay = |result: &Result<T, CallError>, failures| {
        let error = result.as_ref().err()?;
        let pause = delay(error, failures)?;
        on_retry(error);
        Some(pause)
    };
    repeat(call, delay).await.0
}

/// Locks a mutex and ignores poisoning: the guarded data is consistent after every step.
pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;

    /// Starts a task per number: an odd one ends, an even one does not, 0 cancels 2.
    #[derive(Clone, Default)]
    struct Numbers {
        ended: Arc<Mutex<Vec<(u32, bool)>>>,
        unfinished: Arc<Mutex<Vec<u32>>>,
    }

    impl WorkSource for Numbers {
        type Event = u32;
        type Job = u32;
        type End = ();

        async fn handle_event(&mut self, number: u32, tasks: &mut Tasks<u32, ()>) {
            match number {
                0 => assert_eq!(tasks.cancel(|job| *job == 2), [2]),
                1 => tasks.spawn(number, async { panic!("on purpose") }),
                _ if number % 2 == 1 => tasks.spawn(number, async {}),
                _ => tasks.spawn(number, pending()),
            }
        }

        async fn handle_end(
            &mut self,
            number: u32,
            end: Result<(), JoinError>,
            _: &mut Tasks<u32, ()>,
        ) {
            lock_ignoring_poison(&self.ended).push((number, end.is_ok()));
        }

        async fn end_shutdown(&mut self, unfinished: Vec<u32>, _: &Result<(), CallError>) {
            *lock_ignoring_poison(&self.unfinished) = unfinished;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_end_are_cancelled_or_are_returned_at_shutdown() {
        let source = Numbers::default();
        let events = stream::iter([1, 2, 3, 4, 0].map(Ok)).chain(stream::pending());
        let stop = sleep(Duration::from_secs(1));
        let began = tokio::time::Instant::now();
        assert!(run(source.clone(), Tasks::default(), events, stop).await.is_ok());
        assert_eq!(began.elapsed(), Duration::from_secs(1) + GRACE);
        let mut ended = lock_ignoring_poison(&source.ended).clone();
        ended.sort_unstable();
        assert_eq!(ended, [(1, false), (3, true)]);
        assert_eq!(*lock_ignoring_poison(&source.unfinished), [4]);
    }

    #[tokio::test]
    async fn an_error_of_the_source_ends_the_worker_after_its_running_tasks() {
        let source = Numbers::default();
        let error = CallError::Unreadable("the hub is gone".to_owned());
        let events = stream::iter([Ok(3), Err(error)]);
        assert!(run(source.clone(), Tasks::default(), events, pending()).await.is_err());
        assert_eq!(*lock_ignoring_poison(&source.ended), [(3, true)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_repeated_until_there_is_an_answer() {
        let calls = Mutex::new(0);
        let delay = |error: &CallError, failures: u32| {
            matches!(error, CallError::TimedOut { .. })
                .then(|| Duration::from_secs(failures.into()))
        };
        let began = tokio::time::Instant::now();
        let answer = retry_until_answered(
            delay,
            |_| {},
            async || {
                *lock_ignoring_poison(&calls) += 1;
                match *lock_ignoring_poison(&calls) {
                    1 | 2 => Err(CallError::TimedOut { url: String::new() }),
                    _ => Err::<(), _>(CallError::Unreadable("no".to_owned())),
                }
            },
        );
        assert!(matches!(answer.await, Err(CallError::Unreadable(_))));
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
