//! Tellers: how agents that work side by side say what they do, in the order they do it.

use std::time::Instant;

use rialto_client::CallError;
use tokio::sync::mpsc;

use super::cast::Who;
use super::event::{Deed, Event};
use super::purse::Amount;

/// Something that is said.
#[derive(Debug)]
pub enum Word {
    /// Something was done.
    Event(Event),
    /// Somebody is at something; nothing has come of it yet.
    Doing(Who, String),
    /// Something went wrong that may yet be made good: agents try again.
    Mishap(Who, String),
    /// Somebody cannot go on.
    Stuck(Who, String),
}

/// Whoever has one can tell.
#[derive(Clone, Debug)]
pub struct Teller {
    words: mpsc::UnboundedSender<Word>,
    began: Instant,
}

impl Teller {
    /// A teller, and who listens. A story is short, so nobody has to wait for the listener.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Word>) {
        let (words, heard) = mpsc::unbounded_channel();
        (Self { words, began: Instant::now() }, heard)
    }

    /// Tells what somebody did.
    pub fn tell(&self, who: Who, deed: Deed, said: impl Into<String>) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Deed { beat, with, amount } = deed;
        let (protocol, amount, said) = (who.protocol(), amount.map(Amount), said.into());
        self.say(Word::Event(Event { at_ms, who, protocol, beat, with, amount, said }));
    }

    /// Tells what somebody is at.
    pub fn doing(&self, who: Who, what: impl Into<String>) {
        self.say(Word::Doing(who, what.into()));
    }

    /// Tells what went wrong around somebody's work.
    pub fn mishap(&self, who: Who, what: &str, why: &str) {
        self.say(Word::Mishap(who, format!("{what}: {why}")));
    }

    /// Tells that somebody cannot go on.
    pub fn stuck(&self, who: Who, why: impl Into<String>) {
        self.say(Word::Stuck(who, why.into()));
    }

    /// Tells it if an agent's work has ended with an error.
    pub fn ended(&self, who: Who, how: Result<(), CallError>) {
        if let Err(error) = how {
            self.stuck(who, error.to_string());
        }
    }

    fn say(&self, word: Word) {
        // Whoever stopped listening has heard the end.
        let _ = self.words.send(word);
    }
}
