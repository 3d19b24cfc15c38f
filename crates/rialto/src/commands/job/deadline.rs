//! A job's deadline: a time, or a duration from now.

use std::time::{SystemTime, UNIX_EPOCH};

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::rfc3339;

use super::super::duration::parse_duration;

/// The parsed argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    At(Timestamp),
    In(Millis),
}

impl Deadline {
    /// Parses `10m` or an RFC 3339 time.
    pub fn read(text: &str) -> Result<Self, String> {
        match (parse_duration(text), rfc3339::parse(text)) {
            (Ok(length), _) => Ok(Self::In(length)),
            (_, Ok(time)) => Ok(Self::At(time)),
            _ => {
                Err("must be a duration like 10m, or a timestamp like 2026-02-11T14:15:09Z"
                    .to_owned())
            }
        }
    }

    /// The deadline as the hub expects it.
    pub fn text(self, now: Timestamp) -> String {
        match self {
            Self::At(time) => rfc3339::format_millis(time),
            Self::In(length) => rfc3339::format_millis(now.plus(length)),
        }
    }
}

/// The time on this machine.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_moment_or_a_length_from_now() {
        let noon = rfc3339::parse("2026-02-11T12:00:00Z").expect("a time");
        let text = |typed: &str| Deadline::read(typed).expect(typed).text(noon);
        assert_eq!(text("10m"), "2026-02-11T12:10:00.000Z");
        assert_eq!(text("2026-02-11T14:15:09+01:00"), "2026-02-11T13:15:09.000Z");
        for not in ["", "soon", "10", "2026-02-11", "2026-02-11T14:15:09"] {
            assert!(Deadline::read(not).is_err(), "{not}");
        }
    }
}
