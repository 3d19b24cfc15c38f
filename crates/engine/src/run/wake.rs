//! Waking: telling those who wait that something is committed. Hints only; what counts is stored.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rialto_core::agent::key::Holder;
use rialto_core::changes::Changes;
use rialto_core::id::{AgentId, EventId, JobId};
use rialto_core::job::{Job, Requester};
use tokio::sync::{Notify, oneshot, watch};

/// Everybody who waits.
pub struct Wake {
    jobs: Mutex<HashMap<JobId, Vec<oneshot::Sender<Arc<Job>>>>>,
    agents: Mutex<HashMap<AgentId, Weak<Notify>>>,
    lines: watch::Sender<u64>,
    pushes: watch::Sender<u64>,
}

/// Above this many, entries nobody waits on any more are swept out.
const AGENTS_SWEPT_AT: usize = 4_096;

impl Wake {
    /// Begins with a history that ends with the line `newest`; 0 if there is none. Whoever resumes
    /// reads up to there, so a start must not forget what was written before it.
    pub fn new(newest: EventId) -> Self {
        Self {
            jobs: Mutex::default(),
            agents: Mutex::default(),
            lines: watch::Sender::new(newest.0),
            pushes: watch::Sender::new(0),
        }
    }

    /// The end of a job, or that its end will take longer.
    pub fn job(&self, id: JobId) -> oneshot::Receiver<Arc<Job>> {
        let (told, end) = oneshot::channel();
        let mut jobs = self.jobs.lock();
        let waiting = jobs.entry(id).or_default();
        waiting.retain(|one| !one.is_closed());
        waiting.push(told);
        end
    }

    /// Drops those who have stopped waiting for a job, which may never be told of again.
    pub fn nobody_waits(&self, id: JobId) {
        let mut jobs = self.jobs.lock();
        if let Some(waiting) = jobs.get_mut(&id) {
            waiting.retain(|one| !one.is_closed());
            if waiting.is_empty() {
                jobs.remove(&id);
            }
        }
    }

    /// For how many jobs somebody is listed as waiting.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.jobs.lock().len()
    }

    /// News for an agent.
    pub fn agent(&self, id: AgentId) -> Arc<Notify> {
        let mut agents = self.agents.lock();
        if let Some(known) = agents.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        if agents.len() >= AGENTS_SWEPT_AT {
            agents.retain(|_, one| one.strong_count() > 0);
        }
        let fresh = Arc::new(Notify::new());
        agents.insert(id, Arc::downgrade(&fresh));
        fresh
    }

    /// The newest line of the history.
    pub fn lines(&self) -> watch::Receiver<u64> {
        self.lines.subscribe()
    }

    pub fn pushes(&self) -> watch::Receiver<u64> {
        self.pushes.subscribe()
    }

    /// Tells everybody about a committed batch.
    pub fn tell(&self, batch: &Changes) {
        // Being told to wait is as good as an end for whoever waits for an answer.
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
                // Whoever waits for how a job goes on, or for work, looks itself.
                let asks = |job: &Job| match job.requester {
                    Requester::Agent(agent) => Some(agent),
                    Requester::Guest(_) => None,
                };
                let parties = batch.jobs.values().flat_map(|job| [asks(job), job.for_whom()]);
                for agent in parties.flatten() {
                    if let Some(one) = agents.get(&agent).and_then(Weak::upgrade) {
                        one.notify_waiters();
                    }
                }
                // Whoever reads for an agent must hear that its key or the agent is gone.
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
        if let Some(line) = batch.lines.last() {
            self.lines.send_replace(line.id.0);
        }
        if !batch.pushes.is_empty() {
            self.pushes.send_modify(|round| *round += 1);
        }
    }
}
