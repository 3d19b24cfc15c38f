//! Starting: builds the world, the lane and the handle from a store.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rialto_core::id::{EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId};
use rialto_core::ledger::EntryHash;
use rialto_core::market::Markets;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use tokio::sync::{mpsc, watch};

#[cfg(any(test, feature = "testkit"))]
use super::LaneMessage;
use super::coordinator::{Coordinator, CoordinatorParts};
use super::hop_events::EngineEvents;
#[cfg(any(test, feature = "testkit"))]
use super::lane::DecidedCommand;
use super::lane::Lane;
use super::live_inboxes::LiveInboxes;
use super::log_thread::LogThread;
use super::member::Member;
use super::notifier::Notifier;
use super::reader_pool::ReaderPool;
use super::reporter::{Reporter, ReporterRequest};
use super::timers::{Timers, run_timer};
use super::{Engine, Inner, LANE_QUEUE_MAX};
use crate::clock::Clock;
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::Lease;
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::frame::Notes;
use crate::cluster::frame::{Hop, HopEvents};
use crate::cluster::hop::{HopOptions, TcpHop};
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::mistake::Mistake;
use crate::cluster::place_file::{PLACE_FILE, PlaceFile, keep_written};
use crate::cluster::state::{ClusterState, CoordinatorRequest, watch_staleness};
use crate::cluster::{NodeId, SharedLog};
use crate::metrics::Metrics;
use crate::random::RandomSource;
use crate::secret::HubSecret;
#[cfg(any(test, feature = "testkit"))]
use crate::store::log::{LoggedBatch, Place};
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
    /// How this node takes part in a cluster, for a store that several nodes share.
    pub cluster: Option<ClusterOptions>,
}

/// How a node takes part in a cluster.
pub struct ClusterOptions {
    /// Where it takes commands of other nodes.
    pub listen: SocketAddr,
    /// Where other nodes reach it, as host and port; the address it listens on if `None`.
    pub advertise: Option<String>,
    /// How long a writer may show no sign of life before another node takes over.
    pub lease: Duration,
    /// Identifies the hub, so that nodes of two hubs never talk to each other.
    pub hub: [u8; 16],
    /// The version of the program, for operators.
    pub version: String,
    /// The directory of the node, for its place in the log.
    pub dir: Option<PathBuf>,
}

/// What a node has besides its connections to others.
#[derive(Default)]
pub(crate) struct NodeParts {
    pub lease: Duration,
    pub version: String,
    /// The file of its place in the log, and the id of the hub.
    pub place_file: Option<(PathBuf, [u8; 16])>,
}

/// A running engine and its thread.
pub struct RunningEngine {
    pub engine: Engine,
    pub lane: JoinHandle<()>,
}

impl Engine {
    /// Reads the store and starts the lane. Needs a tokio runtime for its timer.
    pub fn start(mut setup: EngineParts) -> Result<RunningEngine, StoreError> {
        let Some(options) = setup.cluster.take() else {
            let (engine, lane, due) = assemble(setup, None)?;
            return run(engine, lane, due);
        };
        let ClusterOptions { listen, advertise, lease, hub, version, dir } = options;
        let secret = setup.secret.clone();
        let place_file = dir.map(|dir| (dir.join(PLACE_FILE), hub));
        let parts = NodeParts { lease, version, place_file };
        Self::start_node(setup, parts, move |node, events| {
            let options = HopOptions { listen, hub, node, secret: &secret };
            let (hop, bound) = TcpHop::start(options, events).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot listen for nodes on {listen}: {error}"),
                )
            })?;
            Ok((hop, advertise.unwrap_or_else(|| bound.to_string())))
        })
    }

    /// Starts a node that has no connections to others, and nothing that follows the log.
    #[cfg(feature = "testkit")]
    pub(super) fn start_in(
        setup: EngineParts,
        cluster: Arc<ClusterState>,
    ) -> Result<RunningEngine, StoreError> {
        let (engine, lane, due) = assemble(setup, Some(cluster))?;
        run(engine, lane, due)
    }

    /// Starts a node with its own kind of connections to the others.
    pub(crate) fn start_node(
        setup: EngineParts,
        parts: NodeParts,
        connect: impl FnOnce(NodeId, Arc<dyn HopEvents>) -> io::Result<(Arc<dyn Hop>, String)>,
    ) -> Result<RunningEngine, StoreError> {
        let node = JoiningNode::prepare(&setup, parts)?;
        let (engine, mut lane, due) = assemble(setup, Some(node.state.clone()))?;
        let threads = node.join(&engine, &mut lane, Box::new(connect))?;
        let started = run(engine, lane, due)?;
        if let Some(state) = &started.engine.inner.cluster {
            tokio::spawn(watch_staleness(Arc::downgrade(state)));
            if state.place_file.get().is_some() {
                let state = Arc::downgrade(state);
                // A thread of its own: nothing waits for the disk of the node.
                start_thread("place", move || keep_written(&state))?;
            }
        }
        let NodeThreads { coordinator, requests, reporter, reports } = threads;
        start_thread("coordinator", move || coordinator.run(&requests))?;
        start_thread("reporter", move || reporter.run(&reports))?;
        Ok(started)
    }
}

/// Starts the threads of an engine.
fn run(
    engine: Engine,
    mut lane: Lane,
    due: watch::Receiver<Option<Timestamp>>,
) -> Result<RunningEngine, StoreError> {
    lane.log_thread = Some(LogThread::start(lane.store.log(), engine.lane.downgrade())?);
    let lane = std::thread::Builder::new()
        .name("lane".to_owned())
        .spawn(move || run_lane(lane))
        .map_err(|error| StoreError::Failed(error.to_string()))?;
    tokio::spawn(run_timer(engine.lane.downgrade(), Arc::downgrade(&engine.inner), due));
    Ok(RunningEngine { engine, lane })
}

/// The handle, its lane, and when that lane must be woken.
type AssembledEngine = (Engine, Lane, watch::Receiver<Option<Timestamp>>);

/// Reads the store without starting anything.
pub(crate) fn assemble(
    setup: EngineParts,
    cluster: Option<Arc<ClusterState>>,
) -> Result<AssembledEngine, StoreError> {
    let EngineParts { mut store, rules, clock, random: ids, secret, markets, cluster: _ } = setup;
    let mut world = World::new(rules);
    world.markets = markets;
    store.load_world(&mut world)?;
    check_ledger_head(&world, &mut *store)?;
    check_newest_rows(&world, &mut *store)?;
    // A wall clock that was set back must not repeat times that are already stored.
    clock.advance_to(world.next.at);
    // A node has the time of the log until it joins the others.
    world.expire_online(if cluster.is_some() { world.next.at } else { clock.now() });
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
        key_uses: Mutex::default(),
        maintenance_due: AtomicBool::new(false),
        clock,
        random: ids,
        secret,
        store_failure: watch::Sender::new(None),
        stopping: AtomicBool::new(false),
        metrics: Metrics::new(store.sync_durations()),
        cluster,
        lane_events: Mutex::default(),
        hop: OnceLock::new(),
        call_handler: OnceLock::new(),
        commands: AtomicU64::new(0),
        rows_changed: AtomicU64::new(0),
    });
    let reported_to = Arc::downgrade(&inner);
    store.report_failures(Box::new(move |error| {
        if let Some(inner) = reported_to.upgrade() {
            inner.record_store_error(error);
        }
    }));
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
        member: None,
        is_idle: true,
        is_stopped: false,
        #[cfg(any(test, feature = "testkit"))]
        decided: None,
    };
    Ok((Engine { inner, lane: sender }, lane, due))
}

/// A node that is about to join a cluster.
struct JoiningNode {
    log: Box<dyn SharedLog>,
    report_log: Box<dyn SharedLog>,
    state: Arc<ClusterState>,
    requests: std::sync::mpsc::Receiver<CoordinatorRequest>,
    parts: NodeParts,
}

/// What runs beside the lane of a node, and what it is asked with.
struct NodeThreads {
    coordinator: Coordinator,
    requests: std::sync::mpsc::Receiver<CoordinatorRequest>,
    reporter: Reporter,
    reports: std::sync::mpsc::Receiver<ReporterRequest>,
}

/// Starts a thread that ends by itself.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| StoreError::Failed(error.to_string()))
}

/// Makes a node's connections to the others, given what is to be told of them. Returns them with the
/// address at which others reach this node.
type ConnectNode<'c> =
    dyn FnOnce(NodeId, Arc<dyn HopEvents>) -> io::Result<(Arc<dyn Hop>, String)> + 'c;

impl JoiningNode {
    /// Sets the clock by that of the database, which all nodes share.
    fn prepare(setup: &EngineParts, parts: NodeParts) -> Result<Self, StoreError> {
        let open_log = || {
            setup.store.open_shared_log()?.ok_or_else(|| {
                StoreError::Failed("only a PostgreSQL store can be shared by nodes".to_owned())
            })
        };
        let (mut log, report_log) = (open_log()?, open_log()?);
        setup.clock.set_to(log.database_time()?);
        let mut bytes = [0; 8];
        setup.random.fill_bytes(&mut bytes);
        // 63 bits, because the database has signed numbers; 0 stands for no node.
        let node = NodeId((u64::from_le_bytes(bytes) >> 1).max(1));
        let (sender, requests) = std::sync::mpsc::channel();
        let state = Arc::new(ClusterState::new(node, sender));
        Ok(Self { log, report_log, state, requests, parts })
    }

    /// Connects the lane with the other nodes, and returns what runs beside it.
    fn join(
        self,
        engine: &Engine,
        lane: &mut Lane,
        connect: Box<ConnectNode<'_>>,
    ) -> Result<NodeThreads, StoreError> {
        let Self { mut log, report_log, state, requests, parts } = self;
        let NodeParts { lease, version, place_file } = parts;
        let (place, epoch) = (lane.store.place(), lane.store.loaded_epoch());
        if let Some((path, hub)) = place_file {
            let hub_epoch = lane.world.next.epoch;
            let file = PlaceFile::open(path, hub, hub_epoch, place, &mut *log)?;
            let _ = state.place_file.set(file);
        }
        let events =
            EngineEvents { inner: Arc::downgrade(&engine.inner), lane: engine.lane.downgrade() };
        let (hop, address) = connect(state.node, Arc::new(events))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let _ = state.address.set(address);
        let _ = engine.inner.hop.set(hop.clone());
        lane.member = Some(Member::new(state.clone(), hop.clone(), place, epoch));
        let (inner, lane) = (engine.inner.clone(), engine.lane.downgrade());
        let reporter = Reporter::new(report_log, state.clone(), version);
        let (sender, reports) = std::sync::mpsc::channel();
        let parts = CoordinatorParts { log, inner, state, hop, lane, lease, reporter: sender };
        Ok(NodeThreads { coordinator: Coordinator::new(parts), requests, reporter, reports })
    }
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
        let (engine, lane, _) = assemble(setup, None)?;
        let wakes = engine.lane.downgrade();
        Ok((engine, Self { lane, log_thread: None, wakes }))
    }

    /// A node of a cluster. The caller looks at the log, and says when the node leads and what
    /// reaches it.
    pub fn start_node(
        setup: EngineParts,
        connect: impl FnOnce(NodeId, Arc<dyn HopEvents>) -> Arc<dyn Hop>,
    ) -> Result<(Engine, Self), StoreError> {
        let node = JoiningNode::prepare(&setup, NodeParts::default())?;
        let (engine, mut lane, _) = assemble(setup, Some(node.state.clone()))?;
        node.join(
            &engine,
            &mut lane,
            Box::new(|node, events| Ok((connect(node, events), String::new()))),
        )?;
        lane.decided = Some(Vec::new());
        let wakes = engine.lane.downgrade();
        Ok((engine, Self { lane, log_thread: None, wakes }))
    }

    /// Handles what happened outside the lane.
    pub fn handle_events(&mut self) {
        self.lane.handle_events();
    }

    /// Applies batches of the log.
    pub fn apply_batches(&mut self, batches: Vec<LoggedBatch>) {
        self.lane.apply_batches(batches);
        self.take_idle_thread();
    }

    /// Begins to write, with every batch of the log applied.
    pub fn lead(&mut self, lease: &Lease) -> Result<(), StoreError> {
        self.lane.lead(lease)
    }

    /// Commits what is decided, and follows from now on.
    pub fn resign(&mut self) {
        self.lane.resign();
        self.take_idle_thread();
    }

    /// The newest batch in both worlds.
    pub fn place(&self) -> Place {
        self.lane.place()
    }

    /// What a node decided in the batch that is open, if there is one.
    pub fn open_batch(&self) -> Option<&[DecidedCommand]> {
        self.lane.batch.as_ref()?;
        self.lane.decided.as_deref()
    }

    /// When the batch that is open was begun.
    pub fn open_batch_at(&self) -> Option<Timestamp> {
        self.lane.batch.as_ref().map(|batch| batch.now)
    }

    /// This node's number for the newest command of its callers.
    pub fn newest_number(&self) -> u64 {
        self.lane.newest_number()
    }

    /// What this node would tell the writer, which may be lost.
    pub fn take_notes(&self) -> Notes {
        self.lane.inner.take_notes()
    }

    /// Plants a mistake.
    pub fn plant(&self, mistake: Mistake) {
        if let Some(cluster) = &self.lane.inner.cluster {
            *cluster.mistake.lock() = Some(mistake);
        }
    }

    /// The time at which the next batch would be decided.
    pub fn now(&self) -> Timestamp {
        self.lane.now()
    }

    /// The world on which the next command is decided.
    pub fn working_world(&self) -> &World {
        &self.lane.world
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
