//! Sizes, counts and amounts.
//!
//! Sizes and counts are bare numbers in a file. Amounts are text, because a bare `0.10` would be
//! parsed as a float first.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use rialto_core::money::Credits;
use toml::de::DeValue;

use crate::value::{InvalidValue, Setting, quote_toml};

/// Decimals a configured amount may have: the precision of a credit.
const AMOUNT_DECIMALS: usize = 6;

/// A number of bytes; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(NonZeroU64);

/// A maximum count; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u32);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ByteSize {
    /// The size in bytes.
    pub const fn bytes(self) -> usize {
        self.0.get() as usize
    }
}

impl Limit {
    /// The maximum; `None` when there is no limit.
    pub const fn max(self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0)
    }
}

/// Implements `Setting` for numbers that a file has without quotes.
macro_rules! bare_numbers {
    ($($Name:ident by $read:ident, $expected:literal, $example:literal;)+) => {$(
        impl Setting for $Name {
            const EXAMPLE: &'static str = $example;

            fn expected() -> String {
                $expected.to_owned()
            }

            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                $read(text).map_err(|wrong| InvalidValue::new(text, wrong))
            }

            fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
                Self::from_text(&read_bare_number(value)?)
            }

            fn to_toml(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

bare_numbers! {
    ByteSize by read_size, "a whole number of bytes above zero", "1048576";
    Limit by read_limit, "a whole number, or 0 for no limit", "600";
    NonZeroU32 by read_count, "a whole number above zero", "16";
}

fn read_size(text: &str) -> Result<ByteSize, &'static str> {
    let bytes = whole_number(text)?.ok_or("is too large")?;
    NonZeroU64::new(bytes).map(ByteSize).ok_or("is zero")
}

fn read_limit(text: &str) -> Result<Limit, &'static str> {
    let number = whole_number(text)?.and_then(|number| number.try_into().ok());
    number.map(Limit).ok_or("is larger than 4294967295")
}

fn read_count(text: &str) -> Result<NonZeroU32, &'static str> {
    read_limit(text)?.max().ok_or("is zero")
}

/// A number in decimal digits; `None` if it is too large for any setting.
fn whole_number(text: &str) -> Result<Option<u64>, &'static str> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is not a whole number");
    }
    Ok(text.parse().ok())
}

impl Setting for Credits {
    const EXAMPLE: &'static str = "100.00";

    fn expected() -> String {
        "an amount of credits as decimal text".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        Self::parse(text, AMOUNT_DECIMALS).map_err(|why| InvalidValue::new(text, why))
    }

    fn to_toml(&self) -> String {
        quote_toml(self.to_text(2))
    }
}

/// The decimal digits of a number; a file may write it in any base.
fn read_bare_number(value: &DeValue<'_>) -> Result<String, InvalidValue> {
    let number = value.as_integer().ok_or_else(|| InvalidValue::wrong_type(value))?;
    i128::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string())
        .map_err(|_| InvalidValue::new(number, "is too large"))
}
