//! Fees and rewards: whole credits, written as digits in a string.

use rialto_core::money::Credits;

use super::PRICE_MAX;

/// Millionths in one credit.
const CREDIT: i64 = 1_000_000;

/// Reads a fee or a reward: digits only, without leading zeros, from 1 to [`PRICE_MAX`] (R4, D10).
pub fn read_price(text: &str) -> Option<Credits> {
    let limits = CREDIT..=PRICE_MAX * CREDIT;
    read_sum(text).filter(|credits| limits.contains(&credits.micros()))
}

/// Reads whole credits of any size, such as a total. Zero is `0`.
pub fn read_sum(text: &str) -> Option<Credits> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    let count: i64 = (digits && !padded).then(|| text.parse().ok()).flatten()?;
    count.checked_mul(CREDIT).map(Credits::from_micros)
}

/// Writes whole credits; fractions are cut off (2.5).
pub fn format_price(credits: Credits) -> String {
    credits.floor(0).to_text(0)
}

/// The fee at which a price of another protocol is listed: rounded up, and at least 1 (R79).
pub fn round_to_fee(price: Credits) -> Credits {
    let most = Credits::from_micros(PRICE_MAX * CREDIT);
    let rounded = price.ceil(0).unwrap_or(most);
    rounded.clamp(Credits::from_micros(CREDIT), most)
}
