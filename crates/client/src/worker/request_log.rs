//! The requests of peers in one protocol: each is executed once, and repeats get its answer.
//!
//! A request is written to the journal before its work starts, and its answer before it is sent. So
//! this holds across a restart too.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::{Builder, Uuid};

use super::bounded_cache::{BoundedCache, RETENTION};
use super::journal::{Entry, Journal};
use super::lock_ignoring_poison;
use super::pool::{QueueSlot, WorkerPool};
use crate::agent::{Job, Outcome};
use crate::clock;

/// The key under which this agent stores a peer's request: its protocol, its sender, and the
/// sender's id for it.
///
/// Each requester chooses its own ids, so two requesters may choose the same one, or one that a hub
/// uses for a job. Persistent programs and job records identify a job by its id alone. So the id is
/// derived here, where no requester can choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(pub(crate) Digest);

impl RequestKey {
    pub(crate) fn new(protocol: &str, requester: &str, id: &str) -> Self {
        let parts = ["rialto direct job", protocol, requester, id].map(str::as_bytes);
        Self(Digest::of(&parts))
    }

    /// The id of the job on this agent.
    pub(crate) fn job_id(self) -> Uuid {
        let Digest(bytes) = self.0;
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Identifies a request and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The same for all repeats.
    pub(crate) key: RequestKey,
    /// The same for all requests with the same content.
    pub(crate) content: Digest,
}

impl Fingerprint {
    /// The journal entry of a request that was received at this time.
    pub(crate) fn entry(
        self,
        received_at: Timestamp,
        is_finished: bool,
        note: Option<String>,
    ) -> Entry {
        let expires_at = received_at.plus(RETENTION);
        Entry { key: self.key.0, content: self.content, expires_at, is_finished, note }
    }
}

impl Entry {
    /// Identifies the request of this entry.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { key: RequestKey(self.key), content: self.content }
    }

    /// When the request was received.
    pub(crate) fn received_at(&self) -> Timestamp {
        Timestamp(self.expires_at.0.saturating_sub(RETENTION.0))
    }
}

/// What one protocol keeps of a request.
pub(crate) trait PeerRequest: Send + Sync + Sized + 'static {
    /// What repeats get.
    type Answer: Clone + Send + Sync + 'static;

    /// Whether interrupted requests continue at the next start, without being sent again.
    const RESUMES: bool = false;

    /// The journal's note of a request that starts, or of one that was answered.
    fn note(&self, answer: Option<&Self::Answer>) -> Option<String>;

    /// The size of a finished request in bytes.
    fn bytes(&self, answer: &Self::Answer) -> usize;

    /// Whether a request with this outcome is forgotten, so that it can be sent again.
    fn may_repeat(_: &Outcome) -> bool {
        false
    }
}

/// A request that was accepted.
#[derive(Debug)]
pub(crate) struct TrackedRequest<R: PeerRequest> {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) received_at: Timestamp,
    pub(crate) request: R,
    pub(crate) answer: SharedResult<R::Answer>,
    /// An earlier run of this program started it and did not finish. It is not running now.
    pub(crate) is_interrupted: bool,
}

/// An admitted request, with what its execution needs. A repeat needs nothing: its answer is there,
/// or will be.
pub(crate) type Admission<R, T> = (Arc<TrackedRequest<R>>, Option<T>);

/// The requests of one protocol.
pub(crate) struct RequestLog<R: PeerRequest> {
    pool: Arc<WorkerPool>,
    journal: Journal,
    requests: Mutex<BoundedCache<RequestKey, Arc<TrackedRequest<R>>>>,
}

impl<R: PeerRequest> RequestLog<R> {
    /// Creates a log with the requests of an earlier run of this program, and returns them too.
    /// `restore` reads an entry: the request and its answer, if there was one.
    pub(crate) fn open(
        pool: Arc<WorkerPool>,
        (journal, entries): (Journal, Vec<Entry>),
        restore: impl Fn(&Entry) -> Option<(R, Option<R::Answer>)>,
    ) -> (Self, Vec<Arc<TrackedRequest<R>>>) {
        let (mut requests, mut restored) = (BoundedCache::default(), Vec::new());
        for entry in &entries {
            let Some((request, earlier)) = restore(entry) else { continue };
            let (answer, is_unfinished) = (SharedResult::new(), earlier.is_none());
            if let Some(earlier) = earlier {
                answer.complete(earlier);
            }
            let tracked = Arc::new(TrackedRequest {
                fingerprint: entry.fingerprint(),
                received_at: entry.received_at(),
                request,
                answer,
                is_interrupted: is_unfinished && !R::RESUMES,
            });
            let (key, since) = (tracked.fingerprint.key, tracked.received_at);
            if is_unfinished && R::RESUMES {
                requests.insert_running(key, Arc::clone(&tracked), since);
            } else {
                requests.insert_finished(key, Arc::clone(&tracked), entry.bytes(), since);
            }
            restored.push(tracked);
        }
        (Self { pool, journal, requests: Mutex::new(requests) }, restored)
    }

    pub(crate) fn pool(&self) -> &Arc<WorkerPool> {
        &self.pool
    }

    /// A request by its key.
    pub(crate) fn find(&self, key: RequestKey) -> Option<Arc<TrackedRequest<R>>> {
        lock_ignoring_poison(&self.requests).get(&key, clock::now())
    }

    /// Admits a request. A known one is checked with `check_repeat`; a new or interrupted one is
    /// accepted with `accept`, which must not block.
    pub(crate) fn admit<T, E>(
        &self,
        fingerprint: Fingerprint,
        check_repeat: impl FnOnce(&TrackedRequest<R>) -> Result<(), E>,
        accept: impl FnOnce(Timestamp) -> Result<(R, T), E>,
    ) -> Result<Admission<R, T>, E> {
        let (mut requests, now) = (lock_ignoring_poison(&self.requests), clock::now());
        if let Some(known) = requests.get(&fingerprint.key, now) {
            check_repeat(&known)?;
            if !known.is_interrupted {
                return Ok((known, None));
            }
        }
        let (request, details) = accept(now)?;
        let tracked = Arc::new(TrackedRequest {
            fingerprint,
            received_at: now,
            request,
            answer: SharedResult::new(),
            is_interrupted: false,
        });
        requests.insert_running(fingerprint.key, Arc::clone(&tracked), now);
        Ok((tracked, Some(details)))
    }

    /// Executes a new request: waits for a permit, runs the job between two journal entries, and
    /// completes the answer. Returns whether a caller was promised that the answer is sent to it.
    pub(crate) async fn execute(
        &self,
        tracked: &TrackedRequest<R>,
        slot: QueueSlot,
        job: Job,
        answer: impl FnOnce(&Outcome, Duration) -> R::Answer,
    ) -> bool {
        let permit = slot.acquire().await;
        let (began, job_id) = (Instant::now(), job.id.clone());
        let begun = self.write(tracked.fingerprint, tracked.received_at, &tracked.request, None);
        let outcome = match &begun {
            Ok(()) => self.pool.handlers().run_job(job).await,
            Err(error) => {
                Outcome::Declined(format!("the journal cannot be written: {}", error.kind()))
            }
        };
        drop((permit, slot));
        let answer = answer(&outcome, began.elapsed());
        if begun.is_ok() && !R::may_repeat(&outcome) {
            return self.finish(tracked, answer, &job_id) == Some(true);
        }
        if self.journal.remove(tracked.fingerprint.key.0).is_ok() {
            self.pool.close_record(&job_id);
        }
        lock_ignoring_poison(&self.requests).remove(&tracked.fingerprint.key);
        tracked.answer.complete(answer) == Some(true)
    }

    /// Completes a request. The answer is in the journal before it is visible, so that it cannot
    /// change afterwards. The first answer counts: `None` if there was one already; otherwise
    /// whether a caller was promised it.
    pub(crate) fn finish(
        &self,
        tracked: &TrackedRequest<R>,
        answer: R::Answer,
        job_id: &str,
    ) -> Option<bool> {
        let mut written = self.write_answer(tracked, &answer);
        let bytes = tracked.request.bytes(&answer);
        let first = tracked.answer.complete(answer);
        if first.is_none()
            && let Some(earlier) = tracked.answer.get()
        {
            written = self.write_answer(tracked, &earlier);
        }
        // Without an answer in the journal, the record shows after a restart that the work was
        // done.
        if written.is_ok() {
            self.pool.close_record(job_id);
        }
        let key = tracked.fingerprint.key;
        lock_ignoring_poison(&self.requests).finish(&key, bytes, clock::now());
        first
    }

    /// Writes to the journal how a request was answered.
    pub(crate) fn write_answer(
        &self,
        tracked: &TrackedRequest<R>,
        answer: &R::Answer,
    ) -> io::Result<()> {
        self.write(tracked.fingerprint, tracked.received_at, &tracked.request, Some(answer))
    }

    /// Writes a request to the journal: that it starts, or how it was answered.
    pub(crate) fn write(
        &self,
        fingerprint: Fingerprint,
        received_at: Timestamp,
        request: &R,
        answer: Option<&R::Answer>,
    ) -> io::Result<()> {
        let note = request.note(answer);
        self.journal.write(&fingerprint.entry(received_at, answer.is_some(), note))
    }
}

/// The future result of a task, shared by all that wait for it.
#[derive(Debug)]
pub(crate) struct SharedResult<T>(Arc<watch::Sender<State<T>>>);

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    /// A caller was promised that the result will be sent to it.
    promised: bool,
}

impl<T> Clone for SharedResult<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> SharedResult<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State { value: None, promised: false })))
    }

    /// The result, if the task has finished.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.borrow().value.clone()
    }

    /// Waits for the result.
    pub(crate) async fn wait(&self) -> T {
        let mut state = self.0.subscribe();
        loop {
            if let Some(value) = state.borrow_and_update().value.clone() {
                return value;
            }
            // `self` holds the sender, so the channel cannot be closed.
            let _ = state.changed().await;
        }
    }

    /// The result, if there is one. Otherwise records the promise to send it later.
    pub(crate) fn get_or_promise(&self) -> Option<T> {
        let mut value = None;
        self.0.send_if_modified(|state| {
            value.clone_from(&state.value);
            state.promised = state.value.is_none();
            false
        });
        value
    }

    /// Sets the result and returns whether a caller was promised it. The first result counts:
    /// `None` if there was one already.
    pub(crate) fn complete(&self, value: T) -> Option<bool> {
        let mut first = None;
        self.0.send_if_modified(|state| {
            if state.value.is_some() {
                return false;
            }
            state.value = Some(value);
            first = Some(state.promised);
            true
        });
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_result_counts_and_all_that_wait_get_it() {
        let result = SharedResult::new();
        let waiting = tokio::spawn({
            let result = result.clone();
            async move { result.wait().await }
        });
        assert_eq!(result.get(), None);
        assert_eq!(result.complete(1), Some(false));
        assert_eq!(result.complete(2), None);
        assert_eq!((waiting.await.expect("it ends"), result.wait().await), (1, 1));
        assert_eq!(result.get_or_promise(), Some(1));
    }

    #[test]
    fn a_promised_result_is_known_to_be_promised() {
        let result = SharedResult::new();
        assert_eq!(result.get_or_promise(), None);
        assert_eq!(result.complete(1), Some(true));
    }

    #[test]
    fn requesters_that_choose_the_same_id_have_different_jobs() {
        let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        let job_id = |protocol, requester| RequestKey::new(protocol, requester, id).job_id();
        assert_eq!(job_id("agora", "a"), job_id("agora", "a"));
        assert_ne!(job_id("agora", "a"), job_id("agora", "b"));
        assert_ne!(job_id("agora", "a"), job_id("registry", "a"));
        assert_ne!(job_id("agora", "a").to_string(), id);
    }
}
