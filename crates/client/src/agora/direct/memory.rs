//! A peer's memory: what it was told within the window, and what it answered.

use std::collections::{HashMap, VecDeque};

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::watch;

use crate::endpoint::Answer;

/// Messages that are remembered. When there is no room, new ones wait rather than old ones being
/// forgotten: what is forgotten could be said twice.
const MESSAGES_MAX: usize = 10_000;

type Name = (PublicKey, String);

/// What is known of a message.
pub(super) enum Known {
    /// Nothing: it is new, and whoever answers it tells so here.
    New(watch::Sender<Option<Answer>>),
    /// It was said before; the answer is here, or will be.
    Same(watch::Receiver<Option<Answer>>),
    /// Something else was said under its name.
    Other,
    /// There is no room for it now.
    Full,
}

/// Messages by sender and id.
#[derive(Debug)]
pub(super) struct Memory {
    window: Millis,
    messages: HashMap<Name, Entry>,
    oldest_first: VecDeque<(Timestamp, Name)>,
}

#[derive(Debug)]
struct Entry {
    content: [u8; 32],
    answer: watch::Receiver<Option<Answer>>,
}

impl Memory {
    pub(super) fn new(window: Millis) -> Self {
        Self { window, messages: HashMap::new(), oldest_first: VecDeque::new() }
    }

    /// Remembers a message that was proven just now.
    pub(super) fn meet(
        &mut self,
        sender: PublicKey,
        id: &str,
        content: [u8; 32],
        now: Timestamp,
    ) -> Known {
        self.forget(now);
        let name = (sender, id.to_owned());
        if let Some(entry) = self.messages.get(&name) {
            return match entry.content == content {
                true => Known::Same(entry.answer.clone()),
                false => Known::Other,
            };
        }
        if self.oldest_first.len() >= MESSAGES_MAX {
            return Known::Full;
        }
        let (tell, answer) = watch::channel(None);
        self.messages.insert(name.clone(), Entry { content, answer });
        // An envelope may be a window ahead, and is then fresh for two.
        let until = now.plus(Millis(self.window.0.saturating_mul(2)));
        self.oldest_first.push_back((until, name));
        Known::New(tell)
    }

    /// Forgets a message whose answer was to come back later: it may be said again.
    pub(super) fn allow_again(&mut self, sender: PublicKey, id: &str) {
        self.messages.remove(&(sender, id.to_owned()));
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((until, _)) = self.oldest_first.front()
            && *until < now
            && let Some((_, name)) = self.oldest_first.pop_front()
        {
            self.messages.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_thing_for_as_long_as_it_could_be_fresh() {
        let key = PublicKey::from_bytes([1; 32]);
        let mut memory = Memory::new(Millis::seconds(60));
        let mut meet = |content: u8, now| memory.meet(key, "a", [content; 32], Timestamp(now));
        assert!(matches!(meet(1, 0), Known::New(_)));
        assert!(matches!(meet(1, 120_000), Known::Same(_)));
        assert!(matches!(meet(2, 120_000), Known::Other));
        assert!(matches!(meet(2, 120_001), Known::New(_)));
    }

    #[test]
    fn nothing_is_forgotten_to_make_room() {
        let key = PublicKey::from_bytes([1; 32]);
        let mut memory = Memory::new(Millis::seconds(60));
        for n in 0..MESSAGES_MAX {
            memory.meet(key, &n.to_string(), [0; 32], Timestamp(0));
        }
        assert!(matches!(memory.meet(key, "one more", [0; 32], Timestamp(0)), Known::Full));
        assert!(matches!(memory.meet(key, "0", [0; 32], Timestamp(0)), Known::Same(_)));
        assert!(matches!(memory.meet(key, "x", [0; 32], Timestamp(120_001)), Known::New(_)));
    }
}
