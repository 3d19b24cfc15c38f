//! Runs each received job once, and answers repeats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::registry::wire::JobPost;
use tokio::time::Instant;
use uuid::Uuid;

use super::callback::Callback;
use super::refusal::Refusal;
use super::result_body::JobRef;
use super::tracked_job::TrackedJob;
use crate::agent::direct::bounded_cache::{BoundedCache, RETENTION};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::request_key::RequestKey;
use crate::agent::direct::shared_result::SharedResult;
use crate::agent::direct::worker_pool::{QueueSlot, WorkerPool, lock_ignoring_poison};
use crate::agent::{Job, Outcome};
use crate::clock;
use crate::http_server::HttpResponse;

/// The name of a requester that does not identify itself.
const ANONYMOUS: &str = "anonymous";

/// Receives and runs jobs.
pub(super) struct JobService {
    agent_id: Uuid,
    pool: Arc<WorkerPool>,
    jobs: Mutex<BoundedCache<Uuid, Arc<TrackedJob>>>,
    journal: Journal,
}

impl JobService {
    /// Creates a service with the state of an earlier run of this program.
    pub(super) fn new(
        agent_id: Uuid,
        bench: Arc<WorkerPool>,
        (journal, before): (Journal, Vec<Entry>),
    ) -> Self {
        let mut jobs = BoundedCache::default();
        for entry in &before {
            if let Some(tracked) = TrackedJob::restore(entry, agent_id) {
                let since = Timestamp(entry.expires_at.0.saturating_sub(RETENTION.0));
                jobs.insert_finished(
                    tracked.job_ref.job_id,
                    Arc::new(tracked),
                    entry.bytes(),
                    since,
                );
            }
        }
        Self { agent_id, pool: bench, jobs: Mutex::new(jobs), journal }
    }

    pub(super) fn job_ref(&self, job_id: Uuid) -> JobRef {
        JobRef { job_id, agent_id: self.agent_id }
    }

    /// Handles a job, or a repeat of one. Responds when there is a result or when it takes too
    /// long.
    pub(super) async fn handle_job(
        self: &Arc<Self>,
        job_id: Uuid,
        post: JobPost,
        callback: Option<Callback>,
    ) -> Result<HttpResponse, Refusal> {
        if post.agent_id.is_some_and(|named| named != self.agent_id) {
            return Err(Refusal::not_found("agent"));
        }
        let known = lock_ignoring_poison(&self.jobs).get(&job_id, clock::now());
        if let Some(tracked) = known {
            tracked.check_same(&post)?;
            if !tracked.is_interrupted {
                return Ok(tracked.answer().await);
            }
        }
        // Skill is checked before budget, and both before capacity. A refused job leaves no record.
        let price = self.price(&post)?;
        let place = self.pool.try_enqueue().ok_or_else(Refusal::at_capacity)?;
        let tracked = Arc::new(TrackedJob {
            job_ref: self.job_ref(job_id),
            orchestrator: post.orchestrator_id.clone(),
            content: post.content,
            callback,
            result: SharedResult::new(),
            is_interrupted: false,
        });
        let before = {
            let (mut jobs, now) = (lock_ignoring_poison(&self.jobs), clock::now());
            let before = jobs.get(&job_id, now).filter(|tracked| !tracked.is_interrupted);
            if before.is_none() {
                jobs.insert_running(job_id, Arc::clone(&tracked), now);
            }
            before
        };
        // The same job may have arrived in the meantime.
        if let Some(before) = before {
            before.check_same(&post)?;
            return Ok(before.answer().await);
        }
        self.begin(Arc::clone(&tracked), post, price, place);
        Ok(tracked.answer().await)
    }

    fn price(&self, post: &JobPost) -> Result<Credits, Refusal> {
        let skill =
            self.pool.handlers().check_job(&post.skill_name, post.budget, &post.input_data)?;
        Ok(skill.price)
    }

    /// Works in a separate task: a caller that disconnects may come back for the result.
    fn begin(
        self: &Arc<Self>,
        tracked: Arc<TrackedJob>,
        post: JobPost,
        price: Credits,
        place: QueueSlot,
    ) {
        let agent_state = Arc::clone(self);
        let requester = post.orchestrator_id.unwrap_or_else(|| ANONYMOUS.to_owned());
        let job = Job {
            id: RequestKey::new("registry", &requester, &tracked.job_ref.job_id.to_string())
                .job_id()
                .to_string(),
            epoch: 0,
            skill: post.skill_name,
            input: post.input_data,
            requester,
            budget: post.budget,
            deadline: None,
            time_limit: Duration::MAX,
        };
        self.pool.spawn(async move {
            let state_dir = place.seat().await;
            let began = Instant::now();
            let (now, id) = (clock::now(), job.id.clone());
            let unwritten = agent_state.journal.write(&tracked.entry(None, now)).err();
            let outcome = match &unwritten {
                None => agent_state.pool.handlers().run_job(job).await,
                Some(error) => {
                    Outcome::Declined(format!("the journal cannot be written: {}", error.kind()))
                }
            };
            drop((state_dir, place));
            let result: Arc<str> = tracked.job_ref.result(&outcome, price, began.elapsed()).into();
            if unwritten.is_some() {
                // It was not started, and may come again.
                lock_ignoring_poison(&agent_state.jobs).remove(&tracked.job_ref.job_id);
            } else {
                if agent_state.journal.write(&tracked.entry(Some(&result), now)).is_ok() {
                    agent_state.pool.close_record(&id);
                }
                lock_ignoring_poison(&agent_state.jobs).finish(
                    &tracked.job_ref.job_id,
                    tracked.bytes(&result),
                    now,
                );
            }
            let owed = tracked.result.complete(Arc::clone(&result));
            if let (Some(true), Some(callback)) = (owed, &tracked.callback) {
                callback.deliver(&result).await;
            }
        });
    }

    /// The state of a job.
    pub(super) fn job_status(&self, job_id: Uuid) -> Result<HttpResponse, Refusal> {
        let tracked = lock_ignoring_poison(&self.jobs).get(&job_id, clock::now());
        // An interrupted job is not running until it is sent again.
        let tracked = tracked.filter(|tracked| !tracked.is_interrupted);
        let tracked = tracked.ok_or_else(|| Refusal::not_found("job"))?;
        Ok(match tracked.result.get() {
            Some(result) => HttpResponse::new(200, result.as_bytes()),
            None => tracked.pending(),
        })
    }
}
