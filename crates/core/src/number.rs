//! Numbers as JSON writes them, parsed from their digits and never through a float.
//!
//! Programs that compute with doubles write `0.15000000000000002` for 0.15 and `12.0` for 12. Both
//! are read as the intended value; see ADR 33.

/// Number of decimals that are read: down to a billionth.
const NANO_DECIMALS: i64 = 9;

/// Why a text is not an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegerError {
    /// Not a JSON number, or one with a fraction.
    #[error("must be a whole number")]
    NotWhole,
    /// An integer that does not fit.
    #[error("is out of range")]
    OutOfRange,
}

/// Parses a JSON number that is an integer by value: `12`, `12.0` and `1.2e1` are the same.
pub fn parse_integer(text: &str) -> Result<i64, IntegerError> {
    let number = Decimal::parse(text).ok_or(IntegerError::NotWhole)?;
    let mut sum: i128 = 0;
    for (digit, places) in number.digits() {
        let power = u32::try_from(-places).map_err(|_| IntegerError::NotWhole)?;
        let unit = 10_i128.checked_pow(power).ok_or(IntegerError::OutOfRange)?;
        let part = unit.checked_mul(i128::from(digit)).ok_or(IntegerError::OutOfRange)?;
        sum = sum.checked_add(part).ok_or(IntegerError::OutOfRange)?;
    }
    let signed = if number.negative { -sum } else { sum };
    i64::try_from(signed).map_err(|_| IntegerError::OutOfRange)
}

/// A parsed JSON number: its digits, and the position of the decimal point.
pub(crate) struct Decimal<'a> {
    pub(crate) negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

/// A value without its sign, truncated after the billionths.
pub(crate) struct Nanos {
    /// Whole billionths.
    pub(crate) nanos: i64,
    /// Whether nonzero digits follow.
    pub(crate) has_remainder: bool,
}

impl<'a> Decimal<'a> {
    /// Parses `-12.50e-1` by the JSON grammar; `None` for anything else.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let padded = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || padded || !digits(whole) || !digits(fraction) {
            return None;
        }
        Some(Self { negative, whole, fraction, exponent })
    }

    /// Every nonzero digit and its place after the decimal point: 1 for tenths, 0 for ones, -1 for
    /// tens.
    fn digits(&self) -> impl Iterator<Item = (u8, i64)> {
        let point = self.whole.len() as i64 + self.exponent;
        let all = (0_i64..).zip(self.whole.bytes().chain(self.fraction.bytes()));
        let nonzero = all.filter(|(_, digit)| *digit != b'0');
        nonzero.map(move |(at, digit)| (digit - b'0', at + 1 - point))
    }

    /// The value in billionths; `None` when it does not fit.
    pub(crate) fn nanos(&self) -> Option<Nanos> {
        let (mut nanos, mut more) = (0_i64, false);
        for (digit, places) in self.digits() {
            let Ok(power) = u32::try_from(NANO_DECIMALS - places) else {
                more = true;
                continue;
            };
            let part = 10_i64.checked_pow(power)?.checked_mul(i64::from(digit))?;
            nanos = nanos.checked_add(part)?;
        }
        Some(Nanos { nanos, has_remainder: more })
    }
}

impl Nanos {
    /// The multiple of `step` billionths that is at most one billionth away. It is the nearest one:
    /// a step is at least a thousand billionths, so no value lies halfway.
    pub(crate) fn nearest_multiple(&self, step: i64) -> Option<i64> {
        let below = self.nanos / step;
        match self.nanos % step {
            0 => Some(below),
            1 if !self.has_remainder => Some(below),
            rest if rest == step - 1 => Some(below + 1),
            _ => None,
        }
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // An exponent that does not fit may be any huge one: the value is out of range either way.
    Some(sign * digits.parse::<i64>().unwrap_or(HUGE).min(HUGE))
}

/// More digits than any body holds, so no mantissa compensates for it.
const HUGE: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_may_have_a_point_or_an_exponent() {
        for (text, value) in [
            ("12", 12),
            ("12.0", 12),
            ("1e1", 10),
            ("1.2e1", 12),
            ("120E-1", 12),
            ("1.50e+2", 150),
            ("-3.000", -3),
            ("-0.0", 0),
            ("0e99999999999999999999", 0),
            ("9223372036854775807.0", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("9007199254740993.0", 9_007_199_254_740_993),
        ] {
            assert_eq!(parse_integer(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_fraction_is_no_integer_and_a_huge_one_is_out_of_range() {
        for text in ["1.5", "12.000000000000002", "1e-1", "0.1e-400", "", "x", "+1", "1.", "01"] {
            assert_eq!(parse_integer(text), Err(IntegerError::NotWhole), "{text}");
        }
        for text in ["9223372036854775808", "1e19", "1e400", "1e99999999999999999999"] {
            assert_eq!(parse_integer(text), Err(IntegerError::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_integer_is_read_back_however_it_is_written(value: i64, zeros in 0..20_usize) {
            prop_assert_eq!(parse_integer(&value.to_string()), Ok(value));
            prop_assert_eq!(parse_integer(&format!("{value}.{}", "0".repeat(zeros + 1))), Ok(value));
            prop_assert_eq!(parse_integer(&format!("{value}{}e-{zeros}", "0".repeat(zeros))), Ok(value));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,80}", number in "-?[0-9]{1,40}(\\.[0-9]{1,40})?(e[+-]?[0-9]{1,25})?") {
            let _ = (parse_integer(&text), parse_integer(&number));
        }
    }
}
