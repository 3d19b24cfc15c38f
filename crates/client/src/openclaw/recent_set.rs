//! A set of the most recent items, to detect repeats.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// Maximum number of items; the oldest is dropped first.
const SEEN_MAX: usize = 10_000;

/// The most recent items.
#[derive(Debug)]
pub(super) struct RecentSet<T> {
    all: HashSet<T>,
    oldest_first: VecDeque<T>,
}

impl<T> Default for RecentSet<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), oldest_first: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> RecentSet<T> {
    /// Adds an item; `false` if it was there already.
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

    /// Whether the set contains an item.
    pub(super) fn contains(&self, one: &T) -> bool {
        self.all.contains(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_new_again_only_when_it_is_forgotten() {
        let mut seen = RecentSet::default();
        assert!(seen.insert(0));
        assert!(!seen.insert(0));
        (1..=SEEN_MAX).for_each(|n| assert!(seen.insert(n)));
        assert!(!seen.contains(&0));
        assert!(seen.contains(&1));
        assert_eq!(seen.all.len(), SEEN_MAX);
    }
}
