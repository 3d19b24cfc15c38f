//! Counts tests from the summary lines of the test programs, and from what skipped tests print.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Marked as ignored, or skipped because something is not installed.
    pub skipped: u64,
}

impl Tally {
    /// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; …`; `None` for any other line.
    pub fn read(line: &str) -> Option<Self> {
        let counts = line.trim_start().strip_prefix("test result: ")?;
        let count = |of: &str| {
            counts.split(['.', ';']).find_map(|part| {
                let (number, word) = part.trim().split_once(' ')?;
                if word == of { number.parse().ok() } else { None }
            })
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            skipped: count("ignored")?,
        })
    }

    /// Counts tests as skipped that returned early and so were reported as passed.
    pub fn skip(&mut self, tests: u64) {
        let moved = tests.min(self.passed);
        self.passed -= moved;
        self.skipped += moved;
    }
}

/// Whether a line says that a test was skipped: `skipped: <test>: <why>`. It is `skip_test` of the
/// engine's test kit that prints it.
pub fn tells_of_skipped_test(line: &str) -> bool {
    let test = line.strip_prefix("skipped: ").and_then(|rest| rest.split_once(": "));
    test.is_some_and(|(test, _)| !test.is_empty() && !test.contains(' '))
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
    const BAD: &str = "test result: FAILED. 7 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s";

    #[test]
    fn the_results_of_several_programs_add_up() {
        let mut sum = Tally::default();
        for line in ["running 14 tests", "test money::adds ... ok", GOOD, "", BAD] {
            if let Some(tally) = Tally::read(line) {
                sum += tally;
            }
        }
        assert_eq!(sum, Tally { passed: 19, failed: 3, skipped: 2 });
        assert_eq!(sum.to_string(), "19 passed, 3 failed, 2 skipped");
    }

    #[test]
    fn colours_in_the_verdict_do_not_disturb() {
        let line = GOOD.replace("ok", "\u{1b}[32mok\u{1b}(B\u{1b}[m");
        assert_eq!(Tally::read(&line), Tally::read(GOOD));
    }

    #[test]
    fn a_test_that_says_it_was_skipped_has_not_passed() {
        assert!(tells_of_skipped_test("skipped: store::suite: PostgreSQL is not installed\n"));
        for line in ["skipped: two words: why", "skipped: no reason", "a test skipped: a: b"] {
            assert!(!tells_of_skipped_test(line), "{line}");
        }
        let mut tally = Tally { passed: 5, failed: 1, skipped: 1 };
        tally.skip(2);
        assert_eq!(tally, Tally { passed: 3, failed: 1, skipped: 3 });
        tally.skip(9);
        assert_eq!(tally, Tally { passed: 0, failed: 1, skipped: 6 });
    }

    #[test]
    fn a_line_that_only_mentions_results_counts_nothing() {
        assert_eq!(Tally::read("the test result: ok. 1 passed; 0 failed; 0 ignored"), None);
        assert_eq!(Tally::read("test result: unknown"), None);
    }
}
