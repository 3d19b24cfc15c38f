//! Runs a responder: does the work that the stream asks for. A disconnect or a crash loses nothing.
//!
//! Each time the stream opens, the hub is asked for the collaborations it considers running, and
//! missing ones are started. Work that is interrupted by the end of the program stays open at the
//! hub: the next start continues it, or its deadline ends it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use rialto_protocols::openclaw::wire::{Identity, Rejection};
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use uuid::Uuid;

use super::event::{Cancellation, Event, IncomingRequest};
use super::handler::{Handler, Job};
use super::job_runner::{JobRunner, StepEnd, list_unfinished};
use super::presence::Presence;
use super::stream::{StreamError, WatchScope};
use crate::call::CallError;
use crate::ids;
use crate::recent_set::RecentSet;
use crate::worker::{self, GRACE, WorkSource};

/// The default number of collaborations at a time.
const CONCURRENCY: usize = 16;
/// Maximum number of tracked requests. The hub keeps the others and sends them again.
const REQUESTS_MAX: usize = 10_000;
/// The retry delay of a rejection for lack of capacity, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Number of collaborations at a time. What the hub accepts beyond that waits; an agent that
    /// responds manually rejects it.
    pub concurrency: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { concurrency: CONCURRENCY }
    }
}

impl ServeOptions {
    /// The limits of an identity.
    pub fn from_identity(identity: &Identity) -> Self {
        let max = identity.limits.max_concurrent_tasks.and_then(|max| max.try_into().ok());
        Self { concurrency: max.unwrap_or(CONCURRENCY) }
    }
}

impl Presence {
    /// Serves until `stop`, or until the hub no longer gives this agent a stream. Running work then
    /// has 5 seconds to finish; the rest is left to the next program that serves this agent.
    pub async fn serve<H: Handler>(
        &self,
        options: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let opened = self.agent().stream(&WatchScope::OwnOnly).await?;
        let events = stream::unfold(opened, |mut opened| async {
            let event = match opened.next().await? {
                Ok(event) => Ok(Ok(event)),
                Err(StreamError::Unreadable(why)) => Ok(Err(why)),
                Err(StreamError::Ended(error)) => Err(error),
            };
            Some((event, opened))
        });
        let concurrency = options.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let runner = JobRunner {
            agent: self.agent().clone(),
            handler,
            counter: self.counter(),
            permits: Arc::new(Semaphore::new(concurrency)),
        };
        let finished = RecentSet::default();
        let responder = Responder { presence: self, runner, concurrency, finished };
        worker::run(responder, Tasks::default(), events, stop).await
    }
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Waits for the handler's approval.
    Approval,
    /// It is answered or worked on.
    Work,
    /// It is rejected for lack of capacity.
    Rejection,
}

/// A request that a task works on.
#[derive(Clone, Copy, Debug)]
struct TrackedRequest {
    step: Step,
    requester: Uuid,
    request_id: Uuid,
    /// The hub's collaboration id, or the one it will get.
    collaboration_id: Uuid,
}

impl TrackedRequest {
    fn matches(&self, incoming: &IncomingRequest, awaits_approval: bool) -> bool {
        let request = &incoming.request;
        let same_request =
            (self.requester, self.request_id) == (request.requester_agent_id, request.request_id);
        // An approved request comes again to be worked on.
        let same_step = (self.step == Step::Approval) == awaits_approval;
        same_step && (same_request || incoming.collaboration_id == Some(self.collaboration_id))
    }

    fn is_cancelled_by(&self, cancellation: Cancellation) -> bool {
        // A request that is not accepted yet has only the request id in common.
        cancellation.collaboration_id == Some(self.collaboration_id)
            || cancellation.request_id == Some(self.request_id)
    }
}

/// What a task works on.
#[derive(Clone, Copy, Debug)]
enum Task {
    Request(TrackedRequest),
    /// The listing of the work that the hub considers running.
    Listing,
}

type Tasks = worker::Tasks<Task, StepEnd>;

/// A responder: what it works with, and what it has finished.
struct Responder<'a, H> {
    presence: &'a Presence,
    runner: JobRunner<H>,
    concurrency: usize,
    /// Collaborations whose result was delivered: later events about them are outdated.
    finished: RecentSet<Uuid>,
}

impl<H: Handler> WorkSource for Responder<'_, H> {
    /// An event of the stream, or why it could not be read.
    type Event = Result<Event, String>;
    type Job = Task;
    type End = StepEnd;

    async fn handle_event(&mut self, event: Result<Event, String>, tasks: &mut Tasks) {
        match event {
            Ok(Event::Connected) => self.list_running(tasks),
            Ok(Event::Request(incoming)) => self.handle_request(*incoming, tasks),
            Ok(Event::Cancelled(cancellation)) => self.cancel(cancellation, tasks),
            Ok(Event::Response(_) | Event::Result(_) | Event::Status(_) | Event::Reputation(_)) => {
            }
            Err(why) => self.runner.report_error(None, "an event could not be read", why),
        }
    }

    async fn handle_end(&mut self, task: Task, end: Result<StepEnd, JoinError>, tasks: &mut Tasks) {
        let id = match task {
            Task::Request(request) => Some(request.collaboration_id),
            Task::Listing => None,
        };
        match end {
            Ok(StepEnd::Finished) => {}
            Ok(StepEnd::Delivered(finished)) => {
                self.finished.insert(finished.collaboration_id);
                self.presence.record_finished(finished);
            }
            Ok(StepEnd::Undelivered(undelivered, error)) => {
                // A second run would end the same way.
                self.finished.insert(undelivered);
                self.runner.report_error(id, "a result was refused", error);
            }
            Ok(StepEnd::NotSent(action, error)) => self.runner.report_error(id, action, error),
            Ok(StepEnd::Listed(requests)) => {
                requests.into_iter().for_each(|request| self.handle_request(request, tasks));
            }
            Err(error) => self.runner.report_error(id, "a task panicked", error),
        }
    }

    async fn begin_shutdown(&mut self, tasks: &mut Tasks, _: &Result<(), CallError>) -> Duration {
        stop_listing(tasks);
        GRACE
    }

    async fn end_shutdown(&mut self, _: Vec<Task>, _: &Result<(), CallError>) {
        self.presence.flush(GRACE).await;
    }
}

impl<H: Handler> Responder<'_, H> {
    fn handle_request(&mut self, incoming: IncomingRequest, tasks: &mut Tasks) {
        let awaits_approval = incoming.awaiting_approval && !incoming.accepted;
        let is_finished = incoming.collaboration_id.is_some_and(|id| self.finished.contains(&id));
        if is_finished || requests(tasks).any(|known| known.matches(&incoming, awaits_approval)) {
            return;
        }
        if requests(tasks).count() >= REQUESTS_MAX {
            let (id, action) = (incoming.collaboration_id, "a request was dropped");
            return self.runner.report_error(id, action, "too many");
        }
        // Without a collaboration id, the hub uses the request id. An agent that responds manually
        // may choose the collaboration id.
        let known_as = incoming.collaboration_id.unwrap_or(incoming.request.request_id);
        let collaboration_id = match incoming.collaboration_id.map_or_else(ids::random_id, Ok) {
            Ok(id) => id,
            Err(error) => {
                return self.runner.report_error(None, "a request was dropped", error);
            }
        };
        let tracked = |step| {
            Task::Request(TrackedRequest {
                step,
                requester: incoming.request.requester_agent_id,
                request_id: incoming.request.request_id,
                collaboration_id,
            })
        };
        let runner = self.runner.clone();
        if awaits_approval {
            return tasks.spawn(tracked(Step::Approval), runner.approve(known_as, incoming));
        }
        let (is_accepted, work) = (incoming.accepted, tracked(Step::Work));
        let rejection = tracked(Step::Rejection);
        let job = Job { collaboration_id, request: incoming.request };
        if is_accepted {
            return tasks.spawn(work, runner.run_job(job, None));
        }
        match self.full(tasks) {
            None => tasks.spawn(work, runner.answer_request(known_as, job)),
            Some(why) => tasks.spawn(rejection, runner.reject(known_as, job, why)),
        }
    }

    /// The rejection if there is no capacity left.
    fn full(&self, tasks: &Tasks) -> Option<Rejection> {
        let working = requests(tasks).filter(|tracked| tracked.step == Step::Work).count();
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (current, max) = (number(working), number(self.concurrency));
        (current >= max).then(|| Rejection::at_capacity(current, max, RETRY_AFTER_S))
    }

    /// The other party cancels a request.
    fn cancel(&mut self, cancellation: Cancellation, tasks: &mut Tasks) {
        tasks.cancel(
            |task| matches!(task, Task::Request(tracked) if tracked.is_cancelled_by(cancellation)),
        );
        // A listing that is still running may not contain this cancellation.
        if tasks.jobs().any(|task| matches!(task, Task::Listing)) {
            self.list_running(tasks);
        }
    }

    /// Asks the hub for the work it considers running. An earlier listing is dropped.
    fn list_running(&self, tasks: &mut Tasks) {
        stop_listing(tasks);
        let agent = self.runner.agent.clone();
        tasks.spawn(Task::Listing, async move {
            let action = "the hub's list of running collaborations cannot be read";
            match list_unfinished(&agent).await {
                Ok(requests) => StepEnd::Listed(requests),
                Err(error) => StepEnd::NotSent(action, error),
            }
        });
    }
}

fn stop_listing(tasks: &mut Tasks) {
    tasks.cancel(|task| matches!(task, Task::Listing));
}

/// The requests that tasks work on.
fn requests(tasks: &Tasks) -> impl Iterator<Item = &TrackedRequest> {
    tasks.jobs().filter_map(|task| match task {
        Task::Request(tracked) => Some(tracked),
        Task::Listing => None,
    })
}
