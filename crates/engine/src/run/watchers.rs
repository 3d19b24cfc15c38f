//! Watchers: subscriptions to history events of selected agents.
//!
//! A line reaches only the watchers of the agent it is about, so other agents' events do not wake a
//! stream. Lines that do not fit a watcher's queue are dropped and reported as missed: the history
//! still has them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rialto_core::changes::Changes;
use rialto_core::event::{Event, HistoryLine};
use rialto_core::id::AgentId;
use tokio::sync::Notify;

use super::Engine;

/// Lines queued for a watcher that is busy.
const WATCHER_QUEUE_MAX: usize = 256;

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchFilter {
    /// The state and the standing of all agents.
    All,
    /// The same of some agents.
    Agents(HashSet<AgentId>),
    /// Which agents register, and what they change.
    Registered,
}

impl WatchFilter {
    /// Whether an agent is included.
    pub fn contains(&self, agent: AgentId) -> bool {
        match self {
            Self::All => true,
            Self::Agents(agents) => agents.contains(&agent),
            Self::Registered => false,
        }
    }
}

/// All watchers.
#[derive(Default)]
pub struct Watchers(Mutex<WatcherLists>);

#[derive(Default)]
struct WatcherLists {
    by_agent: HashMap<AgentId, Vec<Weak<WatcherQueue>>>,
    of_all: Vec<Weak<WatcherQueue>>,
    of_registrations: Vec<Weak<WatcherQueue>>,
}

#[derive(Default)]
struct WatcherQueue {
    queue: Mutex<PendingEvents>,
    bell: Notify,
}

#[derive(Default)]
struct PendingEvents {
    lines: VecDeque<Arc<HistoryLine>>,
    missed: bool,
}

/// A subscription that lasts until it is dropped.
pub struct Watcher {
    engine: Engine,
    watched: WatchFilter,
    slot: Arc<WatcherQueue>,
}

/// What a watcher has not seen yet.
#[derive(Debug, Default)]
pub struct WatcherEvents {
    pub lines: Vec<Arc<HistoryLine>>,
    /// More lines came than fit; only the history has them.
    pub missed: bool,
}

impl Watchers {
    /// Queues the lines of a committed batch for their watchers.
    pub fn publish(&self, batch: &Changes) {
        let lists = self.0.lock();
        for line in batch.history_lines.iter().filter(|line| is_about_registrations(line)) {
            lists.of_registrations.iter().filter_map(Weak::upgrade).for_each(|slot| slot.add(line));
        }
        if lists.by_agent.is_empty() && lists.of_all.is_empty() {
            return;
        }
        for line in &batch.history_lines {
            let about: HashSet<AgentId> =
                line.events.iter().filter_map(|event| event.watched_agent()).collect();
            if about.is_empty() {
                continue;
            }
            let watching = about.iter().filter_map(|agent| lists.by_agent.get(agent)).flatten();
            let mut told: Vec<*const WatcherQueue> = Vec::new();
            for slot in watching.chain(&lists.of_all).filter_map(Weak::upgrade) {
                // A line about two watched agents is queued once.
                if !told.contains(&Arc::as_ptr(&slot)) {
                    told.push(Arc::as_ptr(&slot));
                    slot.add(line);
                }
            }
        }
    }
}

fn is_about_registrations(line: &HistoryLine) -> bool {
    line.events
        .iter()
        .any(|event| matches!(event, Event::AgentRegistered { .. } | Event::AgentUpdated { .. }))
}

impl WatcherQueue {
    fn add(&self, line: &Arc<HistoryLine>) {
        let mut queue = self.queue.lock();
        match queue.lines.len() < WATCHER_QUEUE_MAX {
            true => queue.lines.push_back(line.clone()),
            false => queue.missed = true,
        }
        drop(queue);
        self.bell.notify_one();
    }
}

impl Engine {
    /// Starts to watch. Every later commit about these agents is queued or reported as missed.
    pub fn watch_agents(&self, watched: WatchFilter) -> Watcher {
        let slot = Arc::<WatcherQueue>::default();
        let mut lists = self.inner.watchers.0.lock();
        match &watched {
            WatchFilter::All => lists.of_all.push(Arc::downgrade(&slot)),
            WatchFilter::Registered => lists.of_registrations.push(Arc::downgrade(&slot)),
            WatchFilter::Agents(agents) => {
                for agent in agents {
                    lists.by_agent.entry(*agent).or_default().push(Arc::downgrade(&slot));
                }
            }
        }
        drop(lists);
        Watcher { engine: self.clone(), watched, slot }
    }
}

impl Watcher {
    pub fn filter(&self) -> &WatchFilter {
        &self.watched
    }

    /// Takes what came since the last call.
    pub fn take_events(&self) -> WatcherEvents {
        let PendingEvents { lines, missed } = std::mem::take(&mut *self.slot.queue.lock());
        WatcherEvents { lines: lines.into(), missed }
    }

    /// Waits until there is something to take.
    pub async fn wait(&self) {
        self.slot.bell.notified().await;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut lists = self.engine.inner.watchers.0.lock();
        let own = Arc::as_ptr(&self.slot);
        let others = |slot: &Weak<WatcherQueue>| slot.as_ptr() != own;
        match &self.watched {
            WatchFilter::All => lists.of_all.retain(others),
            WatchFilter::Registered => lists.of_registrations.retain(others),
            WatchFilter::Agents(agents) => {
                for agent in agents {
                    if let Some(list) = lists.by_agent.get_mut(agent) {
                        list.retain(others);
                        if list.is_empty() {
                            lists.by_agent.remove(agent);
                        }
                    }
                }
            }
        }
    }
}
