//! The supervisor: one watch per agent with a server of its own, wherever its work comes from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rialto_core::event::Event;
use rialto_core::id::{AgentId, JobId};
use rialto_engine::run::{WatchFilter, Watcher};
use tokio::task::{AbortHandle, JoinSet};

use super::agent_watch::AgentWatch;
use super::follower::FollowerWake;
use super::is_remote;
use crate::a2a::A2aContext;

/// How long a watch that ended by an error rests before it begins again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The followers that run at this node, for news of their tasks.
#[derive(Default)]
pub struct Followers(Mutex<HashMap<JobId, Arc<FollowerWake>>>);

impl Followers {
    /// A follower begins.
    pub fn add(&self, job: JobId, wake: Arc<FollowerWake>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job, wake);
    }

    /// A follower ended, unless another one of the same job began.
    pub fn remove(&self, job: JobId, wake: &Arc<FollowerWake>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&job).is_some_and(|known| Arc::ptr_eq(known, wake)) {
            all.remove(&job);
        }
    }

    /// The follower of a job.
    pub fn get(&self, job: JobId) -> Option<Arc<FollowerWake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned()
    }
}

/// Starts a watch for every agent with a server of its own.
pub struct Supervisor {
    context: A2aContext,
    watcher: Watcher,
    watches: JoinSet<AgentId>,
    running: HashMap<AgentId, AbortHandle>,
}

impl Supervisor {
    pub fn new(context: A2aContext) -> Self {
        // Subscribed before the first look, so that no agent is missed.
        let watcher = context.engine.watch_agents(WatchFilter::Registered);
        Self { context, watcher, watches: JoinSet::new(), running: HashMap::new() }
    }

    /// Runs until it is dropped, and everything it started with it.
    pub async fn run(mut self) {
        self.look_at_all();
        loop {
            tokio::select! {
                () = self.watcher.wait() => self.look_at_news(),
                Some(ended) = self.watches.join_next() => match ended {
                    Ok(agent) => self.begin_again(agent),
                    Err(error) => {
                        let of_task = |handle: &AbortHandle| handle.id() == error.id();
                        let agent = self.running.iter().find(|(_, handle)| of_task(handle));
                        if let Some(agent) = agent.map(|(agent, _)| *agent) {
                            tracing::error!(%agent, %error, "the watch of an agent failed");
                            self.begin_again(agent);
                        }
                    }
                },
            }
        }
    }

    fn look_at_news(&mut self) {
        let news = self.watcher.take_events();
        if news.missed {
            return self.look_at_all();
        }
        for line in news.lines {
            for event in &line.events {
                if let Event::AgentRegistered { agent, .. } | Event::AgentUpdated { agent } = event
                {
                    self.begin(*agent, Duration::ZERO);
                }
            }
        }
    }

    fn look_at_all(&mut self) {
        let all: Vec<AgentId> = self.context.engine.with_world(|world| {
            let remote = world.agents().filter(|agent| is_remote(agent));
            remote.map(|agent| agent.id).collect()
        });
        for agent in all {
            self.begin(agent, Duration::ZERO);
        }
    }

    /// Begins to watch an agent that has a server of its own, unless it is watched.
    fn begin(&mut self, agent: AgentId, pause: Duration) {
        let is_watched = self.running.contains_key(&agent);
        let has_server = |world: &rialto_core::world::World| {
            world.agent(agent).is_some_and(|agent| is_remote(agent))
        };
        if is_watched || !self.context.engine.with_world(has_server) {
            return;
        }
        let context = self.context.clone();
        let handle = self.watches.spawn(async move {
            tokio::time::sleep(pause).await;
            AgentWatch::new(context, agent).run().await;
            agent
        });
        self.running.insert(agent, handle);
    }

    fn begin_again(&mut self, agent: AgentId) {
        self.running.remove(&agent);
        self.begin(agent, RESTART_PAUSE);
    }
}
