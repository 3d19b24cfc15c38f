//! The stepwise score: 0 to 100, one step per settled job.

use serde::{Deserialize, Serialize};

/// A score of 0 to 100, in millionths so that recomputing gives the same digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(i64);

/// Weight of a success: 2.0.
const REWARD: i64 = 2_000_000;
/// A failure costs 3.0 × 1.5, for any hirer.
const PENALTY: i64 = 4_500_000;
/// 100.0 in millionths.
const FULL: i64 = 100_000_000;

impl Score {
    /// The score every agent starts with, and the one assumed for a hirer without a score: 50.0.
    pub const START: Self = Self(50_000_000);
    /// 100.0.
    pub const MAX: Self = Self(FULL);
    /// 0.0.
    pub const MIN: Self = Self(0);

    /// A score from millionths, clamped to 0–100.
    pub fn from_millionths(millionths: i64) -> Self {
        Self(millionths.clamp(0, FULL))
    }

    /// The score in millionths.
    pub fn millionths(self) -> i64 {
        self.0
    }

    /// After a success for a hirer with this score: plus 2.0 × hirer / 100.
    pub fn after_success(self, hirer: Self) -> Self {
        Self::from_millionths(self.0 + REWARD * hirer.0 / FULL)
    }

    /// After a failure: minus 4.5.
    pub fn after_failure(self) -> Self {
        Self::from_millionths(self.0 - PENALTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[allow(clippy::float_arithmetic)]
    fn score(text: f64) -> Score {
        Score((text * 1e6).round() as i64)
    }

    #[test]
    fn the_worked_numbers_of_the_published_formula() {
        assert_eq!(Score::START.after_success(score(50.0)), score(51.0));
        assert_eq!(Score::START.after_success(score(100.0)), score(52.0));
        assert_eq!(score(51.0).after_failure(), score(46.5));
        assert_eq!(score(99.5).after_success(score(100.0)), score(100.0));
        assert_eq!(score(2.0).after_failure(), score(0.0));
        assert_eq!(Score::START.after_success(score(0.0)), score(50.0));
        assert_eq!(score(92.3).after_success(score(87.5)), score(94.05));
        let twice = Score::START.after_success(score(50.0)).after_success(score(50.0));
        assert_eq!(twice.after_failure(), score(47.5));
    }

    proptest! {
        #[test]
        fn a_better_hirer_never_gives_a_smaller_gain(
            old in 0..=FULL, a in 0..=FULL, b in 0..=FULL,
        ) {
            let (low, high) = (Score(a.min(b)), Score(a.max(b)));
            prop_assert!(Score(old).after_success(low) <= Score(old).after_success(high));
        }

        #[test]
        fn a_score_never_leaves_its_range(steps in proptest::collection::vec(any::<(bool, u32)>(), 0..200)) {
            let mut now = Score::START;
            for (ok, hirer) in steps {
                let hirer = Score::from_millionths(i64::from(hirer) % (FULL + 1));
                now = if ok { now.after_success(hirer) } else { now.after_failure() };
                prop_assert!((Score::MIN..=Score::MAX).contains(&now));
            }
        }
    }
}
