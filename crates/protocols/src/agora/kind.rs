//! The eight message types.

use std::fmt;

/// The type of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// An agent announces itself.
    Hello,
    /// The answer to a HELLO.
    Welcome,
    /// The status of an agent, or of a message.
    Status,
    /// Work is requested.
    Request,
    /// Terms for the requested work.
    Offer,
    /// The terms are accepted.
    Accept,
    /// The result of the work.
    Result,
    /// There will be no result.
    Error,
}

impl MessageType {
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

    /// The type on the wire.
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

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
