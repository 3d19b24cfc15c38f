//! `rialto wallet verify`: recounts the hub's balance from every ledger entry.

use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::json;

use super::super::hub_options::Access;
use super::super::output::{self, one_line};
use super::super::error::Trouble;
use super::super::views::{Account, Me, Pages, exactly, read};
use super::ledger_entry::Entry;
use crate::exit::Exit;

/// Attempts, if credits move during the count.
const TRIES_MAX: usize = 5;
/// Entries per page.
const LINES_MAX: usize = 200;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto wallet verify\n  rialto wallet verify --json\n\nAdds up all ledger entries of your account and compares the sum with the balance the hub shows.\nExits with 1 if they differ."
)]
pub struct Args {}

/// An account's balance, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    available: i64,
    held: i64,
}

/// A recount, and the balance it is compared with.
struct Counted {
    owner: String,
    lines: u64,
    counted: Held,
    shown: Held,
}

pub async fn run(access: &Access, _: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let counted = count(&hub).await?;
    let _ = match access.json {
        true => output::line(&counted.document()),
        false => output::line(&counted.told()),
    };
    Ok(if counted.agrees() { Exit::Ok } else { Exit::Failed })
}

/// Counts while nothing moves: the balance must be the same before and after.
async fn count(hub: &Hub) -> Result<Counted, Trouble> {
    for _ in 0..TRIES_MAX {
        let before = Me::ask(hub).await?.account;
        let (lines, counted) = add_up(hub, &before.owner).await?;
        let after = Me::ask(hub).await?.account;
        let shown = Held::shown(&before)?;
        if Held::shown(&after)? == shown {
            return Ok(Counted { owner: before.owner, lines, counted, shown });
        }
    }
    let message = "the balance changed during every count";
    Err(Trouble::failed(message, "try again when the account is idle"))
}

async fn add_up(hub: &Hub, owner: &str) -> Result<(u64, Held), CallError> {
    let mut pages = Pages::new(hub, "/v1/ledger", Vec::new());
    let (mut lines, mut sum, mut last) = (0, Held::default(), u64::MAX);
    while let Some(items) = pages.more(LINES_MAX).await? {
        for item in items {
            let entry: Entry = read(item.get())?;
            // A duplicate entry could hide a missing one.
            if entry.id >= last {
                return Err(CallError::Unreadable("ledger entries are out of order".to_owned()));
            }
            last = entry.id;
            lines += 1;
            sum = sum.after(&entry, owner)?;
        }
    }
    Ok((lines, sum))
}

impl Held {
    fn shown(account: &Account) -> Result<Self, CallError> {
        Ok(Self { available: exactly(&account.available)?, held: exactly(&account.held)? })
    }

    fn after(self, entry: &Entry, owner: &str) -> Result<Self, CallError> {
        let add = |sum: i64, held: bool| {
            let sum = sum.checked_add(entry.change(owner, held)?);
            sum.ok_or_else(|| CallError::Unreadable("the ledger's sum is too large".to_owned()))
        };
        Ok(Self { available: add(self.available, false)?, held: add(self.held, true)? })
    }

    fn told(self) -> String {
        format!("{} available, {} held", text(self.available), text(self.held))
    }
}

impl Counted {
    fn agrees(&self) -> bool {
        self.counted == self.shown
    }

    fn difference(&self) -> Held {
        Held {
            available: self.shown.available.saturating_sub(self.counted.available),
            held: self.shown.held.saturating_sub(self.counted.held),
        }
    }

    fn told(&self) -> String {
        let (owner, lines) = (one_line(&self.owner), self.lines);
        match self.agrees() {
            true => format!("{owner}: {}, confirmed by {lines} entries", self.shown.told()),
            false => format!(
                "{owner}: the hub shows {}, but {lines} entries add up to {}: a difference of {}; report it to the operator",
                self.shown.told(),
                self.counted.told(),
                self.difference().told()
            ),
        }
    }

    /// Amounts are built as text, so that they never pass through a float.
    fn document(&self) -> String {
        let held = |held: Held| {
            format!(r#"{{"available":{},"held":{}}}"#, text(held.available), text(held.held))
        };
        format!(
            r#"{{"ok":{},"owner":{},"lines":{},"counted":{},"shown":{},"difference":{}}}"#,
            self.agrees(),
            json!(self.owner),
            self.lines,
            held(self.counted),
            held(self.shown),
            held(self.difference())
        )
    }
}

fn text(micros: i64) -> String {
    Credits::from_micros(micros).text(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_to_the_digit() {
        let counted = Counted {
            owner: "acme".to_owned(),
            lines: 3,
            counted: Held { available: 1_000_000, held: 0 },
            shown: Held { available: 999_999, held: 0 },
        };
        assert!(!counted.agrees());
        assert!(counted.told().contains("difference of -0.000001 available, 0.00 held"));
        let document: serde_json::Value =
            serde_json::from_str(&counted.document()).expect("one document");
        assert_eq!(document["ok"], false);
        assert!(counted.document().contains(r#""difference":{"available":-0.000001,"held":0.00}"#));
    }
}
