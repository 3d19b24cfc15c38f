//! Every code of section 5: errors with their HTTP status, and rejections, each with whether trying
//! again can help.

use super::words::words;

words! {
    /// Why a message could not be answered in the protocol's own messages.
    Code {
        /// It breaks its schema or a condition, is of no kind, or is no JSON.
        Validation = "VALIDATION_ERROR",
        /// It is of another major version.
        UnsupportedVersion = "UNSUPPORTED_PROTOCOL_VERSION",
        /// The key is missing, unknown or revoked.
        Unauthorized = "UNAUTHORIZED",
        /// The body names another agent than the key.
        Forbidden = "FORBIDDEN",
        /// Unknown, or not yours.
        NotFound = "NOT_FOUND",
        /// The path has other methods.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// The id is taken, or it is too late for this.
        Conflict = "CONFLICT",
        /// The same id or key with other content.
        IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
        /// The body is too long.
        TooLarge = "TOO_LARGE",
        /// The body is compressed.
        UnsupportedEncoding = "UNSUPPORTED_ENCODING",
        /// Too many requests.
        RateLimited = "RATE_LIMITED",
        /// The hub cannot write now.
        Unavailable = "UNAVAILABLE",
    }
}

impl Code {
    /// The HTTP status. A full disk has one of its own (507) under the code of a store that cannot
    /// write.
    pub const fn http(self) -> u16 {
        match self {
            Self::Validation | Self::UnsupportedVersion => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedEncoding => 415,
            Self::IdempotencyConflict => 422,
            Self::RateLimited => 429,
            Self::Unavailable => 503,
        }
    }

    /// Whether the same request can succeed later. A conflict with something that still runs can,
    /// and says so itself.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

words! {
    /// Why a request is rejected.
    Rejected {
        /// No such agent or capability, or broken for good.
        CapabilityNotAvailable = "capability_not_available",
        /// The input breaks its schema.
        InvalidInput = "invalid_input",
        /// Too much to do, not heard of, or no credits.
        ResourceExhausted = "resource_exhausted",
        /// Not approved, or too little offered.
        PolicyViolation = "policy_violation",
        /// It cannot be done by then.
        DeadlineTooSoon = "deadline_too_soon",
    }
}

impl Rejected {
    /// Whether the same request can be accepted later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::ResourceExhausted)
    }
}

/// The code of a result that never came (R82).
pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_statuses_and_retries_are_those_of_the_book() {
        for (text, http, retryable) in [
            ("VALIDATION_ERROR", 400, false),
            ("UNSUPPORTED_PROTOCOL_VERSION", 400, false),
            ("UNAUTHORIZED", 401, false),
            ("FORBIDDEN", 403, false),
            ("NOT_FOUND", 404, false),
            ("METHOD_NOT_ALLOWED", 405, false),
            ("CONFLICT", 409, false),
            ("IDEMPOTENCY_CONFLICT", 422, false),
            ("TOO_LARGE", 413, false),
            ("UNSUPPORTED_ENCODING", 415, false),
            ("RATE_LIMITED", 429, true),
            ("UNAVAILABLE", 503, true),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.http(), code.retryable()), (http, retryable), "{text}");
        }
        assert_eq!(Code::ALL.len(), 12);
        for rejected in Rejected::ALL {
            let retryable = rejected.as_str() == "resource_exhausted";
            assert_eq!(rejected.retryable(), retryable, "{rejected}");
            assert_eq!(Rejected::read(rejected.as_str()), Some(*rejected));
        }
    }
}
