//! Sorted sets of words that take little memory while they are small.
//!
//! Most skills are offered by a few agents, and a B-tree of one entry takes as much memory as one
//! of eleven.

use std::collections::{BTreeSet, btree_set};
use std::slice;

/// Above this many entries a set becomes a tree.
const SORTED_MAX: usize = 32;

/// A sorted set of words.
#[derive(Clone, Debug)]
pub enum KeySet {
    Sorted(Vec<u64>),
    Tree(BTreeSet<u64>),
}

impl Default for KeySet {
    fn default() -> Self {
        Self::Sorted(Vec::new())
    }
}

impl KeySet {
    pub fn len(&self) -> usize {
        match self {
            Self::Sorted(keys) => keys.len(),
            Self::Tree(keys) => keys.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a key; false if it is there already.
    pub fn insert(&mut self, key: u64) -> bool {
        match self {
            Self::Tree(keys) => keys.insert(key),
            Self::Sorted(keys) => {
                let Err(at) = keys.binary_search(&key) else { return false };
                if keys.len() < SORTED_MAX {
                    if keys.is_empty() {
                        keys.reserve_exact(1);
                    }
                    keys.insert(at, key);
                } else {
                    let mut tree: BTreeSet<u64> = keys.drain(..).collect();
                    tree.insert(key);
                    *self = Self::Tree(tree);
                }
                true
            }
        }
    }

    /// Removes a key; false if it was not there.
    pub fn remove(&mut self, key: u64) -> bool {
        match self {
            Self::Sorted(keys) => match keys.binary_search(&key) {
                Ok(at) => {
                    keys.remove(at);
                    true
                }
                Err(_) => false,
            },
            Self::Tree(keys) => {
                let removed = keys.remove(&key);
                // Half of the limit, so that a set at the limit does not change back and forth.
                if keys.len() <= SORTED_MAX / 2 {
                    *self = Self::Sorted(keys.iter().copied().collect());
                }
                removed
            }
        }
    }

    pub fn iter(&self) -> KeyIter<'_> {
        self.from(0)
    }

    /// The keys from this one on.
    pub fn from(&self, first: u64) -> KeyIter<'_> {
        match self {
            Self::Sorted(keys) => {
                KeyIter::Sorted(keys[keys.partition_point(|key| *key < first)..].iter())
            }
            Self::Tree(keys) => KeyIter::Tree(keys.range(first..)),
        }
    }
}

/// The keys of a set, in order.
pub enum KeyIter<'a> {
    Sorted(slice::Iter<'a, u64>),
    Tree(btree_set::Range<'a, u64>),
}

impl Iterator for KeyIter<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Sorted(keys) => keys.next().copied(),
            Self::Tree(keys) => keys.next().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_tree_holds(steps in prop::collection::vec((any::<bool>(), 0..120_u64), 0..400)) {
            let (mut set, mut tree) = (KeySet::default(), BTreeSet::new());
            for (adds, key) in steps {
                if adds {
                    prop_assert_eq!(set.insert(key), tree.insert(key));
                } else {
                    prop_assert_eq!(set.remove(key), tree.remove(&key));
                }
                prop_assert_eq!(set.len(), tree.len());
                prop_assert!(set.iter().eq(tree.iter().copied()));
                prop_assert!(set.from(key).eq(tree.range(key..).copied()));
            }
        }
    }
}
