//! Checks a request in the order of the book (R83), answers it, and runs the work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::{ijson, jcs};
use rialto_protocols::openclaw::wire::error::Rejected;
use rialto_protocols::openclaw::wire::{Message, Rejection, Request, Response, ResponseAnswer};
use rialto_protocols::openclaw::{Code, Failure};
use tokio::time::timeout;
use uuid::Uuid;

use super::collaboration::{CollaborationEnd, LocalCollaboration, TrackedCollaboration};
use crate::agent::JobRefusal;
use crate::agent::direct::OpenedJournal;
use crate::openclaw::presence::WorkHistory;
use crate::worker::bounded_cache::BoundedCache;
use crate::worker::lock_ignoring_poison;
use crate::worker::pool::{Permit, WorkerPool};
use crate::worker::request_log::{Fingerprint, RequestKey, RequestLog};
use crate::{clock, ids};

/// The retry delay of a rejection for lack of capacity, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// Handles the collaborations of a node.
pub(super) struct CollaborationService {
    node_id: Uuid,
    log: RequestLog<LocalCollaboration>,
    /// The requests by the id of their collaboration.
    keys: Mutex<BoundedCache<Uuid, RequestKey>>,
    /// Requests that were rejected permanently (D12), with their content.
    rejections: Mutex<BoundedCache<RequestKey, (Digest, Rejection)>>,
    history: Mutex<WorkHistory>,
}

/// The response, and whether it belongs to an earlier request with another body (R65).
pub(super) type RequestResult = Result<(Response, bool), Failure>;

/// Why a request is not accepted.
enum NotAccepted {
    Rejected(Rejection),
    Failed(Failure),
}

impl From<Rejection> for NotAccepted {
    fn from(why: Rejection) -> Self {
        Self::Rejected(why)
    }
}

impl CollaborationService {
    /// Creates a service that continues what an earlier run of this program accepted.
    pub(super) fn open(node_id: Uuid, pool: Arc<WorkerPool>, journal: OpenedJournal) -> Arc<Self> {
        let restore = |entry: &_| LocalCollaboration::restore(entry, node_id);
        let (log, restored) = RequestLog::open(pool, journal, restore);
        let service = Arc::new(Self {
            node_id,
            log,
            keys: Mutex::default(),
            rejections: Mutex::default(),
            history: Mutex::default(),
        });
        for tracked in restored {
            service.add_key(tracked.request.id, tracked.fingerprint.key, tracked.received_at);
            if tracked.answer.get().is_some() {
                service.mark_finished(tracked.request.id);
            } else {
                service.resume(tracked);
            }
        }
        service
    }

    fn resume(self: &Arc<Self>, tracked: Arc<TrackedCollaboration>) {
        let (service, slot) = (Arc::clone(self), self.log.pool().try_enqueue());
        self.log.pool().spawn(async move {
            let permit = match &slot {
                Some(slot) => slot.acquire().await,
                None => None,
            };
            service.run(&tracked, permit).await;
        });
    }

    /// Answers a request at once, since no other party has to be asked.
    pub(super) fn handle_request(self: &Arc<Self>, message: Message<Request>) -> RequestResult {
        let request = &message.body;
        let fingerprint = fingerprint(request);
        if let Some((content, why)) = self.find_rejection(fingerprint.key) {
            let differs = content != fingerprint.content;
            check_conflict(request, differs)?;
            return Ok((self.rejection(request, why), differs));
        }
        // Checked before the log is locked, so that no other request waits for a long check.
        let checked = self.check_request(request);
        let accept = |now| {
            checked?;
            let permit = self.acquire(request, now)?;
            let no_id = |_| Failure::internal("the random number generator failed");
            let id = ids::random_id().map_err(no_id).map_err(NotAccepted::Failed)?;
            let (responder, request) = (self.node_id, message.clone());
            let collaboration = LocalCollaboration { id, responder, request, accepted_at: now };
            // An acceptance is a promise, so it is written to the journal before it is sent.
            if self.log.write(fingerprint, now, &collaboration, None).is_err() {
                let message = "The journal cannot be written";
                let why = Rejection::new(Rejected::ResourceExhausted, message);
                return Err(Rejection { retry_after_seconds: Some(RETRY_AFTER_S), ..why }.into());
            }
            self.add_key(id, fingerprint.key, now);
            Ok((collaboration, permit))
        };
        let check_repeat = |known: &TrackedCollaboration| {
            let differs = known.fingerprint.content != fingerprint.content;
            check_conflict(request, differs).map_err(NotAccepted::Failed)
        };
        match self.log.admit(fingerprint, check_repeat, accept) {
            Ok((tracked, None)) => {
                let differs = tracked.fingerprint.content != fingerprint.content;
                Ok((tracked.response(request), differs))
            }
            Ok((tracked, Some(permit))) => {
                let (service, new) = (Arc::clone(self), Arc::clone(&tracked));
                self.log.pool().spawn(async move { service.run(&new, Some(permit)).await });
                // A result that already exists is fetched like any other.
                Ok((Response { result: None, ..tracked.response(request) }, false))
            }
            Err(NotAccepted::Failed(failure)) => Err(failure),
            Err(NotAccepted::Rejected(why)) => {
                let response = self.rejection(request, why.clone());
                if !why.retryable {
                    let (bytes, value) = (response.write().len(), (fingerprint.content, why));
                    let mut rejections = lock_ignoring_poison(&self.rejections);
                    rejections.insert_finished(fingerprint.key, value, bytes, clock::now());
                }
                Ok((response, false))
            }
        }
    }

    /// Checks capability and input.
    fn check_request(&self, request: &Request) -> Result<(), Rejection> {
        let unavailable = |message: &str| Rejection::new(Rejected::CapabilityNotAvailable, message);
        if request.responder_agent_id.is_some_and(|id| id != self.node_id) {
            return Err(unavailable("Responder is not this node"));
        }
        let handlers = self.log.pool().handlers();
        match handlers.check_input(&request.capability_id, &request.input_data) {
            Ok(_) => Ok(()),
            Err(JobRefusal::InvalidInput(problems)) => {
                Err(Rejection::invalid_input(problems.iter().map(String::as_str)))
            }
            Err(_) => Err(unavailable("Capability is not advertised by this node")),
        }
    }

    /// Checks capacity (R71), deadline (R67) and price (R88); returns a permit if all pass. The
    /// duration is not known, so only a past deadline is too soon.
    fn acquire(&self, request: &Request, now: Timestamp) -> Result<Permit, Rejection> {
        let handlers = self.log.pool().handlers();
        let max = u64::try_from(handlers.concurrency()).unwrap_or(u64::MAX);
        let full = || Rejection::at_capacity(max, max, RETRY_AFTER_S);
        let permit = self.log.pool().try_acquire().ok_or_else(full)?;
        if request.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Rejection::new(Rejected::DeadlineTooSoon, "Deadline is in the past"));
        }
        let skill = handlers.skill(&request.capability_id);
        let price = skill.map_or(Credits::ZERO, |skill| skill.price);
        if request.budget.unwrap_or(Credits::ZERO) < price {
            let text = format!("This costs {0}: set budget to {0} or more", price.to_text(2));
            return Err(Rejection::new(Rejected::PolicyViolation, text));
        }
        Ok(permit)
    }

    fn rejection(&self, request: &Request, why: Rejection) -> Response {
        Response {
            request_id: request.request_id,
            responder_agent_id: self.node_id,
            answer: ResponseAnswer::Rejected(why),
            correlation_id: request.correlation_id,
            timestamp: clock::now(),
            result: None,
        }
    }

    /// Runs until the work is done, cancelled, or past its deadline.
    async fn run(&self, tracked: &TrackedCollaboration, permit: Option<Permit>) {
        let job = tracked.request.job();
        let (job_id, deadline) = (job.id.clone(), job.deadline);
        let work = self.log.pool().handlers().run_job(job);
        let work = async {
            match deadline {
                Some(deadline) => timeout(time_left(deadline), work).await.ok(),
                None => Some(work.await),
            }
        };
        let (end, finished) = tokio::select! {
            outcome = work => {
                let (end, finished) = tracked.request.finish(outcome);
                (end, Some(finished))
            }
            cancelled = tracked.answer.wait() => (cancelled, None),
        };
        drop(permit);
        // A cancellation that came first counts; cancelled work is not part of the history.
        let first = self.log.finish(tracked, end, &job_id);
        if let (Some(_), Some(finished)) = (first, finished) {
            lock_ignoring_poison(&self.history).push(finished);
        }
        self.mark_finished(tracked.request.id);
    }

    /// Waits until a collaboration has ended or the caller's wait is over, and returns it.
    pub(super) async fn wait_for(
        &self,
        id: Uuid,
        wait: Duration,
    ) -> Result<Arc<TrackedCollaboration>, Failure> {
        let tracked = self.find(id)?;
        let _ = timeout(wait, tracked.answer.wait()).await;
        Ok(tracked)
    }

    /// Cancels a collaboration.
    pub(super) fn cancel(
        &self,
        id: Uuid,
        reason: Option<String>,
    ) -> Result<CollaborationEnd, Failure> {
        let tracked = self.find(id)?;
        let end = tracked.request.cancelled(reason);
        if tracked.answer.complete(end.clone()).is_none() {
            return Err(Failure::new(Code::Conflict, "the collaboration already has a result"));
        }
        // If this write fails, a restart runs the work again; the caller still gets the
        // cancellation.
        let _ = self.log.write_answer(&tracked, &end);
        Ok(end)
    }

    /// Reads the node's work history.
    pub(super) fn with_history<T>(&self, read: impl FnOnce(&WorkHistory) -> T) -> T {
        read(&lock_ignoring_poison(&self.history))
    }

    fn find(&self, id: Uuid) -> Result<Arc<TrackedCollaboration>, Failure> {
        let key = lock_ignoring_poison(&self.keys).get(&id, clock::now());
        let tracked = key.and_then(|key| self.log.find(key));
        tracked.ok_or_else(|| Failure::not_found("collaboration"))
    }

    fn add_key(&self, id: Uuid, key: RequestKey, now: Timestamp) {
        lock_ignoring_poison(&self.keys).insert_running(id, key, now);
    }

    fn mark_finished(&self, id: Uuid) {
        lock_ignoring_poison(&self.keys).finish(&id, 0, clock::now());
    }

    fn find_rejection(&self, key: RequestKey) -> Option<(Digest, Rejection)> {
        lock_ignoring_poison(&self.rejections).get(&key, clock::now())
    }
}

/// Refuses a request id that was used for another request. With a key, the first answer is
/// repeated.
fn check_conflict(request: &Request, differs: bool) -> Result<(), Failure> {
    if differs && request.idempotency_key.is_none() {
        let message = "request_id was used for another request: use a new one";
        return Err(Failure::new(Code::IdempotencyConflict, message));
    }
    Ok(())
}

/// Identifies a request. A repeat is recognised by its key or, without a key, by the request's own
/// id (R64, R66). The content is compared independently of member order and number format.
fn fingerprint(request: &Request) -> Fingerprint {
    let requester = request.requester_agent_id.as_bytes();
    let key = match &request.idempotency_key {
        Some(key) => Digest::of(&[b"key", requester, key.as_bytes()]),
        None => Digest::of(&[b"request", requester, request.request_id.as_bytes()]),
    };
    let json = ijson::read(request.input_data.as_bytes()).ok();
    let input = json.and_then(|json| jcs::canonicalize(&json).ok());
    let input = input.unwrap_or_else(|| request.input_data.to_string());
    let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
    let content = Digest::of(&[
        request.capability_id.as_bytes(),
        input.as_bytes(),
        number(request.deadline.map(|at| at.0)).as_bytes(),
        &[request.priority()],
        number(request.budget.map(Credits::micros)).as_bytes(),
    ]);
    Fingerprint { key: RequestKey(key), content }
}

/// The time until a deadline; zero if it has passed.
fn time_left(deadline: Timestamp) -> Duration {
    let Millis(left) = deadline.since(clock::now());
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_is_past_leaves_no_time() {
        assert_eq!(time_left(Timestamp(5)), Duration::ZERO);
        assert!(time_left(clock::now().plus(Millis::minutes(60))) > Duration::from_secs(60));
    }
}
