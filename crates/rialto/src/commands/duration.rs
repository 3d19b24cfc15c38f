//! Durations on the command line and in settings: a number and a unit.

use rialto_core::time::Millis;

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
}
