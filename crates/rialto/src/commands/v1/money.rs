//! Amounts of requests and answers, computed exactly.

use rialto_client::CallError;
use rialto_core::money::Credits;
use rialto_protocols::kit::raw_json;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{AccountView, LedgerEntry, SubAccount, unreadable};

/// Decimals of the smallest amounts.
const DECIMALS: usize = 6;
/// Minimum number of decimals that are sent and shown.
const SHOWN_DECIMALS: usize = 2;

/// An amount that is written as a JSON number with its exact digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub Credits);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        raw_json::amount(self.0, SHOWN_DECIMALS).serialize(to)
    }
}

/// Writes a member of a document in the same way.
pub fn write_amount<S: Serializer>(amount: &Credits, to: S) -> Result<S::Ok, S::Error> {
    Amount(*amount).serialize(to)
}

/// An amount as text for people.
pub fn format_amount(amount: Credits) -> String {
    amount.to_text(SHOWN_DECIMALS)
}

/// Parses an amount. The account that issues credits is below zero.
pub fn parse_amount(number: &RawValue) -> Result<Credits, CallError> {
    let digits = number.get();
    let amount = Credits::parse(digits.trim_start_matches('-'), DECIMALS)
        .map_err(|_| unreadable(format!("{digits} is not an amount")))?;
    Ok(if digits.starts_with('-') { Credits::from_micros(-amount.micros()) } else { amount })
}

/// A decimal number in millionths, so that nothing is rounded.
pub fn millionths(text: &str) -> Option<i64> {
    // Credits are parsed by the same rules: no sign, at most six decimals.
    Credits::parse(text, DECIMALS).ok().map(Credits::micros)
}

/// The same, with an error for text that is not a number.
pub fn parse_millionths(number: &RawValue) -> Result<i64, CallError> {
    let text = number.get();
    millionths(text).ok_or_else(|| unreadable(format!("{text} is not an amount")))
}

/// An account's available and held credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    #[serde(serialize_with = "write_amount")]
    pub available: Credits,
    #[serde(serialize_with = "write_amount")]
    pub held: Credits,
}

impl AccountView {
    pub fn balance(&self) -> Result<Balance, CallError> {
        let (available, held) = (parse_amount(&self.available)?, parse_amount(&self.held)?);
        Ok(Balance { available, held })
    }
}

impl Balance {
    /// Available and held together.
    pub fn total(self) -> Credits {
        self.available.checked_add(self.held).unwrap_or(self.available)
    }

    /// The balance of an owner after a movement of credits.
    pub fn after(self, entry: &LedgerEntry, owner: &str) -> Result<Self, CallError> {
        let amount = parse_amount(&entry.amount)?.micros();
        let after = |before: Credits, held: bool| {
            let is_part = |part: &SubAccount| i64::from(part.owner == owner && part.held == held);
            let change = (is_part(&entry.to) - is_part(&entry.from)) * amount;
            let sum = before.micros().checked_add(change).map(Credits::from_micros);
            sum.ok_or_else(|| unreadable("the ledger's sum is too large"))
        };
        Ok(Self { available: after(self.available, false)?, held: after(self.held, true)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::v1::parse_json;

    #[test]
    fn amounts_are_read_to_the_last_digit_and_below_zero() {
        let parse =
            |digits: &str| parse_amount(&RawValue::from_string(digits.into()).expect("JSON"));
        for (digits, micros) in [("3.141593", 3_141_593), ("-126.00", -126_000_000), ("0.00", 0)] {
            assert_eq!(parse(digits).expect(digits).micros(), micros);
        }
        assert!(parse("null").is_err() && parse("0.1234567").is_err());
    }

    #[test]
    fn a_line_takes_from_one_pocket_what_it_gives_to_the_other() {
        let text = r#"{"id":1,"at":"t","kind":"hold","from":{"owner":"a","held":false},
            "to":{"owner":"a","held":true},"amount":0.10,"job":null,"transfer":null}"#;
        let entry: LedgerEntry = parse_json(text).expect("an entry");
        let after = |owner: &str| Balance::default().after(&entry, owner).expect("an amount");
        assert_eq!((after("a").available.micros(), after("a").held.micros()), (-100_000, 100_000));
        assert_eq!(after("b"), Balance::default());
    }
}
