//! The two eras of the protocol, and the versions of each that this client speaks.

/// The version of the new era.
pub const NEWEST: &str = "2026-07-28";
/// The newest version of the old era, which is proposed to a server.
pub const NEWEST_OLD: &str = "2025-11-25";
/// Versions of the old era that a server may choose instead.
const OLD: [&str; 4] = [NEWEST_OLD, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Which rules a server follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// It opens with `initialize`, and remembers its client.
    Old,
    /// Every request says what its client is and can do.
    New,
}

impl Era {
    /// Its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// The known form of a version of the old era.
pub(super) fn known_old(version: &str) -> Option<&'static str> {
    OLD.into_iter().find(|known| *known == version)
}
