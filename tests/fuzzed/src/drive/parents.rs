//! The inputs that others are made of: the kept ones, and those that went a way of their own.

use std::collections::HashSet;

use super::dice::Dice;

/// How many are added to the kept ones; after that a new one takes the place of another.
const ADDED_MAX: usize = 512;
/// Longer ones are not worth repeating.
const BYTES_MAX: usize = 8 << 10;

/// What inputs are made of.
pub struct Parents {
    all: Vec<Vec<u8>>,
    kept: usize,
    seen: HashSet<u64>,
}

impl Parents {
    /// These, which stay.
    pub fn new(all: Vec<Vec<u8>>) -> Self {
        Self { kept: all.len(), all, seen: HashSet::new() }
    }

    /// Two of them.
    pub fn pair(&self, dice: &mut Dice) -> (&[u8], &[u8]) {
        let (one, other) = (dice.below(self.all.len()), dice.below(self.all.len()));
        (&self.all[one], &self.all[other])
    }

    /// Takes one up if nobody cost as many allocations before.
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
