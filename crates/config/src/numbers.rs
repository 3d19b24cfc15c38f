//! Sizes, counts and amounts.
//!
//! Sizes and counts are bare numbers in a file. Amounts are text, because a bare `0.10` would be
//! parsed as a float first.

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

impl Setting for ByteSize {
    fn expected() -> String {
        "a whole number of bytes above zero".to_owned()
    }

    fn example() -> &'static str {
        "1048576"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        require_digits(text)?;
        let bytes: u64 = text.parse().map_err(|_| InvalidValue::new(text, "is too large"))?;
        NonZeroU64::new(bytes).map(Self).ok_or_else(|| InvalidValue::new(text, "is zero"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        Self::from_text(&read_bare_number(value)?)
    }

    fn to_toml(&self) -> String {
        self.0.to_string()
    }
}

impl Setting for Limit {
    fn expected() -> String {
        "a whole number, or 0 for no limit".to_owned()
    }

    fn example() -> &'static str {
        "600"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        parse_count(text).map(Self)
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        Self::from_text(&read_bare_number(value)?)
    }

    fn to_toml(&self) -> String {
        self.0.to_string()
    }
}

impl Setting for NonZeroU32 {
    fn expected() -> String {
        "a whole number above zero".to_owned()
    }

    fn example() -> &'static str {
        "16"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        Self::new(parse_count(text)?).ok_or_else(|| InvalidValue::new(text, "is zero"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        Self::from_text(&read_bare_number(value)?)
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Setting for Credits {
    fn expected() -> String {
        "an amount of credits as decimal text".to_owned()
    }

    fn example() -> &'static str {
        "100.00"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        Self::parse(text, AMOUNT_DECIMALS).map_err(|why| InvalidValue::new(text, why))
    }

    fn to_toml(&self) -> String {
        quote_toml(self.to_text(2))
    }
}

fn require_digits(text: &str) -> Result<(), InvalidValue> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidValue::new(text, "is not a whole number"));
    }
    Ok(())
}

fn parse_count(text: &str) -> Result<u32, InvalidValue> {
    require_digits(text)?;
    text.parse().map_err(|_| InvalidValue::new(text, "is larger than 4294967295"))
}

/// The decimal digits of a number; a file may write it in any base.
fn read_bare_number(value: &DeValue<'_>) -> Result<String, InvalidValue> {
    let number = value.as_integer().ok_or_else(|| InvalidValue::wrong_type(value))?;
    i128::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string())
        .map_err(|_| InvalidValue::new(number, "is too large"))
}
