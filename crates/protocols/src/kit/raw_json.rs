//! Exact JSON output: amounts and scores as numbers that are never floats, and JSON passed on
//! unchanged.

use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON number with exactly these digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(Box<RawValue>);

impl Number {
    /// Its digits.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

crate::value_schema!(Number, {"type": "number"});

/// An amount as a JSON number with at least `decimals` decimals, and more only if it has them.
pub fn amount(credits: Credits, decimals: usize) -> Number {
    number(credits.to_text(decimals))
}

/// A score in millionths as a JSON number with one or two decimals; finer ones are dropped.
pub fn score(millionths: i64) -> Number {
    const HUNDREDTH: i64 = 10_000;
    let hundredths = millionths / HUNDREDTH;
    let sign = if hundredths < 0 { "-" } else { "" };
    let hundredths = hundredths.unsigned_abs();
    let (whole, fraction) = (hundredths / 100, hundredths % 100);
    number(match fraction % 10 {
        0 => format!("{sign}{whole}.{}", fraction / 10),
        _ => format!("{sign}{whole}.{fraction:02}"),
    })
}

/// A number in millionths, with all its decimals and at least one.
pub fn millionths(value: i64) -> Number {
    number(Credits::from_micros(value).to_text(1))
}

/// Validated JSON text, passed on unchanged. Text that is not valid JSON becomes a JSON string, so
/// that the response around it stays readable and shows the error.
pub fn verbatim(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| to_raw_value(text))
        .expect("every text can be written as a JSON string")
}

fn number(text: String) -> Number {
    let raw = RawValue::from_string(text);
    Number(raw.expect("whole digits, perhaps with sign and decimals, are JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_numbers_with_their_decimals() {
        let shown =
            |micros, decimals| amount(Credits::from_micros(micros), decimals).get().to_owned();
        assert_eq!(shown(100_000, 2), "0.10");
        assert_eq!(shown(0, 2), "0.00");
        assert_eq!(shown(1, 2), "0.000001");
        assert_eq!(shown(50_000_000, 0), "50");
        assert_eq!(shown(-1_500_000, 2), "-1.50");
        assert_eq!(shown(1_000_000_000_000_000, 6), "1000000000.000000");
    }

    #[test]
    fn scores_have_one_or_two_decimals() {
        for (millionths, text) in [
            (50_000_000, "50.0"),
            (94_050_000, "94.05"),
            (94_056_789, "94.05"),
            (94_500_000, "94.5"),
            (94_509_999, "94.5"),
            (99_999_999, "99.99"),
            (100_000_000, "100.0"),
            (0, "0.0"),
            (9_999, "0.0"),
            (10_000, "0.01"),
            (-9_999, "0.0"),
            (-1_250_000, "-1.25"),
        ] {
            assert_eq!(score(millionths).get(), text);
        }
    }

    #[test]
    fn json_is_passed_on_as_it_came() {
        for text in ["{\"a\" : 1.10, \"a\\u0062\":[ ]}", "1e400", "\"\\ud83e\\udd9c\"", "null"] {
            assert_eq!(verbatim(text).get(), text);
        }
    }

    #[test]
    fn what_is_no_json_never_breaks_the_answer_around_it() {
        assert_eq!(verbatim("1,\"admin\":true").get(), r#""1,\"admin\":true""#);
        assert_eq!(verbatim("").get(), "\"\"");
    }

    proptest! {
        #[test]
        fn a_written_amount_is_read_back_as_the_same_amount(
            micros in 0..=1_000_000_000_000_000_i64,
            decimals in 0..=8_usize,
        ) {
            let credits = Credits::from_micros(micros);
            prop_assert_eq!(Credits::parse(amount(credits, decimals).get(), 6), Ok(credits));
        }

        #[test]
        fn a_written_score_is_never_above_the_score_and_less_than_a_hundredth_below(
            millionths in 0..=100_000_000_i64,
        ) {
            let written = Credits::parse(score(millionths).get(), 2).expect("a number").micros();
            prop_assert!((0..10_000).contains(&(millionths - written)));
        }

        #[test]
        fn every_number_can_be_written(any in any::<i64>(), decimals in 0..=8_usize) {
            amount(Credits::from_micros(any), decimals);
            score(any);
        }
    }
}
