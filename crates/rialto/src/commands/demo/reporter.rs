//! Reporters: concurrent agents report their actions in order.

use std::time::Instant;

use rialto_client::CallError;
use tokio::sync::mpsc;

use super::balance::Amount;
use super::event::{Action, Event};
use super::role::Role;

/// A report of an agent.
#[derive(Debug)]
pub enum AgentUpdate {
    /// An action.
    Event(Event),
    /// What an agent is currently doing.
    Activity(Role, String),
    /// An error that may be temporary: agents retry.
    Warning(Role, String),
    /// An agent cannot continue.
    Failed(Role, String),
}

/// Sends reports to the display.
#[derive(Clone, Debug)]
pub struct Reporter {
    words: mpsc::UnboundedSender<AgentUpdate>,
    began: Instant,
}

impl Reporter {
    /// A reporter and its receiver. The demo is short, so the channel needs no limit.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<AgentUpdate>) {
        let (words, heard) = mpsc::unbounded_channel();
        (Self { words, began: Instant::now() }, heard)
    }

    /// Reports an action.
    pub fn report_action(&self, who: Role, order: Action, said: impl Into<String>) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Action { beat, with, amount } = order;
        let (protocol, amount, said) = (who.protocol(), amount.map(Amount), said.into());
        self.send(AgentUpdate::Event(Event {
            at_ms,
            role: who,
            protocol,
            kind: beat,
            with,
            amount,
            text: said,
        }));
    }

    /// Reports what an agent is doing.
    pub fn report_activity(&self, who: Role, what: impl Into<String>) {
        self.send(AgentUpdate::Activity(who, what.into()));
    }

    /// Reports a temporary error.
    pub fn report_warning(&self, who: Role, what: &str, why: &str) {
        self.send(AgentUpdate::Warning(who, format!("{what}: {why}")));
    }

    /// Reports that an agent cannot continue.
    pub fn report_failure(&self, who: Role, why: impl Into<String>) {
        self.send(AgentUpdate::Failed(who, why.into()));
    }

    /// Reports an error that ended an agent's task.
    pub fn report_end(&self, who: Role, how: Result<(), CallError>) {
        if let Err(error) = how {
            self.report_failure(who, error.to_string());
        }
    }

    fn send(&self, word: AgentUpdate) {
        // A closed channel means that the demo has ended.
        let _ = self.words.send(word);
    }
}
