//! Time in core: always an argument. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z, on the hub's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A duration in milliseconds; never negative in practice, never a float.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

/// A day of UTC, counted from 1970-01-01.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UtcDay(pub i64);

impl Timestamp {
    /// A time no deadline ever reaches.
    pub const NEVER: Self = Self(i64::MAX);

    /// This time moved by `span`, saturating at the type's limits.
    pub fn plus(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The day of this time.
    pub fn utc_day(self) -> UtcDay {
        UtcDay(self.0.div_euclid(Millis::hours(24).0))
    }

    /// The time elapsed since `earlier`; zero if this is not after it.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl Millis {
    /// Whether the duration is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Whole seconds as milliseconds.
    pub const fn seconds(n: i64) -> Self {
        Self(n * 1_000)
    }

    /// Whole minutes as milliseconds.
    pub const fn minutes(n: i64) -> Self {
        Self(n * 60_000)
    }

    /// Whole hours as milliseconds.
    pub const fn hours(n: i64) -> Self {
        Self(n * 3_600_000)
    }
}
