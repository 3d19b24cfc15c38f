//! Follows one job at the server of its worker: hands it over, watches it, and reports what the
//! worker does, each exactly once.
//!
//! What is about to be sent is recorded before it is sent, and what the server answered before
//! anything of it is reported. So a follower that starts after a crash knows what may have happened
//! (R99). Whatever cannot be known is looked up at the server, or ends the job without blame (R100).

mod end;
mod report;
mod send;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rialto_core::answer::Answer;
use rialto_core::command::{Command, HandoverStage, JobRef, RecordHandover};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::send::client_of_ended;
use super::RemoteAgent;
use super::client::{CallError, RemoteClient, RemoteStream};
use super::handover_state::{HandoverState, Outgoing};
use super::refresh;
use super::reported::Reported;
use crate::a2a::A2aContext;
use crate::a2a::task_log::TaskLog;
use crate::a2a::wire::rpc::Method;

/// How long a follower waits after the hub could not commit.
const COMMIT_PAUSE: Duration = Duration::from_secs(1);
/// How long the id of a task is waited for that is no longer wanted.
const LATE_ID_TIMEOUT: Duration = Duration::from_secs(10);

/// How following a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowEnd {
    /// The worker's last word was reported.
    Done,
    /// The job is no longer assigned to the worker, which was told so.
    Gone,
    /// The worker's server is not there, so the job was given back.
    Away,
    /// Something failed at the hub; following can begin anew from what is stored.
    Interrupted,
}

/// The result of a step; an error ends the follower.
type Step<T = ()> = Result<T, FollowEnd>;

/// Wakes a follower.
#[derive(Default)]
pub struct FollowerWake {
    notify: Notify,
    is_pushed: AtomicBool,
}

impl FollowerWake {
    /// The job has changed.
    pub fn wake(&self) {
        self.notify.notify_one();
    }

    /// The worker's server says that there is news (R104).
    pub fn push(&self) {
        self.is_pushed.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    fn take_push(&self) -> bool {
        self.is_pushed.swap(false, Ordering::AcqRel)
    }
}

/// A stream that is open.
struct OpenStream {
    stream: RemoteStream,
    /// Whether it began with a message of the hub, so that nothing came before its events.
    is_whole: bool,
    /// Whether it showed more than the task as it was.
    has_news: bool,
}

impl OpenStream {
    /// A stream that began with a message of the hub.
    fn whole(stream: RemoteStream) -> Self {
        Self { stream, is_whole: true, has_news: true }
    }

    /// A stream of a task that began before.
    fn resumed(stream: RemoteStream) -> Self {
        Self { stream, is_whole: false, has_news: false }
    }
}

/// Follows one assignment of one job.
pub struct Follower {
    context: A2aContext,
    agent: AgentId,
    job: Arc<Job>,
    epoch: u32,
    remote: RemoteAgent,
    client: RemoteClient,
    state: HandoverState,
    reported: Reported,
    wake: Arc<FollowerWake>,
    stream: Option<OpenStream>,
    /// The last attempt to send is known to have failed.
    is_known_absent: bool,
    /// The server may be subscribed to.
    can_subscribe: bool,
    /// The card was fetched again after an error.
    was_refreshed: bool,
    /// The requester's inbox is full, so only the result is reported.
    drops_reports: bool,
    /// The pause before the next call of the same kind.
    pause: Duration,
    /// The pause before the task is subscribed to again.
    resume_pause: Duration,
    /// The worker went on after its last question was answered.
    has_gone_on: bool,
    /// When the worker got the last answer, or the follower began.
    answered: Instant,
    /// The worker has ended its task.
    is_over: bool,
    /// When the server last showed that it is there.
    heard: Instant,
}

/// The shortest and the longest pause between calls.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Follower {
    /// A follower of a job's current assignment; `None` if the worker has no server.
    pub async fn new(
        context: &A2aContext,
        job: Arc<Job>,
        wake: Arc<FollowerWake>,
    ) -> Result<Option<Self>, Failure> {
        let Some(worker) = job.worker() else { return Ok(None) };
        let agent = context.engine.with_world(|world| world.agent(worker).cloned());
        let Some((agent, remote)) = agent.and_then(|agent| {
            let remote = RemoteAgent::of(&agent)?;
            Some((agent, remote))
        }) else {
            return Ok(None);
        };
        let kept = HandoverState::of(&job);
        let state = kept.unwrap_or_else(|| HandoverState::new(remote.interface.clone()));
        let Some(interface) = state.interface.read() else { return Ok(None) };
        let log = TaskLog::load(&context.engine, &job, 0).await?;
        // A task that was followed before may have changed since then.
        let pause = if state.task.is_some() { watch::RESUME_PAUSE } else { PAUSE_MIN };
        let now = Instant::now();
        Ok(Some(Self {
            client: RemoteClient::new(context, &agent, &remote, interface),
            context: context.clone(),
            agent: worker,
            epoch: job.epoch,
            reported: Reported::of(&job, &log.entries),
            job,
            remote,
            state,
            wake,
            stream: None,
            is_known_absent: false,
            can_subscribe: true,
            was_refreshed: false,
            drops_reports: false,
            pause,
            resume_pause: pause,
            has_gone_on: false,
            answered: now,
            is_over: false,
            heard: now,
        }))
    }

    /// Follows the job to its end.
    pub async fn run(mut self) -> FollowEnd {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        if end == FollowEnd::Gone {
            self.cancel().await;
        }
        end
    }

    async fn step(&mut self) -> Step {
        self.look_at_job()?;
        if self.state.task.is_none() {
            return match &self.state.sending {
                Some(_) if !self.is_known_absent => self.find_request().await,
                _ => self.send_request().await,
            };
        }
        if let Some(sending) = &self.state.sending {
            let what = sending.what;
            return match self.is_known_absent {
                true => self.send_message(what).await,
                false => self.find_message(what).await,
            };
        }
        match self.state.next(&self.job) {
            Some(what) => self.send_message(what).await,
            None => self.watch().await,
        }
    }

    /// Reads the job, which must still be assigned to the worker.
    fn look_at_job(&mut self) -> Step {
        let job = self.context.engine.with_world(|world| world.job(self.job.id).cloned());
        self.take_job(job.ok_or(FollowEnd::Gone)?)
    }

    fn take_job(&mut self, job: Arc<Job>) -> Step {
        let is_ours =
            job.epoch == self.epoch && job.state.is_assigned() && job.worker() == Some(self.agent);
        self.job = job;
        if is_ours { Ok(()) } else { Err(FollowEnd::Gone) }
    }

    fn job_ref(&self) -> JobRef {
        JobRef::Id(self.job.id)
    }

    /// Runs a command about the job. A refusal that is not about the job's state is returned.
    async fn run_command(&mut self, command: Command) -> Step<Result<(), Refusal>> {
        match self.context.engine.run(command).await {
            Ok(Answer::Job { job, .. }) => {
                let is_over = job.state.is_final();
                self.take_job(job).map_err(|end| if is_over { end } else { FollowEnd::Gone })?;
                Ok(Ok(()))
            }
            Ok(_) => Ok(Ok(())),
            Err(Failure::Refused(
                Refusal::NotFound | Refusal::OtherAssignment { .. } | Refusal::WrongState { .. },
            )) => {
                self.look_at_job()?;
                // Still assigned, but not in a state for this.
                Ok(Ok(()))
            }
            Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
            Err(_) => {
                tokio::time::sleep(COMMIT_PAUSE).await;
                Err(FollowEnd::Interrupted)
            }
        }
    }

    /// Records how far the job is with its worker.
    async fn record(&mut self, stage: HandoverStage) -> Step {
        let order = RecordHandover {
            job: self.job_ref(),
            by: self.agent,
            epoch: self.epoch,
            state: Some(self.state.write()),
            stage,
            conversation: match stage {
                HandoverStage::Sending => None,
                _ if self.state.context.is_none() => None,
                _ => send::conversation(&self.context, &self.job),
            },
        };
        match self.run_command(Command::RecordHandover(Box::new(order))).await? {
            Ok(()) => Ok(()),
            Err(refusal) => {
                tracing::warn!(job = %self.job.uuid, %refusal, "a handover cannot be recorded");
                tokio::time::sleep(COMMIT_PAUSE).await;
                Err(FollowEnd::Interrupted)
            }
        }
    }

    /// The server has shown that it is there.
    fn note_contact(&mut self) {
        self.heard = Instant::now();
        self.pause = PAUSE_MIN;
        self.was_refreshed = false;
        self.context.engine.record_seen(self.agent);
    }

    /// The lease begins anew if half of it is over and the server was there since (R42).
    async fn renew_lease(&mut self) -> Step {
        let Some(turn) = self.job.assignment else { return Ok(()) };
        let now = self.context.engine.now();
        let left = turn.until.since(now);
        let is_short = left.0 * 2 < self.job.request.lease.0;
        let can_grow = turn.until < self.job.request.deadline;
        let was_there = self.heard.elapsed() < 2 * watch::TICK;
        if is_short && can_grow && was_there && self.state.task.is_some() {
            self.record(HandoverStage::Received).await?;
        }
        Ok(())
    }

    /// Fetches the card once after an error. Whether the agent is called differently now.
    async fn refresh_card(&mut self) -> bool {
        if std::mem::replace(&mut self.was_refreshed, true) {
            return false;
        }
        let Ok(refreshed) = refresh::refresh(&self.context, self.agent).await else { return false };
        let before = (self.remote.interface.clone(), self.remote.auth.clone());
        let after = (refreshed.remote.interface.clone(), refreshed.remote.auth.clone());
        let Some(interface) = refreshed.remote.interface.read() else { return false };
        let is_other = before != after;
        // A task that has begun stays where it is.
        if self.state.task.is_none() {
            self.state.interface = refreshed.remote.interface.clone();
            self.client =
                RemoteClient::new(&self.context, &refreshed.agent, &refreshed.remote, interface);
        }
        self.remote = refreshed.remote;
        is_other && self.state.task.is_none()
    }

    /// Tells the worker that its task is not wanted any more, once, and does not wait (R106).
    async fn cancel(&mut self) {
        if self.is_over {
            return;
        }
        if self.state.task.is_none()
            && let Some(open) = &mut self.stream
        {
            // The task may have begun just now.
            let first = tokio::time::timeout(LATE_ID_TIMEOUT, open.stream.next()).await;
            if let Ok(Ok(Some(event))) = first {
                self.state.task = report::ids_of(&event).map(|(task, _)| task);
            }
        }
        self.stream = None;
        if let Some(task) = self.state.task.clone() {
            cancel_task(self.client.clone(), task);
        }
    }
}

/// Sends a CancelTask, and does not wait for its result.
pub fn cancel_task(client: RemoteClient, task: String) {
    tokio::spawn(async move {
        let call = super::client::Call::of_task(Method::CancelTask, &task);
        if let Err(error) = client.call(&call).await {
            tracing::debug!(%error, "a task could not be canceled");
        }
    });
}

impl CallError {
    /// Whether the server was reached.
    fn is_contact(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::NoAnswer(_))
    }
}

/// What the number of a message is about, for logs.
impl std::fmt::Display for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Request => f.write_str("the request"),
            Self::Message(number) => write!(f, "message {number}"),
            Self::Answer(number) => write!(f, "the answer to question {number}"),
        }
    }
}
