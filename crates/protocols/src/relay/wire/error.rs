//! Every error code of this protocol, with its HTTP status and whether a retry can help.

use std::fmt;

/// What went wrong, as defined in section 5 of the protocol's book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Body, query, envelope or card is invalid, or not valid JSON.
    Validation,
    /// The sender is not registered here.
    SenderNotRegistered,
    /// The endpoint's address is not allowed.
    EndpointBlocked,
    /// The key is missing, unknown or revoked.
    Unauthorized,
    /// An agent's key on an operator path.
    Forbidden,
    /// The key is not the sender's.
    SenderMismatch,
    /// The receiver blocks the sender.
    Blocked,
    /// The receiver, or the agent of the path, is unknown.
    AgentNotFound,
    /// No such path or message.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The id exists, or existed, and no key was sent.
    AgentIdTaken,
    /// The job of the conversation has ended, or was reassigned.
    WrongState,
    /// A key or turn was used before with another body.
    IdempotencyConflict,
    /// The first request with this key is still running.
    InProgress,
    /// The body is too long.
    PayloadTooLarge,
    /// The body is compressed.
    UnsupportedEncoding,
    /// Too many requests.
    RateLimited,
    /// The receiver has too many messages waiting.
    InboxFull,
    /// The receiver could not be reached.
    AgentUnreachable,
    /// The receiver did not answer in time.
    Timeout,
    /// The hub cannot write now.
    Unavailable,
    /// At a receive endpoint: the envelope is invalid.
    InvalidEnvelope,
    /// At a receive endpoint: the envelope has another version.
    UnsupportedVersion,
    /// At a receive endpoint: the envelope is valid but could not be adapted.
    AdaptationFailed,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 24] = [
        Self::Validation,
        Self::SenderNotRegistered,
        Self::EndpointBlocked,
        Self::Unauthorized,
        Self::Forbidden,
        Self::SenderMismatch,
        Self::Blocked,
        Self::AgentNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::AgentIdTaken,
        Self::WrongState,
        Self::IdempotencyConflict,
        Self::InProgress,
        Self::PayloadTooLarge,
        Self::UnsupportedEncoding,
        Self::RateLimited,
        Self::InboxFull,
        Self::AgentUnreachable,
        Self::Timeout,
        Self::Unavailable,
        Self::InvalidEnvelope,
        Self::UnsupportedVersion,
        Self::AdaptationFailed,
    ];

    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "ERR_VALIDATION",
            Self::SenderNotRegistered => "ERR_SENDER_NOT_REGISTERED",
            Self::EndpointBlocked => "ERR_ENDPOINT_BLOCKED",
            Self::Unauthorized => "ERR_UNAUTHORIZED",
            Self::Forbidden => "ERR_FORBIDDEN",
            Self::SenderMismatch => "ERR_SENDER_MISMATCH",
            Self::Blocked => "ERR_BLOCKED",
            Self::AgentNotFound => "ERR_AGENT_NOT_FOUND",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::MethodNotAllowed => "ERR_METHOD_NOT_ALLOWED",
            Self::AgentIdTaken => "ERR_AGENT_ID_TAKEN",
            Self::WrongState => "ERR_WRONG_STATE",
            Self::IdempotencyConflict => "ERR_IDEMPOTENCY_CONFLICT",
            Self::InProgress => "ERR_IN_PROGRESS",
            Self::PayloadTooLarge => "ERR_PAYLOAD_TOO_LARGE",
            Self::UnsupportedEncoding => "ERR_UNSUPPORTED_ENCODING",
            Self::RateLimited => "ERR_RATE_LIMITED",
            Self::InboxFull => "ERR_INBOX_FULL",
            Self::AgentUnreachable => "ERR_AGENT_UNREACHABLE",
            Self::Timeout => "ERR_TIMEOUT",
            Self::Unavailable => "ERR_UNAVAILABLE",
            Self::InvalidEnvelope => "INVALID_ENVELOPE",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::AdaptationFailed => "ADAPTATION_FAILED",
        }
    }

    /// The HTTP status of an answer that fails with this code. A full disk has its own status (507)
    /// under the code of a store that cannot write.
    pub const fn status(self) -> u16 {
        match self {
            Self::Validation | Self::SenderNotRegistered | Self::EndpointBlocked => 400,
            Self::InvalidEnvelope | Self::UnsupportedVersion => 400,
            Self::Unauthorized => 401,
            Self::Forbidden | Self::SenderMismatch | Self::Blocked => 403,
            Self::AgentNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AgentIdTaken | Self::WrongState | Self::InProgress => 409,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedEncoding => 415,
            Self::IdempotencyConflict => 422,
            Self::RateLimited | Self::InboxFull => 429,
            Self::AdaptationFailed => 500,
            Self::AgentUnreachable => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }

    /// Whether the same request can succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::InProgress
                | Self::RateLimited
                | Self::InboxFull
                | Self::AgentUnreachable
                | Self::Timeout
                | Self::Unavailable
        )
    }

    /// The code with this text. Other servers may use codes that are not listed here.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specs_six_codes_have_its_statuses() {
        for (text, status, retryable) in [
            ("ERR_VALIDATION", 400, false),
            ("ERR_AGENT_NOT_FOUND", 404, false),
            ("ERR_AGENT_UNREACHABLE", 502, true),
            ("ERR_TIMEOUT", 504, true),
            ("ERR_UNAUTHORIZED", 401, false),
            ("ERR_SENDER_NOT_REGISTERED", 400, false),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.status(), code.is_retryable()), (status, retryable), "{text}");
        }
    }

    #[test]
    fn the_other_codes_are_those_of_the_book() {
        for (text, status, retryable) in [
            ("ERR_ENDPOINT_BLOCKED", 400, false),
            ("ERR_FORBIDDEN", 403, false),
            ("ERR_SENDER_MISMATCH", 403, false),
            ("ERR_BLOCKED", 403, false),
            ("ERR_NOT_FOUND", 404, false),
            ("ERR_METHOD_NOT_ALLOWED", 405, false),
            ("ERR_AGENT_ID_TAKEN", 409, false),
            ("ERR_WRONG_STATE", 409, false),
            ("ERR_IDEMPOTENCY_CONFLICT", 422, false),
            ("ERR_IN_PROGRESS", 409, true),
            ("ERR_PAYLOAD_TOO_LARGE", 413, false),
            ("ERR_UNSUPPORTED_ENCODING", 415, false),
            ("ERR_RATE_LIMITED", 429, true),
            ("ERR_INBOX_FULL", 429, true),
            ("ERR_UNAVAILABLE", 503, true),
            ("INVALID_ENVELOPE", 400, false),
            ("UNSUPPORTED_VERSION", 400, false),
            ("ADAPTATION_FAILED", 500, false),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.status(), code.is_retryable()), (status, retryable), "{text}");
        }
    }

    #[test]
    fn every_code_is_found_by_its_text() {
        for code in Code::ALL {
            assert_eq!(Code::read(&code.to_string()), Some(code));
        }
        assert_eq!(Code::read("ERR_OTHER"), None);
    }
}
