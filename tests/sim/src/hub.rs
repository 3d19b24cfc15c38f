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
use crate::model::{Expected, Model, markets};
use crate::store::{Fault, SimStore, Written};
use crate::view;

/// How a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// The disk is full.
    Full,
    /// The store fails, before or after it has written; the hub stops.
    Broken {
        written: bool,
    },
    /// The hub crashes after the write and before any reply.
    Unheard,
}

impl End {
    /// What the store does in this case.
    fn fault(self) -> Fault {
        match self {
            Self::Well | Self::Unheard => Fault::None,
            Self::Full => Fault::Full,
            Self::Broken { written: false } => Fault::LostBefore,
            Self::Broken { written: true } => Fault::LostAfter,
        }
    }

    /// Whether nothing of the batch may ever be visible.
    fn loses_all(self) -> bool {
        matches!(self, Self::Full | Self::Broken { written: false })
    }
}

/// The result of a batch.
pub struct Ended {
    pub outcomes: Vec<Outcome>,
    /// What was written; the same in the model and the engine.
    pub changes: Option<Changes>,
    /// Commands that were decided, and how many of them were timers or presented positions.
    pub decided: u64,
    pub fired: u64,
    pub handed: u64,
    pub crashed: bool,
}

type Running = Pin<Box<dyn Future<Output = Result<RunResult, Failure>>>>;

/// The engine, its lane, its store and its clock, and the model beside them.
pub struct Hub {
    pub model: Model,
    pub engine: Engine,
    lane: ManualLane,
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
            lane,
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

    /// The store writes what it has deferred.
    pub fn tend(&mut self) {
        self.store.catch_up();
    }

    /// The notices an agent's reader gets after a position.
    pub fn inbox(&self, agent: AgentId, after: u64, limit: usize) -> Vec<Notice> {
        let read = self.engine.load_notices(agent, after, limit);
        self.runtime.block_on(read).expect("what is written can be read")
    }

    /// Runs these as one batch, however it ends.
    pub fn turn(&mut self, asks: &[Ask], end: End) -> Ended {
        let now = self.now();
        let running: Vec<Running> = asks.iter().map(|ask| self.send(ask)).collect();
        self.store.arm(end.fault());
        let goes_on = self.lane.run_batch();
        let (written, fired) = self.store.outcome();
        // A batch that changes nothing is never written, so its write cannot fail.
        let end = if fired || end == End::Unheard { end } else { End::Well };
        assert_eq!(
            goes_on,
            !matches!(end, End::Broken { .. }),
            "only a broken store ends the lane"
        );
        let outcomes: Vec<Outcome> = match end {
            End::Unheard => asks.iter().map(|_| Outcome::Lost).collect(),
            _ => running.into_iter().zip(asks).map(|(one, ask)| self.answered(one, ask)).collect(),
        };
        let expected = match end.loses_all() {
            true => self.model.nothing(now),
            false => self.model.batch(asks, now),
        };
        is_written(written.as_ref(), &expected, end);
        for (at, outcome) in outcomes.iter().enumerate() {
            is_heard(outcome, expected.due.get(at), end);
        }
        let crashed = matches!(end, End::Broken { .. } | End::Unheard);
        if !crashed {
            self.is_shown(&expected.changes);
        }
        let decided = expected.decided();
        let Expected { changes, fired, handed, .. } = expected;
        let changes = written.map(|_| changes);
        Ended { outcomes, changes, decided, fired, handed, crashed }
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
        self.clock = ManualClock::at(wall);
        let (engine, lane) = start(&self.store, &self.clock, self.rules);
        (self.engine, self.lane) = (engine, lane);
        assert!(self.now() >= self.model.scene.world.next.at, "the hub's time went back");
        let rows = self.store.reopened().expect("it was just started from them");
        let before = self.model.reborn(&rows, self.now());
        view::is_remembered(&before, &self.model.scene.world);
        self.engine.with_world(|shown| view::is_what_is_committed(shown, &self.model.scene.world));
    }
}

/// Checks that exactly what was decided is written, all of it or nothing.
fn is_written(written: Option<&Written>, expected: &Expected, end: End) {
    let Some(written) = written else {
        let nothing = expected.changes == Changes::default() && expected.forgotten.is_empty();
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
        (End::Full, Outcome::Full, _) => {}
        (End::Broken { .. } | End::Unheard, Outcome::Lost, _) => {}
        (End::Well, outcome, Some(due)) => {
            assert!(outcome.is(due), "answered {outcome:?}, expected {due:?}");
        }
        (end, outcome, _) => panic!("{end:?}, but {outcome:?}"),
    }
}

fn start(store: &SimStore, clock: &Arc<ManualClock>, rules: Rules) -> (Engine, ManualLane) {
    let (store, clock) = (Box::new(store.clone()), clock.clone());
    let (ids, secret) = (SeededRandom::new(1), HubSecret::from_bytes([7; 32]));
    let setup = EngineParts { store, rules, clock, random: ids, secret, markets: markets() };
    ManualLane::start(setup).expect("what was written can be started from")
}
