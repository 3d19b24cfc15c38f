//! The reference: the log is one chain, and a model that decides every batch of it again comes to
//! the same result, with all invariants checked after every command.

use std::collections::BTreeMap;
use std::fmt::Write;

use rialto_core::changes::{Batch, ForNodes, ForwardedReceipt};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use rialto_engine::DecidedCommand;
use rialto_engine::cluster::frame::ReplyResult;
use rialto_engine::cluster::memory::MemoryCluster;
use rialto_engine::store::log::{LoggedBatch, Place};

use super::history::History;
use super::node::Attempt;
use crate::ask::Due;
use crate::log::Log;
use crate::model::{Expected, Model, ModelDecision};
use crate::store::Written;

/// What the log must be, and what follows from it.
pub struct Reference {
    pub model: Model,
    batches: Vec<LoggedBatch>,
    head: Place,
    epoch: u64,
    at: Timestamp,
    /// Batches that nodes have tried to append, by place and epoch.
    attempts: BTreeMap<(u64, u64), Attempt>,
    /// The notice at each position of each inbox.
    inboxes: BTreeMap<(AgentId, u64), NoticeId>,
}

impl Reference {
    pub fn new(rules: Rules, now: Timestamp) -> Self {
        Self {
            model: Model::new(rules, now),
            batches: Vec::new(),
            head: Place::default(),
            epoch: 0,
            at: Timestamp::default(),
            attempts: BTreeMap::new(),
            inboxes: BTreeMap::new(),
        }
    }

    /// The world after the newest batch.
    pub fn world(&self) -> &World {
        &self.model.scene.world
    }

    /// The number of the newest batch.
    pub fn head(&self) -> u64 {
        self.head.number
    }

    /// The batches after a place, up to another.
    pub fn batches(&self, after: u64, up_to: u64) -> &[LoggedBatch] {
        &self.batches[after as usize..up_to as usize]
    }

    /// The notice at a position of an inbox.
    pub fn notice_at(&self, agent: AgentId, position: u64) -> Option<NoticeId> {
        self.inboxes.get(&(agent, position)).copied()
    }

    /// A node is about to append this.
    pub fn expect(&mut self, attempt: Attempt) {
        self.attempts.insert((attempt.number, attempt.epoch), attempt);
    }

    /// Follows the log. Panics if it is not one chain, or if a batch is not what follows from those
    /// before it.
    pub fn follow(&mut self, database: &MemoryCluster, history: &mut History, log: &mut Log) {
        let known = database.hash_at(self.head.number);
        assert_eq!(known, Some(self.head.hash), "batch {} was replaced", self.head.number);
        if database.head() == self.head {
            return;
        }
        for logged in database.batches_after(self.head.number) {
            let LoggedBatch { place, epoch, batch } = &logged;
            let (number, at) = (place.number, batch.for_nodes.at);
            assert_eq!(number, self.head.number + 1, "the log has a gap");
            assert!(*epoch >= self.epoch, "epoch {epoch} after {}", self.epoch);
            assert!(at >= self.at, "time went back from {:?} to {at:?}", self.at);
            let Some(attempt) = self.attempts.remove(&(number, *epoch)) else {
                panic!("no node has decided batch {number} of epoch {epoch}");
            };
            assert_eq!(attempt.at, at, "another batch of the same place and epoch");
            match &attempt.commands {
                Some(commands) => self.decide_again(commands, &logged, history, log),
                None => {
                    let for_nodes = ForNodes { at, ..ForNodes::default() };
                    let mut first = Batch { for_nodes, ..Batch::default() };
                    first.changes.next = Some(self.model.scene.world.advance_time(at));
                    assert_eq!(*batch, first, "the first batch of an epoch says only its time");
                }
            }
            (self.head, self.epoch, self.at) = (*place, *epoch, at);
            // Nothing else can be written in this place.
            self.attempts.retain(|(place, _), _| *place > number);
            self.batches.push(logged);
        }
    }

    /// Decides a batch again, and compares.
    fn decide_again(
        &mut self,
        commands: &[DecidedCommand],
        logged: &LoggedBatch,
        history: &mut History,
        log: &mut Log,
    ) {
        let LoggedBatch { place: Place { number, .. }, batch, .. } = logged;
        let ForNodes { at, last_seen, .. } = &batch.for_nodes;
        let (expected, all) = self.model.decide_again(commands, last_seen, *at);
        if expected.changes != batch.changes || expected.forgotten != batch.expired {
            let written = Written { batch: batch.changes.clone(), expired: batch.expired.clone() };
            let differs = written.differs(&expected.changes, &expected.forgotten).join("\n");
            panic!("batch {number} does not follow from those before it\n{differs}");
        }
        let mut receipts = Vec::new();
        for (command, ModelDecision { due, has_effect }) in commands.iter().zip(&all) {
            check_result(command, due.as_ref());
            if let (Some((node, number)), ReplyResult::Answer(answer), true) =
                (command.asked_by, &command.result, *has_effect)
            {
                let receipt = answer.receipt();
                receipts.push(ForwardedReceipt { node: node.0, number, receipt });
            }
        }
        assert_eq!(receipts, batch.for_nodes.receipts, "receipts of batch {number}");
        let effects: Vec<_> = commands.iter().zip(all.iter().map(|one| one.has_effect)).collect();
        // What is saved of a refusal is no effect of the command.
        let effects: Vec<_> = effects
            .into_iter()
            .map(|(one, effect)| (one, effect && matches!(one.result, ReplyResult::Answer(_))))
            .collect();
        history.decided(*number, &effects, true);
        for notice in &batch.changes.notices {
            if let Some(to) = notice.to {
                self.inboxes.insert((to, notice.position), notice.id);
            }
        }
        self.record(logged, &expected, commands.len() as u64, log);
    }

    fn record(&self, logged: &LoggedBatch, expected: &Expected, decided: u64, log: &mut Log) {
        let LoggedBatch { place, epoch, batch } = logged;
        log.decided += decided;
        log.census.count("~batch");
        log.census.add("Tick", expected.fired);
        log.census.add("Present", expected.handed);
        // The order of last-seen times is not defined.
        let mut last_seen = batch.for_nodes.last_seen.clone();
        last_seen.sort_unstable();
        let (number, at) = (place.number, batch.for_nodes.at.0);
        write!(log.hash, "{number} {epoch} {at} {last_seen:?}").expect("hashing cannot fail");
        log.written(&batch.changes);
    }

    /// Decisions that changed nothing were made on the state of a place, without a record.
    pub fn check_unrecorded(
        &self,
        place: u64,
        attempt: &Attempt,
        history: &mut History,
        log: &mut Log,
    ) {
        let at = &attempt.at;
        let commands = attempt.commands.as_deref().unwrap_or_default();
        if place == self.head.number && !commands.is_empty() {
            let mut world = self.world().clone();
            world.expire_online(*at);
            for command in commands.iter().filter(|one| one.asked_by.is_some()) {
                let due = self.model.decide_apart(&mut world, &command.envelope, *at);
                check_result(command, Some(&due));
            }
        }
        log.decided += commands.len() as u64;
        let effects: Vec<(&DecidedCommand, bool)> =
            commands.iter().map(|one| (one, false)).collect();
        history.decided(place, &effects, false);
    }
}

/// Panics unless a lane has decided a command as the model does.
fn check_result(command: &DecidedCommand, due: Option<&Due>) {
    let Some(due) = due else { return };
    let is_same = match (&command.result, due) {
        (ReplyResult::Answer(answer), Due::Now(expected)) => answer == expected,
        (ReplyResult::Replayed(receipt), Due::Before(expected)) => receipt == expected,
        (ReplyResult::Refused(refusal), Due::Refused(expected)) => refusal == expected,
        (ReplyResult::StillRunning, Due::StillRunning) => true,
        _ => false,
    };
    assert!(is_same, "decided {:?}, expected {due:?}: {:?}", command.result, command.envelope);
}
