//! Running commands: load, decide, commit, then tell.
//!
//! `Engine` is the handle everybody holds. Behind it one lane owns the store and the working copy
//! of the world; readers look at the published copy, which is always what is committed.

#[cfg(any(test, feature = "testkit"))]
mod hand;
mod history;
mod inbox;
mod jobs;
mod journal;
mod lane;
mod live;
mod readers;
mod start;
#[cfg(test)]
mod tests;
mod timers;
mod wake;
mod watchers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, Remember};
use rialto_core::id::AgentId;
use rialto_core::memory::{self, Kept, Memory, Principal, Receipt};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::ids::Ids;
use crate::numbers::Numbers;
use crate::secret::HubSecret;
use crate::store::{Key, Page, Reader, Row, StoreError};
#[cfg(any(test, feature = "testkit"))]
pub use hand::Hand;
pub use history::{Cursor, Side};
use inbox::Marks;
pub use live::Listener;
use live::Live;
use readers::Readers;
pub use start::{Setup, Started};
use wake::Wake;
use watchers::Watchers;
pub use watchers::{News as WatchedNews, Watched, Watcher};

/// Commands that may wait for the lane.
const QUEUE: usize = 4_096;
/// A sign of life so soon after another says nothing new: nobody is silent for so short a time.
const SIGNS_TOGETHER: Millis = Millis(100);
/// A sign of life so soon after another is worth noting, but not worth waking the lane for.
const SIGNS_APART: Millis = Millis::seconds(1);

/// Why a command has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is full; nothing was changed.
    #[error("the disk of the hub is full")]
    Full,
    /// The store failed or the hub is stopping; whether anything was changed is not known.
    #[error("the hub cannot accept writes now")]
    Down,
    /// Our own mistake; the log has the rest.
    #[error("internal error")]
    Fault,
    /// The first request with this key is still running.
    #[error("the first request with this key is still running")]
    StillRunning,
}

/// What makes a request repeatable.
#[derive(Clone, Copy, Debug)]
pub struct Idempotency {
    /// Of caller, path and key.
    pub scope: Digest,
    /// Of the request's body.
    pub request: Digest,
    /// Whose share of what is kept it counts against.
    pub principal: Principal,
}

impl Idempotency {
    /// The order to keep something for repeats.
    pub fn keeping(self, kept: Kept) -> Remember {
        let Self { scope, request, principal } = self;
        Remember { scope, request, principal, kept }
    }
}

/// An answer, and whether it had been given before.
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
    /// Something is due, or somebody was seen.
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
    /// Only handles keep the lane: with the last of them it stops, and the store is closed.
    lane: mpsc::Sender<Errand>,
}

struct Inner {
    world: RwLock<World>,
    readers: Arc<Readers>,
    wake: Wake,
    live: Live,
    watchers: Watchers,
    marks: Mutex<Marks>,
    /// How far readers have been handed their inboxes, waiting for the lane.
    presented: Mutex<HashMap<AgentId, u64>>,
    /// Signs of life that wait for the lane, the newest of each agent.
    signs: Mutex<HashMap<AgentId, Timestamp>>,
    /// The store has something to tidy up when the lane is idle.
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

/// What the lane has done since the hub started: how much work commands were, whatever the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Commands decided, refused ones and timers included.
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

    /// The answer a receipt stands for, as things are now.
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
                // Of an agent that has left since then only the small part is at hand.
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

    /// Looks at what is committed. Keep it short: the lane waits to publish.
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

    /// The time others go by, for what is signed and judged by when it was.
    pub fn wall(&self) -> Timestamp {
        self.inner.clock.wall()
    }

    /// Fresh ids.
    pub fn ids(&self) -> &dyn Ids {
        &*self.inner.ids
    }

    /// The hub's own secret, for deriving others.
    pub fn secret(&self) -> &HubSecret {
        &self.inner.secret
    }

    /// Notes a sign of life of an agent; costs no write.
    pub fn seen(&self, agent: AgentId) {
        let now = self.now();
        let (on_probation, known) = self.look(|world| {
            let on_probation = world.agent(agent).is_some_and(|agent| agent.probation.is_some());
            let presence = world.desk(agent).map(|desk| desk.presence);
            let present = presence.filter(|one| !one.unreachable && world.is_online(agent, now));
            (on_probation, present.map(|presence| presence.seen))
        });
        // Once in its life this does cost a write: that it has shown itself must not be forgotten.
        if on_probation && self.is_writable() {
            return self.shows_up(agent);
        }
        if known.is_some_and(|seen| now.since(seen) < SIGNS_TOGETHER) || !self.is_writable() {
            return;
        }
        // Whoever was away may be who a job has been waiting for, and finding that out is a command.
        if known.is_none() && self.look(|world| world.queue().next().is_some()) {
            return self.shows_up(agent);
        }
        self.inner.signs.lock().insert(agent, now);
        // The lane takes signs in before it calls anybody silent, so this one is not too late.
        if known.is_none_or(|seen| now.since(seen) >= SIGNS_APART) {
            self.wake();
        }
    }

    fn shows_up(&self, agent: AgentId) {
        let engine = self.clone();
        tokio::spawn(async move { engine.run(Command::Return { agent }).await.ok() });
    }

    /// Notes how far an agent's readers have been handed its inbox; costs no write of its own, and
    /// a crash may forget it, which repeats a notice and loses none.
    pub fn presented(&self, agent: AgentId, up_to: u64) {
        if self.look(|world| world.mailbox(agent).presented) >= up_to {
            return;
        }
        let mut presented = self.inner.presented.lock();
        let known = presented.entry(agent).or_default();
        *known = up_to.max(*known);
    }

    /// How far an agent's readers have been handed its inbox, or the agent has acknowledged it.
    pub fn read_to(&self, agent: AgentId) -> u64 {
        let noted = self.inner.presented.lock().get(&agent).copied().unwrap_or(0);
        self.look(|world| world.mailbox(agent).read()).max(noted)
    }

    /// Has the lane look at what is due, for clocks that move by hand.
    pub fn wake(&self) {
        // A full queue means the lane is about to look anyway.
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

    /// Reads beside the lane, on a thread that may block.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, Failure> {
        let mut reader = self.inner.readers.lend().await.ok_or(Failure::Down)?;
        // The thread goes on when the caller goes away, and gives its reader back all the same.
        let found = tokio::task::spawn_blocking(move || reader.with(work)).await;
        found.map_err(|_| Failure::Fault)?.map_err(|error| self.inner.give_up(&error))
    }

    /// Resolves when something new is in the agent's inbox or hands.
    pub fn news_of(&self, agent: AgentId) -> Arc<tokio::sync::Notify> {
        self.inner.wake.agent(agent)
    }

    /// Changes whenever a line is added to the history.
    pub fn lines(&self) -> watch::Receiver<u64> {
        self.inner.wake.lines()
    }

    /// Changes whenever a push may be due.
    pub(crate) fn pushes(&self) -> watch::Receiver<u64> {
        self.inner.wake.pushes()
    }

    /// A remembered answer, or whether the key was used for something else.
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
            // Its day ended just now.
            _ => None,
        })
    }

    /// What was kept about a request, if it is not too old.
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

    /// Whether something is kept about a request.
    pub fn is_kept(&self, scope: Digest) -> bool {
        let now = self.now();
        self.look(|world| world.memory(scope, now).is_some())
    }

    /// Whether one more answer may be kept for a caller.
    pub fn room_for_answer(&self, principal: Principal) -> Result<(), Refusal> {
        let room = self.look(|world| memory::room(world, principal));
        if room.is_err() {
            // What is over may still be there, because nobody asked for anything since.
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

    /// Stops the lane after what is already queued.
    pub async fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        let _ = self.lane.send(Errand::Stop).await;
    }
}

impl Inner {
    fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }

    /// What a store's error means for whoever asked. All but a full disk is the end: no further
    /// write is accepted, and everybody is told.
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
