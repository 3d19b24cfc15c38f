//! The inputs that mutations start from: the corpus, and inputs that took a new path.

use std::collections::HashSet;

use super::dice::Dice;

/// How many are added to the corpus; after that a new one replaces another.
const ADDED_MAX: usize = 512;
/// Longer inputs are not added.
const BYTES_MAX: usize = 8 << 10;

/// The inputs that mutations start from.
pub struct Parents {
    all: Vec<Vec<u8>>,
    kept: usize,
    seen: HashSet<u64>,
}

impl Parents {
    /// Starts with these, which are never replaced.
    pub fn new(all: Vec<Vec<u8>>) -> Self {
        Self { kept: all.len(), all, seen: HashSet::new() }
    }

    /// Two of them.
    pub fn pair(&self, dice: &mut Dice) -> (&[u8], &[u8]) {
        let (one, other) = (dice.below(self.all.len()), dice.below(self.all.len()));
        (&self.all[one], &self.all[other])
    }

    /// Adds an input if its number of allocations is new.
    pub fn offer(&mut self, dice: &mut Dice, input: &[u8], allocations: u64) {
        if input.len() > BYTES_MAX || !self.seen.insert(allocations) {
            return;
        }
        if self.all.len() < self.kept + ADDED_MAX {
            self.all.push(input.to_vec());
        } else {
            let place = self.kept + dice.below(ADDED_MAX);
            self.all[place] = input.to_vec();
        }
    }
}
