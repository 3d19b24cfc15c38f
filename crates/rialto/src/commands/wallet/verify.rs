//! `rialto wallet verify`: recounts the hub's balance from every ledger entry.

use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::views::{AccountView, CallerView, Pages, parse_json, parse_millionths};
use super::ledger_entry::LedgerEntry;
use crate::exit::Exit;

/// Attempts, if credits move during the count.
const TRIES_MAX: usize = 5;
/// Entries per page.
const LINES_MAX: usize = 200;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto wallet verify\n  rialto wallet verify --json\n\nAdds up all ledger entries of your account and compares the sum with the balance the hub shows.\nExits with 1 if they differ."
)]
pub struct Args {}

/// An account's balance, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BalanceMicros {
    available: i64,
    held: i64,
}

/// A recount, and the balance it is compared with.
struct Recount {
    owner: String,
    lines: u64,
    counted: BalanceMicros,
    shown: BalanceMicros,
}

pub async fn run(access: &HubOptions, _: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let counted = count(&hub).await?;
    let _ = match access.json {
        true => output::print_line(&counted.to_json()),
        false => output::print_line(&counted.told()),
    };
    Ok(if counted.is_consistent() { Exit::Ok } else { Exit::Failed })
}

/// Counts while nothing moves: the balance must be the same before and after.
async fn count(hub: &Hub) -> Result<Recount, CliError> {
    for _ in 0..TRIES_MAX {
        let before = CallerView::fetch(hub).await?.account;
        let (lines, counted) = add_up(hub, &before.owner).await?;
        let after = CallerView::fetch(hub).await?.account;
        let shown = BalanceMicros::from_account(&before)?;
        if BalanceMicros::from_account(&after)? == shown {
            return Ok(Recount { owner: before.owner, lines, counted, shown });
        }
    }
    let message = "the balance changed during every count";
    Err(CliError::failed(message, "try again when the account is idle"))
}

async fn add_up(hub: &Hub, owner: &str) -> Result<(u64, BalanceMicros), CallError> {
    let mut pages = Pages::new(hub, "/v1/ledger", Vec::new());
    let (mut lines, mut sum, mut last) = (0, BalanceMicros::default(), u64::MAX);
    while let Some(items) = pages.next_page(LINES_MAX).await? {
        for item in items {
            let entry: LedgerEntry = parse_json(item.get())?;
            // A duplicate entry could hide a missing one.
            if entry.id >= last {
                return Err(CallError::Unreadable("ledger entries are out of order".to_owned()));
            }
            last = entry.id;
            lines += 1;
            sum = sum.plus_entry(&entry, owner)?;
        }
    }
    Ok((lines, sum))
}

impl BalanceMicros {
    fn from_account(account: &AccountView) -> Result<Self, CallError> {
        Ok(Self {
            available: parse_millionths(&account.available)?,
            held: parse_millionths(&account.held)?,
        })
    }

    fn plus_entry(self, entry: &LedgerEntry, owner: &str) -> Result<Self, CallError> {
        let add = |sum: i64, held: bool| {
            let sum = sum.checked_add(entry.change(owner, held)?);
            sum.ok_or_else(|| CallError::Unreadable("the ledger's sum is too large".to_owned()))
        };
        Ok(Self { available: add(self.available, false)?, held: add(self.held, true)? })
    }

    fn describe(self) -> String {
        format!("{} available, {} held", text(self.available), text(self.held))
    }
}

impl Recount {
    fn is_consistent(&self) -> bool {
        self.counted == self.shown
    }

    fn difference(&self) -> BalanceMicros {
        BalanceMicros {
            available: self.shown.available.saturating_sub(self.counted.available),
            held: self.shown.held.saturating_sub(self.counted.held),
        }
    }

    fn told(&self) -> String {
        let (owner, lines) = (escape_line(&self.owner), self.lines);
        match self.is_consistent() {
            true => format!("{owner}: {}, confirmed by {lines} entries", self.shown.describe()),
            false => format!(
                "{owner}: the hub shows {}, but {lines} entries add up to {}: a difference of {}; report it to the operator",
                self.shown.describe(),
                self.counted.describe(),
                self.difference().describe()
            ),
        }
    }

    /// Amounts are built as text, so that they never pass through a float.
    fn to_json(&self) -> String {
        let held = |held: BalanceMicros| {
            format!(r#"{{"available":{},"held":{}}}"#, text(held.available), text(held.held))
        };
        format!(
            r#"{{"ok":{},"owner":{},"lines":{},"counted":{},"shown":{},"difference":{}}}"#,
            self.is_consistent(),
            json!(self.owner),
            self.lines,
            held(self.counted),
            held(self.shown),
            held(self.difference())
        )
    }
}

fn text(micros: i64) -> String {
    Credits::from_micros(micros).to_text(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_to_the_digit() {
        let counted = Recount {
            owner: "acme".to_owned(),
            lines: 3,
            counted: BalanceMicros { available: 1_000_000, held: 0 },
            shown: BalanceMicros { available: 999_999, held: 0 },
        };
        assert!(!counted.is_consistent());
        assert!(counted.told().contains("difference of -0.000001 available, 0.00 held"));
        let document: serde_json::Value =
            serde_json::from_str(&counted.to_json()).expect("one document");
        assert_eq!(document["ok"], false);
        assert!(counted.to_json().contains(r#""difference":{"available":-0.000001,"held":0.00}"#));
    }
}
