//! The requests of all clients: where they were sent, what was decided, and what was answered.
//!
//! Every answer must be that of a decision in the log, or of one that changed nothing and was made
//! on a state as new as the request. An effect is in the log once, and never after a refusal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use rialto_core::alias::Digest;
use rialto_core::command::Command;
use rialto_core::idempotency::Receipt;
use rialto_engine::cluster::NodeId;
use rialto_engine::cluster::frame::ReplyResult;
use rialto_engine::{DecidedCommand, Engine, Failure, RunResult};
use tokio::runtime::{Builder, Runtime};

use crate::ask::{Ask, Outcome};
use crate::life::shortened;

/// Identifies a request of a client.
pub type RequestId = usize;

/// Requests that may be repeated at another node.
const REPEATABLE_MAX: usize = 24;

/// One decision about a request.
#[derive(Debug)]
struct Decision {
    /// The batch that records it, or the one on whose state it was decided without a record.
    place: u64,
    is_recorded: bool,
    has_effect: bool,
    result: ReplyResult,
}

/// One request of a client.
struct Request {
    ask: Ask,
    node: NodeId,
    /// The newest batch of the log when it was sent.
    sent_at: u64,
    /// Its node's first number for it.
    number: Option<u64>,
    decisions: Vec<Decision>,
    /// `None` while the client waits.
    outcome: Option<Outcome>,
}

impl Request {
    fn has_effect(&self) -> bool {
        self.decisions.iter().any(|one| one.has_effect)
    }

    /// Whether its node asks again under a new number for a command that sets what it has set
    /// before, because the answer was lost and is not in its receipt.
    fn is_set_again(&self, number: u64) -> bool {
        let sets = matches!(self.ask.command(), Command::Ack { .. } | Command::HandOver { .. });
        sets && self.number.is_some_and(|first| number > first)
    }

    /// Whether its client does not know what became of it.
    fn is_unknown(&self) -> bool {
        matches!(self.outcome, None | Some(Outcome::Lost))
    }
}

type Running = Pin<Box<dyn Future<Output = Result<RunResult, Failure>>>>;

/// A client that waits.
struct Waiting {
    running: Running,
    has_reply: Arc<ReplyFlag>,
}

/// Set when there is a reply, or when there will be none.
#[derive(Default)]
struct ReplyFlag(AtomicBool);

impl Wake for ReplyFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// All requests of a life.
pub struct History {
    requests: Vec<Request>,
    waiting: BTreeMap<RequestId, Waiting>,
    numbers: HashMap<(NodeId, u64), RequestId>,
    /// What was answered under each idempotency key.
    keys: HashMap<Digest, (Digest, Receipt)>,
    repeatable: Vec<RequestId>,
    /// Reads the store for answers.
    reads: Arc<Runtime>,
    /// Has the timeouts of clients, and never runs: the simulation says when a client leaves.
    timeouts: Runtime,
}

impl History {
    pub fn new(reads: Arc<Runtime>) -> Self {
        let timeouts = Builder::new_current_thread().enable_time().build();
        Self {
            requests: Vec::new(),
            waiting: BTreeMap::new(),
            numbers: HashMap::new(),
            keys: HashMap::new(),
            repeatable: Vec::new(),
            reads,
            timeouts: timeouts.expect("a runtime can be created"),
        }
    }

    /// A client sends a request to a node.
    pub fn send(&mut self, engine: &Engine, node: NodeId, ask: Ask, head: u64) -> RequestId {
        let id = self.requests.len();
        let (engine, envelope) = (engine.clone(), ask.0.clone());
        let mut running: Running = Box::pin(async move { engine.run_envelope(envelope).await });
        let has_reply = Arc::new(ReplyFlag::default());
        let waker = Waker::from(has_reply.clone());
        let inside = self.timeouts.enter();
        let first = running.as_mut().poll(&mut Context::from_waker(&waker));
        drop(inside);
        assert!(first.is_pending(), "answered before it ran");
        if ask.is_repeatable() {
            if self.repeatable.len() >= REPEATABLE_MAX {
                self.repeatable.remove(0);
            }
            self.repeatable.push(id);
        }
        self.waiting.insert(id, Waiting { running, has_reply });
        let (number, decisions, outcome) = (None, Vec::new(), None);
        self.requests.push(Request { ask, node, sent_at: head, number, decisions, outcome });
        id
    }

    /// A request that some client may repeat, of `count` of them.
    pub fn repeatable(&self, at: impl FnOnce(u64) -> u64) -> Option<&Ask> {
        let at = at(self.repeatable.len() as u64) as usize;
        self.repeatable.get(at).map(|id| &self.requests[*id].ask)
    }

    /// The lane of a node has taken a request under this number.
    pub fn number(&mut self, node: NodeId, number: u64, request: RequestId) {
        self.numbers.insert((node, number), request);
        self.requests[request].number = Some(number);
    }

    /// A batch with these decisions is in the log, or they were made without a record.
    pub fn decided(&mut self, place: u64, commands: &[(&DecidedCommand, bool)], is_recorded: bool) {
        for (command, has_effect) in commands {
            let Some(asked_by) = command.asked_by else { continue };
            let Some(id) = self.find(asked_by, command) else {
                panic!("no client has asked {asked_by:?} for {:?}", command.envelope);
            };
            let request = &mut self.requests[id];
            if *has_effect {
                let before = request.decisions.iter().find(|one| one.has_effect);
                let is_once = before.is_none() || request.is_set_again(asked_by.1);
                assert!(is_once, "an effect twice: {:?}, {before:?}", request.ask);
                let outcome = &request.outcome;
                assert!(request.is_unknown(), "an effect after {outcome:?}: {:?}", request.ask);
            }
            let (has_effect, result) = (*has_effect, command.result.clone());
            request.decisions.push(Decision { place, is_recorded, has_effect, result });
        }
    }

    /// The request of a number. A node that lost an answer asks for it again under a new number.
    fn find(&mut self, asked_by: (NodeId, u64), command: &DecidedCommand) -> Option<RequestId> {
        if let Some(known) = self.numbers.get(&asked_by) {
            return Some(*known);
        }
        let is_same = |request: &Request| {
            request.node == asked_by.0
                && request.ask.0 == command.envelope
                && request.is_unknown()
                && request.has_effect()
        };
        let id = self.requests.iter().position(is_same)?;
        self.numbers.insert(asked_by, id);
        Some(id)
    }

    /// Whether a client of a node waits.
    pub fn has_waiting(&self, node: NodeId) -> bool {
        self.waiting.keys().any(|id| self.requests[*id].node == node)
    }

    /// Clients that wait.
    pub fn waiting(&self) -> Vec<RequestId> {
        self.waiting.keys().copied().collect()
    }

    /// A request as text.
    pub fn describe(&self, id: RequestId) -> String {
        let Request { ask, node, decisions, .. } = &self.requests[id];
        format!("{node} {} {}", shortened(&ask.0), shortened(decisions))
    }

    /// A client leaves without an answer.
    pub fn leave(&mut self, id: RequestId) {
        if self.waiting.remove(&id).is_some() {
            self.requests[id].outcome = Some(Outcome::Lost);
        }
    }

    /// Gives the clients of all nodes their answers, and returns what they got. `place` is the newest
    /// batch that a node has applied; `None` for one that is gone.
    pub fn answer(
        &mut self,
        place: impl Fn(NodeId) -> Option<u64>,
    ) -> Vec<(RequestId, Ask, Outcome)> {
        let is_ready = |one: &Waiting| one.has_reply.0.load(Ordering::Acquire);
        let ready: BTreeSet<RequestId> =
            self.waiting.iter().filter(|(_, one)| is_ready(one)).map(|(id, _)| *id).collect();
        let mut answered = Vec::with_capacity(ready.len());
        for id in ready {
            let Some(Waiting { running, .. }) = self.waiting.remove(&id) else { continue };
            let outcome = Outcome::of(self.reads.block_on(running));
            let request = &mut self.requests[id];
            check_answer(request, &outcome, place(request.node));
            request.outcome = Some(outcome.clone());
            let ask = request.ask.clone();
            self.check_key(&ask, &outcome);
            answered.push((id, ask, outcome));
        }
        answered
    }

    /// One idempotency key is one effect and one answer, whichever nodes were asked. No life is as
    /// long as keys are kept.
    fn check_key(&mut self, ask: &Ask, outcome: &Outcome) {
        let (Some(once), Outcome::Answered { answer, .. }) = (ask.0.idempotency, outcome) else {
            return;
        };
        let (request, receipt) =
            self.keys.entry(once.scope).or_insert_with(|| (once.request, answer.receipt()));
        assert_eq!(*request, once.request, "one key, two requests: {ask:?}");
        assert_eq!(*receipt, answer.receipt(), "one key, two answers: {ask:?}");
    }
}

/// Panics unless an answer is that of a decision which its node has applied.
fn check_answer(request: &Request, outcome: &Outcome, place: Option<u64>) {
    match outcome {
        Outcome::Lost => return,
        Outcome::Answered { .. } => {}
        Outcome::Refused(_) | Outcome::StillRunning | Outcome::Full => {
            assert!(!request.has_effect(), "an effect, and {outcome:?}: {:?}", request.ask);
        }
    }
    if let Outcome::Full = outcome {
        return;
    }
    let (sent_at, ask) = (request.sent_at, &request.ask);
    let fitting: Vec<_> = request.decisions.iter().filter(|one| fits(one, outcome)).collect();
    let decisions = &request.decisions;
    assert!(!fitting.is_empty(), "answered {outcome:?}, but decided {decisions:?}: {ask:?}");
    let is_new = |one: &&&Decision| one.is_recorded || one.place >= sent_at;
    let newest: Vec<_> = fitting.iter().filter(is_new).collect();
    assert!(!newest.is_empty(), "sent at {sent_at}, answered from an older state: {fitting:?}");
    let place = place.expect("a node that is gone answers nothing");
    let is_applied = newest.iter().any(|one| one.place <= place);
    assert!(is_applied, "answered at {place}, before its batch is applied: {newest:?}");
}

/// Whether an answer is what was decided.
fn fits(decision: &Decision, outcome: &Outcome) -> bool {
    match (outcome, &decision.result) {
        (Outcome::Answered { answer, replayed: false }, ReplyResult::Answer(decided)) => {
            // An answer that was lost is made again from its receipt.
            answer == decided || decision.has_effect && answer.receipt() == decided.receipt()
        }
        (Outcome::Answered { answer, replayed: true }, ReplyResult::Replayed(receipt)) => {
            answer.receipt() == *receipt
        }
        (Outcome::Refused(refusal), ReplyResult::Refused(decided))
        | (Outcome::Refused(refusal), ReplyResult::Replayed(Receipt::Refused(decided))) => {
            refusal == decided
        }
        (Outcome::StillRunning, ReplyResult::StillRunning) => true,
        _ => false,
    }
}
