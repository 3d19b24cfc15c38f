//! The most recent messages, by sender and id, to detect repeats.

use std::collections::{HashSet, VecDeque};

use rialto_protocols::kit::ed25519::PublicKey;

/// Maximum number of messages; the oldest is dropped first.
const SEEN_MAX: usize = 10_000;

type MessageId = (PublicKey, String);

/// Messages by sender and id.
#[derive(Debug, Default)]
pub(super) struct SeenMessages {
    names: HashSet<MessageId>,
    oldest_first: VecDeque<MessageId>,
}

impl SeenMessages {
    /// Adds a message; `false` if it was there already.
    pub(super) fn insert(&mut self, sender: PublicKey, id: &str) -> bool {
        let name = (sender, id.to_owned());
        if !self.names.insert(name.clone()) {
            return false;
        }
        if self.oldest_first.len() >= SEEN_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.names.remove(&oldest);
        }
        self.oldest_first.push_back(name);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once_for_each_sender_until_it_is_forgotten() {
        let key = |byte| PublicKey::from_bytes([byte; 32]);
        let mut seen = SeenMessages::default();
        assert!(seen.insert(key(1), "a"));
        assert!(!seen.insert(key(1), "a"));
        assert!(seen.insert(key(2), "a"));
        for n in 0..SEEN_MAX {
            seen.insert(key(3), &n.to_string());
        }
        assert!(seen.insert(key(1), "a"));
        assert_eq!(seen.names.len(), SEEN_MAX);
    }
}
