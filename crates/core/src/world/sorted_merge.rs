//! Several sorted lists read as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The items of several sorted lists, in order. Only the first item of each is held.
pub struct SortedMerge<I: Iterator> {
    lists: Vec<I>,
    heads: BinaryHeap<Reverse<(I::Item, usize)>>,
}

impl<I: Iterator<Item: Ord>> SortedMerge<I> {
    pub fn new(lists: impl Iterator<Item = I>) -> Self {
        let mut merge = Self { lists: lists.collect(), heads: BinaryHeap::new() };
        for at in 0..merge.lists.len() {
            merge.push_head(at);
        }
        merge
    }

    fn push_head(&mut self, at: usize) {
        if let Some(item) = self.lists[at].next() {
            #[cfg(test)]
            visits::count();
            self.heads.push(Reverse((item, at)));
        }
    }
}

impl<I: Iterator<Item: Ord>> Iterator for SortedMerge<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let Reverse((item, at)) = self.heads.pop()?;
        self.push_head(at);
        Some(item)
    }
}

/// How many entries of the index were read, for tests of what a choice costs.
#[cfg(test)]
pub mod visits {
    use std::cell::Cell;

    thread_local!(static VISITS: Cell<usize> = const { Cell::new(0) });

    pub fn count() {
        VISITS.set(VISITS.get() + 1);
    }

    /// Entries read since the last call.
    pub fn take() -> usize {
        VISITS.take()
    }
}
