//! Running commands: load, decide, commit, then notify.
//!
//! `Engine` is the shared handle. Behind it, one commit lane owns the store and the working copy of
//! the world. Readers use the published copy, which always equals the committed state.

#[cfg(any(test, feature = "testkit"))]
mod manual_lane;
mod history;
mod inboxes;
mod jobs;
mod event_log;
mod lane;
mod live_inboxes;
mod reader_pool;
mod start;
#[cfg(test)]
mod tests;
mod timers;
mod notifier;
mod watchers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, Remember};
use rialto_core::id::AgentId;
use rialto_core::idempotency::{self, Kept, Memory, Principal, Receipt};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::random::Ids;
use crate::metrics::Numbers;
use crate::secret::HubSecret;
use crate::store::{Key, Page, Reader, Row, StoreError};
#[cfg(any(test, feature = "testkit"))]
pub use manual_lane::Hand;
pub use history::{Cursor, Side};
use inboxes::Marks;
pub use live_inboxes::Listener;
use live_inboxes::Live;
use reader_pool::Readers;
pub use start::{Setup, Started};
use notifier::Wake;
use watchers::Watchers;
pub use watchers::{News as WatchedNews, Watched, Watcher};

/// Commands that may wait for the lane.
const QUEUE: usize = 4_096;
/// An agent seen again within this time is not recorded: every presence timeout is longer.
const SIGNS_TOGETHER: Millis = Millis(100);
/// An agent seen again within this time is recorded, but the lane is not woken for it.
const SIGNS_APART: Millis = Millis::seconds(1);

/// Why a command has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is full; nothing was changed.
    #[error("the disk of the hub is full")]
    Full,
    /// The store failed or the hub is stopping. It is unknown whether anything was changed.
    #[error("the hub cannot accept writes now")]
    Down,
    /// A bug in the hub; the log has the details.
    #[error("internal error")]
    Fault,
    /// The first request with this key is still running.
    #[error("the first request with this key is still running")]
    StillRunning,
}

/// What makes a request repeatable.
#[derive(Clone, Copy, Debug)]
pub struct Idempotency {
    /// Digest of caller, path and key.
    pub scope: Digest,
    /// Digest of the request's body.
    pub request: Digest,
    /// Whose share of the saved answers the record counts against.
    pub principal: Principal,
}

impl Idempotency {
    /// The command that saves an answer for repeats.
    pub fn keeping(self, kept: Kept) -> Remember {
        let Self { scope, request, principal } = self;
        Remember { scope, request, principal, kept }
    }
}

/// An answer, and whether it is a replay of an earlier one.
#[derive(Clone, Debug)]
pub struct Ran {
    pub answer: Answer,
    pub replayed: bool,
}

/// One command on its way to the lane.
struct Ask {
    command: Command,
    once: Option<Idempotency>,
    reply: oneshot::Sender<Result<Done, Failure>>,
}

enum Errand {
    Run(Box<Ask>),
    /// Something is due, or an agent was seen.
    Wake,
    Stop,
}

enum Done {
    Now(Answer),
    Before(Receipt),
}

/// The handle: cheap to clone, safe to share.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    /// Only handles keep the lane alive: when the last one is dropped, the lane stops and closes
    /// the store.
    lane: mpsc::Sender<Errand>,
}

struct Inner {
    world: RwLock<World>,
    readers: Arc<Readers>,
    wake: Wake,
    live: Live,
    watchers: Watchers,
    marks: Mutex<Marks>,
    /// Inbox positions already presented to readers, not yet applied by the lane.
    presented: Mutex<HashMap<AgentId, u64>>,
    /// When each agent was last seen, not yet applied by the lane.
    signs: Mutex<HashMap<AgentId, Timestamp>>,
    /// The store has maintenance to do when the lane is idle.
    untidy: AtomicBool,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    secret: HubSecret,
    /// Set when the store can no longer be trusted.
    broken: watch::Sender<Option<String>>,
    stopping: AtomicBool,
    numbers: Numbers,
    commands: AtomicU64,
    rows_changed: AtomicU64,
}

/// What the lane has done since the hub started. Measures the work of commands independently of the
/// machine's speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Commands decided, including refused ones and timers.
    pub commands: u64,
    /// Rows they changed or added.
    pub rows: u64,
}

impl Engine {
    /// Runs a command and returns once it is on disk.
    pub async fn run(&self, command: Command) -> Result<Answer, Failure> {
        self.run_once(command, None).await.map(|ran| ran.answer)
    }

    /// Runs a command that a caller may repeat; a repeat gets the first answer again.
    pub async fn run_once(
        &self,
        command: Command,
        once: Option<Idempotency>,
    ) -> Result<Ran, Failure> {
        let (reply, answer) = oneshot::channel();
        let ask = Box::new(Ask { command, once, reply });
        self.lane.send(Errand::Run(ask)).await.map_err(|_| Failure::Down)?;
        match answer.await.map_err(|_| Failure::Down)?? {
            Done::Now(answer) => Ok(Ran { answer, replayed: false }),
            Done::Before(receipt) => {
                let answer = self.again(receipt).await?;
                Ok(Ran { answer, replayed: true })
            }
        }
    }

    /// Builds the answer a receipt stands for, from the current state.
    async fn again(&self, receipt: Receipt) -> Result<Answer, Failure> {
        use rialto_core::money::Credits;
        Ok(match receipt {
            Receipt::Nothing => Answer::Done,
            Receipt::Message(notice) => Answer::Sent { notice, repeated: true },
            Receipt::Refused(refusal) => return Err(Failure::Refused(refusal)),
            Receipt::Agent(id) => {
                let found =
                    self.look(|world| world.agent(id).cloned().zip(world.desk(id).cloned()));
                let (mut agent, desk) = found.ok_or(Failure::Fault)?;
                // The world holds only the summary of an agent that has since been removed.
                if !agent.active {
                    agent = match self.row(Key::Agent(id)).await? {
                        Some(Row::Agent(whole)) => whole,
                        _ => return Err(Failure::Fault),
                    };
                }
                Answer::Agent { agent, desk, new: false, returned: false }
            }
            Receipt::Owner(id) => {
                let owner = self.look(|world| world.owner(id).cloned()).ok_or(Failure::Fault)?;
                Answer::Account { owner, granted: Credits::ZERO }
            }
            Receipt::Job(id) => {
                let job = self.job(id).await?.ok_or(Failure::Fault)?;
                Answer::Job { job, repeated: true }
            }
            Receipt::Transfer(id) => match self.row(Key::Transfer(id)).await? {
                Some(Row::Transfer(transfer)) => Answer::Paid { transfer, repeated: true },
                _ => return Err(Failure::Fault),
            },
        })
    }

    /// Reads the committed world. Keep the closure short: the lane waits for it before it
    /// publishes.
    pub fn look<R>(&self, at: impl FnOnce(&World) -> R) -> R {
        at(&self.inner.world.read())
    }

    /// What the lane has done since the hub started.
    pub fn effort(&self) -> Effort {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Effort { commands: count(&self.inner.commands), rows: count(&self.inner.rows_changed) }
    }

    /// The hub's time.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The wall-clock time, for signed texts that other parties check against their own clocks.
    pub fn wall(&self) -> Timestamp {
        self.inner.clock.wall()
    }

    /// The source of fresh ids.
    pub fn ids(&self) -> &dyn Ids {
        &*self.inner.ids
    }

    /// The hub's own secret, from which others are derived.
    pub fn secret(&self) -> &HubSecret {
        &self.inner.secret
    }

    /// Records that an agent was seen. Usually needs no write.
    pub fn seen(&self, agent: AgentId) {
        let now = self.now();
        let (on_probation, known) = self.look(|world| {
            let on_probation = world.agent(agent).is_some_and(|agent| agent.probation.is_some());
            let presence = world.desk(agent).map(|desk| desk.presence);
            let present = presence.filter(|one| !one.unreachable && world.is_online(agent, now));
            (on_probation, present.map(|presence| presence.seen))
        });
        // The first time an agent is seen needs a write, because the end of its probation must be
        // durable.
        if on_probation && self.is_writable() {
            return self.shows_up(agent);
        }
        if known.is_some_and(|seen| now.since(seen) < SIGNS_TOGETHER) || !self.is_writable() {
            return;
        }
        // A queued job may be waiting for this agent. Finding that out takes a command.
        if known.is_none() && self.look(|world| world.queue().next().is_some()) {
            return self.shows_up(agent);
        }
        self.inner.signs.lock().insert(agent, now);
        // The lane applies this before it marks any agent offline, so the record is not too late.
        if known.is_none_or(|seen| now.since(seen) >= SIGNS_APART) {
            self.wake();
        }
    }

    fn shows_up(&self, agent: AgentId) {
        let engine = self.clone();
        tokio::spawn(async move { engine.run(Command::Return { agent }).await.ok() });
    }

    /// Records how much of its inbox was presented to an agent's readers. Needs no write of its
    /// own. A crash may lose the record; then a notice is repeated, and none is lost.
    pub fn presented(&self, agent: AgentId, up_to: u64) {
        if self.look(|world| world.mailbox(agent).presented) >= up_to {
            return;
        }
        let mut presented = self.inner.presented.lock();
        let known = presented.entry(agent).or_default();
        *known = up_to.max(*known);
    }

    /// The position up to which an agent's inbox was presented to readers or acknowledged.
    pub fn read_to(&self, agent: AgentId) -> u64 {
        let noted = self.inner.presented.lock().get(&agent).copied().unwrap_or(0);
        self.look(|world| world.mailbox(agent).read()).max(noted)
    }

    /// Makes the lane check what is due, for clocks that are moved by hand.
    pub fn wake(&self) {
        // With a full queue the lane is about to check anyway.
        let _ = self.lane.try_send(Errand::Wake);
    }

    /// One stored row.
    pub async fn row(&self, key: Key) -> Result<Option<Row>, Failure> {
        self.read(move |reader| reader.load(key)).await
    }

    /// Rows in the order they were written.
    pub async fn page(&self, page: Page) -> Result<Vec<Row>, Failure> {
        self.read(move |reader| reader.page(page)).await
    }

    /// Reads the store beside the lane, on a thread that may block.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, Failure> {
        let mut reader = self.inner.readers.lend().await.ok_or(Failure::Down)?;
        // If the caller goes away, the thread still finishes and returns its reader to the pool.
        let found = tokio::task::spawn_blocking(move || reader.with(work)).await;
        found.map_err(|_| Failure::Fault)?.map_err(|error| self.inner.give_up(&error))
    }

    /// Resolves when the agent's inbox or its assigned jobs change.
    pub fn news_of(&self, agent: AgentId) -> Arc<tokio::sync::Notify> {
        self.inner.wake.agent(agent)
    }

    /// Changes whenever a line is added to the history.
    pub fn lines(&self) -> watch::Receiver<u64> {
        self.inner.wake.lines()
    }

    /// Changes whenever a delivery may be due.
    pub(crate) fn pushes(&self) -> watch::Receiver<u64> {
        self.inner.wake.pushes()
    }

    /// The saved answer of a request, or `Err` if its key was used for another request.
    pub async fn remembered(
        &self,
        once: Idempotency,
    ) -> Result<Option<Result<(u16, String), ()>>, Failure> {
        let now = self.now();
        let Some(known) = self.look(|world| world.memory(once.scope, now).cloned()) else {
            return Ok(None);
        };
        if known.request != once.request {
            return Ok(Some(Err(())));
        }
        if known.receipt.is_some() {
            return Ok(None);
        }
        Ok(match self.row(Key::Memory(known.id)).await? {
            Some(Row::Memory(row)) => match &row.kept {
                Kept::Answer { status, body } => Some(Ok((*status, body.clone()))),
                Kept::Done(_) => None,
            },
            // It expired just now.
            _ => None,
        })
    }

    /// The idempotency record of a request, unless it has expired.
    pub async fn kept(&self, scope: Digest) -> Result<Option<Arc<Memory>>, Failure> {
        let now = self.now();
        let Some(id) = self.look(|world| world.memory(scope, now).map(|known| known.id)) else {
            return Ok(None);
        };
        Ok(match self.row(Key::Memory(id)).await? {
            Some(Row::Memory(row)) => Some(row),
            _ => None,
        })
    }

    /// Whether a request has an idempotency record.
    pub fn is_kept(&self, scope: Digest) -> bool {
        let now = self.now();
        self.look(|world| world.memory(scope, now).is_some())
    }

    /// Whether one more answer may be saved for a caller.
    pub fn room_for_answer(&self, principal: Principal) -> Result<(), Refusal> {
        let room = self.look(|world| idempotency::room(world, principal));
        if room.is_err() {
            // Expired records may still take space, because no command ran since they expired.
            self.wake();
        }
        room
    }

    /// Whether the store has failed, and how; changes at most once.
    pub fn broken(&self) -> watch::Receiver<Option<String>> {
        self.inner.broken.subscribe()
    }

    /// What was counted since the start.
    pub fn numbers(&self) -> &Numbers {
        &self.inner.numbers
    }

    /// Whether writes are possible.
    pub fn is_writable(&self) -> bool {
        !self.inner.is_broken() && !self.inner.stopping.load(Ordering::Acquire)
    }

    /// Stops the lane after the commands already queued.
    pub async fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        let _ = self.lane.send(Errand::Stop).await;
    }
}

impl Inner {
    fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }

    /// Converts a store error into the caller's failure. Every error except a full disk is final:
    /// no further write is accepted, and all subscribers are notified.
    fn give_up(&self, error: &StoreError) -> Failure {
        if matches!(error, StoreError::Full) {
            return Failure::Full;
        }
        tracing::error!(%error, "store failed; no further writes are accepted");
        self.broken.send_if_modified(|broken| {
            let first = broken.is_none();
            broken.get_or_insert_with(|| error.to_string());
            first
        });
        Failure::Down
    }
}
