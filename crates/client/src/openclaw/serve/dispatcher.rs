//! Dispatches a responder's requests: running work, pending approvals, and finished ones.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use rialto_protocols::openclaw::wire::Rejection;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, Id, JoinSet};
use uuid::Uuid;

use super::job_runner::{JobRunner, RunOutcome};
use super::unfinished;
use crate::ids;
use crate::openclaw::event::{Cancellation, Event, IncomingRequest};
use crate::openclaw::handler::{Handler, Job, ServeError};
use crate::openclaw::presence::Presence;
use crate::recent_set::RecentSet;

/// Maximum number of tracked requests. The hub keeps the others and sends them again.
const REQUESTS_MAX: usize = 10_000;
/// The retry delay of a rejection for lack of capacity, in seconds.
const RETRY_AFTER_S: u32 = 5;

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

/// The ids of a request.
#[derive(Clone, Copy, Debug)]
struct RequestIds {
    requester: Uuid,
    request_id: Uuid,
    /// The hub's collaboration id, or the one it will get.
    collaboration_id: Uuid,
}

/// A tracked request.
#[derive(Debug)]
struct TrackedRequest {
    step: Step,
    ids: RequestIds,
    task: AbortHandle,
}

impl TrackedRequest {
    fn matches(&self, incoming: &IncomingRequest, waits: bool) -> bool {
        let RequestIds { requester, request_id, collaboration_id } = self.ids;
        let request = &incoming.request;
        let asked = (requester, request_id) == (request.requester_agent_id, request.request_id);
        // An approved request comes again to be worked on.
        let same = (self.step == Step::Approval) == waits;
        same && (asked || incoming.collaboration_id == Some(collaboration_id))
    }

    fn is_cancelled_by(&self, off: Cancellation) -> bool {
        // A request that is not accepted yet has only the request id in common.
        off.collaboration_id == Some(self.ids.collaboration_id)
            || off.request_id == Some(self.ids.request_id)
    }
}

pub(super) struct Dispatcher<'a, H> {
    duty: &'a Presence,
    runner: JobRunner<H>,
    concurrency: usize,
    tasks: JoinSet<RunOutcome>,
    requests: HashMap<Id, TrackedRequest>,
    /// Collaborations whose result was delivered: later events about them are outdated.
    finished: RecentSet<Uuid>,
    /// The number of the last listing of running work, and its task while it runs.
    listing_number: u64,
    listing_task: Option<AbortHandle>,
}

impl<'a, H: Handler> Dispatcher<'a, H> {
    pub(super) fn new(duty: &'a Presence, handler: Arc<H>, concurrency: usize) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(concurrency));
        let record_writer = JobRunner {
            agent: duty.agent().clone(),
            handler,
            counter: duty.counter(),
            permits: room,
        };
        let (turns, papers) = (JoinSet::new(), HashMap::new());
        Self {
            duty,
            runner: record_writer,
            concurrency,
            tasks: turns,
            requests: papers,
            finished: RecentSet::default(),
            listing_number: 0,
            listing_task: None,
        }
    }

    /// Handles an event from the stream.
    pub(super) fn handle_event(&mut self, event: Event) {
        match event {
            Event::Connected => self.list_running(),
            Event::Request(incoming) => self.handle_request(*incoming),
            Event::Cancelled(off) => self.cancel(off),
            Event::Response(_) | Event::Result(_) | Event::Status(_) | Event::Reputation(_) => {}
        }
    }

    fn handle_request(&mut self, incoming: IncomingRequest) {
        let waits = incoming.awaiting_approval && !incoming.accepted;
        let old = incoming.collaboration_id.is_some_and(|id| self.finished.contains(&id));
        if old || self.requests.values().any(|tracked| tracked.matches(&incoming, waits)) {
            return;
        }
        if self.requests.len() >= REQUESTS_MAX {
            return self.report_error(
                incoming.collaboration_id,
                "a request was dropped",
                "too many",
            );
        }
        // Without a collaboration id, the hub uses the request id. An agent that responds manually
        // may choose the collaboration id.
        let known_as = incoming.collaboration_id.unwrap_or(incoming.request.request_id);
        let collaboration_id = match incoming.collaboration_id.map_or_else(ids::random_id, Ok) {
            Ok(id) => id,
            Err(error) => return self.report_error(None, "a request was dropped", error),
        };
        let record_writer = self.runner.clone();
        let names = RequestIds {
            requester: incoming.request.requester_agent_id,
            request_id: incoming.request.request_id,
            collaboration_id,
        };
        if waits {
            return self.start(Step::Approval, names, record_writer.approve(known_as, incoming));
        }
        let job = Job { collaboration_id, request: incoming.request };
        if incoming.accepted {
            return self.start(Step::Work, names, record_writer.run_job(job, None));
        }
        match self.full() {
            None => self.start(Step::Work, names, record_writer.answer_request(known_as, job)),
            Some(why) => {
                self.start(Step::Rejection, names, record_writer.reject(known_as, job, why))
            }
        }
    }

    /// The rejection if there is no capacity left.
    fn full(&self) -> Option<Rejection> {
        let at_work = self.requests.values().filter(|tracked| tracked.step == Step::Work).count();
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (current, most) = (number(at_work), number(self.concurrency));
        (current >= most).then(|| Rejection::at_capacity(current, most, RETRY_AFTER_S))
    }

    /// The other party cancels a request.
    fn cancel(&mut self, off: Cancellation) {
        for (_, tracked) in self.requests.extract_if(|_, tracked| tracked.is_cancelled_by(off)) {
            tracked.task.abort();
        }
        // A listing that is still running may not contain this cancellation.
        if self.listing_task.is_some() {
            self.list_running();
        }
    }

    /// Asks the hub for the work it considers running. An earlier listing is dropped.
    fn list_running(&mut self) {
        self.stop_listing();
        let (agent, look) = (self.runner.agent.clone(), self.listing_number);
        let find =
            async move { RunOutcome::Listed(look, unfinished::find_unfinished(&agent).await) };
        self.listing_task = Some(self.tasks.spawn(find));
    }

    /// Ignores the result of a running listing.
    pub(super) fn stop_listing(&mut self) {
        self.listing_number += 1;
        if let Some(looking) = self.listing_task.take() {
            looking.abort();
        }
    }

    fn start(
        &mut self,
        step: Step,
        names: RequestIds,
        turn: impl Future<Output = RunOutcome> + Send + 'static,
    ) {
        let turn = self.tasks.spawn(turn);
        self.requests.insert(turn.id(), TrackedRequest { step, ids: names, task: turn });
    }

    /// Waits for a task to end and handles its outcome; `None` if none is running.
    pub(super) async fn next_finished(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        let about = self.requests.remove(&id).map(|tracked| tracked.ids.collaboration_id);
        match ended {
            Ok(RunOutcome::Finished) => {}
            Ok(RunOutcome::Delivered(done)) => {
                self.finished.insert(done.collaboration_id);
                self.duty.record_finished(done);
            }
            Ok(RunOutcome::Undelivered(id, error)) => {
                // A second run would end the same way.
                self.finished.insert(id);
                self.report_error(about, "a result was refused", error);
            }
            Ok(RunOutcome::NotSent(what, error)) => self.report_error(about, what, error),
            Ok(RunOutcome::Listed(look, _)) if look != self.listing_number => {}
            Ok(RunOutcome::Listed(_, found)) => {
                self.listing_task = None;
                match found {
                    Ok(found) => found.into_iter().for_each(|one| self.handle_request(one)),
                    Err(error) => self.report_error(
                        None,
                        "the hub's list of running collaborations cannot be read",
                        error,
                    ),
                }
            }
            // It was cancelled.
            Err(error) if error.is_cancelled() => {}
            Err(error) => self.report_error(about, "a task panicked", error),
        }
        Some(())
    }

    pub(super) fn report_error(
        &self,
        collaboration_id: Option<Uuid>,
        what: &'static str,
        why: impl std::fmt::Display,
    ) {
        self.runner.handler.on_error(&ServeError {
            collaboration_id,
            action: what,
            reason: why.to_string(),
        });
    }
}
