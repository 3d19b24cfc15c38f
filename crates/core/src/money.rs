//! Credits: whole millionths, from the parser to the disk.
//!
//! Amounts come in as decimal text and go out as decimal text. There is no way in or out through a
//! float.

use serde::{Deserialize, Serialize};

/// Credits, counted in millionths so that adding never rounds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Credits(i64);

/// Millionths in one credit.
const SCALE: i64 = 1_000_000;
/// Decimals a millionth has.
const SCALE_DECIMALS: usize = 6;
/// The longest number text worth reading; longer ones are an attack or a mistake.
const TEXT_MAX: usize = 64;

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMoney {
    /// The text is no JSON number.
    #[error("is not a number")]
    NotANumber,
    /// Amounts never go below zero.
    #[error("must not be negative")]
    Negative,
    /// A decimal past the allowed ones is not zero.
    #[error("has more than {max} decimals")]
    TooFine {
        /// Decimals that are allowed.
        max: usize,
    },
    /// Above the largest amount the hub handles.
    #[error("is above 1000000000")]
    TooLarge,
}

impl Credits {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount any single operation may name.
    pub const MAX: Self = Self(1_000_000_000 * SCALE);

    /// Credits from millionths; for stores and tests.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The millionths inside.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads a JSON number's text exactly, allowing at most `decimals` significant decimals.
    pub fn parse(text: &str, decimals: usize) -> Result<Self, NotMoney> {
        if text.is_empty() || text.len() > TEXT_MAX {
            return Err(NotMoney::NotANumber);
        }
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let number = Decimal::read(text).ok_or(NotMoney::NotANumber)?;
        if number.is_zero() {
            return Ok(Self::ZERO);
        }
        if negative {
            return Err(NotMoney::Negative);
        }
        number.scaled(decimals.min(SCALE_DECIMALS)).map(Self)
    }

    /// Decimal text with at least `decimals` decimals, and more only where the value has them.
    pub fn text(self, decimals: usize) -> String {
        let (sign, micros) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let scale = SCALE.unsigned_abs();
        let mut fraction = format!("{:06}", micros % scale);
        while fraction.len() > decimals && fraction.ends_with('0') {
            fraction.pop();
        }
        let dot = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{dot}{fraction}", micros / scale)
    }

    /// This amount rounded down to `decimals` decimals, for protocols with coarser money.
    pub fn floor(self, decimals: usize) -> Self {
        let step = 10_i64.pow((SCALE_DECIMALS - decimals.min(SCALE_DECIMALS)) as u32);
        Self(self.0 - self.0.rem_euclid(step))
    }

    /// This amount rounded up to `decimals` decimals; `None` past the end of the type.
    pub fn ceil(self, decimals: usize) -> Option<Self> {
        let floor = self.floor(decimals);
        let step = 10_i64.pow((SCALE_DECIMALS - decimals.min(SCALE_DECIMALS)) as u32);
        if floor == self { Some(self) } else { floor.0.checked_add(step).map(Self) }
    }

    /// The sum; `None` when it would not fit.
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// What is left after paying `price`; `None` if it cannot be paid in full.
    pub fn pay(self, price: Self) -> Option<Self> {
        self.0.checked_sub(price.0).filter(|left| *left >= 0).map(Self)
    }

    /// What is left after paying `price`, going below zero if need be: the issue account only.
    pub fn overdraw(self, price: Self) -> Option<Self> {
        self.0.checked_sub(price.0).map(Self)
    }

    /// Whether anything would move.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// An unsigned JSON number taken apart: digits and where the point stands.
struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Takes `12.50e-1` apart by the JSON grammar; `None` for anything else.
    fn read(text: &'a str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], read_exponent(&text[at + 1..])?),
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
        Some(Self { whole, fraction, exponent })
    }

    fn is_zero(&self) -> bool {
        self.whole.bytes().chain(self.fraction.bytes()).all(|b| b == b'0')
    }

    /// The value in millionths, refusing digits beyond `decimals` that are not zero.
    fn scaled(&self, decimals: usize) -> Result<i64, NotMoney> {
        // Where the decimal point stands, counted from the first digit.
        let point = self.whole.len() as i64 + self.exponent;
        let mut micros: i64 = 0;
        for (at, digit) in (0_i64..).zip(self.whole.bytes().chain(self.fraction.bytes())) {
            let value = i64::from(digit - b'0');
            if value == 0 {
                continue;
            }
            let places_after_point = at + 1 - point;
            if places_after_point > decimals as i64 {
                return Err(NotMoney::TooFine { max: decimals });
            }
            let power = SCALE_DECIMALS as i64 - places_after_point;
            let unit = u32::try_from(power).ok().and_then(|p| 10_i64.checked_pow(p));
            let part = unit.and_then(|u| u.checked_mul(value)).ok_or(NotMoney::TooLarge)?;
            micros = micros.checked_add(part).ok_or(NotMoney::TooLarge)?;
        }
        if micros > Credits::MAX.0 { Err(NotMoney::TooLarge) } else { Ok(micros) }
    }
}

fn read_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // An exponent that does not fit is as good as any huge one: the value is out of range either way.
    Some(sign * digits.parse::<i64>().unwrap_or(100_000).min(100_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_equal_by_value_are_equal() {
        for text in ["0.1", "0.10", "1e-1", "0.100", "10e-2", "0.01E1", "0.1e0", "0.1e+0"] {
            assert_eq!(Credits::parse(text, 2), Ok(Credits(100_000)), "{text}");
        }
    }

    #[test]
    fn cents_that_floats_cannot_hold_are_exact() {
        for (text, micros) in
            [("0.29", 290_000), ("0.57", 570_000), ("1.15", 1_150_000), ("4.35", 4_350_000)]
        {
            assert_eq!(Credits::parse(text, 2), Ok(Credits(micros)));
            assert_eq!(Credits(micros).text(2), text);
        }
    }

    #[test]
    fn amounts_nobody_should_send_are_refused() {
        let long = "1".repeat(1_000);
        for text in [
            "0.005",
            "-0.01",
            "\"0.10\"",
            "NaN",
            "1e308",
            "9007199254740993",
            "0.1e-400",
            &long,
            "",
            "+1",
            "01",
            "1.",
            ".5",
            "1e",
            "0x10",
            "1_0",
            " 1",
            "Infinity",
            "1000000000.01",
        ] {
            assert!(Credits::parse(text, 2).is_err(), "{text}");
        }
    }

    #[test]
    fn zero_is_zero_however_it_is_written() {
        for text in ["0", "0.00", "-0", "0e5", "0.000000000", "-0.0e-9"] {
            assert_eq!(Credits::parse(text, 2), Ok(Credits::ZERO), "{text}");
        }
    }

    #[test]
    fn the_millionth_is_the_smallest_step() {
        assert_eq!(Credits::parse("0.000001", 6), Ok(Credits(1)));
        assert_eq!(Credits::parse("0.0000001", 6), Err(NotMoney::TooFine { max: 6 }));
        assert_eq!(Credits(1).text(2), "0.000001");
        assert_eq!(Credits(5_250_000).text(2), "5.25");
        assert_eq!(Credits(50_000_000).text(0), "50");
        assert_eq!(Credits(1).ceil(2), Some(Credits(10_000)));
        assert_eq!(Credits(19_999).floor(2), Credits(10_000));
    }

    proptest! {
        #[test]
        fn what_goes_in_as_text_comes_out_as_the_same_value(micros in 0..=1_000_000_000_000_000_i64) {
            let text = Credits(micros).text(2);
            prop_assert_eq!(Credits::parse(&text, 6), Ok(Credits(micros)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,80}") {
            let _ = Credits::parse(&text, 2);
        }

        #[test]
        fn paying_never_makes_money(have in 0..=1_000_000_i64, price in 0..=2_000_000_i64) {
            match Credits(have).pay(Credits(price)) {
                Some(left) => prop_assert_eq!(left.plus(Credits(price)), Some(Credits(have))),
                None => prop_assert!(price > have),
            }
        }
    }
}
