//! One ledger entry, as the hub shows it.

use rialto_client::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::views::parse_millionths;

#[derive(Deserialize)]
pub struct LedgerEntry {
    pub id: u64,
    pub at: String,
    pub kind: String,
    pub from: SubAccount,
    pub to: SubAccount,
    pub amount: Box<RawValue>,
    pub job: Option<String>,
    pub transfer: Option<String>,
}

/// One of an owner's two parts: available or held.
#[derive(Deserialize)]
pub struct SubAccount {
    pub owner: String,
    pub held: bool,
}

impl LedgerEntry {
    /// How the entry changes a part, in millionths.
    pub fn change(&self, owner: &str, held: bool) -> Result<i64, CallError> {
        let amount = parse_millionths(&self.amount)?;
        let is = |pocket: &SubAccount| pocket.owner == owner && pocket.held == held;
        Ok(if is(&self.to) { amount } else { 0 } - if is(&self.from) { amount } else { 0 })
    }
}

impl SubAccount {
    pub fn describe(&self) -> String {
        format!("{}{}", self.owner, if self.held { " (held)" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_from_one_pocket_what_it_gives_to_the_other() {
        let text = r#"{"id":1,"at":"t","kind":"hold","from":{"owner":"a","held":false},
            "to":{"owner":"a","held":true},"amount":0.10,"job":null,"transfer":null}"#;
        let entry: LedgerEntry = serde_json::from_str(text).expect("a line");
        let change = |owner: &str, held| entry.change(owner, held).expect("an amount");
        assert_eq!((change("a", false), change("a", true)), (-100_000, 100_000));
        assert_eq!((change("b", false), change("b", true)), (0, 0));
        assert_eq!(entry.to.describe(), "a (held)");
    }
}
