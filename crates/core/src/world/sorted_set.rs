//! Sorted sets of small values in little memory.
//!
//! Values are in blocks of a few hundred, so an entry takes little more than its value, a copy is a
//! copy of blocks, and a set of one value is one small allocation. In a B-tree that is filled in
//! order, an entry takes twice its value, and a set of one value takes as much as one of eleven.

use std::slice;

/// Values per block at most.
const BLOCK: usize = 256;

/// A sorted set.
#[derive(Clone, Debug)]
pub struct SortedSet<T> {
    /// The first block; most sets have no other.
    first: Vec<T>,
    rest: Option<Box<FurtherBlocks<T>>>,
}

/// The blocks after the first, in order, none of them empty.
#[derive(Clone, Debug)]
struct FurtherBlocks<T>(Vec<Vec<T>>);

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self { first: Vec::new(), rest: None }
    }
}

impl<T: Ord + Copy> SortedSet<T> {
    /// The number of values, from the lengths of all blocks.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest().iter().map(Vec::len).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub fn first(&self) -> Option<T> {
        self.first.first().copied()
    }

    /// Inserts a value; false if it is there already.
    pub fn insert(&mut self, value: T) -> bool {
        let number = self.block_of(value);
        let last = number == self.rest().len();
        let block = self.block_mut(number);
        let Err(at) = block.binary_search(&value) else { return false };
        if block.len() < BLOCK {
            if block.is_empty() {
                block.reserve_exact(1);
            }
            block.insert(at, value);
        } else if last && at == BLOCK {
            // Values that come in order fill their blocks.
            self.rest_mut().push(Vec::from([value]));
        } else {
            let mut upper = block.split_off(BLOCK / 2);
            if at > BLOCK / 2 {
                upper.insert(at - BLOCK / 2, value);
            } else {
                block.insert(at, value);
            }
            self.rest_mut().insert(number, upper);
        }
        true
    }

    /// Removes a value; false if it was not there.
    pub fn remove(&mut self, value: T) -> bool {
        let number = self.block_of(value);
        let block = self.block_mut(number);
        let Ok(at) = block.binary_search(&value) else { return false };
        block.remove(at);
        if block.len() < BLOCK / 2 {
            self.join(number);
        }
        true
    }

    pub fn iter(&self) -> Values<'_, T> {
        Values { block: self.first.iter(), rest: self.rest().iter() }
    }

    /// The values from this one on.
    pub fn from(&self, first: T) -> Values<'_, T> {
        let number = self.block_of(first);
        let block = self.block(number);
        let start = block.partition_point(|value| *value < first);
        Values { block: block[start..].iter(), rest: self.rest()[number..].iter() }
    }

    /// The block that holds a value or would hold it: the last that does not begin after it.
    fn block_of(&self, value: T) -> usize {
        self.rest().partition_point(|block| block[0] <= value)
    }

    fn block(&self, number: usize) -> &[T] {
        if number == 0 { &self.first } else { &self.rest()[number - 1] }
    }

    fn block_mut(&mut self, number: usize) -> &mut Vec<T> {
        if number == 0 { &mut self.first } else { &mut self.rest_mut()[number - 1] }
    }

    fn rest(&self) -> &[Vec<T>] {
        self.rest.as_ref().map_or(&[], |rest| &rest.0)
    }

    fn rest_mut(&mut self) -> &mut Vec<Vec<T>> {
        &mut self.rest.get_or_insert_with(|| Box::new(FurtherBlocks(Vec::new()))).0
    }

    /// Joins a block that is less than half full with a neighbour if they fill at most half of one.
    fn join(&mut self, number: usize) {
        let blocks = 1 + self.rest().len();
        let lower = if number + 1 == blocks { number.saturating_sub(1) } else { number };
        if lower + 1 == blocks {
            return;
        }
        let joined = self.block(lower).len() + self.block(lower + 1).len();
        if joined <= BLOCK / 2 || self.block(lower).is_empty() || self.block(lower + 1).is_empty() {
            let mut upper = self.rest_mut().remove(lower);
            self.block_mut(lower).append(&mut upper);
            if blocks == 2 {
                self.rest = None;
            }
        }
    }
}

/// The values of a set, in order.
pub struct Values<'a, T> {
    block: slice::Iter<'a, T>,
    rest: slice::Iter<'a, Vec<T>>,
}

impl<T: Copy> Iterator for Values<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(value) = self.block.next() {
                return Some(*value);
            }
            self.block = self.rest.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn agree(set: &SortedSet<u64>, tree: &BTreeSet<u64>, from: u64) {
        assert_eq!((set.len(), set.first()), (tree.len(), tree.first().copied()));
        assert!(set.iter().eq(tree.iter().copied()));
        assert!(set.from(from).eq(tree.range(from..).copied()));
        assert!(set.rest().iter().all(|block| !block.is_empty() && block.len() <= BLOCK));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn it_holds_what_a_tree_holds(
            ordered in 0..2_000_u64,
            steps in prop::collection::vec((prop::bool::weighted(0.3), 0..2_500_u64), 0..3_000),
        ) {
            let (mut set, mut tree) = (SortedSet::default(), BTreeSet::new());
            for value in 0..ordered {
                prop_assert_eq!(set.insert(value), tree.insert(value));
            }
            agree(&set, &tree, ordered / 2);
            for (number, (adds, value)) in steps.into_iter().enumerate() {
                if adds {
                    prop_assert_eq!(set.insert(value), tree.insert(value));
                } else {
                    prop_assert_eq!(set.remove(value), tree.remove(&value));
                }
                if number % 64 == 0 {
                    agree(&set, &tree, value);
                }
            }
            agree(&set, &tree, 0);
            for value in 0..2_500 {
                prop_assert_eq!(set.remove(value), tree.remove(&value));
            }
            prop_assert!(set.is_empty() && set.rest.is_none());
        }
    }

    #[test]
    fn values_that_come_in_order_fill_their_blocks() {
        let mut set = SortedSet::default();
        for value in 0..10_000_u64 {
            set.insert(value);
        }
        assert_eq!(1 + set.rest().len(), 10_000_usize.div_ceil(BLOCK));
    }
}
