//! Dispatches a responder's requests: running work, pending approvals, and finished ones.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use rialto_protocols::openclaw::message::Rejection;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, Id, JoinSet};
use uuid::Uuid;

use super::unfinished;
use super::job_runner::{Clerk, Ended};
use crate::openclaw::presence::Duty;
use crate::openclaw::event::{Cancelled, Event, Incoming};
use crate::openclaw::ids;
use crate::openclaw::handler::{Handler, Job, Mishap};
use crate::openclaw::recent_set::Seen;

/// Maximum number of tracked requests. The hub keeps the others and sends them again.
const PAPERS_MAX: usize = 10_000;
/// The retry delay of a rejection for lack of capacity, in seconds.
const COME_BACK_SECONDS: u32 = 5;

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
struct Names {
    requester: Uuid,
    request_id: Uuid,
    /// The hub's collaboration id, or the one it will get.
    collaboration_id: Uuid,
}

/// A tracked request.
#[derive(Debug)]
struct Paper {
    step: Step,
    names: Names,
    turn: AbortHandle,
}

impl Paper {
    fn is(&self, incoming: &Incoming, waits: bool) -> bool {
        let Names { requester, request_id, collaboration_id } = self.names;
        let request = &incoming.request;
        let asked = (requester, request_id) == (request.requester_agent_id, request.request_id);
        // An approved request comes again to be worked on.
        let same = (self.step == Step::Approval) == waits;
        same && (asked || incoming.collaboration_id == Some(collaboration_id))
    }

    fn is_off(&self, off: Cancelled) -> bool {
        // A request that is not accepted yet has only the request id in common.
        off.collaboration_id == Some(self.names.collaboration_id)
            || off.request_id == Some(self.names.request_id)
    }
}

pub(super) struct Desk<'a, H> {
    duty: &'a Duty,
    clerk: Clerk<H>,
    concurrency: usize,
    turns: JoinSet<Ended>,
    papers: HashMap<Id, Paper>,
    /// Collaborations whose result was delivered: later events about them are outdated.
    over: Seen<Uuid>,
    /// The number of the last listing of running work, and its task while it runs.
    look: u64,
    looking: Option<AbortHandle>,
}

impl<'a, H: Handler> Desk<'a, H> {
    pub(super) fn new(duty: &'a Duty, handler: Arc<H>, concurrency: usize) -> Self {
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(concurrency));
        let clerk = Clerk { agent: duty.agent().clone(), handler, counter: duty.counter(), room };
        let (turns, papers) = (JoinSet::new(), HashMap::new());
        Self {
            duty,
            clerk,
            concurrency,
            turns,
            papers,
            over: Seen::default(),
            look: 0,
            looking: None,
        }
    }

    /// Handles an event from the stream.
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Connected => self.look_up(),
            Event::Request(incoming) => self.asked(*incoming),
            Event::Cancelled(off) => self.called_off(off),
            Event::Response(_) | Event::Result(_) | Event::Status(_) | Event::Reputation(_) => {}
        }
    }

    fn asked(&mut self, incoming: Incoming) {
        let waits = incoming.awaiting_approval && !incoming.accepted;
        let old = incoming.collaboration_id.is_some_and(|id| self.over.contains(&id));
        if old || self.papers.values().any(|paper| paper.is(&incoming, waits)) {
            return;
        }
        if self.papers.len() >= PAPERS_MAX {
            return self.mishap(incoming.collaboration_id, "a request was dropped", "too many");
        }
        // Without a collaboration id, the hub uses the request id. An agent that responds manually
        // may choose the collaboration id.
        let known_as = incoming.collaboration_id.unwrap_or(incoming.request.request_id);
        let collaboration_id = match incoming.collaboration_id.map_or_else(ids::id, Ok) {
            Ok(id) => id,
            Err(error) => return self.mishap(None, "a request was dropped", error),
        };
        let clerk = self.clerk.clone();
        let names = Names {
            requester: incoming.request.requester_agent_id,
            request_id: incoming.request.request_id,
            collaboration_id,
        };
        if waits {
            return self.start(Step::Approval, names, clerk.approve(known_as, incoming));
        }
        let job = Job { collaboration_id, request: incoming.request };
        if incoming.accepted {
            return self.start(Step::Work, names, clerk.work(job, None));
        }
        match self.full() {
            None => self.start(Step::Work, names, clerk.answer(known_as, job)),
            Some(why) => self.start(Step::Rejection, names, clerk.reject(known_as, job, why)),
        }
    }

    /// The rejection if there is no capacity left.
    fn full(&self) -> Option<Rejection> {
        let at_work = self.papers.values().filter(|paper| paper.step == Step::Work).count();
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let (current, most) = (number(at_work), number(self.concurrency));
        (current >= most).then(|| Rejection::at_capacity(current, most, COME_BACK_SECONDS))
    }

    /// The other party cancels a request.
    fn called_off(&mut self, off: Cancelled) {
        for (_, paper) in self.papers.extract_if(|_, paper| paper.is_off(off)) {
            paper.turn.abort();
        }
        // A listing that is still running may not contain this cancellation.
        if self.looking.is_some() {
            self.look_up();
        }
    }

    /// Asks the hub for the work it considers running. An earlier listing is dropped.
    fn look_up(&mut self) {
        self.look_away();
        let (agent, look) = (self.clerk.agent.clone(), self.look);
        let find = async move { Ended::Found(look, unfinished::find(&agent).await) };
        self.looking = Some(self.turns.spawn(find));
    }

    /// Ignores the result of a running listing.
    pub(super) fn look_away(&mut self) {
        self.look += 1;
        if let Some(looking) = self.looking.take() {
            looking.abort();
        }
    }

    fn start(
        &mut self,
        step: Step,
        names: Names,
        turn: impl Future<Output = Ended> + Send + 'static,
    ) {
        let turn = self.turns.spawn(turn);
        self.papers.insert(turn.id(), Paper { step, names, turn });
    }

    /// Waits for a task to end and handles its outcome; `None` if none is running.
    pub(super) async fn turn_ended(&mut self) -> Option<()> {
        let ended = self.turns.join_next_with_id().await?;
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        let about = self.papers.remove(&id).map(|paper| paper.names.collaboration_id);
        match ended {
            Ok(Ended::Nothing) => {}
            Ok(Ended::Delivered(done)) => {
                self.over.insert(done.collaboration_id);
                self.duty.finished(done);
            }
            Ok(Ended::Undelivered(id, error)) => {
                // A second run would end the same way.
                self.over.insert(id);
                self.mishap(about, "a result was refused", error);
            }
            Ok(Ended::Unsent(what, error)) => self.mishap(about, what, error),
            Ok(Ended::Found(look, _)) if look != self.look => {}
            Ok(Ended::Found(_, found)) => {
                self.looking = None;
                match found {
                    Ok(found) => found.into_iter().for_each(|one| self.asked(one)),
                    Err(error) => self.mishap(
                        None,
                        "the hub's list of running collaborations cannot be read",
                        error,
                    ),
                }
            }
            // It was cancelled.
            Err(error) if error.is_cancelled() => {}
            Err(error) => self.mishap(about, "a task panicked", error),
        }
        Some(())
    }

    pub(super) fn mishap(
        &self,
        collaboration_id: Option<Uuid>,
        what: &'static str,
        why: impl std::fmt::Display,
    ) {
        self.clerk.handler.mishap(&Mishap { collaboration_id, what, why: why.to_string() });
    }
}
