//! The past: turns that have ended. An answer that was under way when one ended may still name it,
//! and it must not be taken for a new one.

use std::collections::VecDeque;

use crate::agent::record::Turn;

/// Turns that are remembered.
const REMEMBERED: usize = 1_000;

/// The turns that ended last.
#[derive(Debug, Default)]
pub(super) struct Past(VecDeque<Turn>);

impl Past {
    /// Remembers one more. Now and then the older half is forgotten for it; says whether it was.
    pub(super) fn add(&mut self, turn: Turn) -> bool {
        self.0.push_back(turn);
        let is_full = self.0.len() > REMEMBERED;
        if is_full {
            self.0.drain(..REMEMBERED / 2);
        }
        is_full
    }

    pub(super) fn contains(&self, turn: &Turn) -> bool {
        self.0.contains(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_turns_are_remembered_and_the_oldest_forgotten() {
        let turn = |number: usize| Turn { id: number.to_string(), turn: 1 };
        let mut past = Past::default();
        let cut: Vec<usize> = (0..=REMEMBERED).filter(|number| past.add(turn(*number))).collect();
        assert_eq!(cut, [REMEMBERED]);
        assert!(!past.contains(&turn(0)) && !past.contains(&turn(REMEMBERED / 2 - 1)));
        assert!(past.contains(&turn(REMEMBERED / 2)) && past.contains(&turn(REMEMBERED)));
        // It is cut in halves, and not one by one.
        assert!(!past.add(turn(REMEMBERED + 1)));
    }
}
