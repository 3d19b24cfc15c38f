//! Reporters: concurrent agents report their actions in order.

use std::time::Instant;

use rialto_client::CallError;
use tokio::sync::mpsc;

use super::role::Who;
use super::event::{Deed, Event};
use super::balance::Amount;

/// A report of an agent.
#[derive(Debug)]
pub enum Word {
    /// An action.
    Event(Event),
    /// What an agent is currently doing.
    Doing(Who, String),
    /// An error that may be temporary: agents retry.
    Mishap(Who, String),
    /// An agent cannot continue.
    Stuck(Who, String),
}

/// Sends reports to the display.
#[derive(Clone, Debug)]
pub struct Teller {
    words: mpsc::UnboundedSender<Word>,
    began: Instant,
}

impl Teller {
    /// A reporter and its receiver. The demo is short, so the channel needs no limit.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Word>) {
        let (words, heard) = mpsc::unbounded_channel();
        (Self { words, began: Instant::now() }, heard)
    }

    /// Reports an action.
    pub fn tell(&self, who: Who, deed: Deed, said: impl Into<String>) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Deed { beat, with, amount } = deed;
        let (protocol, amount, said) = (who.protocol(), amount.map(Amount), said.into());
        self.say(Word::Event(Event { at_ms, who, protocol, beat, with, amount, said }));
    }

    /// Reports what an agent is doing.
    pub fn doing(&self, who: Who, what: impl Into<String>) {
        self.say(Word::Doing(who, what.into()));
    }

    /// Reports a temporary error.
    pub fn mishap(&self, who: Who, what: &str, why: &str) {
        self.say(Word::Mishap(who, format!("{what}: {why}")));
    }

    /// Reports that an agent cannot continue.
    pub fn stuck(&self, who: Who, why: impl Into<String>) {
        self.say(Word::Stuck(who, why.into()));
    }

    /// Reports an error that ended an agent's task.
    pub fn ended(&self, who: Who, how: Result<(), CallError>) {
        if let Err(error) = how {
            self.stuck(who, error.to_string());
        }
    }

    fn say(&self, word: Word) {
        // A closed channel means that the demo has ended.
        let _ = self.words.send(word);
    }
}
