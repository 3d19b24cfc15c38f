//! Running commands: load, decide, commit, then notify.
//!
//! `Engine` is the shared handle. Behind it, one commit lane owns the store and the working copy of
//! the world. Readers use the published copy, which always equals the committed state.

mod cluster;
mod coordinator;
mod event_log;
mod history;
mod hop_events;
mod inboxes;
mod jobs;
mod lane;
mod live_inboxes;
mod log_thread;
mod member;
mod notifier;
mod pending;
mod reader_pool;
mod reply;
mod reporter;
mod start;
#[cfg(test)]
mod tests;
mod timers;
mod watchers;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rialto_core::agent::key_limits;
use rialto_core::agent::presence::Presence;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::envelope::{Envelope, Proof};
use rialto_core::id::{AgentId, KeyId};
pub use rialto_core::idempotency::Idempotency;
use rialto_core::idempotency::{self, IdempotencyRecord, Principal, Receipt, SavedAnswer};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::cluster::frame::{CallFuture, Hop};
use crate::cluster::state::ClusterState;
use crate::key_use;
use crate::metrics::Metrics;
use crate::random::RandomSource;
use crate::secret::HubSecret;
use crate::store::{PageQuery, Reader, RecentRows, Row, RowKey, StoreError};
#[cfg(feature = "testkit")]
pub use cluster::ManualNode;
pub use history::{HistoryPage, JobRole, LogEntry, LoggedReport};
use inboxes::SeekPoints;
#[cfg(any(test, feature = "testkit"))]
pub use lane::DecidedCommand;
pub use live_inboxes::InboxSubscription;
use live_inboxes::LiveInboxes;
use member::LaneEvent;
use notifier::Notifier;
use reader_pool::ReaderPool;
use reply::ReplySender;
pub use reply::receive_replies;
#[cfg(any(test, feature = "testkit"))]
pub use start::ManualLane;
pub use start::{ClusterOptions, EngineParts, RunningEngine};
use watchers::Watchers;
pub use watchers::{WatchFilter, Watcher, WatcherEvents as WatchedNews};

/// Commands that may wait for the lane.
const LANE_QUEUE_MAX: usize = 4_096;
/// An agent seen again within this time is not recorded: every presence timeout is longer.
const SEEN_MERGE_WINDOW: Millis = Millis(100);
/// An agent seen again within this time is recorded, but the lane is not woken for it.
const SEEN_WAKE_INTERVAL: Millis = Millis::seconds(1);

/// How long a command waits for its answer at a node of a cluster, while nodes change roles or the
/// database is away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a command has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is full; nothing was changed.
    #[error("the disk of the hub is full")]
    StoreFull,
    /// The store failed or the hub is stopping. It is unknown whether anything was changed.
    #[error("the hub cannot accept writes now")]
    Unavailable,
    /// A bug in the hub; the log has the details.
    #[error("internal error")]
    Fault,
    /// The first request with this key is still running.
    #[error("the first request with this key is still running")]
    StillRunning,
}

/// An answer, and whether it is a replay of an earlier one.
#[derive(Clone, Debug)]
pub struct RunResult {
    pub answer: Answer,
    pub replayed: bool,
}

/// Answers a call of a node, at the writer.
pub type CallHandler = Arc<dyn Fn(Vec<u8>) -> CallFuture + Send + Sync>;

/// One command on its way to the lane.
struct CommandRequest {
    envelope: Envelope,
    reply: ReplySender,
}

enum LaneMessage {
    Run(Box<CommandRequest>),
    /// Something is due, or an agent was seen.
    Wake,
    /// The log thread has finished a batch.
    Appended,
    /// Something happened that other threads report.
    Events,
    Stop,
}

#[derive(Clone)]
enum LaneReply {
    Fresh(Answer),
    /// An earlier request had the same idempotency key.
    Replayed(Receipt),
    /// It was executed, and the answer was lost with the writer that gave it.
    Committed(Receipt),
}

/// The handle: cheap to clone, safe to share.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    /// Only handles keep the lane alive: when the last one is dropped, the lane stops and closes
    /// the store.
    lane: mpsc::Sender<LaneMessage>,
}

struct Inner {
    world: RwLock<World>,
    readers: Arc<ReaderPool>,
    recent_rows: Option<Arc<dyn RecentRows>>,
    notifier: Notifier,
    live_inboxes: LiveInboxes,
    watchers: Watchers,
    seek_points: Mutex<SeekPoints>,
    /// Inbox positions already presented to readers, not yet applied by the lane.
    presented: Mutex<HashMap<AgentId, u64>>,
    /// When each agent was last seen, not yet applied by the lane.
    last_seen: Mutex<HashMap<AgentId, Timestamp>>,
    /// When the use of each key was last recorded, as long as that may be on its way.
    key_uses: Mutex<HashMap<KeyId, Timestamp>>,
    /// The store has maintenance to do when the lane is idle.
    maintenance_due: AtomicBool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
    secret: HubSecret,
    /// Set when the store can no longer be trusted.
    store_failure: watch::Sender<Option<String>>,
    stopping: AtomicBool,
    metrics: Metrics,
    /// This node among others; `None` at a hub of one node.
    cluster: Option<Arc<ClusterState>>,
    /// What happened outside the lane, for a node among others.
    lane_events: Mutex<Vec<LaneEvent>>,
    /// The connections to other nodes.
    hop: OnceLock<Arc<dyn Hop>>,
    /// Answers other nodes about state that only the writer has in memory.
    call_handler: OnceLock<CallHandler>,
    commands: AtomicU64,
    rows_changed: AtomicU64,
}

/// What the lane has done since the hub started. Measures the work of commands independently of the
/// machine's speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Commands decided, including refused ones and timers.
    pub commands: u64,
    /// Rows they changed or added.
    pub rows: u64,
}

impl Engine {
    /// Runs a command and returns once it is on disk.
    pub async fn run(&self, envelope: impl Into<Envelope>) -> Result<Answer, Failure> {
        self.run_envelope(envelope.into()).await.map(|ran| ran.answer)
    }

    /// Runs a command that a caller may repeat; a repeat gets the first answer again.
    pub async fn run_once(
        &self,
        command: Command,
        idempotency: Option<Idempotency>,
    ) -> Result<RunResult, Failure> {
        self.run_envelope(Envelope { idempotency, ..command.into() }).await
    }

    /// The same for an envelope.
    pub async fn run_envelope(&self, mut envelope: Envelope) -> Result<RunResult, Failure> {
        if let (Proof::Credential, Some(key)) = (&envelope.proof, key_use::current()) {
            envelope.proof = Proof::Key(key);
        }
        let (reply, answer) = reply::channel();
        let request = Box::new(CommandRequest { envelope, reply });
        self.lane.send(LaneMessage::Run(request)).await.map_err(|_| Failure::Unavailable)?;
        let answer = match self.inner.cluster {
            None => answer.await,
            Some(_) => {
                let answered = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
                answered.map_err(|_| Failure::Unavailable)?
            }
        };
        match answer.map_err(|_| Failure::Unavailable)?? {
            LaneReply::Fresh(answer) => Ok(RunResult { answer, replayed: false }),
            LaneReply::Replayed(receipt) => {
                let answer = self.answer_from_receipt(receipt).await?;
                Ok(RunResult { answer, replayed: true })
            }
            LaneReply::Committed(receipt) => {
                let answer = as_first_answer(self.answer_from_receipt(receipt).await?);
                Ok(RunResult { answer, replayed: false })
            }
        }
    }

    /// Builds the answer a receipt stands for, from the current state.
    async fn answer_from_receipt(&self, receipt: Receipt) -> Result<Answer, Failure> {
        use rialto_core::money::Credits;
        Ok(match receipt {
            Receipt::Nothing => Answer::Done,
            Receipt::Key(id) => Answer::Key { id },
            Receipt::Message(notice) => Answer::Message { notice, repeated: true },
            Receipt::Refused(refusal) => return Err(Failure::Refused(refusal)),
            Receipt::Agent(id) => {
                let found = self.with_world(|world| {
                    world.agent(id).cloned().zip(world.agent_state(id).cloned())
                });
                let (mut agent, agent_state) = found.ok_or(Failure::Fault)?;
                // The world holds only the summary of an agent that has since been removed.
                if !agent.active {
                    agent = match self.load_row(RowKey::Agent(id)).await? {
                        Some(Row::Agent(whole)) => whole,
                        _ => return Err(Failure::Fault),
                    };
                }
                Answer::Agent { agent, state: agent_state, new: false, returned: false }
            }
            Receipt::Owner(id) => {
                let owner =
                    self.with_world(|world| world.owner(id).cloned()).ok_or(Failure::Fault)?;
                Answer::Account { owner, granted: Credits::ZERO }
            }
            Receipt::Job(id) => {
                let job = self.load_job(id).await?.ok_or(Failure::Fault)?;
                Answer::Job { job, repeated: true }
            }
            Receipt::Transfer(id) => match self.load_row(RowKey::Transfer(id)).await? {
                Some(Row::Transfer(transfer)) => Answer::Transfer { transfer, repeated: true },
                _ => return Err(Failure::Fault),
            },
        })
    }

    /// Reads the committed world. Keep the closure short: the lane waits for it before it
    /// publishes.
    pub fn with_world<R>(&self, at: impl FnOnce(&World) -> R) -> R {
        at(&self.inner.world.read())
    }

    /// What the lane has done since the hub started.
    pub fn lane_stats(&self) -> LaneStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LaneStats { commands: count(&self.inner.commands), rows: count(&self.inner.rows_changed) }
    }

    /// The hub's time.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The wall-clock time, for signed texts that other parties check against their own clocks.
    pub fn wall_time(&self) -> Timestamp {
        self.inner.clock.wall_time()
    }

    /// The source of fresh ids.
    pub fn random(&self) -> &dyn RandomSource {
        &*self.inner.random
    }

    /// The hub's own secret, from which others are derived.
    pub fn hub_secret(&self) -> &HubSecret {
        &self.inner.secret
    }

    /// Records that an agent was seen. Usually needs no write.
    pub fn record_seen(&self, agent: AgentId) {
        let now = self.now();
        let (on_probation, known) = self.with_world(|world| {
            let row = world.agent(agent);
            let on_probation = row.is_some_and(|agent| agent.probation.is_some());
            let is_called = row.is_some_and(|agent| agent.is_called_by_protocol());
            let presence = world.agent_state(agent).map(|agent_state| agent_state.presence);
            // What an agent that its protocol calls sends does not bring it back.
            let is_known = |one: &Presence| match one.unreachable {
                true => is_called,
                false => world.is_online(agent, now),
            };
            let present = presence.filter(is_known);
            (on_probation, present.map(|presence| presence.last_seen))
        });
        // The first time an agent is seen needs a write, because the end of its probation must be
        // durable.
        if on_probation && self.is_writable() {
            return self.spawn_return(agent);
        }
        if known.is_some_and(|seen| now.since(seen) < SEEN_MERGE_WINDOW) || !self.is_writable() {
            return;
        }
        // A queued job may be waiting for this agent. Assigning it takes a command.
        if known.is_none() && self.with_world(|world| world.has_jobs_to_dispatch(agent)) {
            return self.spawn_return(agent);
        }
        self.inner.last_seen.lock().insert(agent, now);
        if let Some(cluster) = self.inner.cluster.as_ref().filter(|_| known.is_none()) {
            cluster.has_urgent_notes.store(true, Ordering::Release);
        }
        // The lane applies this before it marks any agent offline, so the record is not too late.
        if known.is_none_or(|seen| now.since(seen) >= SEEN_WAKE_INTERVAL) {
            self.wake_lane();
        }
    }

    fn spawn_return(&self, agent: AgentId) {
        let engine = self.clone();
        tokio::spawn(async move { engine.run(Command::RecordActivity { agent }).await.ok() });
    }

    /// Records that a key was used, if the hub keeps a record of it and the use is news.
    pub fn record_key_use(&self, agent: AgentId, key: KeyId) {
        let now = self.now();
        let is_news = self.with_world(|world| {
            let known = world.agent_state(agent).and_then(|state| state.key_record(key));
            known.is_some_and(|known| key_limits::is_use_news(known, now))
        });
        if !is_news || !self.is_writable() {
            return;
        }
        let mut recent = self.inner.key_uses.lock();
        let is_on_its_way = |sent: &Timestamp| now.since(*sent) < key_limits::LAST_USE_STEP;
        if recent.get(&key).is_some_and(is_on_its_way) {
            return;
        }
        recent.retain(|_, sent| is_on_its_way(sent));
        recent.insert(key, now);
        let engine = self.clone();
        tokio::spawn(async move { engine.run(Command::RecordKeyUse { agent, key }).await.ok() });
    }

    /// Records how much of its inbox was presented to an agent's readers. Needs no write of its
    /// own. A crash may lose the record; then a notice is repeated, and none is lost.
    pub fn record_presented(&self, agent: AgentId, up_to: u64) {
        if self.with_world(|world| world.inbox(agent).presented) >= up_to {
            return;
        }
        let mut presented = self.inner.presented.lock();
        let known = presented.entry(agent).or_default();
        *known = up_to.max(*known);
    }

    /// The position up to which an agent's inbox was presented to readers or acknowledged.
    pub fn read_position(&self, agent: AgentId) -> u64 {
        let noted = self.inner.presented.lock().get(&agent).copied().unwrap_or(0);
        self.with_world(|world| world.inbox(agent).read_position()).max(noted)
    }

    /// Makes the lane check what is due, for clocks that are moved by hand.
    pub fn wake_lane(&self) {
        // With a full queue the lane is about to check anyway.
        let _ = self.lane.try_send(LaneMessage::Wake);
    }

    /// One stored row.
    pub async fn load_row(&self, key: RowKey) -> Result<Option<Row>, Failure> {
        if let Some(row) = self.inner.recent_rows.as_ref().and_then(|rows| rows.get(key)) {
            return Ok(row);
        }
        self.read_store(move |reader| reader.load(key)).await
    }

    /// Rows in the order they were written.
    pub async fn load_page(&self, page: PageQuery) -> Result<Vec<Row>, Failure> {
        self.read_store(move |reader| reader.load_page(page)).await
    }

    /// Reads the store beside the lane, on a thread that may block.
    pub async fn read_store<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, Failure> {
        let mut reader = self.inner.readers.acquire().await.ok_or(Failure::Unavailable)?;
        // If the caller goes away, the thread still finishes and returns its reader to the pool.
        let found = tokio::task::spawn_blocking(move || reader.read(work)).await;
        found.map_err(|_| Failure::Fault)?.map_err(|error| self.inner.record_store_error(&error))
    }

    /// Resolves when the agent's inbox or its assigned jobs change.
    pub fn subscribe_agent(&self, agent: AgentId) -> Arc<tokio::sync::Notify> {
        self.inner.notifier.subscribe_agent(agent)
    }

    /// Changes whenever a line is added to the history.
    pub fn subscribe_history(&self) -> watch::Receiver<u64> {
        self.inner.notifier.subscribe_history()
    }

    /// Changes whenever a delivery may be due.
    pub(crate) fn subscribe_deliveries(&self) -> watch::Receiver<u64> {
        self.inner.notifier.subscribe_deliveries()
    }

    /// The saved answer of a request, or `Err` if its key was used for another request.
    pub async fn saved_answer(
        &self,
        once: Idempotency,
    ) -> Result<Option<Result<(u16, String), ()>>, Failure> {
        let now = self.now();
        let Some(known) =
            self.with_world(|world| world.idempotency_entry(once.scope, now).cloned())
        else {
            return Ok(None);
        };
        if known.request != once.request {
            return Ok(Some(Err(())));
        }
        if known.receipt.is_some() {
            return Ok(None);
        }
        Ok(match self.load_row(RowKey::IdempotencyRecord(known.id)).await? {
            Some(Row::Memory(row)) => match &row.answer {
                SavedAnswer::Answer { status, body } => Some(Ok((*status, body.clone()))),
                SavedAnswer::Done(_) => None,
            },
            // It expired just now.
            _ => None,
        })
    }

    /// The idempotency record of a request, unless it has expired.
    pub async fn load_idempotency_record(
        &self,
        scope: Digest,
    ) -> Result<Option<Arc<IdempotencyRecord>>, Failure> {
        let now = self.now();
        let Some(id) =
            self.with_world(|world| world.idempotency_entry(scope, now).map(|known| known.id))
        else {
            return Ok(None);
        };
        Ok(match self.load_row(RowKey::IdempotencyRecord(id)).await? {
            Some(Row::Memory(row)) => Some(row),
            _ => None,
        })
    }

    /// Whether a request has an idempotency record.
    pub fn has_idempotency_record(&self, scope: Digest) -> bool {
        let now = self.now();
        self.with_world(|world| world.idempotency_entry(scope, now).is_some())
    }

    /// Whether one more answer may be saved for a caller.
    pub fn check_record_capacity(&self, principal: Principal) -> Result<(), Refusal> {
        let room = self.with_world(|world| idempotency::check_capacity(world, principal));
        if room.is_err() {
            // Expired records may still take space, because no command ran since they expired.
            self.wake_lane();
        }
        room
    }

    /// Whether the store has failed, and how; changes at most once.
    pub fn watch_store_failure(&self) -> watch::Receiver<Option<String>> {
        self.inner.store_failure.subscribe()
    }

    /// What was counted since the start.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Whether writes are possible.
    pub fn is_writable(&self) -> bool {
        !self.inner.has_failed() && !self.inner.stopping.load(Ordering::Acquire)
    }

    /// Stops the lane after the commands already queued.
    pub async fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        let _ = self.lane.send(LaneMessage::Stop).await;
    }
}

/// The answer to a first request, made from what is known of it later.
fn as_first_answer(mut answer: Answer) -> Answer {
    match &mut answer {
        Answer::Job { repeated, .. }
        | Answer::Transfer { repeated, .. }
        | Answer::Message { repeated, .. } => *repeated = false,
        _ => {}
    }
    answer
}

impl Inner {
    fn has_failed(&self) -> bool {
        self.store_failure.borrow().is_some()
    }

    /// Converts a store error into the caller's failure. Every error except a full disk is final:
    /// no further write is accepted, and all subscribers are notified.
    fn record_store_error(&self, error: &StoreError) -> Failure {
        if matches!(error, StoreError::Full) {
            return Failure::StoreFull;
        }
        if error.is_about_the_place() {
            tracing::warn!(%error, "the database could not be read");
            return Failure::Unavailable;
        }
        tracing::error!(%error, "store failed; no further writes are accepted");
        self.store_failure.send_if_modified(|broken| {
            let first = broken.is_none();
            broken.get_or_insert_with(|| error.to_string());
            first
        });
        Failure::Unavailable
    }
}
