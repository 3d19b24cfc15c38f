//! Amounts: exact or rejected, within bounds, and the same after writing and parsing.

use rialto_core::money::Credits;
use rialto_protocols::clara::wire::register::{format_price, read_price, read_sum, round_to_fee};
use rialto_protocols::openclaw::Score;

use super::text;

/// Checks every parser of amounts and scores.
pub fn money(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    for decimals in 0..=7 {
        if let Ok(credits) = Credits::parse(text, decimals) {
            amount(credits, decimals);
            if let Some(exact) = exact(text) {
                assert_eq!(
                    i128::from(credits.micros()),
                    exact,
                    "{text} was parsed as another amount"
                );
            }
        }
    }
    if let Some(credits) = read_sum(text) {
        assert_eq!(format_price(credits), text);
    }
    if let Some(credits) = read_price(text) {
        assert_eq!(round_to_fee(credits), credits, "a price is not its own fee");
    }
    if let Some(score) = Score::parse(text) {
        assert!(score <= Score::ONE);
        assert_eq!(Score::parse(&score.text()), Some(score));
    }
}

fn amount(credits: Credits, decimals: usize) {
    assert!(Credits::ZERO <= credits && credits <= Credits::MAX, "{credits:?} is out of bounds");
    for shown in 0..=6 {
        assert_eq!(Credits::parse(&credits.to_text(shown), 6), Ok(credits));
    }
    assert_eq!(credits.floor(decimals), credits, "more decimals than allowed");
    for coarse in 0..=6 {
        let (floor, ceil) =
            (credits.floor(coarse), credits.ceil(coarse).expect("far from the end"));
        assert!(floor <= credits && credits <= ceil);
    }
}

/// The number in millionths by plain arithmetic, where that is possible.
fn exact(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()? + 6;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    match shift >= 0 {
        true => digits.checked_mul(power),
        false => (digits % power == 0).then_some(digits / power),
    }
}
