//! A test hub: a world, a clock that tests move, and a store made of a few maps.
//!
//! Every command that runs in it is checked against the invariants of `invariants`, so a test of
//! one rule also shows that nothing else broke.

mod commands;
pub mod invariants;
pub mod market;
pub mod signed_orders;
mod store;

use std::sync::Arc;

use crate::agent::{Agent, AgentState};
use crate::alias::Protocol;
use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::{Command, Timer};
use crate::decide::{decide, missing_rows};
use crate::encoding::{self, Encodable};
use crate::envelope::Envelope;
use crate::id::{AgentId, JobId};
use crate::job::{Job, State};
use crate::ledger::Transfer;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::time::{Millis, Timestamp};
use crate::world::{Rules, World};
pub use commands::{JOB_LIFETIME, LEASE, message, registration, registration_with_endpoint, skill};
use invariants::Invariants;
pub use store::Store;

/// The protocol most test agents are native to.
pub const HOME: Protocol = Protocol::new("home");
/// A second protocol.
pub const AWAY: Protocol = Protocol::new("away");
/// When every test starts.
pub const START: Timestamp = Timestamp(1_000_000);
/// More rounds than any chain of references has.
const LOAD_ROUNDS: usize = 4;

/// Credits from decimal text.
pub fn credits(text: &str) -> Credits {
    Credits::parse(text, 6).expect("tests write amounts that exist")
}

/// A world, a clock and a store.
#[derive(Clone)]
pub struct TestHub {
    pub world: World,
    pub now: Timestamp,
    pub store: Store,
    /// Off only in tests so large that checking after every command would take minutes.
    pub checks_invariants: bool,
    /// Whether everything is encoded and decoded on its way, as between nodes.
    pub encodes: bool,
    pub invariants: Invariants,
    /// The changes of each command, if a test needs them.
    pub recorded: Option<Vec<Changes>>,
    made: u64,
}

impl Default for TestHub {
    fn default() -> Self {
        Self::new(Rules::default())
    }
}

impl TestHub {
    /// An empty hub with these rules.
    pub fn new(rules: Rules) -> Self {
        let world = World::new(rules);
        let laws = Invariants::default();
        Self {
            world,
            now: START,
            store: Store::default(),
            checks_invariants: true,
            encodes: cfg!(test),
            invariants: laws,
            recorded: None,
            made: 0,
        }
    }

    /// Runs one command the way a lane does: load, decide, apply, drop the cold rows.
    pub fn run(&mut self, envelope: impl Into<Envelope>) -> Result<Answer, Refusal> {
        self.run_with_changes(envelope).map(|(_, answer)| answer)
    }

    /// The same, with its changes.
    pub fn run_with_changes(
        &mut self,
        envelope: impl Into<Envelope>,
    ) -> Result<(Changes, Answer), Refusal> {
        let envelope = self.travelled(envelope.into());
        for _ in 0..LOAD_ROUNDS {
            for need in missing_rows(&self.world, &envelope) {
                self.store.load_row(&mut self.world, need);
            }
        }
        let decided = decide(&self.world, envelope, self.now);
        self.world.drop_cold_rows();
        let (changes, answer) = decided.map_err(|refusal| self.travelled(refusal))?;
        let (changes, answer) = (self.travelled(changes), self.travelled(answer));
        if matches!(answer, Answer::SignedOrder { repeated: true, .. }) {
            assert!(changes.is_empty(), "a repeated order has no second effect");
        }
        if matches!(answer, Answer::MarketOrder { repeated: true, .. }) {
            assert!(changes.is_empty(), "a repeated order has no second effect");
        }
        self.apply(&changes);
        Ok((changes, answer))
    }

    /// A value as it arrives at another node: what is decided, and what is applied.
    fn travelled<T: Encodable + PartialEq + std::fmt::Debug>(&self, value: T) -> T {
        if !self.encodes {
            return value;
        }
        let bytes = encoding::encode(&value).expect("it can be encoded");
        let arrived = encoding::decode(&bytes).expect("it can be decoded");
        assert_eq!(value, arrived, "changed on the way");
        arrived
    }

    fn apply(&mut self, changes: &Changes) {
        self.world.apply(changes);
        self.store.save(changes);
        if let Some(recorded) = &mut self.recorded {
            recorded.push(changes.clone());
        }
        if self.checks_invariants {
            self.invariants.check(changes, &self.world, self.now);
        }
        self.world.drop_cold_rows();
    }

    /// Advances the clock and fires the timers that become due, each at its time.
    pub fn advance(&mut self, span: Millis) {
        let end = self.now.plus(span);
        while let Some(at) = self.world.next_timer_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let due: Vec<Timer> = self.world.due_timers(self.now).collect();
            for timer in due {
                self.run(Command::FireTimer(timer)).expect("timers are never refused");
            }
        }
        self.now = end;
        self.world.expire_online(end);
    }

    /// Advances the clock without firing timers, as when the hub was down.
    pub fn advance_without_timers(&mut self, span: Millis) {
        self.now = self.now.plus(span);
        self.world.expire_online(self.now);
    }

    pub fn agent(&self, id: AgentId) -> &Agent {
        self.world.agent(id).expect("the test registered this agent")
    }

    pub fn agent_state(&self, id: AgentId) -> &AgentState {
        self.world.agent_state(id).expect("every agent has a state")
    }

    pub fn owner(&self, name: &str) -> &Owner {
        let id = self.world.owner_by_name(name).expect("the test created this owner");
        self.world.owner(id).expect("names lead to owners")
    }

    /// An owner's available and held credits, as text.
    pub fn balance_text(&self, name: &str) -> (String, String) {
        let owner = self.owner(name);
        (owner.available.to_text(2), owner.held.to_text(2))
    }

    /// A job, live or finished.
    pub fn job(&self, id: JobId) -> Arc<Job> {
        self.store.rows.jobs.get(&id).expect("the test opened this job").clone()
    }

    pub fn state(&self, id: JobId) -> State {
        self.job(id).state
    }

    pub fn score(&self, id: AgentId) -> Score {
        self.agent_state(id).standing.score
    }

    /// All notices to an agent, oldest first.
    pub fn notices_to(&self, id: AgentId) -> Vec<NoticeKind> {
        let notices = self.store.rows.notices.iter().filter(|notice| notice.to == Some(id));
        notices.map(|notice| notice.news.clone()).collect()
    }

    /// Whether an agent counts as online now.
    pub fn is_online(&self, id: AgentId) -> bool {
        self.world.is_online(id, self.now)
    }

    fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

/// The job in an answer.
pub fn job_in(answer: Answer) -> Arc<Job> {
    match answer {
        Answer::Job { job, .. } => job,
        other => panic!("expected a job, got {other:?}"),
    }
}

/// The jobs in an answer.
pub fn jobs_in(answer: Answer) -> Vec<Arc<Job>> {
    match answer {
        Answer::Jobs(jobs) => jobs,
        other => panic!("expected jobs, got {other:?}"),
    }
}

/// The agent in an answer.
pub fn agent_in(answer: Answer) -> AgentId {
    match answer {
        Answer::Agent { agent, .. } => agent.id,
        other => panic!("expected an agent, got {other:?}"),
    }
}

/// The transfer in an answer, and whether it was a repeat.
pub fn transfer_in(answer: Answer) -> (Arc<Transfer>, bool) {
    match answer {
        Answer::Transfer { transfer, repeated } => (transfer, repeated),
        other => panic!("expected a transfer, got {other:?}"),
    }
}
