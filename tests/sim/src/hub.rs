//! The hub under test: the real engine with a manual lane, beside the model it must match.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rialto_core::changes::Changes;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::{Rules, World};
use rialto_engine::clock::Clock;
use rialto_engine::secret::HubSecret;
use rialto_engine::testkit::{ManualClock, SeededRandom};
use rialto_engine::{Engine, EngineParts, Failure, ManualLane, RunResult};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::ask::{Ask, Due, Outcome};
use crate::model::{Expected, Model, Presented, markets};
use crate::store::{Fault, SimStore, Written, WrittenPart};
use crate::view;

/// How a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// The disk is full.
    Full(WrittenPart),
    /// The append fails; the hub stops.
    Broken(WrittenPart),
    /// The hub crashes while the batch is in the log.
    Cut(WrittenPart),
    /// The hub crashes after the batch is published and before any reply.
    Unheard,
}

impl End {
    /// What the store does in this case.
    fn fault(self) -> Fault {
        match self {
            Self::Well | Self::Unheard => Fault::None,
            Self::Full(kept) => Fault::Full(kept),
            Self::Broken(kept) | Self::Cut(kept) => Fault::Failed(kept),
        }
    }

    /// Whether nothing of the batch may ever be visible.
    fn loses_all(self) -> bool {
        match self {
            Self::Well | Self::Unheard => false,
            Self::Full(_) => true,
            Self::Broken(kept) | Self::Cut(kept) => kept != WrittenPart::Whole,
        }
    }

    /// Whether the hub has to be started again.
    fn is_crash(self) -> bool {
        matches!(self, Self::Broken(_) | Self::Cut(_) | Self::Unheard)
    }
}

/// The result of a batch.
pub struct Ended {
    pub asks: Vec<Ask>,
    pub outcomes: Vec<Outcome>,
    /// What was written; the same in the model and the engine.
    pub changes: Option<Changes>,
    /// When it was decided.
    pub at: Timestamp,
    /// Commands that were decided, and how many of them were timers or presented positions.
    pub decided: u64,
    pub fired: u64,
    pub handed: u64,
    pub crashed: bool,
}

/// A batch that the lane has decided.
struct Decided {
    asks: Vec<Ask>,
    running: Vec<Running>,
    end: End,
    at: Timestamp,
    presented: Presented,
    /// What the model requires of it, once it is in the log.
    expected: Expected,
}

impl Decided {
    /// Panics if there is a reply before the batch is on disk.
    fn is_unanswered(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for (one, ask) in self.running.iter_mut().zip(&self.asks) {
            let is_pending = one.as_mut().poll(&mut context).is_pending();
            assert!(is_pending, "answered before it is on disk: {ask:?}");
        }
    }
}

/// What happens while a batch is in the log, and the commands that are decided on top of it.
pub type Later<'a> = &'a mut dyn FnMut(&mut Hub, &[Ask]) -> Vec<Ask>;

type Running = Pin<Box<dyn Future<Output = Result<RunResult, Failure>>>>;

/// The engine, its lane, its store and its clock, and the model beside them.
pub struct Hub {
    pub model: Model,
    pub engine: Engine,
    /// None after a crash.
    lane: Option<ManualLane>,
    store: SimStore,
    clock: Arc<ManualClock>,
    runtime: Arc<Runtime>,
    rules: Rules,
    turns: u64,
}

/// Every this many batches everything is compared, not only what was written.
const ALL_LOOKED_AT: u64 = 16;
/// Longer than any machine takes to read one row from memory.
const READ_WITHIN: Duration = Duration::from_secs(60);

impl Hub {
    pub fn new(rules: Rules, dawn: Timestamp, runtime: Arc<Runtime>) -> Self {
        let (store, clock) = (SimStore::default(), ManualClock::at(dawn));
        let (engine, lane) = start(&store, &clock, rules);
        Self {
            model: Model::new(rules, dawn),
            engine,
            lane: Some(lane),
            store,
            clock,
            runtime,
            rules,
            turns: 0,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn world(&self) -> &World {
        &self.model.scene.world
    }

    /// The rows, to look one up directly.
    pub fn store(&mut self) -> &mut SimStore {
        &mut self.store
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Millis) {
        self.clock.advance(span);
    }

    /// Records that an agent was seen, which is not stored.
    pub fn seen(&mut self, agent: AgentId) {
        self.engine.record_seen(agent);
        self.model.seen(agent, self.now());
    }

    /// Records how much of an agent's inbox was presented.
    pub fn presented(&mut self, agent: AgentId, up_to: u64) {
        self.engine.record_presented(agent, up_to);
        self.model.presented(agent, up_to);
    }

    /// The store begins a checkpoint, or ends it.
    pub fn checkpoint(&mut self) {
        self.store.checkpoint();
    }

    /// The notices an agent's reader gets after a position.
    pub fn inbox(&self, agent: AgentId, after: u64, limit: usize) -> Vec<Notice> {
        let read = self.engine.load_notices(agent, after, limit);
        self.runtime.block_on(read).expect("what is written can be read")
    }

    /// Runs these as one batch, however it ends.
    pub fn turn(&mut self, asks: Vec<Ask>, end: End) -> Ended {
        let batch = self.decide(asks, end);
        self.lane().append_batch();
        self.appended(batch)
    }

    /// Runs a batch with each of these ends, and decides each while the one before is in the log.
    /// The first crash is the last batch.
    pub fn turns(&mut self, first: Vec<Ask>, ends: &[End], later: Later) -> Vec<Ended> {
        let (mut all, mut logged) = (Vec::new(), None::<Decided>);
        let mut asks = first;
        for (at, end) in ends.iter().enumerate() {
            if at > 0 {
                asks = later(self, &asks);
            }
            let batch = self.decide(asks.clone(), *end);
            logged = match logged.take() {
                Some(earlier) => self.finish(earlier, Some(batch), &mut all),
                None => self.begin(batch, &mut all),
            };
            if all.last().is_some_and(|ended| ended.crashed) {
                return all;
            }
        }
        if let Some(last) = logged {
            self.finish(last, None, &mut all);
        }
        all
    }

    fn lane(&mut self) -> &mut ManualLane {
        self.lane.as_mut().expect("the hub is running")
    }

    /// Lets the lane decide a batch.
    fn decide(&mut self, asks: Vec<Ask>, end: End) -> Decided {
        let running = asks.iter().map(|ask| self.send(ask)).collect();
        self.store.arm(end.fault());
        self.lane().decide_batch();
        let (at, presented) = (self.now(), self.model.noted());
        Decided { asks, running, end, at, presented, expected: Expected::default() }
    }

    /// Appends a batch when none is in the log. Returns it if it is in the log now.
    fn begin(&mut self, batch: Decided, all: &mut Vec<Ended>) -> Option<Decided> {
        self.lane().begin_append().expect("a thread can be started");
        if self.lane().is_appending() {
            return Some(self.logged(batch));
        }
        all.push(self.appended(batch));
        None
    }

    /// A batch is in the log: unless it will be lost, the model decides it too.
    fn logged(&mut self, mut batch: Decided) -> Decided {
        if !batch.end.loses_all() {
            batch.expected = self.model.logged(&batch.asks, &batch.presented, batch.at);
        }
        batch
    }

    /// Ends the batch in the log, with what was decided on top of it. Returns that batch if it is in
    /// the log now.
    fn finish(
        &mut self,
        mut batch: Decided,
        mut next: Option<Decided>,
        all: &mut Vec<Ended>,
    ) -> Option<Decided> {
        batch.is_unanswered();
        next.iter_mut().for_each(Decided::is_unanswered);
        self.engine.with_world(|shown| {
            assert_eq!(shown.next, self.model.shown().next, "shown before it is on disk");
        });
        match batch.end {
            End::Cut(_) => self.lane = None,
            _ => self.lane().finish_append(),
        }
        let end = batch.end;
        let append = self.store.take_append().expect("a batch in the log is appended");
        assert_eq!(append.has_failed, !matches!(end, End::Well | End::Unheard));
        if end.loses_all() {
            batch.expected = self.model.nothing(self.now());
        } else {
            self.model.publish(&batch.presented);
        }
        all.push(self.ended(batch, append.written));
        match (end, next?) {
            // What was decided on top of a batch that failed goes with it.
            (End::Full(_) | End::Broken(_) | End::Cut(_), mut next) => {
                assert!(self.store.take_append().is_none(), "appended after a batch that failed");
                self.store.disarm();
                next.end = end;
                all.push(self.ended(next, None));
                None
            }
            (End::Unheard, mut next) => {
                // The log has it already, or it is lost.
                self.lane = None;
                let written = self.store.take_append().and_then(|append| append.written);
                if written.is_some() {
                    next.expected = self.model.batch(&next.asks, &next.presented, next.at);
                }
                next.end = End::Cut(if written.is_some() {
                    WrittenPart::Whole
                } else {
                    WrittenPart::Nothing
                });
                all.push(self.ended(next, written));
                None
            }
            (End::Well, next) if self.lane().is_appending() => Some(self.logged(next)),
            (End::Well, next) => self.begin(next, all),
        }
    }

    /// The result of a batch that the lane has appended itself, or that needed no record.
    fn appended(&mut self, mut batch: Decided) -> Ended {
        self.store.disarm();
        let append = self.store.take_append();
        // A batch that changes nothing is never appended, so that cannot fail.
        if !append.as_ref().is_some_and(|append| append.has_failed) && batch.end != End::Unheard {
            batch.end = End::Well;
        }
        if batch.end.loses_all() {
            batch.expected = self.model.nothing(batch.at);
        } else {
            batch.expected = self.model.batch(&batch.asks, &batch.presented, batch.at);
            self.model.publish(&batch.presented);
        }
        self.ended(batch, append.and_then(|append| append.written))
    }

    /// Checks what a batch wrote, answered and shows.
    fn ended(&mut self, batch: Decided, written: Option<Written>) -> Ended {
        let Decided { asks, running, end, at, expected, .. } = batch;
        let goes_on = self.lane.as_ref().is_some_and(ManualLane::goes_on);
        let stops = matches!(end, End::Broken(_) | End::Cut(_));
        assert_eq!(goes_on, !stops, "only a broken store ends the lane");
        let outcomes: Vec<Outcome> = match end {
            End::Unheard => asks.iter().map(|_| Outcome::Lost).collect(),
            End::Well => {
                running.into_iter().zip(&asks).map(|(one, ask)| self.answered(one, ask)).collect()
            }
            _ => running.into_iter().zip(&asks).map(|(one, ask)| failed(one, ask)).collect(),
        };
        is_written(written.as_ref(), &expected, end);
        for (at, outcome) in outcomes.iter().enumerate() {
            is_heard(outcome, expected.due.get(at), end);
        }
        if !end.is_crash() {
            self.is_shown(&expected.changes);
        }
        let decided = expected.decided();
        let Expected { changes, fired, handed, .. } = expected;
        let changes = written.map(|_| changes);
        Ended { asks, outcomes, changes, at, decided, fired, handed, crashed: end.is_crash() }
    }

    /// The outcome of a command. The lane has run, so a command without a reply would wait forever;
    /// only a replay may still have to read the store.
    fn answered(&self, mut running: Running, ask: &Ask) -> Outcome {
        let _inside = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(ran) = running.as_mut().poll(&mut context) {
            return Outcome::of(ran);
        }
        assert!(ask.0.idempotency.is_some(), "no reply to {ask:?}");
        let read = self.runtime.block_on(async { timeout(READ_WITHIN, running).await });
        Outcome::of(read.unwrap_or_else(|_| panic!("no replay of {ask:?}")))
    }

    /// Checks that readers see what is committed.
    fn is_shown(&mut self, changes: &Changes) {
        self.turns += 1;
        let (model, all) = (&self.model.scene.world, self.turns.is_multiple_of(ALL_LOOKED_AT));
        self.engine.with_world(|shown| match all {
            true => view::is_what_is_committed(shown, model),
            false => view::has_what_was_committed(shown, model, changes),
        });
    }

    fn send(&self, ask: &Ask) -> Running {
        let (engine, Ask(envelope)) = (self.engine.clone(), ask.clone());
        let mut running: Running = Box::pin(async move { engine.run_envelope(envelope).await });
        let mut context = Context::from_waker(Waker::noop());
        assert!(running.as_mut().poll(&mut context).is_pending(), "answered before it ran");
        running
    }

    /// The hub crashes and is started again, with the wall clock at this time.
    pub fn restart(&mut self, wall: Timestamp) {
        // The old lane ends first, and with it the thread that appends.
        self.lane = None;
        self.clock = ManualClock::at(wall);
        let (engine, lane) = start(&self.store, &self.clock, self.rules);
        (self.engine, self.lane) = (engine, Some(lane));
        assert!(self.now() >= self.model.scene.world.next.at, "the hub's time went back");
        let read = self.store.reopened().expect("it was just started from it");
        let before = self.model.reborn(&read, self.now());
        view::is_remembered(&before, &self.model.scene.world);
        self.engine.with_world(|shown| view::is_what_is_committed(shown, &self.model.scene.world));
    }
}

/// The outcome of a command whose batch has failed: there is one at once.
fn failed(mut running: Running, ask: &Ask) -> Outcome {
    match running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ran) => Outcome::of(ran),
        Poll::Pending => panic!("the batch has failed, and there is no reply to {ask:?}"),
    }
}

/// Checks that exactly what was decided is written, all of it or nothing.
fn is_written(written: Option<&Written>, expected: &Expected, end: End) {
    let Some(written) = written else {
        // Positions that were only presented need no record.
        let nothing = expected.changes.is_empty() && expected.forgotten.is_empty();
        assert!(nothing, "decided, but not written");
        return;
    };
    assert!(!end.loses_all(), "written, although reported as lost");
    let differs = written.differs(&expected.changes, &expected.forgotten).join("\n");
    assert!(differs.is_empty(), "what is written is not what was decided\n{differs}");
}

/// Checks that a reply is sent if and only if the batch is written.
fn is_heard(outcome: &Outcome, due: Option<&Due>, end: End) {
    match (end, outcome, due) {
        (End::Full(_), Outcome::Full, _) => {}
        (End::Broken(_) | End::Cut(_) | End::Unheard, Outcome::Lost, _) => {}
        (End::Well, outcome, Some(due)) => {
            assert!(outcome.is(due), "answered {outcome:?}, expected {due:?}");
        }
        (end, outcome, _) => panic!("{end:?}, but {outcome:?}"),
    }
}

fn start(store: &SimStore, clock: &Arc<ManualClock>, rules: Rules) -> (Engine, ManualLane) {
    let (store, clock) = (Box::new(store.clone()), clock.clone());
    let (ids, secret) = (SeededRandom::new(1), HubSecret::from_bytes([7; 32]));
    let setup =
        EngineParts { store, rules, clock, random: ids, secret, markets: markets(), cluster: None };
    ManualLane::start(setup).expect("what was written can be started from")
}
