//! The desk: jobs that came, each done once, and what was said about them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_protocols::registry::wire::JobPost;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::callback::Callback;
use super::refusal::Refusal;
use super::said::Names;
use crate::agent::Job;
use crate::agent::direct::bench::{Bench, Place, lock};
use crate::agent::direct::ongoing::Ongoing;
use crate::agent::direct::scope::Scope;
use crate::agent::direct::shelf::Shelf;
use crate::clock;
use crate::endpoint::Answer;

/// How long a caller waits that can be called back. Hubs wait for half a minute.
const WAIT: Duration = Duration::from_secs(25);
/// Who asks without saying who.
const NOBODY: &str = "somebody";

/// An agent that is asked.
pub(super) struct Desk {
    agent_id: Uuid,
    bench: Arc<Bench>,
    jobs: Mutex<Shelf<Uuid, Arc<Paper>>>,
}

/// A job that came.
struct Paper {
    names: Names,
    orchestrator: Option<String>,
    content: Digest,
    callback: Option<Callback>,
    result: Ongoing<Arc<str>>,
}

impl Desk {
    pub(super) fn new(agent_id: Uuid, bench: Arc<Bench>) -> Self {
        Self { agent_id, bench, jobs: Mutex::default() }
    }

    pub(super) fn names(&self, job_id: Uuid) -> Names {
        Names { job_id, agent_id: self.agent_id }
    }

    /// Takes a job, or a repeat of one, and answers when there is a result or it takes too long.
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
            return Ok(paper.answer().await);
        }
        // Skill comes before budget, and both before room. A refused job leaves nothing behind.
        let price = self.price(&post)?;
        let place = self.bench.place().ok_or_else(Refusal::full)?;
        let paper = Arc::new(Paper {
            names: self.names(job_id),
            orchestrator: post.orchestrator_id.clone(),
            content: post.content,
            callback,
            result: Ongoing::new(),
        });
        let before = {
            let (mut jobs, now) = (lock(&self.jobs), clock::now());
            let before = jobs.get(&job_id, now);
            if before.is_none() {
                jobs.begin(job_id, Arc::clone(&paper), now);
            }
            before
        };
        // Somebody may have sent the same meanwhile.
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

    /// Works in a task of its own: a caller that hangs up may come back for the result.
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
            let outcome = desk.bench.shop().work(job).await;
            drop((seat, place));
            let result: Arc<str> = paper.names.result(&outcome, price, began.elapsed()).into();
            lock(&desk.jobs).end(&paper.names.job_id, result.len(), clock::now());
            let owed = paper.result.end(Arc::clone(&result));
            if let (Some(true), Some(callback)) = (owed, &paper.callback) {
                callback.tell(&result).await;
            }
        });
    }

    /// How a job stands.
    pub(super) fn show(&self, job_id: Uuid) -> Result<Answer, Refusal> {
        let paper = lock(&self.jobs).get(&job_id, clock::now());
        let paper = paper.ok_or_else(|| Refusal::not_found("job"))?;
        Ok(match paper.result.now() {
            Some(result) => Answer::new(200, result.as_bytes()),
            None => paper.pending(),
        })
    }
}

impl Paper {
    /// Whether a job is this one again.
    fn same_as(&self, post: &JobPost) -> Result<(), Refusal> {
        match () {
            () if self.orchestrator != post.orchestrator_id => Err(Refusal::taken()),
            () if self.content != post.content => Err(Refusal::differs()),
            () => Ok(()),
        }
    }

    /// The result, or that it will be told later to whoever can be called back.
    async fn answer(&self) -> Answer {
        if let Some(callback) = &self.callback
            && timeout(WAIT, self.result.wait()).await.is_err()
            && callback.may_be_called().await
            && self.result.promise().is_none()
        {
            return self.pending();
        }
        Answer::new(200, self.result.wait().await.as_bytes())
    }

    fn pending(&self) -> Answer {
        Answer::new(202, self.names.pending())
    }
}
