//! The idempotency cache of a peer: messages received within the time window, and their answers.
//!
//! The fact that a message came must be kept while the message could come again. So when the cache
//! is full, new messages are refused. Answers may be evicted, oldest first; a repeat then gets an
//! error that says so. Each sender can use only a part of both limits.

use std::collections::{HashMap, HashSet, VecDeque};

use rialto_core::alias::Digest;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::watch;

use crate::agent::direct::request_key::Scope;
use crate::http_server::Answer;

/// Maximum number of messages, in total and per sender.
const MESSAGES_MAX: usize = 10_000;
const MESSAGES_OF_ONE_MAX: usize = MESSAGES_MAX / 8;
/// Maximum bytes of answers, in total and per sender.
const BYTES_MAX: usize = 32 << 20;
const BYTES_OF_ONE_MAX: usize = BYTES_MAX / 8;
/// Maximum number of ids of REQUESTs and ACCEPTs that stay used after their messages have expired.
const SPENT_MAX: usize = 100_000;

/// Identifies a message and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) scope: Scope,
    pub(super) content: Digest,
    pub(super) sender: PublicKey,
    /// Whether a repeat would execute something twice.
    pub(super) is_order: bool,
}

/// What is known of a message.
pub(super) enum Known {
    /// The message is new. The answer is to be sent here.
    New(watch::Sender<Option<Answer>>),
    /// A repeat; the answer is here or will be.
    Same(watch::Receiver<Option<Answer>>),
    /// A repeat, and the answer was evicted.
    Forgotten,
    /// The id was used for another message.
    Other,
    /// The cache is full.
    Full,
}

/// Messages by sender and id.
#[derive(Debug)]
pub(super) struct Memory {
    window: Millis,
    messages: HashMap<Scope, Message>,
    oldest_first: VecDeque<(Timestamp, Scope)>,
    /// Messages with an answer, oldest first.
    answered: VecDeque<Scope>,
    bytes: usize,
    senders: HashMap<PublicKey, Share>,
    /// Used ids of expired messages, so that a message signed again under one is refused.
    spent: HashSet<Scope>,
    spent_first: VecDeque<Scope>,
}

#[derive(Debug)]
struct Message {
    content: Digest,
    /// `None` for a message of an earlier run of this program.
    sender: Option<PublicKey>,
    is_order: bool,
    bytes: usize,
    answer: Stage,
}

#[derive(Debug)]
enum Stage {
    Here(watch::Receiver<Option<Answer>>),
    Forgotten,
    /// An earlier run of this program started it and did not finish.
    Left,
}

/// How much of the cache one sender uses.
#[derive(Debug, Default)]
struct Share {
    messages: usize,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(window: Millis) -> Self {
        Self {
            window,
            messages: HashMap::new(),
            oldest_first: VecDeque::new(),
            answered: VecDeque::new(),
            bytes: 0,
            senders: HashMap::new(),
            spent: HashSet::new(),
            spent_first: VecDeque::new(),
        }
    }

    /// Registers a message whose signature was just verified.
    pub(super) fn meet(&mut self, name: Name, now: Timestamp) -> Known {
        self.forget(now);
        let Name { scope, content, sender, is_order } = name;
        match self.messages.get(&scope) {
            Some(message) if message.content != content => return Known::Other,
            Some(Message { answer: Stage::Here(answer), .. }) => {
                return Known::Same(answer.clone());
            }
            Some(Message { answer: Stage::Forgotten, .. }) => return Known::Forgotten,
            Some(Message { answer: Stage::Left, .. }) => self.remove(scope),
            None if self.spent.contains(&scope) => return Known::Other,
            None => {}
        }
        let of_one = self.senders.get(&sender).map_or(0, |share| share.messages);
        if self.messages.len() >= MESSAGES_MAX || of_one >= MESSAGES_OF_ONE_MAX {
            return Known::Full;
        }
        let (tell, answer) = watch::channel(None);
        self.senders.entry(sender).or_default().messages += 1;
        let answer = Stage::Here(answer);
        let message = Message { content, sender: Some(sender), is_order, bytes: 0, answer };
        self.insert(scope, message, self.fresh_until(now));
        Known::New(tell)
    }

    /// Restores a message of an earlier run, with its time and its answer, if there was one.
    pub(super) fn recall(
        &mut self,
        scope: Scope,
        content: Digest,
        since: Timestamp,
        answer: Recalled,
    ) {
        let answer = match answer {
            Recalled::Answer(answer) => Stage::Here(watch::channel(Some(answer)).1),
            Recalled::Forgotten => Stage::Forgotten,
            Recalled::Left => Stage::Left,
        };
        let message = Message { content, sender: None, is_order: true, bytes: 0, answer };
        self.insert(scope, message, self.fresh_until(since));
    }

    /// Records the size of a message's answer.
    pub(super) fn answered(&mut self, scope: Scope, bytes: usize) {
        let Some(message) = self.messages.get_mut(&scope) else { return };
        message.bytes = bytes;
        let sender = message.sender;
        self.answered.push_back(scope);
        self.bytes += bytes;
        if let Some(share) = sender.and_then(|key| self.senders.get_mut(&key)) {
            share.bytes += bytes;
        }
        let of_one = |memory: &Self| {
            sender.and_then(|key| memory.senders.get(&key)).map_or(0, |share| share.bytes)
        };
        while of_one(self) > BYTES_OF_ONE_MAX {
            let theirs =
                |scope: &Scope| self.messages.get(scope).is_some_and(|m| m.sender == sender);
            let Some(at) = self.answered.iter().position(theirs) else { break };
            self.drop_answer(at);
        }
        while self.bytes > BYTES_MAX && !self.answered.is_empty() {
            self.drop_answer(0);
        }
    }

    /// Removes a message that was answered with "retry later", so that it can be sent again.
    pub(super) fn allow_again(&mut self, scope: Scope) {
        self.remove(scope);
    }

    /// An envelope may be one window ahead, and is then fresh for two.
    fn fresh_until(&self, now: Timestamp) -> Timestamp {
        now.plus(Millis(self.window.0.saturating_mul(2)))
    }

    fn insert(&mut self, scope: Scope, message: Message, until: Timestamp) {
        self.messages.insert(scope, message);
        self.oldest_first.push_back((until, scope));
    }

    /// Removes every trace: a leftover would expire the next message with this key too early.
    fn remove(&mut self, scope: Scope) {
        self.oldest_first.retain(|(_, other)| *other != scope);
        self.drop_message(scope);
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((until, _)) = self.oldest_first.front()
            && *until < now
            && let Some((_, scope)) = self.oldest_first.pop_front()
        {
            if self.drop_message(scope) {
                self.spend(scope);
            }
        }
    }

    /// Returns whether it was a REQUEST or ACCEPT.
    fn drop_message(&mut self, scope: Scope) -> bool {
        if let Some(at) = self.answered.iter().position(|other| *other == scope) {
            self.drop_answer(at);
        }
        let Some(message) = self.messages.remove(&scope) else { return false };
        if let Some(sender) = message.sender
            && let Some(share) = self.senders.get_mut(&sender)
        {
            share.messages = share.messages.saturating_sub(1);
            if share.messages == 0 {
                self.senders.remove(&sender);
            }
        }
        message.is_order
    }

    fn drop_answer(&mut self, at: usize) {
        let scope = self.answered.remove(at);
        let Some(message) = scope.and_then(|scope| self.messages.get_mut(&scope)) else { return };
        let bytes = std::mem::take(&mut message.bytes);
        message.answer = Stage::Forgotten;
        self.bytes -= bytes;
        if let Some(share) = message.sender.and_then(|key| self.senders.get_mut(&key)) {
            share.bytes -= bytes;
        }
    }

    fn spend(&mut self, scope: Scope) {
        if self.spent_first.len() >= SPENT_MAX
            && let Some(oldest) = self.spent_first.pop_front()
        {
            self.spent.remove(&oldest);
        }
        if self.spent.insert(scope) {
            self.spent_first.push_back(scope);
        }
    }
}

/// What an earlier run of this program did with a message.
pub(super) enum Recalled {
    Answer(Answer),
    Forgotten,
    Left,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Millis = Millis::seconds(60);

    fn name(sender: u8, id: &str, content: u8) -> Name {
        Name {
            scope: Scope::of("agora", &sender.to_string(), id),
            content: Digest([content; 16]),
            sender: PublicKey::from_bytes([sender; 32]),
            is_order: false,
        }
    }

    #[test]
    fn a_name_means_one_thing_for_as_long_as_it_could_be_fresh() {
        let mut memory = Memory::new(WINDOW);
        let mut meet = |content: u8, now| memory.meet(name(1, "a", content), Timestamp(now));
        assert!(matches!(meet(1, 0), Known::New(_)));
        assert!(matches!(meet(1, 120_000), Known::Same(_)));
        assert!(matches!(meet(2, 120_000), Known::Other));
        assert!(matches!(meet(2, 120_001), Known::New(_)));
    }

    #[test]
    fn what_was_allowed_again_is_remembered_for_as_long_as_anything_else() {
        let mut memory = Memory::new(WINDOW);
        let a = name(1, "a", 1);
        assert!(matches!(memory.meet(a, Timestamp(0)), Known::New(_)));
        memory.allow_again(a.scope);
        assert!(matches!(memory.meet(a, Timestamp(50_000)), Known::New(_)));
        // The first registration would have expired by now; the second has not.
        assert!(matches!(memory.meet(a, Timestamp(130_000)), Known::Same(_)));
        assert!(matches!(memory.meet(a, Timestamp(170_000)), Known::Same(_)));
    }

    #[test]
    fn an_order_signed_anew_is_spent_long_after() {
        let mut memory = Memory::new(WINDOW);
        let order = Name { is_order: true, ..name(1, "a", 1) };
        assert!(matches!(memory.meet(order, Timestamp(0)), Known::New(_)));
        let anew = Name { content: Digest([2; 16]), ..order };
        assert!(matches!(memory.meet(anew, Timestamp(600_000)), Known::Other));
    }

    #[test]
    fn nothing_is_forgotten_to_make_room_and_nobody_takes_all_of_it() {
        let mut memory = Memory::new(WINDOW);
        for n in 0..MESSAGES_OF_ONE_MAX {
            memory.meet(name(1, &n.to_string(), 0), Timestamp(0));
        }
        let mut meet = |sender, id: &str, now| memory.meet(name(sender, id, 0), Timestamp(now));
        assert!(matches!(meet(1, "one more", 0), Known::Full));
        assert!(matches!(meet(1, "0", 0), Known::Same(_)));
        assert!(matches!(meet(2, "one more", 0), Known::New(_)));
        for sender in 2..=8 {
            for n in 0..MESSAGES_OF_ONE_MAX {
                meet(sender, &n.to_string(), 0);
            }
        }
        assert!(matches!(meet(9, "one more", 0), Known::Full));
        assert!(matches!(meet(1, "x", 120_001), Known::New(_)));
        assert_eq!((memory.senders.len(), memory.messages.len()), (1, 1));
    }

    #[test]
    fn long_answers_are_forgotten_first_by_who_has_most_of_them() {
        let mut memory = Memory::new(WINDOW);
        let mut answered = |sender, id: &str, bytes| {
            assert!(matches!(memory.meet(name(sender, id, 0), Timestamp(0)), Known::New(_)));
            memory.answered(name(sender, id, 0).scope, bytes);
        };
        answered(2, "a", 100);
        for n in 0..3 {
            answered(1, &n.to_string(), BYTES_OF_ONE_MAX / 2);
        }
        for n in 10..30 {
            answered(n, "a", BYTES_OF_ONE_MAX);
        }
        assert!(memory.bytes <= BYTES_MAX);
        let mut meet = |sender, id: &str| memory.meet(name(sender, id, 0), Timestamp(0));
        assert!(matches!(meet(1, "0"), Known::Forgotten));
        assert!(matches!(meet(10, "a"), Known::Forgotten));
        assert!(matches!(meet(29, "a"), Known::Same(_)));
        memory.meet(name(1, "end", 0), Timestamp(200_000));
        assert_eq!((memory.bytes, memory.answered.len(), memory.messages.len()), (0, 0, 1));
    }

    #[test]
    fn what_an_earlier_run_left_is_begun_again_and_nothing_else_under_its_name() {
        let mut memory = Memory::new(WINDOW);
        let [left, done, gone] = ["l", "d", "g"].map(|id| name(1, id, 1));
        let answer = Answer::new(200, "{}");
        for (name, answer) in [
            (left, Recalled::Left),
            (done, Recalled::Answer(answer.clone())),
            (gone, Recalled::Forgotten),
        ] {
            memory.recall(name.scope, name.content, Timestamp(0), answer);
        }
        let mut meet = |name| memory.meet(name, Timestamp(1));
        assert!(matches!(meet(name(1, "l", 2)), Known::Other));
        assert!(matches!(meet(left), Known::New(_)));
        assert!(matches!(meet(left), Known::Same(_)));
        assert!(matches!(meet(gone), Known::Forgotten));
        let Known::Same(found) = meet(done) else { panic!("not known") };
        assert_eq!(*found.borrow(), Some(answer));
    }
}
