//! Deduplicates turns: one turn of a conversation is one message, however often it arrives (spec,
//! section 5).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::message::EnvelopeContents;

/// Maximum number of turns; the oldest is dropped first.
const TURNS_MAX: usize = 10_000;

/// Identifies a turn.
pub(super) type TurnDigest = [u8; 32];

/// The turns that were handled.
#[derive(Debug, Default)]
pub(super) struct TurnDedup {
    turns: Mutex<SeenTurns>,
}

#[derive(Debug, Default)]
struct SeenTurns {
    seen: HashMap<TurnDigest, Arc<OnceCell<()>>>,
    oldest_first: VecDeque<TurnDigest>,
}

impl TurnDedup {
    /// The cell of this turn, filled if it was handled before; `None` for a message without a turn.
    pub(super) fn entry(
        &self,
        sender: &str,
        contents: &EnvelopeContents,
    ) -> Option<Arc<OnceCell<()>>> {
        let digest = turn_digest(sender, contents)?;
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.seen.get(&digest) {
            return Some(Arc::clone(turn));
        }
        if turns.seen.len() >= TURNS_MAX
            && let Some(oldest) = turns.oldest_first.pop_front()
        {
            turns.seen.remove(&oldest);
        }
        let turn = Arc::<OnceCell<()>>::default();
        turns.seen.insert(digest, Arc::clone(&turn));
        turns.oldest_first.push_back(digest);
        Some(turn)
    }
}

/// A digest of a turn and its content: another text under the same number is another message.
pub(super) fn turn_digest(sender: &str, contents: &EnvelopeContents) -> Option<TurnDigest> {
    let (conversation, turn) = (contents.conversation_id.as_deref()?, contents.turn_number?);
    let envelope = normalized_envelope(contents)?;
    let bytes = serde_json::to_vec(&(sender, conversation, turn, envelope)).ok()?;
    Some(Sha256::digest(bytes).into())
}

/// The envelope, normalized so that spacing and member order make no difference.
pub(super) fn normalized_envelope(contents: &EnvelopeContents) -> Option<Value> {
    serde_json::from_str(&contents.envelope).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str, turn: Option<u64>) -> EnvelopeContents {
        let conversation_id = Some("c".to_owned());
        let envelope = format!(r#"{{"original_text":"{text}", "x":1}}"#);
        EnvelopeContents {
            envelope,
            conversation_id,
            turn_number: turn,
            ..EnvelopeContents::default()
        }
    }

    #[test]
    fn a_turn_is_known_again_by_sender_conversation_number_and_text() {
        let once = TurnDedup::default();
        let first = once.entry("a@b", &contents("hi", Some(1))).expect("a turn");
        first.set(()).expect("empty");
        let taken = |sender, contents: &EnvelopeContents| {
            once.entry(sender, contents).expect("a turn").initialized()
        };
        assert!(taken("a@b", &contents("hi", Some(1))));
        let mut respaced = contents("hi", Some(1));
        respaced.envelope = r#"{"x":1,"original_text":"hi"}"#.to_owned();
        assert!(taken("a@b", &respaced));
        assert!(!taken("c@b", &contents("hi", Some(1))));
        assert!(!taken("a@b", &contents("hi", Some(2))));
        assert!(!taken("a@b", &contents("ho", Some(1))));
        assert!(once.entry("a@b", &contents("hi", None)).is_none());
    }

    #[test]
    fn only_so_many_turns_are_remembered() {
        let once = TurnDedup::default();
        for turn in 1..=TURNS_MAX as u64 + 1 {
            once.entry("a@b", &contents("hi", Some(turn))).expect("a turn").set(()).expect("empty");
        }
        assert!(!once.entry("a@b", &contents("hi", Some(1))).expect("a turn").initialized());
        let last = TURNS_MAX as u64 + 1;
        assert!(once.entry("a@b", &contents("hi", Some(last))).expect("a turn").initialized());
        let turns = once.turns.lock().expect("sound");
        assert_eq!((turns.seen.len(), turns.oldest_first.len()), (TURNS_MAX, TURNS_MAX));
    }
}
