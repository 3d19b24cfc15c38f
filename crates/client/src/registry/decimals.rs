//! Amounts and scores in responses, parsed digit by digit and never through a float.

use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

/// Maximum number of decimals; the protocol writes two.
const DECIMALS: usize = 6;

/// An amount.
pub(super) fn credits<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
    let digits = Box::<RawValue>::deserialize(from)?;
    Credits::parse(digits.get(), DECIMALS).map_err(|why| D::Error::custom(format!("it {why}")))
}

/// An amount, if there is one.
pub(super) fn optional_credits<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Credits>, D::Error> {
    let digits = Option::<Box<RawValue>>::deserialize(from)?;
    let parse = |digits: Box<RawValue>| Credits::parse(digits.get(), DECIMALS);
    digits.map(parse).transpose().map_err(|why| D::Error::custom(format!("it {why}")))
}

/// A score from 0 to 100.
pub(super) fn score<'de, D: Deserializer<'de>>(from: D) -> Result<Score, D::Error> {
    // Not money, but parsed the same way: decimal text into exact millionths.
    credits(from).map(|exact| Score::from_millionths(exact.micros()))
}
