//! A set of the most recent items, to detect repeats.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// Maximum number of items; the oldest is dropped first.
const SEEN_MAX: usize = 10_000;

/// The most recent items.
#[derive(Debug)]
pub(crate) struct RecentSet<T> {
    items: HashSet<T>,
    oldest_first: VecDeque<T>,
}

impl<T> Default for RecentSet<T> {
    fn default() -> Self {
        Self { items: HashSet::new(), oldest_first: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> RecentSet<T> {
    /// Adds an item; `false` if it was there already.
    pub(crate) fn insert(&mut self, item: T) -> bool {
        if !self.items.insert(item.clone()) {
            return false;
        }
        if self.oldest_first.len() >= SEEN_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.items.remove(&oldest);
        }
        self.oldest_first.push_back(item);
        true
    }

    /// Whether the set contains an item.
    pub(crate) fn contains(&self, item: &T) -> bool {
        self.items.contains(item)
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
        assert_eq!(seen.items.len(), SEEN_MAX);
    }
}
