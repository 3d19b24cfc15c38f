//! How long one answer may be. A list ends when its budget is spent, and says that there is more.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Bytes of one answer to a list, unless its first item alone is longer.
pub const ANSWER_BYTES: usize = 1 << 20;

/// What is left of an answer's length.
#[derive(Debug)]
pub struct ByteBudget {
    left: usize,
    empty: bool,
}

impl ByteBudget {
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, empty: true }
    }

    /// Takes an item in, if there is room for it. The first one is always taken, so that a reader who
    /// goes on from page to page comes past it.
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

    /// Writes an item, if there is room for it.
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
