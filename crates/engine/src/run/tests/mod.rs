//! The engine as a whole, over both stores, with a manual clock.

mod batches;
mod cluster;
mod faults;
mod history;
mod minutes;
mod money;
mod once;
mod posting;
mod probation;
mod quiet;
mod restart;
mod time;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rialto_core::answer::Answer;
use rialto_core::changes::{Batch, Changes, ExpiredRows};
use rialto_core::command::{Command, OpenJob, Registration};
use rialto_core::envelope::Envelope;
use rialto_core::id::{AgentId, JobId};
use rialto_core::time::Millis;
use rialto_core::world::Rules;

use super::{Engine, Failure, RunningEngine};
use crate::fixtures::market::markets;
use crate::fixtures::{START, agent_in, credits, job_in, open};
use crate::store::log::{LoggedBatch, Place};
use crate::store::memory::MemoryStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{BatchLog, Reader, Row, RowKey, Store, StoreError};
use crate::testkit::{ManualClock, start_engine, start_engine_with};

/// Longer than anything here should ever take.
const LONG: Duration = Duration::from_secs(20);

/// A running engine, its clock and its thread.
struct Hub {
    engine: Engine,
    clock: Arc<ManualClock>,
    lane: std::thread::JoinHandle<()>,
}

impl Hub {
    fn over(store: Box<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Self::under(Rules::default(), store, clock)
    }

    fn under(rules: Rules, store: Box<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let rules = Rules { welcome_grant: credits("10"), ..rules };
        Self::started(start_engine(store, rules, clock.clone()), clock)
    }

    /// A hub with a market.
    fn with_market(store: Box<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let rules = Rules { welcome_grant: credits("10"), ..Rules::default() };
        Self::started(start_engine_with(store, rules, clock.clone(), markets()), clock)
    }

    fn started(started: Result<RunningEngine, StoreError>, clock: Arc<ManualClock>) -> Self {
        let RunningEngine { engine, lane } = started.expect("the store can be read");
        Self { engine, clock, lane }
    }

    fn in_memory() -> Self {
        Self::over(Box::new(MemoryStore::default()), ManualClock::at(START))
    }

    fn on_disk(dir: &Path, clock: &Arc<ManualClock>) -> Self {
        let store = SqliteStore::open(dir).expect("no other process has it open");
        Self::over(Box::new(store), clock.clone())
    }

    async fn run(&self, command: impl Into<Envelope>) -> Result<Answer, Failure> {
        self.engine.run(command).await
    }

    async fn enrol(&self, order: Registration) -> AgentId {
        agent_in(&self.run(Command::Register(Box::new(order))).await.expect("a new name is free"))
    }

    async fn open(&self, order: OpenJob) -> JobId {
        job_in(&self.run(Command::OpenJob(Box::new(order))).await.expect("an agent accepts it"))
    }

    /// A job number `n`.
    fn ask(&self, n: u64, by: AgentId, skill: &str, budget: &str) -> OpenJob {
        open(n, by, skill, budget, self.engine.now())
    }

    /// An owner's available and held credits, as text.
    fn account(&self, owner: &str) -> (String, String) {
        self.engine.with_world(|world| {
            let owner = world.owner_by_name(owner).and_then(|id| world.owner(id));
            let owner = owner.expect("the owner exists");
            (owner.available.to_text(2), owner.held.to_text(2))
        })
    }

    /// Moves the clock and wakes the lane, until a condition holds.
    async fn after(&self, span: Millis, is_so: impl Fn(&Engine) -> bool) {
        self.clock.advance(span);
        self.until(is_so).await;
    }

    async fn until(&self, is_so: impl Fn(&Engine) -> bool) {
        let waiting = async {
            while !is_so(&self.engine) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.expect("the condition holds in time");
    }

    /// Stops the lane and waits for its end, so that the store is free again.
    async fn stop(self) {
        self.engine.stop().await;
        let joined = tokio::task::spawn_blocking(move || self.lane.join()).await;
        joined.expect("joining works").expect("the lane did not panic");
    }
}

/// What a test observes of a store and can do to it.
#[derive(Default)]
struct Probe {
    commits: AtomicU64,
    /// Expired answers that were removed, and how often maintenance was called.
    forgotten: AtomicU64,
    tended: AtomicU64,
    /// Errors the next commits return instead of writing; `None` lets one through.
    faults: Mutex<VecDeque<Option<StoreError>>>,
    closed: Mutex<bool>,
    opened: Condvar,
    held: AtomicBool,
    /// The error that maintenance returns.
    tending: Mutex<Option<StoreError>>,
    panics: AtomicBool,
}

impl Probe {
    fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Blocks all commits until `open`.
    fn close(&self) {
        *self.closed.lock() = true;
    }

    /// Waits until the lane is blocked in a commit.
    async fn held(&self) {
        let held = async {
            while !self.held.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LONG, held).await.expect("the lane has something to commit");
    }

    fn open(&self) {
        self.held.store(false, Ordering::SeqCst);
        *self.closed.lock() = false;
        self.opened.notify_all();
    }

    fn fail_with(&self, error: StoreError) {
        self.faults.lock().push_back(Some(error));
    }

    /// Lets one commit through before the next fault.
    fn pass(&self) {
        self.faults.lock().push_back(None);
    }
}

/// A store with a probe in it.
struct Probed {
    inner: Box<dyn Store>,
    probe: Arc<Probe>,
}

impl Probed {
    fn over(inner: impl Store + 'static) -> (Box<dyn Store>, Arc<Probe>) {
        let probe = Arc::new(Probe::default());
        (Box::new(Self { inner: Box::new(inner), probe: probe.clone() }), probe)
    }
}

impl Store for Probed {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        self.inner.load_hot_rows()
    }

    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        self.inner.take_tail()
    }

    fn make_room(&mut self) -> Result<(), StoreError> {
        self.inner.make_room()
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        Arc::new(Mutex::new(ProbedLog { inner: self.inner.log(), probe: self.probe.clone() }))
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.inner.publish(place, changes, expired);
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        self.inner.load(key)
    }

    fn run_maintenance(&mut self) -> Result<(), StoreError> {
        self.probe.tended.fetch_add(1, Ordering::SeqCst);
        self.probe.tending.lock().clone().map_or_else(|| self.inner.run_maintenance(), Err)
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.inner.open_reader()
    }
}

/// Its log.
struct ProbedLog {
    inner: Arc<Mutex<dyn BatchLog>>,
    probe: Arc<Probe>,
}

impl BatchLog for ProbedLog {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        {
            let mut closed = self.probe.closed.lock();
            self.probe.held.store(*closed, Ordering::SeqCst);
            self.probe.opened.wait_while(&mut closed, |closed| *closed);
        }
        self.probe.commits.fetch_add(1, Ordering::SeqCst);
        self.probe.forgotten.fetch_add(batch.expired.answers.len() as u64, Ordering::SeqCst);
        assert!(!self.probe.panics.load(Ordering::SeqCst), "as planned");
        match self.probe.faults.lock().pop_front().flatten() {
            Some(error) => Err(error),
            None => self.inner.lock().append(batch),
        }
    }
}

/// Runs these concurrently.
async fn together(
    engine: &Engine,
    commands: impl IntoIterator<Item = impl Into<Envelope>>,
) -> Vec<Result<Answer, Failure>> {
    let run = |command: Envelope| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(command).await })
    };
    let running: Vec<_> = commands.into_iter().map(Into::into).map(run).collect();
    let mut answers = Vec::new();
    for one in running {
        answers.push(one.await.expect("nothing panics"));
    }
    answers
}
