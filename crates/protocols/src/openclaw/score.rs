//! Scores from 0 to 1 as exact decimals. The core calculates them.

use rialto_core::money::Credits;
use serde_json::value::RawValue;

use crate::kit::raw_json;

/// A score or rate in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(u32);

impl Score {
    /// The best score.
    pub const ONE: Self = Self(1_000_000);
    /// The worst score.
    pub const ZERO: Self = Self(0);
    /// How far a claim may be from the hub's score before it counts as different (R48).
    const TOLERANCE: u32 = 10_000;

    /// A score from millionths; `None` above one.
    pub const fn new(millionths: u32) -> Option<Self> {
        if millionths <= Self::ONE.0 { Some(Self(millionths)) } else { None }
    }

    /// The score in millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Reads a JSON number from 0 to 1. Decimals past the sixth are cut off.
    pub fn parse(digits: &str) -> Option<Self> {
        // Not money, but the same parser reads decimal text into exact millionths.
        let exact = Credits::parse(digits, 6).ok().map(Credits::micros);
        let millionths = exact.or_else(|| {
            let near: f64 = digits.parse().ok()?;
            (0.0..=1.0).contains(&near).then_some((near * 1_000_000.0) as i64)
        })?;
        u32::try_from(millionths).ok().and_then(Self::new)
    }

    /// The JSON number, with at least one decimal.
    pub fn text(self) -> String {
        Credits::from_micros(i64::from(self.0)).to_text(1)
    }

    /// The JSON number as a serde value.
    pub fn json(self) -> Box<RawValue> {
        raw_json::verbatim(&self.text())
    }

    /// Whether a claim is further from this than two honest calculations would be (R48).
    pub fn differs(self, claimed: Self) -> bool {
        self.0.abs_diff(claimed.0) > Self::TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scores_are_exact() {
        for (text, millionths, written) in [
            ("0.9235", 923_500, "0.9235"),
            ("1", 1_000_000, "1.0"),
            ("0", 0, "0.0"),
            ("9.2e-1", 920_000, "0.92"),
            ("0.33333333333333331", 333_333, "0.333333"),
            ("-0.0", 0, "0.0"),
        ] {
            let score = Score::parse(text).expect(text);
            assert_eq!((score.millionths(), score.text().as_str()), (millionths, written));
            assert_eq!(score.json().get(), written);
        }
        for text in ["1.1", "-0.1", "x", "1e400", "", "1.0000001"] {
            assert_eq!(Score::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_claim_differs_by_more_than_a_hundredth() {
        let score = |millionths| Score::new(millionths).expect("a score");
        assert!(!score(923_500).differs(score(930_000)));
        assert!(!score(920_000).differs(score(930_000)));
        assert!(score(919_999).differs(score(930_000)));
        assert!(Score::new(1_000_001).is_none());
    }

    proptest! {
        #[test]
        fn a_written_score_is_read_back(millionths in 0..=1_000_000_u32) {
            let score = Score::new(millionths).expect("at most one");
            prop_assert_eq!(Score::parse(&score.text()), Some(score));
        }

        #[test]
        fn no_number_makes_the_reader_panic(text in "-?[0-9]{1,30}(\\.[0-9]{1,30})?(e-?[0-9]{1,5})?") {
            let _ = Score::parse(&text);
        }
    }
}
