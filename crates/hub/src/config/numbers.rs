//! Sizes, counts and amounts.
//!
//! Sizes and counts are bare numbers in a file. Amounts are text, because a bare `0.10` would be
//! parsed as a float first.

use std::num::{NonZeroU32, NonZeroU64};

use rialto_core::money::Credits;
use toml::de::DeValue;

use super::value::{Misfit, Setting, quoted};

/// Decimals a configured amount may have: the precision of a credit.
const AMOUNT_DECIMALS: usize = 6;

/// A number of bytes; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(NonZeroU64);

/// A maximum count; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u32);

impl Size {
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

impl Setting for Size {
    fn expected() -> String {
        "a whole number of bytes above zero".to_owned()
    }

    fn example() -> &'static str {
        "1048576"
    }

    fn from_text(text: &str) -> Result<Self, Misfit> {
        digits(text)?;
        let bytes: u64 = text.parse().map_err(|_| Misfit::new(text, "is too large"))?;
        NonZeroU64::new(bytes).map(Self).ok_or_else(|| Misfit::new(text, "is zero"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        Self::from_text(&bare_number(value)?)
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

    fn from_text(text: &str) -> Result<Self, Misfit> {
        count(text).map(Self)
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        Self::from_text(&bare_number(value)?)
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

    fn from_text(text: &str) -> Result<Self, Misfit> {
        Self::new(count(text)?).ok_or_else(|| Misfit::new(text, "is zero"))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Misfit> {
        Self::from_text(&bare_number(value)?)
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

    fn from_text(text: &str) -> Result<Self, Misfit> {
        Self::parse(text, AMOUNT_DECIMALS).map_err(|why| Misfit::new(text, why))
    }

    fn to_toml(&self) -> String {
        quoted(self.text(2))
    }
}

fn digits(text: &str) -> Result<(), Misfit> {
    match text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Err(Misfit::new(text, "is not a whole number")),
        false => Ok(()),
    }
}

fn count(text: &str) -> Result<u32, Misfit> {
    digits(text)?;
    text.parse().map_err(|_| Misfit::new(text, "is larger than 4294967295"))
}

/// The decimal digits of a number; a file may write it in any base.
fn bare_number(value: &DeValue<'_>) -> Result<String, Misfit> {
    let number = value.as_integer().ok_or_else(|| Misfit::of_type(value))?;
    i128::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string())
        .map_err(|_| Misfit::new(number, "is too large"))
}
