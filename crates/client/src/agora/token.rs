//! The inbox token, which allows an agent to read for an hour, and when to renew it.

use rialto_core::time::{Millis, Timestamp};

use crate::key::Key;

/// How long before its end a token counts as expired, so that it does not expire during a call.
const EXPIRY_MARGIN: Millis = Millis::minutes(5);

/// A token and its expiry time.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) key: Key,
    pub(super) expires_at: Option<Timestamp>,
}

impl Token {
    /// Whether it will be valid for a while.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|until| now.plus(EXPIRY_MARGIN) < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_replaced_before_it_ends() {
        let until = Some(Timestamp(3_600_000));
        let token = Token { key: Key::new("at_1"), expires_at: until };
        assert!(token.is_valid(Timestamp(3_299_999)));
        assert!(!token.is_valid(Timestamp(3_300_000)));
        assert!(Token { expires_at: None, ..token }.is_valid(Timestamp(i64::MAX)));
    }
}
