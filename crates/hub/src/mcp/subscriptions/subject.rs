//! What can be followed: the inbox, the list of live jobs, single jobs and tasks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_engine::Engine;
use tokio::time::Instant;

use crate::mcp::hub::resources::ResourceUri;

/// Something that is followed, and what was last told of it.
#[derive(Debug)]
pub struct Subject {
    pub what: What,
    /// Its state when the client was last told, or when the stream began.
    told: State,
    pub last_told_at: Option<Instant>,
}

/// Which notification tells of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `notifications/resources/updated` with this URI.
    Resource { uri: String, source: Source },
    /// `notifications/tasks` with this task.
    Task { id: String, job: JobId },
}

/// Where the state of a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Inbox,
    Jobs,
    Job(JobId),
}

/// A state of a subject. Two that are equal show the same.
#[derive(Clone, Debug)]
enum State {
    Inbox {
        head: u64,
        acked: u64,
    },
    Jobs(u64),
    /// The row of a live job, which is replaced when it changes; `None` once it has ended.
    Job(Option<Arc<Job>>),
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inbox { head, acked }, Self::Inbox { head: new, acked: now }) => {
                (head, acked) == (new, now)
            }
            (Self::Jobs(one), Self::Jobs(other)) => one == other,
            (Self::Job(Some(one)), Self::Job(Some(other))) => Arc::ptr_eq(one, other),
            (Self::Job(one), Self::Job(other)) => one.is_none() && other.is_none(),
            _ => false,
        }
    }
}

impl Subject {
    /// A resource that this agent may follow; `None` if it cannot be followed.
    pub async fn resource(engine: &Engine, agent: AgentId, uri: &str) -> Option<Self> {
        let source = match ResourceUri::parse(uri)? {
            ResourceUri::Inbox => Source::Inbox,
            ResourceUri::Jobs => Source::Jobs,
            ResourceUri::Job(id) => Source::Job(find_job(engine, agent, &id).await?),
            ResourceUri::Me | ResourceUri::Agent(_) => return None,
        };
        let what = What::Resource { uri: uri.to_owned(), source };
        Some(Self::new(engine, agent, what))
    }

    /// A task that this agent may follow.
    pub async fn task(engine: &Engine, agent: AgentId, id: &str) -> Option<Self> {
        let job = find_job(engine, agent, id).await?;
        Some(Self::new(engine, agent, What::Task { id: id.to_owned(), job }))
    }

    fn new(engine: &Engine, agent: AgentId, what: What) -> Self {
        let told = engine.with_world(|world| what.state(world, agent));
        Self { what, told, last_told_at: None }
    }

    /// Whether there is something to tell.
    pub fn has_news(&self, world: &World, agent: AgentId) -> bool {
        self.what.state(world, agent) != self.told
    }

    /// Takes the state of now as told.
    pub fn take_news(&mut self, engine: &Engine, agent: AgentId) {
        self.told = engine.with_world(|world| self.what.state(world, agent));
        self.last_told_at = Some(Instant::now());
    }
}

impl What {
    fn state(&self, world: &World, agent: AgentId) -> State {
        match self {
            Self::Resource { source: Source::Inbox, .. } => {
                let inbox = world.inbox(agent);
                State::Inbox { head: inbox.head, acked: inbox.acked }
            }
            Self::Resource { source: Source::Jobs, .. } => {
                State::Jobs(digest_of_jobs(world, agent))
            }
            Self::Resource { source: Source::Job(job), .. } | Self::Task { job, .. } => {
                let row = world.job(*job).filter(|job| !job.state.is_final());
                State::Job(row.cloned())
            }
        }
    }
}

/// What a list of live jobs shows of each, as one number.
fn digest_of_jobs(world: &World, agent: AgentId) -> u64 {
    let mut digest = DefaultHasher::new();
    for job in world.jobs_requested_by(agent) {
        // The row is replaced with every change, and a row that is gone is not listed.
        (job.id.0, job.epoch, job.progress.reports, job.candidates.offers.len()).hash(&mut digest);
        format!("{:?}", job.state).hash(&mut digest);
        job.open_question().is_some().hash(&mut digest);
    }
    digest.finish()
}

/// The job with this id, if the agent is its requester or its worker.
async fn find_job(engine: &Engine, agent: AgentId, id: &str) -> Option<JobId> {
    let uuid = id.parse().ok()?;
    let job = engine.find_job(&JobRef::Uuid(uuid)).await.ok()??;
    let is_party = job.is_requested_by(agent) || job.worker() == Some(agent);
    is_party.then_some(job.id)
}
