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

use crate::agent::direct::request_key::RequestKey;
use crate::http_server::HttpResponse;

/// Maximum number of messages, in total and per sender.
const MESSAGES_MAX: usize = 10_000;
const MESSAGES_PER_SENDER_MAX: usize = MESSAGES_MAX / 8;
/// Maximum bytes of answers, in total and per sender.
const BYTES_MAX: usize = 32 << 20;
const BYTES_PER_SENDER_MAX: usize = BYTES_MAX / 8;
/// Maximum number of ids of REQUESTs and ACCEPTs that stay used after their messages have expired.
const SPENT_MAX: usize = 100_000;

/// Identifies a message and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint {
    pub(super) key: RequestKey,
    pub(super) content: Digest,
    pub(super) sender: PublicKey,
    /// Whether a repeat would execute something twice.
    pub(super) is_order: bool,
}

/// What is known of a message.
pub(super) enum Lookup {
    /// The message is new. The answer is to be sent here.
    New(watch::Sender<Option<HttpResponse>>),
    /// A repeat; the answer is here or will be.
    Repeat(watch::Receiver<Option<HttpResponse>>),
    /// A repeat, and the answer was evicted.
    Evicted,
    /// The id was used for another message.
    Conflict,
    /// The cache is full.
    Full,
}

/// Messages by sender and id.
#[derive(Debug)]
pub(super) struct IdempotencyCache {
    window: Millis,
    messages: HashMap<RequestKey, IdempotencyRecord>,
    oldest_first: VecDeque<(Timestamp, RequestKey)>,
    /// Messages with an answer, oldest first.
    answered: VecDeque<RequestKey>,
    bytes: usize,
    senders: HashMap<PublicKey, SenderUsage>,
    /// Used ids of expired messages, so that a message signed again under one is refused.
    spent: HashSet<RequestKey>,
    spent_first: VecDeque<RequestKey>,
}

#[derive(Debug)]
struct IdempotencyRecord {
    content: Digest,
    /// `None` for a message of an earlier run of this program.
    sender: Option<PublicKey>,
    is_order: bool,
    bytes: usize,
    answer: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    Available(watch::Receiver<Option<HttpResponse>>),
    Forgotten,
    /// An earlier run of this program started it and did not finish.
    Interrupted,
}

/// How much of the cache one sender uses.
#[derive(Debug, Default)]
struct SenderUsage {
    messages: usize,
    bytes: usize,
}

impl IdempotencyCache {
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
    pub(super) fn register(&mut self, name: Fingerprint, now: Timestamp) -> Lookup {
        self.forget(now);
        let Fingerprint { key: scope, content, sender, is_order } = name;
        match self.messages.get(&scope) {
            Some(message) if message.content != content => return Lookup::Conflict,
            Some(IdempotencyRecord { answer: AnswerState::Available(answer), .. }) => {
                return Lookup::Repeat(answer.clone());
            }
            Some(IdempotencyRecord { answer: AnswerState::Forgotten, .. }) => {
                return Lookup::Evicted;
            }
            Some(IdempotencyRecord { answer: AnswerState::Interrupted, .. }) => self.remove(scope),
            None if self.spent.contains(&scope) => return Lookup::Conflict,
            None => {}
        }
        let of_one = self.senders.get(&sender).map_or(0, |share| share.messages);
        if self.messages.len() >= MESSAGES_MAX || of_one >= MESSAGES_PER_SENDER_MAX {
            return Lookup::Full;
        }
        let (tell, answer) = watch::channel(None);
        self.senders.entry(sender).or_default().messages += 1;
        let answer = AnswerState::Available(answer);
        let message =
            IdempotencyRecord { content, sender: Some(sender), is_order, bytes: 0, answer };
        self.insert(scope, message, self.fresh_until(now));
        Lookup::New(tell)
    }

    /// Restores a message of an earlier run, with its time and its answer, if there was one.
    pub(super) fn restore(
        &mut self,
        scope: RequestKey,
        content: Digest,
        since: Timestamp,
        answer: RestoredAnswer,
    ) {
        let answer = match answer {
            RestoredAnswer::Answer(answer) => {
                AnswerState::Available(watch::channel(Some(answer)).1)
            }
            RestoredAnswer::Forgotten => AnswerState::Forgotten,
            RestoredAnswer::Left => AnswerState::Interrupted,
        };
        let message = IdempotencyRecord { content, sender: None, is_order: true, bytes: 0, answer };
        self.insert(scope, message, self.fresh_until(since));
    }

    /// Records the size of a message's answer.
    pub(super) fn record_answer(&mut self, scope: RequestKey, bytes: usize) {
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
        while of_one(self) > BYTES_PER_SENDER_MAX {
            let theirs =
                |scope: &RequestKey| self.messages.get(scope).is_some_and(|m| m.sender == sender);
            let Some(at) = self.answered.iter().position(theirs) else { break };
            self.drop_answer(at);
        }
        while self.bytes > BYTES_MAX && !self.answered.is_empty() {
            self.drop_answer(0);
        }
    }

    /// Removes a message that was answered with "retry later", so that it can be sent again.
    pub(super) fn allow_again(&mut self, scope: RequestKey) {
        self.remove(scope);
    }

    /// An envelope may be one window ahead, and is then fresh for two.
    fn fresh_until(&self, now: Timestamp) -> Timestamp {
        now.plus(Millis(self.window.0.saturating_mul(2)))
    }

    fn insert(&mut self, scope: RequestKey, message: IdempotencyRecord, until: Timestamp) {
        self.messages.insert(scope, message);
        self.oldest_first.push_back((until, scope));
    }

    /// Removes every trace: a leftover would expire the next message with this key too early.
    fn remove(&mut self, scope: RequestKey) {
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
    fn drop_message(&mut self, scope: RequestKey) -> bool {
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
        message.answer = AnswerState::Forgotten;
        self.bytes -= bytes;
        if let Some(share) = message.sender.and_then(|key| self.senders.get_mut(&key)) {
            share.bytes -= bytes;
        }
    }

    fn spend(&mut self, scope: RequestKey) {
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
pub(super) enum RestoredAnswer {
    Answer(HttpResponse),
    Forgotten,
    Left,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Millis = Millis::seconds(60);

    fn name(sender: u8, id: &str, content: u8) -> Fingerprint {
        Fingerprint {
            key: RequestKey::new("agora", &sender.to_string(), id),
            content: Digest([content; 16]),
            sender: PublicKey::from_bytes([sender; 32]),
            is_order: false,
        }
    }

    #[test]
    fn a_name_means_one_thing_for_as_long_as_it_could_be_fresh() {
        let mut memory = IdempotencyCache::new(WINDOW);
        let mut meet = |content: u8, now| memory.register(name(1, "a", content), Timestamp(now));
        assert!(matches!(meet(1, 0), Lookup::New(_)));
        assert!(matches!(meet(1, 120_000), Lookup::Repeat(_)));
        assert!(matches!(meet(2, 120_000), Lookup::Conflict));
        assert!(matches!(meet(2, 120_001), Lookup::New(_)));
    }

    #[test]
    fn what_was_allowed_again_is_remembered_for_as_long_as_anything_else() {
        let mut memory = IdempotencyCache::new(WINDOW);
        let a = name(1, "a", 1);
        assert!(matches!(memory.register(a, Timestamp(0)), Lookup::New(_)));
        memory.allow_again(a.key);
        assert!(matches!(memory.register(a, Timestamp(50_000)), Lookup::New(_)));
        // The first registration would have expired by now; the second has not.
        assert!(matches!(memory.register(a, Timestamp(130_000)), Lookup::Repeat(_)));
        assert!(matches!(memory.register(a, Timestamp(170_000)), Lookup::Repeat(_)));
    }

    #[test]
    fn an_order_signed_anew_is_spent_long_after() {
        let mut memory = IdempotencyCache::new(WINDOW);
        let order = Fingerprint { is_order: true, ..name(1, "a", 1) };
        assert!(matches!(memory.register(order, Timestamp(0)), Lookup::New(_)));
        let anew = Fingerprint { content: Digest([2; 16]), ..order };
        assert!(matches!(memory.register(anew, Timestamp(600_000)), Lookup::Conflict));
    }

    #[test]
    fn nothing_is_forgotten_to_make_room_and_nobody_takes_all_of_it() {
        let mut memory = IdempotencyCache::new(WINDOW);
        for n in 0..MESSAGES_PER_SENDER_MAX {
            memory.register(name(1, &n.to_string(), 0), Timestamp(0));
        }
        let mut meet = |sender, id: &str, now| memory.register(name(sender, id, 0), Timestamp(now));
        assert!(matches!(meet(1, "one more", 0), Lookup::Full));
        assert!(matches!(meet(1, "0", 0), Lookup::Repeat(_)));
        assert!(matches!(meet(2, "one more", 0), Lookup::New(_)));
        for sender in 2..=8 {
            for n in 0..MESSAGES_PER_SENDER_MAX {
                meet(sender, &n.to_string(), 0);
            }
        }
        assert!(matches!(meet(9, "one more", 0), Lookup::Full));
        assert!(matches!(meet(1, "x", 120_001), Lookup::New(_)));
        assert_eq!((memory.senders.len(), memory.messages.len()), (1, 1));
    }

    #[test]
    fn long_answers_are_forgotten_first_by_who_has_most_of_them() {
        let mut memory = IdempotencyCache::new(WINDOW);
        let mut answered = |sender, id: &str, bytes| {
            assert!(matches!(memory.register(name(sender, id, 0), Timestamp(0)), Lookup::New(_)));
            memory.record_answer(name(sender, id, 0).key, bytes);
        };
        answered(2, "a", 100);
        for n in 0..3 {
            answered(1, &n.to_string(), BYTES_PER_SENDER_MAX / 2);
        }
        for n in 10..30 {
            answered(n, "a", BYTES_PER_SENDER_MAX);
        }
        assert!(memory.bytes <= BYTES_MAX);
        let mut meet = |sender, id: &str| memory.register(name(sender, id, 0), Timestamp(0));
        assert!(matches!(meet(1, "0"), Lookup::Evicted));
        assert!(matches!(meet(10, "a"), Lookup::Evicted));
        assert!(matches!(meet(29, "a"), Lookup::Repeat(_)));
        memory.register(name(1, "end", 0), Timestamp(200_000));
        assert_eq!((memory.bytes, memory.answered.len(), memory.messages.len()), (0, 0, 1));
    }

    #[test]
    fn what_an_earlier_run_left_is_begun_again_and_nothing_else_under_its_name() {
        let mut memory = IdempotencyCache::new(WINDOW);
        let [left, done, gone] = ["l", "d", "g"].map(|id| name(1, id, 1));
        let answer = HttpResponse::new(200, "{}");
        for (name, answer) in [
            (left, RestoredAnswer::Left),
            (done, RestoredAnswer::Answer(answer.clone())),
            (gone, RestoredAnswer::Forgotten),
        ] {
            memory.restore(name.key, name.content, Timestamp(0), answer);
        }
        let mut meet = |name| memory.register(name, Timestamp(1));
        assert!(matches!(meet(name(1, "l", 2)), Lookup::Conflict));
        assert!(matches!(meet(left), Lookup::New(_)));
        assert!(matches!(meet(left), Lookup::Repeat(_)));
        assert!(matches!(meet(gone), Lookup::Evicted));
        let Lookup::Repeat(found) = meet(done) else { panic!("not known") };
        assert_eq!(*found.borrow(), Some(answer));
    }
}
