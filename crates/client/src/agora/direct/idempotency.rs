//! The idempotency cache of a peer: messages received within the time window, and their answers,
//! with their notes in the journal.
//!
//! The fact that a message came must be kept while the message could come again. So when the cache
//! is full, new messages are refused. Answers may be evicted, oldest first; a repeat then gets an
//! error that says so. Each sender can use only a part of both limits.

use std::collections::{HashMap, HashSet, VecDeque};

use rialto_core::alias::Digest;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::ed25519::PublicKey;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::offers::{OfferRecord, Offers};
use crate::http_server::HttpResponse;
use crate::worker::journal::Entry;
use crate::worker::request_log::{Fingerprint, RequestKey};

/// Maximum number of messages, in total and per sender.
const MESSAGES_MAX: usize = 10_000;
const MESSAGES_PER_SENDER_MAX: usize = MESSAGES_MAX / 8;
/// Maximum bytes of answers, in total and per sender.
const BYTES_MAX: usize = 32 << 20;
const BYTES_PER_SENDER_MAX: usize = BYTES_MAX / 8;
/// Maximum number of ids of REQUESTs and ACCEPTs that stay used after their messages have expired.
const SPENT_MAX: usize = 100_000;

/// Identifies a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageRef {
    pub(super) fingerprint: Fingerprint,
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
    /// The size of its answer; 0 if there is none.
    bytes: usize,
    answer: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    Available(watch::Receiver<Option<HttpResponse>>),
    Evicted,
    /// An earlier run of this program started it and did not finish.
    Interrupted,
}

impl IdempotencyCache {
    fn new(window: Millis) -> Self {
        Self {
            window,
            messages: HashMap::new(),
            oldest_first: VecDeque::new(),
            spent: HashSet::new(),
            spent_first: VecDeque::new(),
        }
    }

    /// Registers a message whose signature was just verified.
    pub(super) fn register(&mut self, message: MessageRef, now: Timestamp) -> Lookup {
        self.forget(now);
        let MessageRef { fingerprint: Fingerprint { key, content }, sender, is_order } = message;
        match self.messages.get(&key) {
            Some(message) if message.content != content => return Lookup::Conflict,
            Some(IdempotencyRecord { answer: AnswerState::Available(answer), .. }) => {
                return Lookup::Repeat(answer.clone());
            }
            Some(IdempotencyRecord { answer: AnswerState::Evicted, .. }) => {
                return Lookup::Evicted;
            }
            Some(IdempotencyRecord { answer: AnswerState::Interrupted, .. }) => self.remove(key),
            None if self.spent.contains(&key) => return Lookup::Conflict,
            None => {}
        }
        let from_sender =
            self.messages.values().filter(|message| message.sender == Some(sender)).count();
        if self.messages.len() >= MESSAGES_MAX || from_sender >= MESSAGES_PER_SENDER_MAX {
            return Lookup::Full;
        }
        let (answer_sender, answer) = watch::channel(None);
        let answer = AnswerState::Available(answer);
        let record =
            IdempotencyRecord { content, sender: Some(sender), is_order, bytes: 0, answer };
        self.insert(key, record, now);
        Lookup::New(answer_sender)
    }

    /// Records the size of a message's answer.
    pub(super) fn record_answer(&mut self, key: RequestKey, bytes: usize) {
        let Some(message) = self.messages.get_mut(&key) else { return };
        message.bytes = bytes;
        let sender = message.sender;
        self.evict_answers(BYTES_PER_SENDER_MAX, |message| message.sender == sender);
        self.evict_answers(BYTES_MAX, |_| true);
    }

    /// Evicts the oldest answers until those that count have at most so many bytes.
    fn evict_answers(&mut self, max: usize, counts: impl Fn(&IdempotencyRecord) -> bool) {
        let counted = self.messages.values().filter(|message| counts(message));
        let mut bytes: usize = counted.map(|message| message.bytes).sum();
        for (_, key) in &self.oldest_first {
            if bytes <= max {
                return;
            }
            if let Some(message) = self.messages.get_mut(key)
                && message.bytes > 0
                && counts(message)
            {
                bytes -= std::mem::take(&mut message.bytes);
                message.answer = AnswerState::Evicted;
            }
        }
    }

    fn insert(&mut self, key: RequestKey, record: IdempotencyRecord, since: Timestamp) {
        self.messages.insert(key, record);
        // An envelope may be one window ahead, and is then fresh for two.
        let fresh_until = since.plus(Millis(self.window.0.saturating_mul(2)));
        self.oldest_first.push_back((fresh_until, key));
    }

    /// Removes a message, so that it can be sent again. No trace is left: it would expire the next
    /// message with this key too early.
    pub(super) fn remove(&mut self, key: RequestKey) {
        self.oldest_first.retain(|(_, other)| *other != key);
        self.messages.remove(&key);
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((until, _)) = self.oldest_first.front()
            && *until < now
            && let Some((_, key)) = self.oldest_first.pop_front()
        {
            if self.messages.remove(&key).is_some_and(|message| message.is_order) {
                self.spend(key);
            }
        }
    }

    fn spend(&mut self, key: RequestKey) {
        if self.spent_first.len() >= SPENT_MAX
            && let Some(oldest) = self.spent_first.pop_front()
        {
            self.spent.remove(&oldest);
        }
        if self.spent.insert(key) {
            self.spent_first.push_back(key);
        }
    }
}

/// The journal's note of a request.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    answer: Option<SavedAnswer>,
    /// The offer that was made.
    offer: Option<OfferRecord>,
    /// The offer that was accepted.
    takes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedAnswer {
    status: u16,
    body: String,
    retry_after_seconds: Option<u32>,
}

/// The journal entry for a request that starts, or for one that was answered. It accepts the offer
/// `takes`, or made `offer`.
pub(super) fn journal_entry(
    fingerprint: Fingerprint,
    received_at: Timestamp,
    takes: Option<&str>,
    answer: Option<&HttpResponse>,
    offer: Option<OfferRecord>,
) -> Entry {
    let answer = answer.map(|answer| SavedAnswer {
        status: answer.status,
        body: String::from_utf8_lossy(&answer.body).into_owned(),
        retry_after_seconds: answer.retry_after_seconds,
    });
    let is_finished = answer.is_some();
    let note = Note { answer, offer, takes: takes.map(str::to_owned) };
    fingerprint.entry(received_at, is_finished, serde_json::to_string(&note).ok())
}

/// Restores the idempotency cache and the offers of an earlier run of this program.
pub(super) fn restore(entries: &[Entry], window: Millis) -> (IdempotencyCache, Offers) {
    let (mut cache, mut offers) = (IdempotencyCache::new(window), Offers::default());
    let mut accepted = Vec::new();
    for entry in entries {
        let note = entry.note.as_deref().and_then(|note| serde_json::from_str(note).ok());
        let Note { answer, offer, takes } = note.unwrap_or_default();
        if let Some(offer) = offer {
            offers.restore(offer);
        }
        accepted.extend(takes.map(|id| (id, entry.is_finished)));
        let state = match answer {
            Some(SavedAnswer { status, body, retry_after_seconds }) => {
                let answer =
                    HttpResponse { retry_after_seconds, ..HttpResponse::new(status, body) };
                AnswerState::Available(watch::channel(Some(answer)).1)
            }
            None if entry.is_finished => AnswerState::Evicted,
            None => AnswerState::Interrupted,
        };
        let Fingerprint { key, content } = entry.fingerprint();
        let bytes = if matches!(state, AnswerState::Available(_)) { entry.bytes() } else { 0 };
        let record =
            IdempotencyRecord { content, sender: None, is_order: true, bytes, answer: state };
        cache.insert(key, record, entry.received_at());
    }
    cache.evict_answers(BYTES_MAX, |_| true);
    // Restored last: whatever the order of entries, an offer is made before it is accepted.
    for (id, is_finished) in accepted {
        offers.restore_accepted(&id, is_finished);
    }
    (cache, offers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Millis = Millis::seconds(60);

    fn message(sender: u8, id: &str, content: u8) -> MessageRef {
        let key = RequestKey::new("agora", &sender.to_string(), id);
        let fingerprint = Fingerprint { key, content: Digest([content; 16]) };
        let sender = PublicKey::from_bytes([sender; 32]);
        MessageRef { fingerprint, sender, is_order: false }
    }

    #[test]
    fn an_id_means_one_message_for_as_long_as_it_could_be_fresh() {
        let mut cache = IdempotencyCache::new(WINDOW);
        let mut register =
            |content: u8, now| cache.register(message(1, "a", content), Timestamp(now));
        assert!(matches!(register(1, 0), Lookup::New(_)));
        assert!(matches!(register(1, 120_000), Lookup::Repeat(_)));
        assert!(matches!(register(2, 120_000), Lookup::Conflict));
        assert!(matches!(register(2, 120_001), Lookup::New(_)));
    }

    #[test]
    fn a_message_that_may_be_sent_again_is_then_known_for_as_long_as_any_other() {
        let mut cache = IdempotencyCache::new(WINDOW);
        let a = message(1, "a", 1);
        assert!(matches!(cache.register(a, Timestamp(0)), Lookup::New(_)));
        cache.remove(a.fingerprint.key);
        assert!(matches!(cache.register(a, Timestamp(50_000)), Lookup::New(_)));
        // The first registration would have expired by now; the second has not.
        assert!(matches!(cache.register(a, Timestamp(130_000)), Lookup::Repeat(_)));
        assert!(matches!(cache.register(a, Timestamp(170_000)), Lookup::Repeat(_)));
    }

    #[test]
    fn an_id_of_a_request_stays_used_long_after() {
        let mut cache = IdempotencyCache::new(WINDOW);
        let order = MessageRef { is_order: true, ..message(1, "a", 1) };
        assert!(matches!(cache.register(order, Timestamp(0)), Lookup::New(_)));
        let signed_again = MessageRef { is_order: true, ..message(1, "a", 2) };
        assert!(matches!(cache.register(signed_again, Timestamp(600_000)), Lookup::Conflict));
    }

    #[test]
    fn no_message_is_forgotten_to_make_room_and_no_sender_uses_all_of_it() {
        let mut cache = IdempotencyCache::new(WINDOW);
        for n in 0..MESSAGES_PER_SENDER_MAX {
            cache.register(message(1, &n.to_string(), 0), Timestamp(0));
        }
        let mut register =
            |sender, id: &str, now| cache.register(message(sender, id, 0), Timestamp(now));
        assert!(matches!(register(1, "one more", 0), Lookup::Full));
        assert!(matches!(register(1, "0", 0), Lookup::Repeat(_)));
        assert!(matches!(register(2, "one more", 0), Lookup::New(_)));
        for sender in 2..=8 {
            for n in 0..MESSAGES_PER_SENDER_MAX {
                register(sender, &n.to_string(), 0);
            }
        }
        assert!(matches!(register(9, "one more", 0), Lookup::Full));
        assert!(matches!(register(1, "x", 120_001), Lookup::New(_)));
        assert_eq!(cache.messages.len(), 1);
    }

    #[test]
    fn long_answers_are_evicted_first_from_the_sender_with_most_of_them() {
        let mut cache = IdempotencyCache::new(WINDOW);
        let mut answered = |sender, id: &str, bytes| {
            assert!(matches!(cache.register(message(sender, id, 0), Timestamp(0)), Lookup::New(_)));
            cache.record_answer(message(sender, id, 0).fingerprint.key, bytes);
        };
        answered(2, "a", 100);
        for n in 0..3 {
            answered(1, &n.to_string(), BYTES_PER_SENDER_MAX / 2);
        }
        for n in 10..30 {
            answered(n, "a", BYTES_PER_SENDER_MAX);
        }
        let bytes: usize = cache.messages.values().map(|message| message.bytes).sum();
        assert!(bytes <= BYTES_MAX);
        let mut register = |sender, id: &str| cache.register(message(sender, id, 0), Timestamp(0));
        assert!(matches!(register(1, "0"), Lookup::Evicted));
        assert!(matches!(register(10, "a"), Lookup::Evicted));
        assert!(matches!(register(29, "a"), Lookup::Repeat(_)));
        cache.register(message(1, "end", 0), Timestamp(200_000));
        assert_eq!((cache.oldest_first.len(), cache.messages.len()), (1, 1));
    }

    #[test]
    fn an_interrupted_message_starts_again_and_its_id_stays_used() {
        let [interrupted, answered, evicted] = ["i", "a", "e"].map(|id| message(1, id, 1));
        let answer = HttpResponse::new(200, "{}");
        let entry = |message: MessageRef, answer| {
            journal_entry(message.fingerprint, Timestamp(0), None, answer, None)
        };
        let lost = Entry { note: None, ..entry(evicted, Some(&answer)) };
        let entries = [entry(interrupted, None), entry(answered, Some(&answer)), lost];
        let (mut cache, _) = restore(&entries, WINDOW);
        let mut register = |message| cache.register(message, Timestamp(1));
        assert!(matches!(register(message(1, "i", 2)), Lookup::Conflict));
        assert!(matches!(register(interrupted), Lookup::New(_)));
        assert!(matches!(register(interrupted), Lookup::Repeat(_)));
        assert!(matches!(register(evicted), Lookup::Evicted));
        let Lookup::Repeat(restored) = register(answered) else { panic!("not known") };
        assert_eq!(*restored.borrow(), Some(answer));
    }
}
