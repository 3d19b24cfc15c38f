//! Notifications after a commit. They are only hints; the stored state is authoritative.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rialto_core::agent::key::Holder;
use rialto_core::changes::Changes;
use rialto_core::id::{AgentId, EventId, JobId};
use rialto_core::job::{Job, Requester};
use tokio::sync::{Notify, oneshot, watch};

/// All waiting subscribers.
pub struct Notifier {
    jobs: Mutex<HashMap<JobId, Vec<oneshot::Sender<Arc<Job>>>>>,
    agents: Mutex<HashMap<AgentId, Weak<Notify>>>,
    lines: watch::Sender<u64>,
    pushes: watch::Sender<u64>,
}

/// Above this many, entries without a waiter are removed.
const AGENTS_SWEEP_THRESHOLD: usize = 4_096;

impl Notifier {
    /// Starts with a history that ends with the line `newest`, or 0 if it is empty. A resumed
    /// stream reads up to there, so a restart must not hide lines written before it.
    pub fn new(newest: EventId) -> Self {
        Self {
            jobs: Mutex::default(),
            agents: Mutex::default(),
            lines: watch::Sender::new(newest.0),
            pushes: watch::Sender::new(0),
        }
    }

    /// Resolves when a job ends, or when its end is known to take longer.
    pub fn subscribe_job(&self, id: JobId) -> oneshot::Receiver<Arc<Job>> {
        let (told, end) = oneshot::channel();
        let mut jobs = self.jobs.lock();
        let waiting = jobs.entry(id).or_default();
        waiting.retain(|one| !one.is_closed());
        waiting.push(told);
        end
    }

    /// Drops the closed waiters of a job that may never be notified again.
    pub fn drop_closed_waiters(&self, id: JobId) {
        let mut jobs = self.jobs.lock();
        if let Some(waiting) = jobs.get_mut(&id) {
            waiting.retain(|one| !one.is_closed());
            if waiting.is_empty() {
                jobs.remove(&id);
            }
        }
    }

    /// The number of jobs that have waiters.
    #[cfg(test)]
    pub fn waiting_job_count(&self) -> usize {
        self.jobs.lock().len()
    }

    /// Notifies of changes for an agent.
    pub fn subscribe_agent(&self, id: AgentId) -> Arc<Notify> {
        let mut agents = self.agents.lock();
        if let Some(known) = agents.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        if agents.len() >= AGENTS_SWEEP_THRESHOLD {
            agents.retain(|_, one| one.strong_count() > 0);
        }
        let fresh = Arc::new(Notify::new());
        agents.insert(id, Arc::downgrade(&fresh));
        fresh
    }

    /// The newest line of the history.
    pub fn subscribe_history(&self) -> watch::Receiver<u64> {
        self.lines.subscribe()
    }

    pub fn subscribe_deliveries(&self) -> watch::Receiver<u64> {
        self.pushes.subscribe()
    }

    /// Notifies all subscribers about a committed batch.
    pub fn notify(&self, batch: &Changes) {
        // A pending job also completes the wait: the caller gets that as its answer.
        let settled = |job: &&Arc<Job>| job.state.is_final() || job.pending;
        let ended = batch.jobs.values().filter(settled);
        {
            let mut jobs = self.jobs.lock();
            if !jobs.is_empty() {
                for job in ended {
                    for one in jobs.remove(&job.id).into_iter().flatten() {
                        let _ = one.send(job.clone());
                    }
                }
            }
        }
        {
            let agents = self.agents.lock();
            if !agents.is_empty() {
                for notice in &batch.notices {
                    if let Some(one) = notice.to.and_then(|to| agents.get(&to)?.upgrade()) {
                        one.notify_waiters();
                    }
                }
                // Waiters for progress or for work check the state themselves.
                let asks = |job: &Job| match job.request.requester {
                    Requester::Agent(agent) => Some(agent),
                    Requester::Guest(_) => None,
                };
                let parties =
                    batch.jobs.values().flat_map(|job| [asks(job), job.intended_worker()]);
                for agent in parties.flatten() {
                    if let Some(one) = agents.get(&agent).and_then(Weak::upgrade) {
                        one.notify_waiters();
                    }
                }
                // Inbox readers of an agent must notice that its key was revoked or the agent
                // removed.
                let keys = batch.keys.values().filter_map(|key| match key.holder {
                    Holder::Agent(agent) => Some(agent),
                    Holder::Operator => None,
                });
                for agent in batch.agents.keys().copied().chain(keys) {
                    if let Some(one) = agents.get(&agent).and_then(Weak::upgrade) {
                        one.notify_waiters();
                    }
                }
            }
        }
        if let Some(line) = batch.history_lines.last() {
            self.lines.send_replace(line.id.0);
        }
        if !batch.deliveries.is_empty() {
            self.pushes.send_modify(|round| *round += 1);
        }
    }
}
