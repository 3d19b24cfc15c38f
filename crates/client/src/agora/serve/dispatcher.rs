//! Dispatches a provider's jobs: running jobs, open offers, and what may be acknowledged.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;

use super::Mishap;
use super::job_runner::{self, Ended};
use crate::agora::agent::Agent;
use crate::agora::handler::{Broken, Handler, Job};
use crate::agora::incoming::Incoming;
use crate::agora::payload::Said;
use crate::agora::seen_messages::Seen;

/// How long an expired offer is kept: an ACCEPT may be on its way.
const LATE: Duration = Duration::from_secs(300);
/// Maximum number of open offers, and of ACCEPTs that wait for their offer.
const OFFERS_MAX: usize = 10_000;

/// A job, and the position of its REQUEST in the inbox.
#[derive(Clone, Debug)]
struct Paper {
    job: Job,
    position: Option<u64>,
}

pub(super) struct Desk<H> {
    agent: Agent,
    handler: Arc<H>,
    concurrency: usize,
    turns: JoinSet<Ended>,
    running: HashMap<Id, (Paper, AbortHandle)>,
    offered: HashMap<String, (Paper, Instant)>,
    /// ACCEPTs that arrived before the response to their offer.
    early: HashMap<String, PublicKey>,
    seen: Seen,
    undone: BTreeSet<u64>,
    heard_to: u64,
    acked_to: u64,
}

impl<H: Handler> Desk<H> {
    pub(super) fn new(agent: Agent, handler: Arc<H>, concurrency: usize) -> Self {
        Self {
            agent,
            handler,
            concurrency: concurrency.max(1),
            turns: JoinSet::new(),
            running: HashMap::new(),
            offered: HashMap::new(),
            early: HashMap::new(),
            seen: Seen::default(),
            undone: BTreeSet::new(),
            heard_to: 0,
            acked_to: 0,
        }
    }

    /// Handles an envelope from the inbox.
    pub(super) fn hear(&mut self, incoming: Incoming, from_before: bool) {
        self.heard_to = incoming.position.unwrap_or(self.heard_to);
        if !self.seen.insert(incoming.sender, &incoming.id) {
            return;
        }
        if let Some(job) = Job::of(&incoming) {
            return self.asked(Paper { job, position: incoming.position }, from_before);
        }
        match incoming.said {
            Said::Accept { offer_id, .. } => self.accepted(offer_id, incoming.sender),
            Said::Error { request_id: Some(id), .. } => self.called_off(&id, incoming.sender),
            Said::Notice { status, message_id: Some(id), .. }
                if status == "offer_closed" && incoming.sender == self.agent.server().key() =>
            {
                if let Some((paper, _)) = self.offered.remove(&id) {
                    self.put_away(&paper);
                }
            }
            _ => {}
        }
    }

    fn asked(&mut self, paper: Paper, from_before: bool) {
        self.undone.extend(paper.position);
        let (agent, handler, job) =
            (self.agent.clone(), Arc::clone(&self.handler), paper.job.clone());
        if self.running.len() >= self.concurrency || self.offered.len() >= OFFERS_MAX {
            let busy =
                Broken::new(Code::Unavailable, "the provider is at capacity; try again later");
            return self.start(paper, async move { job_runner::fail(&agent, &job, busy).await });
        }
        self.start(paper, job_runner::answer(agent, handler, job, from_before));
    }

    fn accepted(&mut self, offer_id: String, by: PublicKey) {
        // Only the requester can accept. The hub checks that, and so does the client.
        let ours = self.offered.get(&offer_id).map(|(paper, _)| paper.job.requester == by);
        match ours {
            Some(true) => {
                if let Some((paper, _)) = self.offered.remove(&offer_id) {
                    let (agent, handler) = (self.agent.clone(), Arc::clone(&self.handler));
                    let work = job_runner::work(agent, handler, paper.job.clone());
                    self.start(paper, work);
                }
            }
            Some(false) => {}
            None if self.early.len() < OFFERS_MAX => drop(self.early.insert(offer_id, by)),
            None => {}
        }
    }

    /// The requester or the hub cancels a job: its result is no longer wanted.
    fn called_off(&mut self, request_id: &str, by: PublicKey) {
        let hub = self.agent.server().key();
        let same = |job: &Job| job.request_id == request_id && (by == job.requester || by == hub);
        let gone: Vec<_> = self.offered.extract_if(|_, (paper, _)| same(&paper.job)).collect();
        for (_, (paper, _)) in gone {
            self.put_away(&paper);
        }
        let gone: Vec<_> = self.running.extract_if(|_, (paper, _)| same(&paper.job)).collect();
        for (_, (paper, turn)) in gone {
            turn.abort();
            self.put_away(&paper);
        }
    }

    fn start(&mut self, paper: Paper, turn: impl Future<Output = Ended> + Send + 'static) {
        let turn = self.turns.spawn(turn);
        self.running.insert(turn.id(), (paper, turn));
    }

    /// Waits for a task to end and handles its outcome; `None` if none is running.
    pub(super) async fn turn_ended(&mut self) -> Option<()> {
        let ended = self.turns.join_next_with_id().await?;
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        // The job was cancelled in the meantime.
        let Some((paper, _)) = self.running.remove(&id) else { return Some(()) };
        match ended {
            Ok(Ended::Finished) => self.put_away(&paper),
            Ok(Ended::Offered { offer_id, ttl }) => {
                let until = Instant::now() + ttl + LATE;
                let early = self.early.remove(&offer_id);
                self.offered.insert(offer_id.clone(), (paper, until));
                if let Some(by) = early {
                    self.accepted(offer_id, by);
                }
            }
            Ok(Ended::Unsent(error)) => {
                self.put_away(&paper);
                self.mishap(Some(paper.job.request_id), "the hub did not accept an answer", error);
            }
            Err(error) => {
                self.mishap(Some(paper.job.request_id.clone()), "the handler panicked", error);
                let (agent, job) = (self.agent.clone(), paper.job.clone());
                let why = Broken::new(Code::Internal, "the provider failed");
                self.start(paper, async move { job_runner::fail(&agent, &job, why).await });
            }
        }
        Some(())
    }

    /// Drops expired offers, and acknowledges everything before the first unfinished request.
    pub(super) async fn tidy(&mut self) {
        let now = Instant::now();
        let old: Vec<_> = self.offered.extract_if(|_, (_, until)| *until <= now).collect();
        for (_, (paper, _)) in old {
            self.put_away(&paper);
        }
        let up_to = self.undone.first().map_or(self.heard_to, |first| first.saturating_sub(1));
        if up_to <= self.acked_to {
            return;
        }
        match self.agent.ack(up_to).await {
            Ok(_) => self.acked_to = up_to,
            // The next call tries again.
            Err(error) => self.mishap(None, "the inbox was not acknowledged", error),
        }
    }

    /// Returns the jobs that are still running.
    pub(super) async fn give_back(&mut self) {
        self.turns.abort_all();
        for (_, (paper, _)) in std::mem::take(&mut self.running) {
            let why = Broken::new(Code::Unavailable, "the provider is shutting down");
            match job_runner::fail(&self.agent, &paper.job, why).await {
                Ended::Unsent(error) => {
                    self.mishap(Some(paper.job.request_id), "a job was not returned", error);
                }
                _ => self.put_away(&paper),
            }
        }
    }

    pub(super) fn mishap(
        &self,
        request_id: Option<String>,
        what: &'static str,
        why: impl std::fmt::Display,
    ) {
        self.handler.mishap(&Mishap { request_id, what, why: why.to_string() });
    }

    fn put_away(&mut self, paper: &Paper) {
        if let Some(position) = paper.position {
            self.undone.remove(&position);
        }
    }
}
