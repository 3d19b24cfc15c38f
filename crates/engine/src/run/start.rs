//! Starting: builds the world, the lane and the handle from a store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};
use rialto_core::id::{EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId};
use rialto_core::ledger::EntryHash;
use rialto_core::market::Markets;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use tokio::sync::{mpsc, watch};

#[cfg(any(test, feature = "testkit"))]
use super::LaneMessage;
use super::lane::Lane;
use super::live_inboxes::LiveInboxes;
use super::log_thread::LogThread;
use super::notifier::Notifier;
use super::reader_pool::ReaderPool;
use super::timers::{Timers, run_timer};
use super::{Engine, Inner, LANE_QUEUE_MAX};
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::random::RandomSource;
use crate::secret::HubSecret;
use crate::store::{Row, RowKey, Store, StoreError};

/// Connections that read beside the lane.
const READERS: usize = 4;

/// What an engine is made of.
pub struct EngineParts {
    pub store: Box<dyn Store>,
    pub rules: Rules,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
    pub secret: HubSecret,
    /// The protocol that publishes market records, if one is enabled.
    pub markets: Markets,
}

/// A running engine and its thread.
pub struct RunningEngine {
    pub engine: Engine,
    pub lane: JoinHandle<()>,
}

impl Engine {
    /// Reads the store and starts the lane. Needs a tokio runtime for its timer.
    pub fn start(setup: EngineParts) -> Result<RunningEngine, StoreError> {
        let (engine, mut lane, due) = assemble(setup)?;
        lane.log_thread = Some(LogThread::start(lane.store.log(), engine.lane.downgrade())?);
        let lane = std::thread::Builder::new()
            .name("lane".to_owned())
            .spawn(move || run_lane(lane))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        tokio::spawn(run_timer(engine.lane.downgrade(), Arc::downgrade(&engine.inner), due));
        Ok(RunningEngine { engine, lane })
    }
}

/// The handle, its lane, and when that lane must be woken.
type AssembledEngine = (Engine, Lane, watch::Receiver<Option<Timestamp>>);

/// Reads the store without starting anything.
pub(crate) fn assemble(setup: EngineParts) -> Result<AssembledEngine, StoreError> {
    let EngineParts { mut store, rules, clock, random: ids, secret, markets } = setup;
    let mut world = World::new(rules);
    world.markets = markets;
    store.load_world(&mut world)?;
    check_ledger_head(&world, &mut *store)?;
    check_newest_rows(&world, &mut *store)?;
    // A wall clock that was set back must not repeat times that are already stored.
    clock.advance_to(world.next.at);
    world.expire_online(clock.now());
    let readers: Result<Vec<_>, _> = (0..READERS).map(|_| store.open_reader()).collect();
    let inner = Arc::new(Inner {
        world: RwLock::new(world.clone()),
        readers: ReaderPool::new(readers?),
        recent_rows: store.recent_rows(),
        notifier: Notifier::new(EventId(world.next.event.0.saturating_sub(1))),
        live_inboxes: LiveInboxes::default(),
        watchers: Default::default(),
        seek_points: Mutex::default(),
        presented: Mutex::default(),
        last_seen: Mutex::default(),
        maintenance_due: AtomicBool::new(false),
        clock,
        random: ids,
        secret,
        store_failure: watch::Sender::new(None),
        stopping: AtomicBool::new(false),
        metrics: Metrics::new(store.sync_durations()),
        commands: AtomicU64::new(0),
        rows_changed: AtomicU64::new(0),
    });
    let timers = Timers::default();
    let (sender, queue) = mpsc::channel(LANE_QUEUE_MAX);
    let (next_due, due) = watch::channel(timers.next_wakeup(&world));
    let lane = Lane {
        world,
        store,
        queue,
        inner: inner.clone(),
        next_due,
        timers,
        log_thread: None,
        batch: None,
        is_idle: true,
        is_stopped: false,
    };
    Ok((Engine { inner, lane: sender }, lane, due))
}

/// Each rule catches its own panics. A panic elsewhere in the lane is a bug and stops the hub.
fn run_lane(lane: Lane) {
    let inner = lane.inner.clone();
    if catch_unwind(AssertUnwindSafe(|| lane.run())).is_err() {
        inner.record_store_error(&StoreError::Failed("the lane panicked".to_owned()));
    }
}

/// The two ledger checks that cost nothing: the end of the hash chain, and that the balances sum to
/// zero. `audit` does the rest.
fn check_ledger_head(world: &World, store: &mut dyn Store) -> Result<(), StoreError> {
    let newest = EntryId(world.next.entry.0.saturating_sub(1));
    let head = match store.load(RowKey::Entry(newest))? {
        Some(Row::Entry(entry)) => entry.hash,
        _ if newest == EntryId(0) => EntryHash::default(),
        _ => return Err(StoreError::Corrupt(format!("ledger entry {newest} is missing"))),
    };
    if head != world.next.chain {
        return Err(StoreError::Corrupt(format!(
            "ledger entry {newest} does not match the hash chain"
        )));
    }
    let pockets = world.owners().flat_map(|owner| [owner.available, owner.held]);
    let sum: i128 = pockets.map(|credits| i128::from(credits.micros())).sum();
    if sum != 0 {
        return Err(StoreError::Corrupt(format!("the sum of all balances is {sum}, expected 0")));
    }
    Ok(())
}

/// Rows outside the world are looked up on demand, and a row that is not found counts as never
/// written. So at least the newest row of each table must exist.
fn check_newest_rows(world: &World, store: &mut dyn Store) -> Result<(), StoreError> {
    let next = &world.next;
    let newest = [
        (next.job.0, RowKey::Job(JobId(next.job.0.saturating_sub(1)))),
        (next.transfer.0, RowKey::Transfer(TransferId(next.transfer.0.saturating_sub(1)))),
        (next.notice.0, RowKey::Notice(NoticeId(next.notice.0.saturating_sub(1)))),
        (next.outcome.0, RowKey::Outcome(OutcomeId(next.outcome.0.saturating_sub(1)))),
        (
            next.market_record.0,
            RowKey::MarketRecord(PostingId(next.market_record.0.saturating_sub(1))),
        ),
    ];
    for (_, key) in newest.into_iter().filter(|(next, _)| *next > 1) {
        if store.load(key)?.is_none() {
            return Err(StoreError::Corrupt(format!("{key:?} is missing")));
        }
    }
    Ok(())
}

/// A lane without its thread, for simulations: the caller decides when a batch runs, and so which
/// command is first, which commands share a batch, and what is decided while a batch is in the log.
/// Dropping it simulates a crash: pending commands get no answer.
#[cfg(any(test, feature = "testkit"))]
pub struct ManualLane {
    lane: Lane,
    /// Started when a batch is first appended beside the lane.
    log_thread: Option<LogThread>,
    wakes: mpsc::WeakSender<LaneMessage>,
}

#[cfg(any(test, feature = "testkit"))]
impl ManualLane {
    /// Reads the store, as `Engine::start` does, and runs nothing.
    pub fn start(setup: EngineParts) -> Result<(Engine, Self), StoreError> {
        let (engine, lane, _) = assemble(setup)?;
        let wakes = engine.lane.downgrade();
        Ok((engine, Self { lane, log_thread: None, wakes }))
    }

    /// Fires what is due and runs the whole queue as one batch. False once the lane has ended.
    pub fn run_batch(&mut self) -> bool {
        self.decide_batch();
        self.append_batch();
        self.goes_on()
    }

    /// Fires what is due and decides the whole queue as one batch, on top of the one in the log.
    pub fn decide_batch(&mut self) {
        self.lane.decide_queue();
    }

    /// Appends the decided batch, and publishes it or fails.
    pub fn append_batch(&mut self) {
        self.lane.append_batch();
    }

    /// Begins to append the decided batch. The log thread gets it if the lane would give it to that
    /// thread; otherwise it is published, or has failed, on return.
    pub fn begin_append(&mut self) -> Result<(), StoreError> {
        let log_thread = match self.log_thread.take() {
            Some(log_thread) => log_thread,
            None => LogThread::start(self.lane.store.log(), self.wakes.clone())?,
        };
        self.lane.log_thread = Some(log_thread);
        self.lane.append_batch();
        self.take_idle_thread();
        Ok(())
    }

    /// Waits for the batch in the log, ends it as the lane does, and gives the log what was decided
    /// on top of it.
    pub fn finish_append(&mut self) {
        self.lane.finish_append();
        self.take_idle_thread();
    }

    /// Whether a batch is in the log and its end is not known yet.
    pub fn is_appending(&self) -> bool {
        self.lane.is_appending()
    }

    /// False once the lane has ended.
    pub fn goes_on(&self) -> bool {
        !self.lane.is_stopped
    }

    /// Without its thread the lane appends by itself.
    fn take_idle_thread(&mut self) {
        if !self.lane.is_appending() {
            self.log_thread = self.lane.log_thread.take();
        }
    }
}
