//! Commands of this node that have no answer yet.
//!
//! A node of a cluster keeps every command until its answer is certain, whoever decides it: another
//! node, or this one. A writer that loses its place, or does not know whether its batch was written,
//! forgets what it decided and nothing else. What became of its commands is in the log: a command
//! whose receipt is there is committed, and one whose receipt is not there when the first batch of a
//! later epoch is applied can never be committed any more, so it is passed on again.

use std::collections::BTreeMap;

use rialto_core::command::Command;
use rialto_core::envelope::{Envelope, Proof};
use rialto_core::idempotency::Receipt;

use super::reply::{LaneResult, ReplySender};
use super::{Failure, LaneReply};
use crate::cluster::frame::{Ask, ReplyResult};

/// Commands without an answer at one node. More are refused.
pub const PENDING_MAX: usize = 1_024;

/// A command without an answer.
struct PendingCommand {
    envelope: Envelope,
    reply: ReplySender,
    /// What it did, once the batch that has it is applied.
    receipt: Option<Receipt>,
    /// The writer's reply, until the batch that it names is applied.
    held: Option<(u64, LaneResult)>,
    /// It is committed under an earlier number, and only asks for its answer again.
    is_committed: bool,
}

impl PendingCommand {
    /// Its end. A command that is committed has not failed, whatever became of asking again.
    fn end(self, result: LaneResult) -> (ReplySender, LaneResult) {
        match result {
            Err(_) if self.is_committed => (self.reply, Err(Failure::Unavailable)),
            result => (self.reply, result),
        }
    }
}

/// All commands without an answer, by this node's number for them.
#[derive(Default)]
pub struct PendingCommands {
    newest: u64,
    commands: BTreeMap<u64, PendingCommand>,
    /// Commands that ask for their answer again, and were not sent yet.
    unsent: Vec<u64>,
}

impl PendingCommands {
    /// Keeps a command and returns its number.
    pub fn add(&mut self, envelope: Envelope, reply: ReplySender) -> u64 {
        let (receipt, held, is_committed) = (None, None, false);
        self.insert(PendingCommand { envelope, reply, receipt, held, is_committed })
    }

    fn insert(&mut self, command: PendingCommand) -> u64 {
        self.newest += 1;
        self.commands.insert(self.newest, command);
        self.newest
    }

    pub fn is_full(&self) -> bool {
        self.commands.len() >= PENDING_MAX
    }

    /// What to send to the writer for a command.
    pub fn ask(&self, number: u64) -> Option<Ask> {
        let low = *self.commands.keys().next()?;
        let envelope = self.commands.get(&number)?.envelope.clone();
        Some(Ask { number, low, envelope })
    }

    /// What to send to the writer for all commands without a reply. One that was refused, and sent
    /// again, could be accepted after all.
    pub fn asks(&mut self) -> Vec<Ask> {
        self.unsent.clear();
        let waiting = self.commands.iter().filter(|(_, command)| command.held.is_none());
        waiting.filter_map(|(number, _)| self.ask(*number)).collect()
    }

    /// What to send to the writer for commands that ask for their answer again.
    pub fn unsent_asks(&mut self) -> Vec<Ask> {
        let unsent = std::mem::take(&mut self.unsent);
        unsent.into_iter().filter_map(|number| self.ask(number)).collect()
    }

    /// The number of the newest command.
    #[cfg(any(test, feature = "testkit"))]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Ends a command, and returns what is to be sent to whom.
    pub fn end(&mut self, number: u64, result: LaneResult) -> Option<(ReplySender, LaneResult)> {
        self.commands.remove(&number).map(|command| command.end(result))
    }

    /// The batch that was just applied has this receipt.
    pub fn commit(&mut self, number: u64, receipt: Receipt) {
        if let Some(command) = self.commands.get_mut(&number) {
            command.receipt = Some(receipt);
        }
    }

    /// The writer has replied. The reply is passed on once the batch it names is applied.
    pub fn hold_reply(&mut self, number: u64, place: u64, result: ReplyResult) {
        let Some(command) = self.commands.get_mut(&number) else { return };
        let result = match result {
            ReplyResult::Answer(answer) => Ok(LaneReply::Fresh(answer)),
            ReplyResult::Replayed(receipt) => Ok(LaneReply::Replayed(receipt)),
            ReplyResult::Refused(refusal) => Err(Failure::Refused(refusal)),
            // Its receipt is in that batch.
            ReplyResult::Committed => Ok(LaneReply::Committed(Receipt::Nothing)),
            ReplyResult::Full => Err(Failure::StoreFull),
            ReplyResult::StillRunning => Err(Failure::StillRunning),
            ReplyResult::Fault => Err(Failure::Fault),
            ReplyResult::Overloaded => Err(Failure::Unavailable),
        };
        command.held = Some((place, result));
    }

    /// The replies whose batch is applied.
    pub fn take_replies(&mut self, applied: u64) -> Vec<(ReplySender, LaneResult)> {
        let is_due = |command: &PendingCommand| {
            command.held.as_ref().is_some_and(|(place, _)| *place <= applied)
        };
        let due: Vec<u64> = self
            .commands
            .iter()
            .filter(|(_, one)| is_due(one))
            .map(|(number, _)| *number)
            .collect();
        let mut replies = Vec::with_capacity(due.len());
        for number in due {
            let Some(mut command) = self.commands.remove(&number) else { continue };
            match command.held.take() {
                Some((_, Ok(LaneReply::Committed(_)))) => replies.extend(self.settle(command)),
                Some((_, result)) => replies.push(command.end(result)),
                None => {}
            }
        }
        replies
    }

    /// Ends the commands that the log proves to be committed, for replies that are lost. Commands
    /// whose caller has left and which are not committed are dropped.
    pub fn take_committed(&mut self) -> Vec<(ReplySender, LaneResult)> {
        let mut replies = Vec::new();
        for (number, command) in std::mem::take(&mut self.commands) {
            if command.receipt.is_some() {
                replies.extend(self.settle(command));
            } else if !command.reply.is_closed() {
                self.commands.insert(number, command);
            }
        }
        replies
    }

    /// The answer of a committed command. One whose answer is not in its receipt, and which does
    /// nothing when it is executed again, is passed on again under a new number.
    fn settle(&mut self, command: PendingCommand) -> Option<(ReplySender, LaneResult)> {
        let PendingCommand { envelope, reply, receipt, .. } = command;
        let receipt = receipt.unwrap_or(Receipt::Nothing);
        if receipt == Receipt::Nothing && is_repeatable(&envelope) {
            let (receipt, held, is_committed) = (None, None, true);
            let number =
                self.insert(PendingCommand { envelope, reply, receipt, held, is_committed });
            self.unsent.push(number);
            return None;
        }
        Some((reply, Ok(LaneReply::Committed(receipt))))
    }

    /// The numbers of all commands, oldest first.
    pub fn numbers(&self) -> Vec<u64> {
        self.commands.keys().copied().collect()
    }
}

/// Whether a repeat changes nothing and gets the first answer: what is signed is executed once by
/// its own id, and a position or a handover is set, not moved.
fn is_repeatable(envelope: &Envelope) -> bool {
    !matches!(envelope.proof, Proof::Credential | Proof::Key(_))
        || matches!(envelope.command, Command::Ack { .. } | Command::HandOver { .. })
}
