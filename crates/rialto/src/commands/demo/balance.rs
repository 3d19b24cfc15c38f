//! Account balances, parsed exactly.

use std::collections::BTreeMap;

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use rialto_protocols::kit::raw_json;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Decimals of the smallest amounts.
const DECIMALS: usize = 6;
/// Minimum number of decimals shown.
const SHOWN: usize = 2;

/// An amount that is written as a JSON number with its exact digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub Credits);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        raw_json::amount(self.0, SHOWN).serialize(to)
    }
}

/// An account's available and held credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub available: Credits,
    pub held: Credits,
}

/// The members of an answer, each value as its original text.
pub type Members = BTreeMap<String, Box<RawValue>>;

impl Balance {
    /// The account of this name; needs the operator key or its owner's key.
    pub async fn of_owner(hub: &Hub, owner: &str) -> Result<Self, CallError> {
        Self::read(&fetch_members(hub, &format!("/v1/accounts/{owner}")).await?)
    }

    /// The account of the client's key.
    pub async fn of_caller(hub: &Hub) -> Result<Self, CallError> {
        let me = fetch_members(hub, "/v1/me").await?;
        let account = me.get("account").map_or("", |account| account.get());
        Self::read(&serde_json::from_str(account).map_err(unreadable)?)
    }

    /// Available and held together.
    pub fn total(self) -> Credits {
        self.available.checked_add(self.held).unwrap_or(self.available)
    }

    /// As text.
    pub fn describe(self) -> String {
        match self.held.is_zero() {
            true => format_amount(self.available),
            false => {
                format!("{} + {} held", format_amount(self.available), format_amount(self.held))
            }
        }
    }

    fn read(members: &Members) -> Result<Self, CallError> {
        let read = |name: &str| {
            let digits = members.get(name).map_or("", |value| value.get());
            parse_amount(digits)
        };
        Ok(Self { available: read("available")?, held: read("held")? })
    }
}

/// An amount as text for people.
pub fn format_amount(amount: Credits) -> String {
    amount.to_text(SHOWN)
}

/// Parses an amount. The account that issues credits is below zero.
pub fn parse_amount(digits: &str) -> Result<Credits, CallError> {
    let (below, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let amount = Credits::parse(digits, DECIMALS).map_err(unreadable)?;
    Ok(if below { Credits::from_micros(-amount.micros()) } else { amount })
}

/// Fetches a JSON object.
pub async fn fetch_members(hub: &Hub, path: &str) -> Result<Members, CallError> {
    let (_, text) = hub.call_text(Method::GET, path, None).await?;
    serde_json::from_str(&text).map_err(unreadable)
}

pub fn unreadable(error: impl std::fmt::Display) -> CallError {
    CallError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_last_digit_and_below_zero() {
        for (digits, micros) in [("3.141593", 3_141_593), ("-126.00", -126_000_000), ("0.00", 0)] {
            assert_eq!(parse_amount(digits).expect(digits).micros(), micros);
        }
        assert!(parse_amount("").is_err() && parse_amount("0.1234567").is_err());
    }
}
