//! Credits: amounts in whole millionths, from the parser to the disk.
//!
//! Amounts come in and go out as decimal text, never as a float. Rounding noise that a sender's own
//! floats added to the last digits is removed while parsing.

use serde::{Deserialize, Serialize};

use crate::number::Decimal;

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
/// Billionths in a millionth.
const NANOS: i64 = 1_000;
/// The longest accepted number text. A longer one is an attack or a mistake.
const TEXT_MAX: usize = 64;

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// The text is not a JSON number.
    #[error("is not a number")]
    NotANumber,
    /// Amounts are never below zero.
    #[error("must not be negative")]
    Negative,
    /// More decimals than allowed, by more than a double's rounding noise.
    #[error("has more than {max} decimals")]
    TooManyDecimals {
        /// The number of decimals allowed.
        max: usize,
    },
    /// Above the largest amount the hub handles.
    #[error("is above 1000000000")]
    TooLarge,
}

impl Credits {
    /// Zero credits.
    pub const ZERO: Self = Self(0);
    /// The largest amount a single operation may name.
    pub const MAX: Self = Self(1_000_000_000 * SCALE);

    /// Credits from millionths; for stores and tests.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The amount in millionths.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Parses a JSON number's text, allowing at most `decimals` decimals by value.
    ///
    /// A value at most a billionth away from such a number is read as that number: programs that
    /// compute with doubles write `0.15000000000000002` for 0.15, and `-5.6e-17` for zero.
    pub fn parse(text: &str, decimals: usize) -> Result<Self, AmountError> {
        if text.is_empty() || text.len() > TEXT_MAX {
            return Err(AmountError::NotANumber);
        }
        let number = Decimal::parse(text).ok_or(AmountError::NotANumber)?;
        let max = decimals.min(SCALE_DECIMALS);
        let step = 10_i64.pow((SCALE_DECIMALS - max) as u32);
        let nanos = number.nanos().ok_or(AmountError::TooLarge);
        let steps = nanos.and_then(|nanos| {
            nanos.nearest_multiple(step * NANOS).ok_or(AmountError::TooManyDecimals { max })
        });
        match steps {
            Ok(0) => Ok(Self::ZERO),
            _ if number.negative => Err(AmountError::Negative),
            Ok(steps) if steps > Self::MAX.0 / step => Err(AmountError::TooLarge),
            Ok(steps) => Ok(Self(steps * step)),
            Err(why) => Err(why),
        }
    }

    /// Decimal text with at least `decimals` decimals, and more only where the value has them.
    pub fn to_text(self, decimals: usize) -> String {
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

    /// This amount rounded up to `decimals` decimals; `None` on overflow.
    pub fn ceil(self, decimals: usize) -> Option<Self> {
        let floor = self.floor(decimals);
        let step = 10_i64.pow((SCALE_DECIMALS - decimals.min(SCALE_DECIMALS)) as u32);
        if floor == self { Some(self) } else { floor.0.checked_add(step).map(Self) }
    }

    /// The sum; `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The balance after paying `price`; `None` if it is not covered.
    pub fn checked_pay(self, price: Self) -> Option<Self> {
        self.0.checked_sub(price.0).filter(|left| *left >= 0).map(Self)
    }

    /// The balance after paying `price`, which may be below zero: for the issue account only.
    pub fn checked_sub(self, price: Self) -> Option<Self> {
        self.0.checked_sub(price.0).map(Self)
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
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
            assert_eq!(Credits(micros).to_text(2), text);
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        let long = "1".repeat(1_000);
        for text in [
            "0.005",
            "-0.01",
            "\"0.10\"",
            "NaN",
            "1e308",
            "9007199254740993",
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
    fn what_a_double_cannot_hold_exactly_is_read_as_what_was_meant() {
        for (text, micros) in [
            // 0.05 * 3, 0.1 + 0.2, 1.1 * 3, 0.3 - 0.1 * 3 and 0.7 + 0.1, as Python prints them.
            ("0.15000000000000002", 150_000),
            ("0.30000000000000004", 300_000),
            ("3.3000000000000003", 3_300_000),
            ("-5.551115123125783e-17", 0),
            ("0.7999999999999999", 800_000),
            ("0.1000000000000000055511151231257827", 100_000),
            ("0.150000001", 150_000),
            ("0.149999999", 150_000),
            ("999999999.9999999999", 1_000_000_000_000_000),
            ("1000000000.000000001", 1_000_000_000_000_000),
        ] {
            assert_eq!(Credits::parse(text, 2), Ok(Credits(micros)), "{text}");
        }
        assert_eq!(Credits::parse("0.1234560000000001", 6), Ok(Credits(123_456)));
        for text in ["0.1500000010000000001", "0.150000002", "0.1499999989", "0.155", "0.10000001"]
        {
            assert_eq!(
                Credits::parse(text, 2),
                Err(AmountError::TooManyDecimals { max: 2 }),
                "{text}"
            );
        }
        assert_eq!(Credits::parse("-0.000000002", 2), Err(AmountError::Negative));
        assert_eq!(Credits::parse("1000000000.009999999999", 2), Err(AmountError::TooLarge));
    }

    #[test]
    fn the_millionth_is_the_smallest_step() {
        assert_eq!(Credits::parse("0.000001", 6), Ok(Credits(1)));
        assert_eq!(Credits::parse("0.0000001", 6), Err(AmountError::TooManyDecimals { max: 6 }));
        assert_eq!(Credits(1).to_text(2), "0.000001");
        assert_eq!(Credits(5_250_000).to_text(2), "5.25");
        assert_eq!(Credits(50_000_000).to_text(0), "50");
        assert_eq!(Credits(1).ceil(2), Some(Credits(10_000)));
        assert_eq!(Credits(19_999).floor(2), Credits(10_000));
    }

    proptest! {
        #[test]
        fn what_goes_in_as_text_comes_out_as_the_same_value(micros in 0..=1_000_000_000_000_000_i64) {
            let text = Credits(micros).to_text(2);
            prop_assert_eq!(Credits::parse(&text, 6), Ok(Credits(micros)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,80}") {
            let _ = Credits::parse(&text, 2);
        }

        #[test]
        fn paying_never_makes_money(have in 0..=1_000_000_i64, price in 0..=2_000_000_i64) {
            match Credits(have).checked_pay(Credits(price)) {
                Some(left) => prop_assert_eq!(left.checked_add(Credits(price)), Some(Credits(have))),
                None => prop_assert!(price > have),
            }
        }
    }
}
