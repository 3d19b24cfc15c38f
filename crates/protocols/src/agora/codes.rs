//! The eight codes of an ERROR (spec section 5).

/// An error code, with the numbers of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// 400: malformed, in the wrong state, or contradictory.
    BadRequest,
    /// 401: not proven, not fresh, blocked, or not a party.
    Unauthorized,
    /// 402: too few credits, or another currency.
    PaymentRequired,
    /// 404: no agent supports the resource, or no agent has the key.
    NotFound,
    /// 408: too late.
    Timeout,
    /// 429: too many requests.
    TooManyRequests,
    /// 500: a party failed.
    Internal,
    /// 503: a party is unavailable.
    Unavailable,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 8] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::PaymentRequired,
        Self::NotFound,
        Self::Timeout,
        Self::TooManyRequests,
        Self::Internal,
        Self::Unavailable,
    ];

    /// The number on the wire; also the HTTP status of an error (R68).
    pub const fn number(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::PaymentRequired => 402,
            Self::NotFound => 404,
            Self::Timeout => 408,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// Whether a retry can succeed when only the envelope's id changes. For 500 this is unknown, so
    /// the answer is no.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::TooManyRequests | Self::Unavailable)
    }

    /// The code with this number. Agents also use other numbers; each of those means that the agent
    /// failed (R59).
    pub fn read(number: i64) -> Self {
        let same = |code: &Self| i64::from(code.number()) == number;
        Self::ALL.into_iter().find(same).unwrap_or(Self::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number_and_others_are_500() {
        for code in Code::ALL {
            assert_eq!(Code::read(i64::from(code.number())), code);
        }
        for number in [0, -400, 403, 418, 501, 65_936, i64::MAX] {
            assert_eq!(Code::read(number), Code::Internal, "{number}");
        }
    }
}
