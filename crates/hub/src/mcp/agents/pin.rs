//! Pins: a digest of the tools of an endpoint, so that a changed definition is noticed before it is
//! used.

use std::borrow::Cow;

use rialto_protocols::kit::{ijson, jcs};
use sha2::{Digest, Sha256};

use super::definition::Definition;
use super::offered_skill::OfferedSkill;
use crate::mcp::wire::result::{json_array, json_string};

/// Digits of a pin.
const DIGITS: usize = 16;
/// Decimals of prices in `/v1`.
const DECIMALS: usize = 2;
/// Stands for the price of a skill whose agent names it for each job.
const BY_OFFER: &str = "by offer";

/// The pin of some tools: it changes with a name, the agent's own words, a schema or a price.
pub fn pin_of(definitions: &[Definition]) -> String {
    let rows = definitions.iter().map(|tool| {
        let offered = &tool.offered;
        json_array([
            json_string(&offered.tool),
            json_string(&tool.own_words),
            canonical(&tool.input.schema),
            tool.output.shown().map_or_else(|| "null".to_owned(), canonical),
            json_string(&shown_price(offered)),
        ])
    });
    digits_of(&canonical(&json_array(rows)))
}

/// A free skill must not turn into one whose price its agent names without a change of the pin.
fn shown_price(offered: &OfferedSkill) -> Cow<'static, str> {
    match offered.price() {
        None => Cow::Borrowed(BY_OFFER),
        Some(_) => Cow::Owned(offered.skill().price.to_text(DECIMALS)),
    }
}

fn digits_of(canonical: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(canonical.as_bytes()));
    digits.truncate(DIGITS);
    digits
}

/// The canonical text. JSON with a number that has none counts by its own text, as a string.
fn canonical(json: &str) -> String {
    let read = ijson::read(json.as_bytes()).ok();
    let written = read.and_then(|json| jcs::canonicalize(&json).ok());
    written.unwrap_or_else(|| json_string(json))
}

/// Whether a text has the form of a pin.
pub fn is_pin(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_json_has_one_digest_and_other_json_another() {
        let a = digits_of(&canonical(r#"[["t","w",{"b":1.0,"a":"é"},null,"0.05"]]"#));
        let b = digits_of(&canonical(r#"[["t","w",{"a":"\u00e9","b":1},null,"0.05"]]"#));
        assert_eq!(a, b);
        assert!(is_pin(&a), "{a}");
        assert_ne!(a, digits_of(&canonical(r#"[["t","w",{"a":"é","b":1},null,"0.06"]]"#)));
    }

    #[test]
    fn a_number_without_canonical_text_counts_by_its_digits() {
        let large = |digits: &str| canonical(&format!(r#"{{"maximum":{digits}}}"#));
        assert_eq!(large("1e999"), r#""{\"maximum\":1e999}""#);
        assert_ne!(large("18446744073709551615"), large("18446744073709551614"));
    }

    #[test]
    fn a_pin_is_sixteen_hex_digits() {
        assert!(is_pin("0123456789abcdef"));
        for other in ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef0"] {
            assert!(!is_pin(other), "{other}");
        }
    }
}
