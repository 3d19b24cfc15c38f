//! Tests of fees and rewards as text.

use super::*;
use crate::clara::wire::register::{format_price, read_price, read_sum, round_to_fee};

/// Texts that are neither a fee nor a reward (R4).
pub const WRONG: [&str; 19] = [
    "0",
    "-1",
    "1.5",
    "x",
    "0x10",
    "1e2",
    " 7 ",
    "007",
    "",
    "1000000001",
    "+1",
    "7 ",
    "٣",
    "1_000",
    "1,000",
    "00",
    "7\n",
    "NaN",
    "99999999999999999999999",
];

#[test]
fn a_price_is_digits_from_one_to_a_billion() {
    assert_eq!(read_price("1"), Some(credits(1)));
    assert_eq!(read_price("1000000000"), Some(Credits::MAX));
    for text in WRONG {
        assert_eq!(read_price(text), None, "{text:?}");
    }
}

#[test]
fn sums_may_be_nothing_and_large() {
    assert_eq!(read_sum("0"), Some(Credits::ZERO));
    assert_eq!(read_sum("1000000001"), Some(credits(1_000_000_001)));
    for text in ["", "-1", "00", "9223372036854775807"] {
        assert_eq!(read_sum(text), None, "{text:?}");
    }
}

#[test]
fn what_is_finer_is_cut_off_when_shown_and_rounded_up_when_charged() {
    for (micros, shown, fee) in [
        (0, "0", 1),
        (1, "0", 1),
        (1_000_000, "1", 1),
        (1_000_001, "1", 2),
        (50_999_999, "50", 51),
        (1_000_000_000_000_000, "1000000000", 1_000_000_000),
        (i64::MAX, "9223372036854", 1_000_000_000),
    ] {
        let price = Credits::from_micros(micros);
        assert_eq!(format_price(price), shown);
        assert_eq!(round_to_fee(price), credits(fee), "{micros}");
    }
}
