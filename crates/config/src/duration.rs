//! Durations: a whole number with a unit, as in `"500ms"`, `"30s"`, `"10m"`, `"24h"`, `"7d"`.

use std::time::Duration;

use rialto_core::time::Millis;

use crate::value::{InvalidValue, Setting, quote_toml};

/// Milliseconds in each unit, longest first, so that a duration is shown in the longest exact unit.
const UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// A hundred years. No timer needs longer, and no sum of times can overflow.
const DURATION_MAX: Millis = Millis(36_500 * 86_400_000);

macro_rules! durations {
    ($($(#[$about:meta])* $Name:ident from $least:literal, $expected:literal, $example:literal;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $Name(Millis);

        impl $Name {
            /// The duration as core's type.
            pub const fn millis(self) -> Millis {
                self.0
            }

            /// The duration as the standard library's type.
            pub fn to_duration(self) -> Duration {
                Duration::from_millis(self.0.0.unsigned_abs())
            }
        }

        impl Setting for $Name {
            const EXAMPLE: &'static str = $example;

            fn expected() -> String {
                $expected.to_owned()
            }

            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                let length = parse(text)?;
                if length.0 < $least { Err(InvalidValue::new(text, "is zero")) } else { Ok(Self(length)) }
            }

            fn to_toml(&self) -> String {
                quote_toml(format_duration(self.0))
            }
        }
    )+};
}

durations! {
    /// A duration that is never zero, because most timeouts of zero would refuse everything.
    NonZeroDuration from 1, "a duration above zero, in ms, s, m, h or d", "30s";
    /// A duration that may be zero, for settings where not waiting is a valid choice.
    ConfigDuration from 0, "a duration in ms, s, m, h or d", "2s";
}

fn parse(text: &str) -> Result<Millis, InvalidValue> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(InvalidValue::new(text, "does not begin with a whole number"));
    }
    let Some((_, unit_ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let wrong = if unit.is_empty() { "has no unit" } else { "has an unknown unit" };
        return Err(InvalidValue::new(text, wrong));
    };
    let length = number.parse::<i64>().ok().and_then(|n| n.checked_mul(*unit_ms)).map(Millis);
    length
        .filter(|length| *length <= DURATION_MAX)
        .ok_or_else(|| InvalidValue::new(text, "is more than a hundred years"))
}

fn format_duration(Millis(length): Millis) -> String {
    let fits = |(_, unit): &&(&str, i64)| length % unit == 0;
    // Zero is exact in every unit; "0s" reads better than "0d".
    let unit = UNITS.iter().filter(|_| length != 0).find(fits);
    unit.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", length / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Option<i64> {
        NonZeroDuration::from_text(text).ok().map(|span| span.millis().0)
    }

    #[test]
    fn every_unit_of_the_rules_is_read() {
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!(millis("30s"), Some(30_000));
        assert_eq!(millis("10m"), Some(600_000));
        assert_eq!(millis("24h"), Some(86_400_000));
        assert_eq!(millis("7d"), Some(604_800_000));
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "+1s",
            "1.5s",
            "1 s",
            " 1s",
            "1s ",
            "1S",
            "1h30m",
            "1w",
            "36501d",
            "99999999999999999999s",
            "9223372036854775807d",
            "٣s",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_wait_may_be_zero() {
        assert_eq!(NonZeroDuration::from_text("0s"), Err(InvalidValue::new("0s", "is zero")));
        assert_eq!(ConfigDuration::from_text("0ms"), Ok(ConfigDuration(Millis(0))));
        assert_eq!(ConfigDuration(Millis(0)).to_toml(), "\"0s\"");
    }

    #[test]
    fn a_shown_length_reads_back_as_itself() {
        for (given, shown) in [("60s", "1m"), ("90s", "90s"), ("1500ms", "1500ms"), ("48h", "2d")] {
            let wait = ConfigDuration::from_text(given);
            assert_eq!(wait.as_ref().map(ConfigDuration::to_toml), Ok(format!("\"{shown}\"")));
            assert_eq!(wait, ConfigDuration::from_text(shown));
        }
    }
}
