//! What one agent with a server of its own needs of the hub: a follower for each of its jobs, a
//! reader of its inbox, its card fetched again, and a probe while it is away.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_core::notice::NoticeKind;
use rialto_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::follower::{FollowEnd, Follower, FollowerWake, cancel_task, client_of_ended};
use super::refresh;
use super::{RemoteAgent, is_remote};
use crate::a2a::A2aContext;

/// Jobs of one agent that are followed at the same time; more wait in their order.
const FOLLOWERS_MAX: usize = 256;
/// The pauses between probes of an agent that is away.
const PROBE_MIN: Duration = Duration::from_secs(5);
const PROBE_MAX: Duration = Duration::from_secs(600);
/// The pause before a follower that was interrupted begins again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Notices that are read at once.
const NOTICES_PAGE: usize = 256;
/// How often the inbox is read.
const INBOX_PAUSE: Duration = Duration::from_secs(1);
/// Cards that are due when the hub starts are fetched within this time, not all at once.
const SPREAD: Duration = Duration::from_secs(300);
/// How long the followers of an agent that has left may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);
/// A wait that another event ends.
const LONG: Duration = Duration::from_secs(86_400);

/// A follower that runs.
struct Running {
    /// The job as it was when the follower was woken last.
    seen: Arc<Job>,
    wake: Arc<FollowerWake>,
    handle: AbortHandle,
}

/// How a follower ended.
struct Ended {
    job: JobId,
    epoch: u32,
    end: FollowEnd,
}

/// Watches one agent.
pub struct AgentWatch {
    context: A2aContext,
    agent: AgentId,
    notify: Arc<Notify>,
    followers: JoinSet<Ended>,
    running: HashMap<JobId, Running>,
    /// Jobs whose followers were interrupted, until they begin again.
    resting: HashMap<JobId, Instant>,
    /// Assignments that ended and whose workers were told so.
    told: HashSet<(JobId, u32)>,
    /// The position up to which the inbox was read.
    read: u64,
    read_at: Option<Instant>,
    probe_pause: Duration,
    probe_at: Option<Instant>,
    refresh_at: Instant,
}

impl AgentWatch {
    pub fn new(context: A2aContext, agent: AgentId) -> Self {
        let notify = context.engine.subscribe_agent(agent);
        let read = context.engine.with_world(|world| world.inbox(agent).acked);
        let refresh_at = Instant::now() + first_refresh(&context, agent);
        Self {
            context,
            agent,
            notify,
            followers: JoinSet::new(),
            running: HashMap::new(),
            resting: HashMap::new(),
            told: HashSet::new(),
            read,
            read_at: None,
            probe_pause: PROBE_MIN,
            probe_at: None,
            refresh_at,
        }
    }

    /// Watches until the agent leaves or has no server any more.
    pub async fn run(mut self) {
        loop {
            let notify = self.notify.clone();
            let notified = notify.notified();
            tokio::pin!(notified);
            // Register for the wake-up first and look afterwards, so that none is missed.
            notified.as_mut().enable();
            let has_server = self
                .context
                .engine
                .with_world(|world| world.agent(self.agent).is_some_and(|agent| is_remote(agent)));
            if !has_server {
                return self.leave().await;
            }
            self.look_at_jobs().await;
            self.read_inbox().await;
            self.look_at_presence();
            let next = self.next_time();
            tokio::select! {
                () = notified => {}
                Some(ended) = self.followers.join_next_with_id() => {
                    match ended {
                        Ok((_, ended)) => self.handle_end(&ended),
                        Err(error) => self.handle_panic(error.id()),
                    }
                }
                () = tokio::time::sleep_until(next) => self.handle_time().await,
            }
        }
    }

    /// The agent has left: its followers tell its server that its jobs ended.
    async fn leave(mut self) {
        for running in self.running.values() {
            running.wake.wake();
        }
        let all = async { while self.followers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, all).await;
    }

    /// Begins to follow new jobs, and wakes the followers of those that changed.
    async fn look_at_jobs(&mut self) {
        let jobs: Vec<Arc<Job>> = self.context.engine.with_world(|world| {
            let assigned = world.assigned_jobs(self.agent);
            assigned.filter(|job| job.state.is_assigned()).cloned().collect()
        });
        for running in self.running.values() {
            let now = jobs.iter().find(|job| job.id == running.seen.id);
            // A job that is not there any more has changed as well.
            if now.is_none_or(|now| !Arc::ptr_eq(now, &running.seen)) {
                running.wake.wake();
            }
        }
        let now = Instant::now();
        self.resting.retain(|_, until| *until > now);
        for job in jobs {
            if let Some(running) = self.running.get_mut(&job.id) {
                running.seen = job;
            } else if self.running.len() < FOLLOWERS_MAX && !self.resting.contains_key(&job.id) {
                self.follow(job);
            }
        }
    }

    fn follow(&mut self, job: Arc<Job>) {
        let wake = Arc::<FollowerWake>::default();
        let (id, epoch, seen) = (job.id, job.epoch, job.clone());
        let (context, own) = (self.context.clone(), wake.clone());
        let handle = self.followers.spawn(async move {
            context.state.followers.add(id, own.clone());
            let end = match Follower::new(&context, job, own.clone()).await {
                Ok(Some(follower)) => follower.run().await,
                Ok(None) => FollowEnd::Done,
                Err(_) => FollowEnd::Interrupted,
            };
            context.state.followers.remove(id, &own);
            Ended { job: id, epoch, end }
        });
        self.running.insert(id, Running { seen, wake, handle });
    }

    fn handle_end(&mut self, ended: &Ended) {
        self.running.remove(&ended.job);
        match ended.end {
            FollowEnd::Done => {
                self.told.insert((ended.job, ended.epoch));
                self.probe_pause = PROBE_MIN;
            }
            FollowEnd::Gone => {
                self.told.insert((ended.job, ended.epoch));
                // The notice of it is read at once, so that the worker is not told again after a
                // restart.
                self.read_at = None;
            }
            FollowEnd::Away => {}
            FollowEnd::Interrupted => {
                self.resting.insert(ended.job, Instant::now() + RETRY_PAUSE);
            }
        }
    }

    fn handle_panic(&mut self, task: tokio::task::Id) {
        let job = self.running.iter().find(|(_, running)| running.handle.id() == task);
        let Some(job) = job.map(|(job, _)| *job) else { return };
        tracing::error!(%job, agent = %self.agent, "following a job failed");
        if let Some(running) = self.running.remove(&job) {
            self.context.state.followers.remove(job, &running.wake);
        }
        self.resting.insert(job, Instant::now() + RETRY_PAUSE);
    }

    /// Reads the agent's inbox for it: a worker is told that a job was taken back, also if that
    /// happened while the hub was down. Everything else is known from the jobs.
    async fn read_inbox(&mut self) {
        let engine = &self.context.engine;
        let head = engine.with_world(|world| world.inbox(self.agent).head);
        let is_soon = self.read_at.is_some_and(|at| at.elapsed() < INBOX_PAUSE);
        if head <= self.read || is_soon {
            return;
        }
        self.read_at = Some(Instant::now());
        let Ok(notices) = engine.load_notices(self.agent, self.read, NOTICES_PAGE).await else {
            return;
        };
        let mut up_to = self.read;
        for notice in notices {
            match notice.news {
                // The worker has read of its job once it was sent to it.
                NoticeKind::Assigned { job, epoch } if self.is_unsent(job, epoch) => break,
                NoticeKind::Unassigned { job, epoch } => self.take_back(job, epoch).await,
                _ => {}
            }
            up_to = notice.position;
        }
        if up_to > self.read {
            let order = Command::Ack { agent: self.agent, up_to };
            if self.context.engine.run(order).await.is_ok() {
                self.read = up_to;
            }
        }
    }

    fn is_unsent(&self, job: JobId, epoch: u32) -> bool {
        let job = self.context.engine.with_world(|world| world.job(job).cloned());
        job.is_some_and(|job| {
            let turn = job.assignment.filter(|_| job.epoch == epoch && job.state.is_assigned());
            turn.is_some_and(|turn| turn.received_at.is_none())
        })
    }

    /// A job was taken back from the worker. If nothing follows it any more, the worker is told
    /// here.
    async fn take_back(&mut self, id: JobId, epoch: u32) {
        if self.running.contains_key(&id) || self.told.remove(&(id, epoch)) {
            return;
        }
        let Ok(Some(job)) = self.context.engine.load_job(id).await else { return };
        let is_same = job.epoch == epoch && job.worker() == Some(self.agent);
        if let Some((client, task)) = client_of_ended(&self.context, &job).filter(|_| is_same) {
            cancel_task(client, task);
        }
    }

    /// Plans a probe while the agent is away.
    fn look_at_presence(&mut self) {
        let is_away = self.context.engine.with_world(|world| {
            let state = world.agent_state(self.agent);
            state.is_some_and(|state| state.presence.unreachable)
        });
        match (is_away, self.probe_at) {
            (true, None) => {
                self.probe_at = Some(Instant::now() + self.probe_pause);
                self.probe_pause = (2 * self.probe_pause).min(PROBE_MAX);
            }
            (false, Some(_)) => self.probe_at = None,
            _ => {}
        }
    }

    /// When something is due.
    fn next_time(&self) -> Instant {
        let mut all = vec![self.refresh_at, Instant::now() + LONG];
        all.extend(self.probe_at);
        all.extend(self.resting.values().copied());
        let head = self.context.engine.with_world(|world| world.inbox(self.agent).head);
        if head > self.read {
            all.push(self.read_at.unwrap_or_else(Instant::now) + INBOX_PAUSE);
        }
        all.into_iter().min().unwrap_or_else(Instant::now)
    }

    async fn handle_time(&mut self) {
        let now = Instant::now();
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe_at = None;
            self.probe().await;
        } else if self.refresh_at <= now {
            self.refresh_at = now + interval(&self.context);
            let _ = refresh::refresh(&self.context, self.agent).await;
        }
    }

    /// An agent that is away is back when its card can be fetched.
    async fn probe(&mut self) {
        if refresh::refresh(&self.context, self.agent).await.is_ok() {
            self.refresh_at = Instant::now() + interval(&self.context);
        }
    }
}

fn interval(context: &A2aContext) -> Duration {
    Duration::from_millis(context.state.settings.refresh.0.unsigned_abs())
}

/// When the card of an agent is due after the hub has started.
fn first_refresh(context: &A2aContext, agent: AgentId) -> Duration {
    let now = context.engine.now();
    let fetched = context.engine.with_world(|world| {
        let remote = world.agent(agent).and_then(|agent| RemoteAgent::of(agent));
        remote.map_or(Timestamp(0), |remote| remote.fetched_at)
    });
    let age = Duration::from_millis(now.since(fetched).0.max(0).unsigned_abs());
    let spread = SPREAD.min(interval(context));
    let share = u32::try_from(agent.0 % 61).unwrap_or_default();
    interval(context).saturating_sub(age).max(spread * share / 61)
}
