//! The inbox token: an agent's right to read for an hour, and when it is time for a new one.

use rialto_core::time::{Millis, Timestamp};

use crate::key::Key;

/// How long before its end a token is taken for gone: no reader should lose it under way.
const SPARE: Millis = Millis::minutes(5);

/// A token and until when it works.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) key: Key,
    pub(super) until: Option<Timestamp>,
}

impl Token {
    /// Whether it will still work for a while.
    pub(super) fn works(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now.plus(SPARE) < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_replaced_before_it_ends() {
        let until = Some(Timestamp(3_600_000));
        let token = Token { key: Key::new("at_1"), until };
        assert!(token.works(Timestamp(3_299_999)));
        assert!(!token.works(Timestamp(3_300_000)));
        assert!(Token { until: None, ..token }.works(Timestamp(i64::MAX)));
    }
}
