//! What was seen before: the last so many of whatever it is.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// How many are remembered; the oldest is forgotten first.
const SEEN_MAX: usize = 10_000;

/// Things that happened once and are not to happen again.
#[derive(Debug)]
pub(super) struct Seen<T> {
    all: HashSet<T>,
    oldest_first: VecDeque<T>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), oldest_first: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> Seen<T> {
    /// Remembers one; `false` if it was there already.
    pub(super) fn insert(&mut self, one: T) -> bool {
        if !self.all.insert(one.clone()) {
            return false;
        }
        if self.oldest_first.len() >= SEEN_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.all.remove(&oldest);
        }
        self.oldest_first.push_back(one);
        true
    }

    /// Whether one is remembered.
    pub(super) fn contains(&self, one: &T) -> bool {
        self.all.contains(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_new_again_only_when_it_is_forgotten() {
        let mut seen = Seen::default();
        assert!(seen.insert(0));
        assert!(!seen.insert(0));
        (1..=SEEN_MAX).for_each(|n| assert!(seen.insert(n)));
        assert!(!seen.contains(&0));
        assert!(seen.contains(&1));
        assert_eq!(seen.all.len(), SEEN_MAX);
    }
}
