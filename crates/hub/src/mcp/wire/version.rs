//! Versions, and the two eras they belong to.
//!
//! The old era opens with `initialize`. In the new era every request states its version and the
//! capabilities of its client, and nothing is remembered between requests.

/// The only version of the new era that is offered.
pub const NEWEST: &str = "2026-07-28";
/// The newest version of the old era, for clients that ask for one that is not offered.
pub const NEWEST_OLD: &str = "2025-11-25";
/// What a request of the old era without a version speaks.
pub const DEFAULT_OLD: &str = "2025-03-26";
/// All versions offered, newest first.
pub const OFFERED: [&str; 4] = [NEWEST, NEWEST_OLD, "2025-06-18", DEFAULT_OLD];

/// Which rules a request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Versions before 2026-07-28.
    Old,
    /// 2026-07-28 and later.
    New,
}

impl Era {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// Whether a version is offered.
pub fn is_offered(version: &str) -> bool {
    OFFERED.contains(&version)
}

/// Whether a version is one of the old era that is offered.
pub fn is_offered_old(version: &str) -> bool {
    OFFERED[1..].contains(&version)
}

/// Whether a version in a header means the new era. Dates are compared as text; anything that is not a
/// date says nothing of the era.
pub fn is_new(version: &str) -> bool {
    let is_date = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && version >= NEWEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_from_2026_07_28_on_mean_the_new_era() {
        for version in ["2026-07-28", "2026-07-29", "2027-01-01", "9999-12-31"] {
            assert!(is_new(version), "{version}");
        }
        for version in
            ["2025-11-25", "2026-07-27", "", "draft", "zzzz-zz-zz", "2026-07-28 ", "20260728"]
        {
            assert!(!is_new(version), "{version}");
        }
    }

    #[test]
    fn the_old_era_does_not_offer_the_version_of_the_new_one() {
        assert!(is_offered(NEWEST) && !is_offered_old(NEWEST));
        assert!(OFFERED[1..].iter().all(|version| is_offered_old(version) && !is_new(version)));
        assert!(!is_offered("2024-11-05"));
    }
}
