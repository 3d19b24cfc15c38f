//! The eight types of messages.

use std::fmt;

/// What an envelope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Somebody is here.
    Hello,
    /// The answer to that.
    Welcome,
    /// How somebody is doing, or what became of a message.
    Status,
    /// Work is wanted.
    Request,
    /// Somebody would do it, on terms.
    Offer,
    /// The terms are taken.
    Accept,
    /// The work.
    Result,
    /// There will be none.
    Error,
}

impl Kind {
    /// All types, in the spec's order.
    pub const ALL: [Self; 8] = [
        Self::Hello,
        Self::Welcome,
        Self::Status,
        Self::Request,
        Self::Offer,
        Self::Accept,
        Self::Result,
        Self::Error,
    ];

    /// The type as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Welcome => "WELCOME",
            Self::Status => "STATUS",
            Self::Request => "REQUEST",
            Self::Offer => "OFFER",
            Self::Accept => "ACCEPT",
            Self::Result => "RESULT",
            Self::Error => "ERROR",
        }
    }

    /// The type with this text.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
