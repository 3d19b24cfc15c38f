//! The model: what the hub must do, one command at a time, without an engine.
//!
//! It is the core's own test hub, so every command is checked against all invariants. What the
//! engine answers, commits and shows is compared with it, whatever shared a batch and whatever
//! crashed.

use std::collections::BTreeMap;
use std::sync::Arc;

use rialto_core::answer::Answer;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::command::{Command, Timer};
use rialto_core::envelope::Envelope;
use rialto_core::id::AgentId;
use rialto_core::idempotency::{Receipt, SavedAnswer, check_capacity};
use rialto_core::market::Markets;
use rialto_core::refusal::Refusal;
use rialto_core::testkit::TestHub;
use rialto_core::testkit::invariants::PaymentProtocol;
use rialto_core::testkit::market::PlainRecorder;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::{Rules, World};
use rialto_core::{decide, missing_rows};
use rialto_engine::DecidedCommand;
use rialto_engine::store::log::LoggedBatch;

use crate::ask::{Ask, Due};
use crate::cast::{CLARA, REGISTRY};
use crate::mail::Mail;
use crate::memory::Memory;
use crate::rights::Right;
use crate::store::Reopened;

/// Timers fired in one batch, defined again here on purpose.
const TIMERS_A_BATCH: usize = 256;
/// How long timers wait after a full disk, defined again here on purpose.
const PAUSE: Millis = Millis::seconds(1);
/// Expired answers, and keys, removed in one batch, defined again here on purpose.
const FORGOTTEN_A_BATCH: usize = 2_048;
/// Agents seen again within this time are not recorded, defined again here on purpose.
const SIGNS_TOGETHER: Millis = Millis(100);
/// More rounds than any chain of references has.
const LOAD_ROUNDS: usize = 4;

/// How far the inboxes of agents were presented.
pub type Presented = BTreeMap<AgentId, u64>;

/// The required result of one batch.
#[derive(Default)]
pub struct Expected {
    pub changes: Changes,
    pub forgotten: ExpiredRows,
    pub due: Vec<Due>,
    /// Commands without a caller: timers, and presented positions.
    pub fired: u64,
    pub handed: u64,
}

impl Expected {
    /// Commands that were decided.
    pub fn decided(&self) -> u64 {
        self.fired + self.handed + self.due.len() as u64
    }
}

/// What the model says of one command that a lane has decided.
pub struct ModelDecision {
    /// `None` for what no caller asked for.
    pub due: Option<Due>,
    pub has_effect: bool,
}

/// What the hub must do.
pub struct Model {
    pub scene: TestHub,
    signs: BTreeMap<AgentId, Timestamp>,
    presented: Presented,
    /// How far each inbox was presented by batches that have a record.
    recorded: Presented,
    /// What readers see while the newest batch is in the log.
    shown: Option<World>,
    paused_until: Option<Timestamp>,
    mail: Mail,
    memory: Memory,
}

/// The markets of every simulated hub.
pub fn markets() -> Markets {
    Markets::from([(CLARA, Arc::new(PlainRecorder) as _)])
}

impl Model {
    pub fn new(rules: Rules, now: Timestamp) -> Self {
        let mut scene = TestHub::with_market(rules, CLARA);
        scene.invariants.payment_protocol = PaymentProtocol(REGISTRY);
        scene.now = now;
        Self {
            scene,
            signs: BTreeMap::new(),
            presented: BTreeMap::new(),
            recorded: BTreeMap::new(),
            shown: None,
            paused_until: None,
            mail: Mail::default(),
            memory: Memory::default(),
        }
    }

    /// What readers see.
    pub fn shown(&self) -> &World {
        self.shown.as_ref().unwrap_or(&self.scene.world)
    }

    /// An agent was seen.
    pub fn seen(&mut self, agent: AgentId, now: Timestamp) {
        let world = self.shown();
        let presence = world.agent_state(agent).map(|agent_state| agent_state.presence);
        // What an agent that its protocol calls sends does not bring it back.
        let is_called = world.agent(agent).is_some_and(|agent| agent.is_called_by_protocol());
        let known = presence.filter(|one| match one.unreachable {
            true => is_called,
            false => world.is_online(agent, now),
        });
        if known.is_none_or(|one| now.since(one.last_seen) >= SIGNS_TOGETHER) {
            self.signs.insert(agent, now);
        }
    }

    /// Part of an agent's inbox was presented to its reader.
    pub fn presented(&mut self, agent: AgentId, up_to: u64) {
        if self.shown().inbox(agent).presented < up_to {
            let known = self.presented.entry(agent).or_default();
            *known = up_to.max(*known);
        }
    }

    /// What the lane applies before anything else.
    fn begin(&mut self, now: Timestamp) {
        self.scene.now = now;
        for (agent, at) in std::mem::take(&mut self.signs) {
            self.scene.world.record_activity(agent, at);
        }
        self.scene.world.expire_online(now);
    }

    /// Batches that could not be written: only time has passed.
    pub fn nothing(&mut self, now: Timestamp) -> Expected {
        self.begin(now);
        self.paused_until = Some(now.plus(PAUSE));
        Expected::default()
    }

    /// The required result of a batch that is in the log. Readers do not see it yet.
    pub fn logged(&mut self, asks: &[Ask], presented: &Presented, now: Timestamp) -> Expected {
        self.shown = Some(self.scene.world.clone());
        self.batch(asks, presented, now)
    }

    /// The positions that a batch takes if it is decided now. They stay noted until it is published.
    pub fn noted(&self) -> Presented {
        self.presented.clone()
    }

    /// Readers see the batch with these positions.
    pub fn publish(&mut self, presented: &Presented) {
        self.shown = None;
        // A later position waits for the next batch.
        self.presented.retain(|agent, up_to| presented.get(agent) != Some(up_to));
    }

    /// The required result of a batch that is written.
    pub fn batch(&mut self, asks: &[Ask], presented: &Presented, now: Timestamp) -> Expected {
        self.begin(now);
        let mut expected = Expected::default();
        if self.paused_until.is_none_or(|until| now >= until) {
            self.paused_until = None;
            let due: Vec<Timer> = self.scene.world.due_timers(now).take(TIMERS_A_BATCH).collect();
            for timer in due {
                let fired = self.decided(Command::FireTimer(timer));
                expected.changes.merge(fired.expect("timers are never refused").0);
                let still = self.scene.world.due_timers(now).any(|due| due == timer);
                assert!(!still, "{timer:?} was due, but had no effect");
                expected.fired += 1;
            }
        }
        for (agent, up_to) in presented.clone() {
            if let Ok((changes, _)) = self.decided(Command::MarkPresented { agent, up_to }) {
                expected.changes.merge(changes);
            }
            expected.handed += 1;
        }
        for ask in asks {
            let due = self.one(ask, now, &mut expected);
            expected.due.push(due);
        }
        expected.forgotten = self.scene.world.expired_rows(now, FORGOTTEN_A_BATCH);
        self.scene.world.remove_expired(&expected.forgotten);
        self.scene.world.expire_online(now);
        if !expected.changes.is_empty() || !expected.forgotten.is_empty() {
            let inboxes = expected.changes.inboxes.iter();
            self.recorded.extend(inboxes.map(|(agent, inbox)| (*agent, inbox.presented)));
        }
        expected
    }

    /// Decides one command, and checks it against the records kept beside the hub.
    fn decided(&mut self, envelope: impl Into<Envelope>) -> Result<(Changes, Answer), Refusal> {
        let envelope = envelope.into();
        let decided = self.scene.run_with_changes(envelope.clone());
        self.mail.check(&envelope.command, &decided, &self.scene);
        if let (Command::SaveAnswer(order), Ok(_)) = (envelope.command, &decided) {
            self.memory.keep(*order, self.scene.now);
        }
        decided
    }

    fn one(&mut self, ask: &Ask, now: Timestamp, expected: &mut Expected) -> Due {
        let once = ask.0.idempotency;
        if let Some(due) = once.and_then(|once| self.memory.due(once, now)) {
            return due;
        }
        let room = once.map_or(Ok(()), |once| check_capacity(&self.scene.world, once.principal));
        if let Err(refusal) = room {
            return Due::Refused(refusal);
        }
        let right = Right::of(&self.scene, &ask.0);
        let (receipt, due) = match self.decided(ask.0.clone()) {
            Ok((changes, answer)) => {
                right.is_kept(&self.scene, &changes, &answer);
                expected.changes.merge(changes);
                (answer.receipt(), Due::Now(answer))
            }
            Err(refusal) => (Receipt::Refused(refusal.clone()), Due::Refused(refusal)),
        };
        let curable = matches!(&due, Due::Refused(refusal) if refusal.may_succeed_later());
        if let Some(once) = once.filter(|_| !curable) {
            let note = once.save(SavedAnswer::Done(receipt));
            let noted = self.decided(note).expect("idempotency records are never refused");
            expected.changes.merge(noted.0);
        }
        due
    }

    /// The required result of a batch of a cluster, whose writer decided these commands.
    pub fn decide_again(
        &mut self,
        commands: &[DecidedCommand],
        last_seen: &[(AgentId, Timestamp)],
        now: Timestamp,
    ) -> (Expected, Vec<ModelDecision>) {
        self.signs.extend(last_seen.iter().copied());
        self.begin(now);
        let (mut expected, mut all) = (Expected::default(), Vec::new());
        for DecidedCommand { envelope, asked_by, .. } in commands {
            let mut one = Expected::default();
            let due = match (asked_by, &envelope.command) {
                (Some(_), _) => Some(self.one(&Ask(envelope.clone()), now, &mut one)),
                (None, Command::FireTimer(timer)) => {
                    let is_due = self.scene.world.due_timers(now).any(|due| due == *timer);
                    assert!(is_due, "{timer:?} fired too early");
                    let fired = self.decided(envelope.clone()).expect("timers are never refused");
                    one.changes = fired.0;
                    expected.fired += 1;
                    None
                }
                (None, _) => {
                    let decided = self.decided(envelope.clone());
                    one.changes = decided.map(|(changes, _)| changes).unwrap_or_default();
                    expected.handed += 1;
                    None
                }
            };
            all.push(ModelDecision { due, has_effect: one.changes.row_count() > 0 });
            expected.changes.merge(one.changes);
        }
        expected.forgotten = self.scene.world.expired_rows(now, FORGOTTEN_A_BATCH);
        self.scene.world.remove_expired(&expected.forgotten);
        self.scene.world.expire_online(now);
        // Every batch of a cluster says when it was decided.
        expected.changes.next = Some(self.scene.world.advance_time(now));
        (expected, all)
    }

    /// The required result of a command that changes nothing. `world` is a copy of the model's.
    pub fn decide_apart(&self, world: &mut World, envelope: &Envelope, now: Timestamp) -> Due {
        let once = envelope.idempotency;
        if let Some(due) = once.and_then(|once| self.memory.due(once, now)) {
            return due;
        }
        let room = once.map_or(Ok(()), |once| check_capacity(world, once.principal));
        if let Err(refusal) = room {
            return Due::Refused(refusal);
        }
        for _ in 0..LOAD_ROUNDS {
            for need in missing_rows(world, envelope) {
                self.scene.store.load_row(world, need);
            }
        }
        match decide(world, envelope.clone(), now) {
            Ok((changes, answer)) => {
                assert_eq!(changes.row_count(), 0, "an effect without a record: {envelope:?}");
                Due::Now(answer)
            }
            Err(refusal) => Due::Refused(refusal),
        }
    }

    /// The hub was restarted from these tables and batches. Returns the world it had before.
    pub fn reborn(&mut self, read: &Reopened, now: Timestamp) -> World {
        let mut world = World::new(self.scene.world.rules);
        world.markets = markets();
        world.restore(&read.tables);
        for LoggedBatch { batch, .. } in &read.tail {
            world.replay(&batch.changes, &batch.expired);
        }
        world.expire_online(now);
        self.signs.clear();
        self.presented.clear();
        (self.paused_until, self.shown, self.scene.now) = (None, None, now);
        self.scene.invariants.restart();
        self.mail.started_again(&world);
        for (agent, up_to) in &self.recorded {
            assert!(world.inbox(*agent).presented >= *up_to, "a recorded position was lost");
        }
        std::mem::replace(&mut self.scene.world, world)
    }
}
