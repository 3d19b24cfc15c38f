//! Dispatches a provider's jobs: running jobs, open offers, and what may be acknowledged.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;

use super::ServeError;
use super::job_runner::{self, RunOutcome};
use crate::agora::agent::Agent;
use crate::agora::handler::{Handler, Job, WorkError};
use crate::agora::incoming::IncomingEnvelope;
use crate::agora::payload::EnvelopePayload;
use crate::recent_set::RecentSet;

/// How long an expired offer is kept: an ACCEPT may be on its way.
const OFFER_RETENTION: Duration = Duration::from_secs(300);
/// Maximum number of open offers, and of ACCEPTs that wait for their offer.
const OFFERS_MAX: usize = 10_000;

/// A job, and the position of its REQUEST in the inbox.
#[derive(Clone, Debug)]
struct TrackedJob {
    job: Job,
    position: Option<u64>,
}

pub(super) struct Dispatcher<H> {
    agent: Agent,
    handler: Arc<H>,
    concurrency: usize,
    tasks: JoinSet<RunOutcome>,
    running: HashMap<Id, (TrackedJob, AbortHandle)>,
    offered: HashMap<String, (TrackedJob, Instant)>,
    /// ACCEPTs that arrived before the response to their offer.
    early_accepts: HashMap<String, PublicKey>,
    seen: RecentSet<(PublicKey, String)>,
    unfinished: BTreeSet<u64>,
    last_position: u64,
    acked_to: u64,
}

impl<H: Handler> Dispatcher<H> {
    pub(super) fn new(agent: Agent, handler: Arc<H>, concurrency: usize) -> Self {
        Self {
            agent,
            handler,
            concurrency: concurrency.max(1),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            offered: HashMap::new(),
            early_accepts: HashMap::new(),
            seen: RecentSet::default(),
            unfinished: BTreeSet::new(),
            last_position: 0,
            acked_to: 0,
        }
    }

    /// Handles an envelope from the inbox.
    pub(super) fn handle_envelope(&mut self, incoming: IncomingEnvelope, from_before: bool) {
        self.last_position = incoming.position.unwrap_or(self.last_position);
        if !self.seen.insert((incoming.sender, incoming.id.clone())) {
            return;
        }
        if let Some(job) = Job::from_request(&incoming) {
            return self
                .handle_request(TrackedJob { job, position: incoming.position }, from_before);
        }
        match incoming.payload {
            EnvelopePayload::Accept { offer_id, .. } => {
                self.handle_accept(offer_id, incoming.sender)
            }
            EnvelopePayload::Error { request_id: Some(id), .. } => {
                self.cancel(&id, incoming.sender)
            }
            EnvelopePayload::MessageStatus { status, message_id: Some(id), .. }
                if status == "offer_closed" && incoming.sender == self.agent.server().key() =>
            {
                if let Some((tracked, _)) = self.offered.remove(&id) {
                    self.finish(&tracked);
                }
            }
            _ => {}
        }
    }

    fn handle_request(&mut self, tracked: TrackedJob, from_before: bool) {
        self.unfinished.extend(tracked.position);
        let (agent, handler, job) =
            (self.agent.clone(), Arc::clone(&self.handler), tracked.job.clone());
        if self.running.len() >= self.concurrency || self.offered.len() >= OFFERS_MAX {
            let busy =
                WorkError::new(Code::Unavailable, "the provider is at capacity; try again later");
            return self
                .start(tracked, async move { job_runner::send_failure(&agent, &job, busy).await });
        }
        self.start(tracked, job_runner::answer_request(agent, handler, job, from_before));
    }

    fn handle_accept(&mut self, offer_id: String, by: PublicKey) {
        // Only the requester can accept. The hub checks that, and so does the client.
        let ours = self.offered.get(&offer_id).map(|(tracked, _)| tracked.job.requester == by);
        match ours {
            Some(true) => {
                if let Some((tracked, _)) = self.offered.remove(&offer_id) {
                    let (agent, handler) = (self.agent.clone(), Arc::clone(&self.handler));
                    let work = job_runner::run_job(agent, handler, tracked.job.clone());
                    self.start(tracked, work);
                }
            }
            Some(false) => {}
            None if self.early_accepts.len() < OFFERS_MAX => {
                self.early_accepts.insert(offer_id, by);
            }
            None => {}
        }
    }

    /// The requester or the hub cancels a job: its result is no longer wanted.
    fn cancel(&mut self, request_id: &str, by: PublicKey) {
        let hub = self.agent.server().key();
        let same = |job: &Job| job.request_id == request_id && (by == job.requester || by == hub);
        let gone: Vec<_> = self.offered.extract_if(|_, (tracked, _)| same(&tracked.job)).collect();
        for (_, (tracked, _)) in gone {
            self.finish(&tracked);
        }
        let gone: Vec<_> = self.running.extract_if(|_, (tracked, _)| same(&tracked.job)).collect();
        for (_, (tracked, turn)) in gone {
            turn.abort();
            self.finish(&tracked);
        }
    }

    fn start(
        &mut self,
        tracked: TrackedJob,
        turn: impl Future<Output = RunOutcome> + Send + 'static,
    ) {
        let turn = self.tasks.spawn(turn);
        self.running.insert(turn.id(), (tracked, turn));
    }

    /// Waits for a task to end and handles its outcome; `None` if none is running.
    pub(super) async fn next_finished(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        // The job was cancelled in the meantime.
        let Some((tracked, _)) = self.running.remove(&id) else { return Some(()) };
        match ended {
            Ok(RunOutcome::Finished) => self.finish(&tracked),
            Ok(RunOutcome::Offered { offer_id, ttl }) => {
                let until = Instant::now() + ttl + OFFER_RETENTION;
                let early = self.early_accepts.remove(&offer_id);
                self.offered.insert(offer_id.clone(), (tracked, until));
                if let Some(by) = early {
                    self.handle_accept(offer_id, by);
                }
            }
            Ok(RunOutcome::NotSent(error)) => {
                self.finish(&tracked);
                self.report_error(
                    Some(tracked.job.request_id),
                    "the hub did not accept an answer",
                    error,
                );
            }
            Err(error) => {
                self.report_error(
                    Some(tracked.job.request_id.clone()),
                    "the handler panicked",
                    error,
                );
                let (agent, job) = (self.agent.clone(), tracked.job.clone());
                let why = WorkError::new(Code::Internal, "the provider failed");
                self.start(
                    tracked,
                    async move { job_runner::send_failure(&agent, &job, why).await },
                );
            }
        }
        Some(())
    }

    /// Drops expired offers, and acknowledges everything before the first unfinished request.
    pub(super) async fn ack_finished(&mut self) {
        let now = Instant::now();
        let old: Vec<_> = self.offered.extract_if(|_, (_, until)| *until <= now).collect();
        for (_, (tracked, _)) in old {
            self.finish(&tracked);
        }
        let up_to =
            self.unfinished.first().map_or(self.last_position, |first| first.saturating_sub(1));
        if up_to <= self.acked_to {
            return;
        }
        match self.agent.ack(up_to).await {
            Ok(_) => self.acked_to = up_to,
            // The next call tries again.
            Err(error) => self.report_error(None, "the inbox was not acknowledged", error),
        }
    }

    /// Returns the jobs that are still running.
    pub(super) async fn return_running(&mut self) {
        self.tasks.abort_all();
        for (_, (tracked, _)) in std::mem::take(&mut self.running) {
            let why = WorkError::new(Code::Unavailable, "the provider is shutting down");
            match job_runner::send_failure(&self.agent, &tracked.job, why).await {
                RunOutcome::NotSent(error) => {
                    self.report_error(
                        Some(tracked.job.request_id),
                        "a job was not returned",
                        error,
                    );
                }
                _ => self.finish(&tracked),
            }
        }
    }

    pub(super) fn report_error(
        &self,
        request_id: Option<String>,
        what: &'static str,
        why: impl std::fmt::Display,
    ) {
        self.handler.on_error(&ServeError { request_id, action: what, reason: why.to_string() });
    }

    fn finish(&mut self, tracked: &TrackedJob) {
        if let Some(position) = tracked.position {
            self.unfinished.remove(&position);
        }
    }
}
