//! Every error code of section 5 with its HTTP status, and every rejection code, each with whether
//! a retry can succeed.

use super::words::words;

words! {
    /// The code of an error answer.
    Code {
        /// The message violates its schema or a condition, is of no known kind, or is not valid
        /// JSON.
        Validation = "VALIDATION_ERROR",
        /// The message has another major version.
        UnsupportedVersion = "UNSUPPORTED_PROTOCOL_VERSION",
        /// The key is missing, unknown or revoked.
        Unauthorized = "UNAUTHORIZED",
        /// The body names another agent than the key.
        Forbidden = "FORBIDDEN",
        /// The thing is unknown, or belongs to another caller.
        NotFound = "NOT_FOUND",
        /// The path does not allow this method.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// The id is taken, or the state no longer allows this.
        Conflict = "CONFLICT",
        /// The id or key was used before with other content.
        IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
        /// The body is too large.
        TooLarge = "TOO_LARGE",
        /// The body is compressed.
        UnsupportedEncoding = "UNSUPPORTED_ENCODING",
        /// Too many requests.
        RateLimited = "RATE_LIMITED",
        /// The hub cannot accept writes now.
        Unavailable = "UNAVAILABLE",
    }
}

impl Code {
    /// The HTTP status. A full disk uses status 507 with the code `UNAVAILABLE`.
    pub const fn http_status(self) -> u16 {
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

    /// Whether the same request can succeed later. A conflict with something that is still running
    /// can; its error says so itself.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

words! {
    /// Why a request is rejected.
    Rejected {
        /// No such agent or capability, or the agent is in a permanent error state.
        CapabilityNotAvailable = "capability_not_available",
        /// The input violates its schema.
        InvalidInput = "invalid_input",
        /// The agent is at capacity or unreachable, or the requester has too few credits.
        ResourceExhausted = "resource_exhausted",
        /// Not approved, or the budget is too low.
        PolicyViolation = "policy_violation",
        /// The work cannot be done by the deadline.
        DeadlineTooSoon = "deadline_too_soon",
    }
}

impl Rejected {
    /// Whether the same request can be accepted later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::ResourceExhausted)
    }
}

/// The error code of a result that did not arrive in time (R82).
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
            assert_eq!((code.http_status(), code.is_retryable()), (http, retryable), "{text}");
        }
        assert_eq!(Code::ALL.len(), 12);
        for rejected in Rejected::ALL {
            let retryable = rejected.as_str() == "resource_exhausted";
            assert_eq!(rejected.retryable(), retryable, "{rejected}");
            assert_eq!(Rejected::read(rejected.as_str()), Some(*rejected));
        }
    }
}
