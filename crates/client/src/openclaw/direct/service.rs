//! Checks a request in the order of the book (R83), answers it, and runs the work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::wire::error::Rejected;
use rialto_protocols::openclaw::wire::{Message, Rejection, Request, Response, ResponseAnswer};
use rialto_protocols::openclaw::{Code, Failure};
use tokio::time::timeout;
use uuid::Uuid;

use super::collaboration::{CollaborationEnd, LocalCollaboration};
use super::store::{CollaborationStore, Fingerprint, RecordedAnswer};
use crate::agent::JobRefusal;
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::shared_result::SharedResult;
use crate::agent::direct::worker_pool::{Permit, WorkerPool, lock_ignoring_poison};
use crate::openclaw::presence::WorkHistory;
use crate::{clock, ids};

/// The retry delay of a rejection for lack of capacity, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// Handles the collaborations of a node.
pub(super) struct CollaborationService {
    node_id: Uuid,
    pool: Arc<WorkerPool>,
    store: Mutex<CollaborationStore>,
    journal: Journal,
}

/// The response, and whether it belongs to an earlier request with another body (R65).
pub(super) type RequestResult = Result<(Response, bool), Failure>;

impl CollaborationService {
    /// Creates a service that continues what an earlier run of this program accepted: requesters
    /// that got an acceptance wait for a result, and need not ask again.
    pub(super) fn open(
        node_id: Uuid,
        bench: Arc<WorkerPool>,
        (journal, before): (Journal, Vec<Entry>),
    ) -> Arc<Self> {
        let agent_state = Arc::new(Self { node_id, pool: bench, store: Mutex::default(), journal });
        for entry in &before {
            let Some(found) = LocalCollaboration::restore(entry, node_id).map(Arc::new) else {
                continue;
            };
            lock_ignoring_poison(&agent_state.store).add_accepted(&found, found.accepted_at);
            match found.result.get() {
                Some(_) => {
                    lock_ignoring_poison(&agent_state.store).finish(&found, None, clock::now())
                }
                None => agent_state.resume(found),
            }
        }
        agent_state
    }

    fn resume(self: &Arc<Self>, collaboration: Arc<LocalCollaboration>) {
        let agent_state = Arc::clone(self);
        let place = self.pool.try_enqueue();
        self.pool.spawn(async move {
            let state_dir = match &place {
                Some(place) => place.seat().await,
                None => None,
            };
            agent_state.run(&collaboration, state_dir).await;
        });
    }

    /// Answers a request at once, since no other party has to be asked.
    pub(super) fn handle_request(self: &Arc<Self>, request: Message<Request>) -> RequestResult {
        let now = clock::now();
        let said = &request.body;
        // Checked before the store is locked, so that no other request waits for a long check.
        let (name, fits) = (Fingerprint::of_request(said), self.check_request(said));
        let mut book = lock_ignoring_poison(&self.store);
        if let Some((answered, same)) = book.find_answer(name, now) {
            if !same && said.idempotency_key.is_none() {
                let message = "request_id was used for another request: use a new one";
                return Err(Failure::new(Code::IdempotencyConflict, message));
            }
            return Ok((self.repeat_answer(said, answered), !same));
        }
        let state_dir = match fits.and_then(|()| self.acquire(said, now)) {
            Ok(state_dir) => state_dir,
            Err(why) => {
                let response = self.rejection(said, why.clone());
                if !why.retryable {
                    book.add_rejected(name, why, response.write().len(), now);
                }
                return Ok((response, false));
            }
        };
        let collaboration = Arc::new(LocalCollaboration {
            id: ids::random_id()
                .map_err(|_| Failure::internal("the random number generator failed"))?,
            fingerprint: name,
            responder: self.node_id,
            request,
            accepted_at: now,
            result: SharedResult::new(),
        });
        // An acceptance is a promise, so it is written to the journal before it is sent.
        if self.journal.write(&collaboration.entry(None)).is_err() {
            let why = Rejection::new(Rejected::ResourceExhausted, "The journal cannot be written");
            let why = Rejection { retry_after_seconds: Some(RETRY_AFTER_S), ..why };
            return Ok((self.rejection(&collaboration.request.body, why), false));
        }
        book.add_accepted(&collaboration, now);
        drop(book);
        let (agent_state, begun) = (Arc::clone(self), Arc::clone(&collaboration));
        self.pool.spawn(async move { agent_state.run(&begun, Some(state_dir)).await });
        let said = &collaboration.request.body;
        // A result that already exists is fetched like any other.
        Ok((Response { result: None, ..collaboration.response(said) }, false))
    }

    /// Checks capability and input.
    fn check_request(&self, said: &Request) -> Result<(), Rejection> {
        let elsewhere = said.responder_agent_id.is_some_and(|id| id != self.node_id);
        let unavailable = |message: &str| Rejection::new(Rejected::CapabilityNotAvailable, message);
        if elsewhere {
            return Err(unavailable("Responder is not this node"));
        }
        match self.pool.handlers().check_input(&said.capability_id, &said.input_data) {
            Ok(_) => Ok(()),
            Err(JobRefusal::InvalidInput(wrong)) => {
                Err(Rejection::invalid_input(wrong.iter().map(String::as_str)))
            }
            Err(_) => Err(unavailable("Capability is not advertised by this node")),
        }
    }

    /// Checks capacity (R71), deadline and price; returns a permit if all pass.
    fn acquire(&self, said: &Request, now: Timestamp) -> Result<Permit, Rejection> {
        let most = u64::try_from(self.pool.handlers().concurrency()).unwrap_or(u64::MAX);
        let full = || Rejection::at_capacity(most, most, RETRY_AFTER_S);
        let state_dir = self.pool.try_acquire().ok_or_else(full)?;
        check_deadline(said, now)?;
        self.check_budget(said)?;
        Ok(state_dir)
    }

    /// Checks the price (R88).
    fn check_budget(&self, said: &Request) -> Result<(), Rejection> {
        let skill = self.pool.handlers().skill(&said.capability_id);
        let price = skill.map_or(Credits::ZERO, |skill| skill.price);
        match said.budget.unwrap_or(Credits::ZERO) < price {
            true => {
                let text = format!("This costs {0}: set budget to {0} or more", price.to_text(2));
                Err(Rejection::new(Rejected::PolicyViolation, text))
            }
            false => Ok(()),
        }
    }

    fn repeat_answer(&self, said: &Request, answered: RecordedAnswer) -> Response {
        match answered {
            RecordedAnswer::Accepted(collaboration) => collaboration.response(said),
            RecordedAnswer::Rejected(why) => self.rejection(said, why),
        }
    }

    fn rejection(&self, said: &Request, why: Rejection) -> Response {
        Response {
            request_id: said.request_id,
            responder_agent_id: self.node_id,
            answer: ResponseAnswer::Rejected(why),
            correlation_id: said.correlation_id,
            timestamp: clock::now(),
            result: None,
        }
    }

    /// Runs until the work is done, cancelled, or past its deadline.
    async fn run(&self, collaboration: &LocalCollaboration, state_dir: Option<Permit>) {
        let job = collaboration.job();
        let id = job.id.clone();
        let left = job.deadline.map(|deadline| deadline.since(clock::now()));
        let work = self.pool.handlers().run_job(job);
        let work = async {
            match left {
                Some(left) => timeout(span(left), work).await.ok(),
                None => Some(work.await),
            }
        };
        let ended = tokio::select! {
            outcome = work => Some(collaboration.finish(outcome)),
            _ = collaboration.result.wait() => None,
        };
        drop(state_dir);
        // Written to the journal before it is visible, so that it cannot change afterwards.
        let done = ended.and_then(|(over, done)| {
            let _ = self.journal.write(&collaboration.entry(Some(&over)));
            collaboration.result.complete(over).map(|_| done)
        });
        // It was cancelled in the meantime.
        if done.is_none() {
            let _ = self.journal.write(&collaboration.entry(collaboration.result.get().as_ref()));
        }
        self.pool.close_record(&id);
        lock_ignoring_poison(&self.store).finish(collaboration, done, clock::now());
    }

    /// Waits until a collaboration has ended or the caller's wait is over, and returns it.
    pub(super) async fn wait_for(
        &self,
        id: Uuid,
        wait: Duration,
    ) -> Result<Arc<LocalCollaboration>, Failure> {
        let found = lock_ignoring_poison(&self.store).find(id, clock::now());
        let collaboration = found.ok_or_else(|| Failure::not_found("collaboration"))?;
        let _ = timeout(wait, collaboration.result.wait()).await;
        Ok(collaboration)
    }

    /// Cancels a collaboration.
    pub(super) fn cancel(
        &self,
        id: Uuid,
        reason: Option<String>,
    ) -> Result<CollaborationEnd, Failure> {
        let found = lock_ignoring_poison(&self.store).find(id, clock::now());
        let collaboration = found.ok_or_else(|| Failure::not_found("collaboration"))?;
        let over = || Failure::new(Code::Conflict, "the collaboration already has a result");
        let over = collaboration.cancel(reason).ok_or_else(over)?;
        // If this write fails, a restart runs the work again; the caller still gets the
        // cancellation.
        let _ = self.journal.write(&collaboration.entry(Some(&over)));
        Ok(over)
    }

    /// Reads the node's work history.
    pub(super) fn with_history<T>(&self, read: impl FnOnce(&WorkHistory) -> T) -> T {
        read(lock_ignoring_poison(&self.store).history())
    }
}

/// Checks the deadline (R67). The duration is not known, so only a past deadline is too soon.
fn check_deadline(said: &Request, now: Timestamp) -> Result<(), Rejection> {
    match said.deadline {
        Some(deadline) if deadline <= now => {
            Err(Rejection::new(Rejected::DeadlineTooSoon, "Deadline is in the past"))
        }
        _ => Ok(()),
    }
}

/// Converts to a duration; zero if it is negative.
fn span(Millis(left): Millis) -> Duration {
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_is_past_leaves_no_time() {
        assert_eq!(span(Millis(5)), Duration::from_millis(5));
        assert_eq!(span(Millis(-5)), Duration::ZERO);
    }
}
