//! Durations, deadlines and the current time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::rfc3339;

/// Parses `500ms`, `60s`, `10m`, `24h` or `7d`.
pub fn parse_duration(text: &str) -> Result<Millis, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("must be a duration like 500ms, 60s, 10m, 24h or 7d".to_owned()),
    };
    let number = text.strip_suffix(unit).and_then(|digits| digits.parse::<i64>().ok());
    let ms = number.and_then(|number| number.checked_mul(factor));
    ms.map(Millis).ok_or_else(|| "is too long".to_owned())
}

/// A duration above zero.
pub fn positive_duration(text: &str) -> Result<Millis, String> {
    match parse_duration(text)? {
        Millis(0) => Err("must be above zero, like 30s".to_owned()),
        time => Ok(time),
    }
}

/// A job's deadline: a time, or a duration from now.
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

/// The same length for timers.
pub fn to_duration(length: Millis) -> Duration {
    Duration::from_millis(length.0.unsigned_abs())
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
    fn lengths_are_a_number_and_a_unit() {
        for (text, ms) in [("500ms", 500), ("60s", 60_000), ("10m", 600_000), ("7d", 604_800_000)] {
            assert_eq!(parse_duration(text), Ok(Millis(ms)));
        }
        for text in ["", "60", "s", "-1s", "1.5s", "60 s", "99999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

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
