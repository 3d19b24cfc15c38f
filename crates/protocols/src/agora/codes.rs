//! The eight codes of an ERROR (spec section 5).

/// What went wrong, as a number HTTP knows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// 400: malformed, in the wrong state, or contradicting itself.
    BadRequest,
    /// 401: not proven, not fresh, blocked, or none of the sender's business.
    Unauthorized,
    /// 402: too little money, or the wrong kind.
    PaymentRequired,
    /// 404: nobody does that, or nobody is called that.
    NotFound,
    /// 408: too late.
    Timeout,
    /// 429: too much.
    TooManyRequests,
    /// 500: somebody broke.
    Internal,
    /// 503: somebody cannot now.
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

    /// The code as it is written; also the HTTP status of a refusal (R68).
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

    /// Whether trying again can help without changing anything but the envelope's id. After 500 it
    /// is not known, so nobody is told to.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::TooManyRequests | Self::Unavailable)
    }

    /// The code with this number. Agents use others as well, and each of those means that they
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
