//! Runs each received job once, and answers repeats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::registry::wire::JobPost;
use tokio::time::Instant;
use uuid::Uuid;

use super::callback::Callback;
use super::tracked_job::Paper;
use super::refusal::Refusal;
use super::result_body::Names;
use crate::agent::direct::worker_pool::{Bench, Place, lock};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::shared_result::Ongoing;
use crate::agent::direct::request_key::Scope;
use crate::agent::direct::bounded_cache::{LIFE, Shelf};
use crate::agent::{Job, Outcome};
use crate::clock;
use crate::http_server::Answer;

/// The name of a requester that does not identify itself.
const NOBODY: &str = "anonymous";

/// Receives and runs jobs.
pub(super) struct Desk {
    agent_id: Uuid,
    bench: Arc<Bench>,
    jobs: Mutex<Shelf<Uuid, Arc<Paper>>>,
    journal: Journal,
}

impl Desk {
    /// Creates a service with the state of an earlier run of this program.
    pub(super) fn new(
        agent_id: Uuid,
        bench: Arc<Bench>,
        (journal, before): (Journal, Vec<Entry>),
    ) -> Self {
        let mut jobs = Shelf::default();
        for entry in &before {
            if let Some(paper) = Paper::found(entry, agent_id) {
                let since = Timestamp(entry.until.0.saturating_sub(LIFE.0));
                jobs.keep(paper.names.job_id, Arc::new(paper), entry.bytes(), since);
            }
        }
        Self { agent_id, bench, jobs: Mutex::new(jobs), journal }
    }

    pub(super) fn names(&self, job_id: Uuid) -> Names {
        Names { job_id, agent_id: self.agent_id }
    }

    /// Handles a job, or a repeat of one. Responds when there is a result or when it takes too
    /// long.
    pub(super) async fn take(
        self: &Arc<Self>,
        job_id: Uuid,
        post: JobPost,
        callback: Option<Callback>,
    ) -> Result<Answer, Refusal> {
        if post.agent_id.is_some_and(|named| named != self.agent_id) {
            return Err(Refusal::not_found("agent"));
        }
        let known = lock(&self.jobs).get(&job_id, clock::now());
        if let Some(paper) = known {
            paper.same_as(&post)?;
            if !paper.is_left {
                return Ok(paper.answer().await);
            }
        }
        // Skill is checked before budget, and both before capacity. A refused job leaves no record.
        let price = self.price(&post)?;
        let place = self.bench.place().ok_or_else(Refusal::full)?;
        let paper = Arc::new(Paper {
            names: self.names(job_id),
            orchestrator: post.orchestrator_id.clone(),
            content: post.content,
            callback,
            result: Ongoing::new(),
            is_left: false,
        });
        let before = {
            let (mut jobs, now) = (lock(&self.jobs), clock::now());
            let before = jobs.get(&job_id, now).filter(|paper| !paper.is_left);
            if before.is_none() {
                jobs.begin(job_id, Arc::clone(&paper), now);
            }
            before
        };
        // The same job may have arrived in the meantime.
        if let Some(before) = before {
            before.same_as(&post)?;
            return Ok(before.answer().await);
        }
        self.begin(Arc::clone(&paper), post, price, place);
        Ok(paper.answer().await)
    }

    fn price(&self, post: &JobPost) -> Result<Credits, Refusal> {
        let skill = self.bench.shop().takes(&post.skill_name, post.budget, &post.input_data)?;
        Ok(skill.price)
    }

    /// Works in a separate task: a caller that disconnects may come back for the result.
    fn begin(self: &Arc<Self>, paper: Arc<Paper>, post: JobPost, price: Credits, place: Place) {
        let desk = Arc::clone(self);
        let requester = post.orchestrator_id.unwrap_or_else(|| NOBODY.to_owned());
        let job = Job {
            id: Scope::of("registry", &requester, &paper.names.job_id.to_string())
                .job_id()
                .to_string(),
            turn: 0,
            skill: post.skill_name,
            input: post.input_data,
            requester,
            budget: post.budget,
            deadline: None,
            time_limit: Duration::MAX,
        };
        self.bench.run(async move {
            let seat = place.seat().await;
            let began = Instant::now();
            let (now, id) = (clock::now(), job.id.clone());
            let unwritten = desk.journal.write(&paper.entry(None, now)).err();
            let outcome = match &unwritten {
                None => desk.bench.shop().work(job).await,
                Some(error) => {
                    Outcome::Declined(format!("the journal cannot be written: {}", error.kind()))
                }
            };
            drop((seat, place));
            let result: Arc<str> = paper.names.result(&outcome, price, began.elapsed()).into();
            if unwritten.is_some() {
                // It was not started, and may come again.
                lock(&desk.jobs).forget(&paper.names.job_id);
            } else {
                if desk.journal.write(&paper.entry(Some(&result), now)).is_ok() {
                    desk.bench.put_away(&id);
                }
                lock(&desk.jobs).end(&paper.names.job_id, paper.bytes(&result), now);
            }
            let owed = paper.result.end(Arc::clone(&result));
            if let (Some(true), Some(callback)) = (owed, &paper.callback) {
                callback.tell(&result).await;
            }
        });
    }

    /// The state of a job.
    pub(super) fn show(&self, job_id: Uuid) -> Result<Answer, Refusal> {
        let paper = lock(&self.jobs).get(&job_id, clock::now());
        // An interrupted job is not running until it is sent again.
        let paper = paper.filter(|paper| !paper.is_left);
        let paper = paper.ok_or_else(|| Refusal::not_found("job"))?;
        Ok(match paper.result.now() {
            Some(result) => Answer::new(200, result.as_bytes()),
            None => paper.pending(),
        })
    }
}
