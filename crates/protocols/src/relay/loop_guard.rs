//! The loop guard (R89): messages of two agents in a loop are delayed and flagged.
//!
//! It lives in memory: it protects from a burst, and a restart ends a burst as well.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use rialto_core::id::AgentId;
use rialto_core::time::{Millis, Timestamp};

/// How many messages of one conversation pass without delay within the window.
const FREE: usize = 30;
const WINDOW: Millis = Millis::minutes(1);
/// How often the same text passes without delay in a row.
const SAME_TEXT: u32 = 3;
/// The first delay; each further one is twice as long, up to the longest.
const FIRST_DELAY: Millis = Millis(500);
const LONGEST_DELAY: Millis = Millis::seconds(5);
/// The maximum number of watched conversations, a few megabytes.
const WATCHED_MAX: usize = 16_384;

/// Watches conversations.
#[derive(Default)]
pub struct LoopGuard {
    conversations: Mutex<HashMap<u64, Conversation>>,
}

/// A message to check, and its conversation.
#[derive(Clone, Copy, Debug)]
pub struct GuardedMessage<'a> {
    pub conversation: Option<&'a str>,
    pub turn: Option<u64>,
    pub text: &'a str,
}

/// The state of one conversation.
#[derive(Default)]
struct Conversation {
    /// The times of its newest messages, in a ring: the next one overwrites the oldest.
    /// Milliseconds that wrap around are enough for times compared within minutes.
    times: [u32; FREE],
    next: usize,
    heard: usize,
    text: u64,
    /// The sender and turn of the last message.
    turn: Option<(AgentId, u64)>,
    /// How often that text was repeated in a row.
    same: u32,
    /// How many were delayed in a row.
    slowed: u32,
}

impl LoopGuard {
    /// How long a message must wait, if it seems to be part of a loop.
    pub fn delay(
        &self,
        (from, to): (AgentId, AgentId),
        said: GuardedMessage<'_>,
        now: Timestamp,
    ) -> Option<Millis> {
        let key = hash(&(from.min(to), from.max(to), said.conversation));
        let mut talks =
            self.conversations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if talks.len() >= WATCHED_MAX && !talks.contains_key(&key) {
            talks.retain(|_, talk| talk.is_going_on(ms(now)));
            if talks.len() >= WATCHED_MAX {
                talks.clear();
            }
        }
        let turn = said.conversation.and(said.turn).map(|turn| (from, turn));
        talks.entry(key).or_default().hear(plain(said.text), turn, now)
    }
}

impl Conversation {
    /// Whether its last message is less than a minute old.
    fn is_going_on(&self, now: u32) -> bool {
        self.heard > 0 && is_recent(self.times[(self.next + FREE - 1) % FREE], now)
    }

    fn hear(&mut self, text: u64, turn: Option<(AgentId, u64)>, now: Timestamp) -> Option<Millis> {
        // The same turn again is a retry, not a further message: its sender missed the answer
        // (R47).
        if turn.is_some() && turn == self.turn && text == self.text {
            return None;
        }
        self.turn = turn;
        let now = ms(now);
        self.same = if self.is_going_on(now) && self.text == text { self.same + 1 } else { 1 };
        self.text = text;
        let crowded = self.heard >= FREE && is_recent(self.times[self.next], now);
        let circles = crowded || self.same > SAME_TEXT;
        self.times[self.next] = now;
        self.next = (self.next + 1) % FREE;
        self.heard = (self.heard + 1).min(FREE);
        if !circles {
            self.slowed = 0;
            return None;
        }
        let delay = FIRST_DELAY.0 << self.slowed.min(8);
        self.slowed += 1;
        Some(Millis(delay).min(LONGEST_DELAY))
    }
}

/// The low bits of the time.
fn ms(now: Timestamp) -> u32 {
    now.0 as u32
}

fn is_recent(then: u32, now: u32) -> bool {
    i64::from(now.wrapping_sub(then)) < WINDOW.0
}

/// A hash of the text without case and spacing.
fn plain(text: &str) -> u64 {
    // An attacker gains nothing from a collision, so a simple hash is enough.
    let mix = |sum: u64, envelope: char| {
        (sum.rotate_left(5) ^ u64::from(u32::from(envelope))).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    let visible = text.chars().filter(|envelope| !envelope.is_whitespace());
    visible.fold(0, |sum, envelope| match envelope.is_ascii() {
        true => mix(sum, envelope.to_ascii_lowercase()),
        false => envelope.to_lowercase().fold(sum, mix),
    })
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: (AgentId, AgentId) = (AgentId(1), AgentId(2));

    fn delay(
        guard: &LoopGuard,
        pair: (AgentId, AgentId),
        conversation: Option<&str>,
        text: &str,
        now: Timestamp,
    ) -> Option<Millis> {
        guard.delay(pair, GuardedMessage { conversation, turn: None, text }, now)
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_000_000 + ms)
    }

    #[test]
    fn thirty_a_minute_pass_and_each_further_one_waits_longer() {
        let guard = LoopGuard::default();
        let say = |n: i64| delay(&guard, PAIR, Some("c"), &format!("text {n}"), at(n * 100));
        assert!((0..30).all(|n| say(n).is_none()));
        let delays: Vec<_> = (30..37).filter_map(say).map(|delay| delay.0).collect();
        assert_eq!(delays, [500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
        // The first of them is more than a minute old.
        assert_eq!(delay(&guard, PAIR, Some("c"), "later", at(70_000)), None);
    }

    #[test]
    fn another_conversation_or_another_pair_is_not_held_back() {
        let guard = LoopGuard::default();
        for n in 0..40 {
            delay(&guard, PAIR, Some("c"), &format!("text {n}"), at(n));
        }
        assert_eq!(delay(&guard, PAIR, Some("d"), "x", at(50)), None);
        assert_eq!(delay(&guard, PAIR, None, "x", at(50)), None);
        assert_eq!(delay(&guard, (AgentId(1), AgentId(3)), Some("c"), "x", at(50)), None);
        assert!(delay(&guard, (AgentId(2), AgentId(1)), Some("c"), "x", at(50)).is_some());
    }

    #[test]
    fn the_same_text_passes_three_times_in_a_row_from_any_sender() {
        let guard = LoopGuard::default();
        let back = (AgentId(2), AgentId(1));
        assert_eq!(delay(&guard, PAIR, None, "Thank you!", at(0)), None);
        assert_eq!(delay(&guard, back, None, "thank  YOU!", at(1)), None);
        assert_eq!(delay(&guard, PAIR, None, " thank you! ", at(2)), None);
        assert!(delay(&guard, back, None, "Thank you!", at(3)).is_some());
        assert_eq!(delay(&guard, PAIR, None, "Something else", at(4)), None);
        assert_eq!(delay(&guard, PAIR, None, "Thank you!", at(5)), None);
    }

    #[test]
    fn a_repeated_turn_is_no_further_message() {
        let guard = LoopGuard::default();
        let say = |from: u64, to, conversation, turn| {
            let said = GuardedMessage { conversation, turn: Some(turn), text: "again" };
            guard.delay((AgentId(from), AgentId(to)), said, at(0)).is_some()
        };
        for _ in 0..50 {
            assert!(!say(1, 2, Some("c"), 1));
        }
        assert!(!say(1, 2, Some("c"), 2));
        // The same number from the other agent is a different turn.
        assert!(!say(2, 1, Some("c"), 2));
        assert!(say(1, 2, Some("c"), 3));
        // Without a conversation there are no turns.
        assert!((0..3).all(|_| !say(1, 2, None, 1)));
        assert!(say(1, 2, None, 1));
    }

    #[test]
    fn what_is_remembered_stays_bounded() {
        let guard = LoopGuard::default();
        for n in 0..(WATCHED_MAX as u64 + 10) {
            delay(&guard, (AgentId(n), AgentId(0)), None, "x", at(0));
        }
        assert!(guard.conversations.lock().unwrap().len() <= WATCHED_MAX);
    }
}
