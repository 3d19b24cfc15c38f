//! Limits the size of one answer. A list ends when its budget is used up, and says that there is
//! more.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The maximum size of one list answer in bytes, unless its first item alone is larger.
pub const ANSWER_BYTES: usize = 1 << 20;

/// The bytes that remain for an answer.
#[derive(Debug)]
pub struct ByteBudget {
    left: usize,
    empty: bool,
}

impl ByteBudget {
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, empty: true }
    }

    /// Takes an item if it fits. The first item is always taken, so that paging can get past it.
    pub fn take(&mut self, bytes: usize) -> bool {
        // The comma.
        let bytes = bytes.saturating_add(1);
        let fits = self.empty || bytes <= self.left;
        if fits {
            self.left = self.left.saturating_sub(bytes);
            self.empty = false;
        }
        fits
    }

    /// Writes an item if it fits.
    pub fn write(&mut self, item: &impl Serialize) -> Option<Box<RawValue>> {
        let text = to_raw_value(item).ok()?;
        self.take(text.get().len()).then_some(text)
    }
}

impl Default for ByteBudget {
    fn default() -> Self {
        Self::new(ANSWER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_until_the_next_one_is_too_long() {
        let mut budget = ByteBudget::new(10);
        assert!(budget.take(3));
        assert!(budget.take(5));
        assert!(!budget.take(0), "all ten are used up, commas included");
    }

    #[test]
    fn the_first_item_is_taken_however_long_it_is_and_then_no_other() {
        let mut budget = ByteBudget::new(10);
        assert!(budget.take(1_000));
        assert!(!budget.take(1));
    }
}
