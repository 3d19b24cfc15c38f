//! `rialto wallet ledger` and `rialto wallet verify`: list the movements of an account, and recount
//! its balance from them.

use rialto_client::CallError;
use rialto_core::money::Credits;
use serde::Serialize;

use crate::commands::v1::{Balance, LedgerEntry, PAGE_MAX, SubAccount, format_amount, unreadable};
use crate::commands::{
    Answer, CliError, CliResult, Column, Exit, HubOptions, Table, V1, escape_line, output,
};

/// Attempts, if credits move during the count.
const TRIES_MAX: usize = 5;

#[derive(clap::Args)]
pub struct Args {
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// List all entries
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

pub async fn list(options: &HubOptions, args: &Args) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let mut pages = api.ledger();
    let entries = pages.take(if args.all { u32::MAX } else { args.limit }).await?;
    if options.json {
        return Ok(output::print_list(entries.iter().map(|entry| entry.text.as_str())));
    }
    table(&entries)?.print();
    if pages.has_more() {
        output::print_stderr("there are more entries; --all lists them");
    }
    Ok(Exit::Ok)
}

fn table(entries: &[Answer<LedgerEntry>]) -> Result<Table, CallError> {
    let mut table = Table::new([
        Column::time("AT"),
        Column::text("KIND"),
        Column::number("AMOUNT"),
        Column::flexible("FROM"),
        Column::flexible("TO"),
        Column::flexible("FOR"),
    ]);
    for entry in entries {
        let LedgerEntry { at, kind, from, to, amount, job, transfer, .. } = entry.parse()?;
        let reason = job.or(transfer).unwrap_or_default();
        table.push_row([&at, &kind, amount.get(), &from.describe(), &to.describe(), &reason]);
    }
    Ok(table)
}

impl SubAccount {
    fn describe(&self) -> String {
        format!("{}{}", self.owner, if self.held { " (held)" } else { "" })
    }
}

/// A recount, and the balance it is compared with.
#[derive(Serialize)]
struct Recount {
    owner: String,
    /// The number of ledger entries.
    lines: u64,
    counted: Balance,
    shown: Balance,
}

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    #[serde(flatten)]
    recount: &'a Recount,
    difference: Balance,
}

pub async fn verify(options: &HubOptions) -> CliResult {
    let (api, _) = options.client_with_key()?;
    let recount = count(&api).await?;
    let document = serde_json::to_string(&recount.document()).map_err(unreadable)?;
    output::print(options.json, document, || recount.describe());
    Ok(if recount.is_consistent() { Exit::Ok } else { Exit::Failed })
}

/// Counts while nothing moves: the balance must be the same before and after.
async fn count(api: &V1) -> CliResult<Recount> {
    for _ in 0..TRIES_MAX {
        let before = api.me().await?.account;
        let (lines, counted) = add_up(api, &before.owner).await?;
        let after = api.me().await?.account;
        let shown = before.balance()?;
        if after.balance()? == shown {
            return Ok(Recount { owner: before.owner, lines, counted, shown });
        }
    }
    let message = "the balance changed during every count";
    Err(CliError::failed(message, "try again when the account is idle"))
}

async fn add_up(api: &V1, owner: &str) -> Result<(u64, Balance), CallError> {
    let mut pages = api.ledger();
    let (mut entries, mut sum, mut last) = (0, Balance::default(), u64::MAX);
    while let Some(items) = pages.next_page(PAGE_MAX).await? {
        for item in items {
            let entry = item.parse()?;
            // A duplicate entry could hide a missing one.
            if entry.id >= last {
                return Err(unreadable("ledger entries are out of order"));
            }
            last = entry.id;
            entries += 1;
            sum = sum.after(&entry, owner)?;
        }
    }
    Ok((entries, sum))
}

fn describe(balance: Balance) -> String {
    let Balance { available, held } = balance;
    format!("{} available, {} held", format_amount(available), format_amount(held))
}

impl Recount {
    fn is_consistent(&self) -> bool {
        self.counted == self.shown
    }

    fn difference(&self) -> Balance {
        let minus = |one: Credits, other: Credits| {
            Credits::from_micros(one.micros().saturating_sub(other.micros()))
        };
        Balance {
            available: minus(self.shown.available, self.counted.available),
            held: minus(self.shown.held, self.counted.held),
        }
    }

    fn describe(&self) -> String {
        let (owner, entries, shown) = (escape_line(&self.owner), self.lines, describe(self.shown));
        if self.is_consistent() {
            return format!("{owner}: {shown}, confirmed by {entries} entries");
        }
        let (counted, difference) = (describe(self.counted), describe(self.difference()));
        format!(
            "{owner}: the hub shows {shown}, but {entries} entries add up to {counted}: a difference of {difference}; report it to the operator"
        )
    }

    fn document(&self) -> Document<'_> {
        Document { ok: self.is_consistent(), recount: self, difference: self.difference() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

    #[test]
    fn lines_fit_a_terminal() {
        let line = |kind: &str, to: &str, job: &str| {
            Answer::new(format!(
                r#"{{"id":7,"at":"2026-02-11T14:15:09.123Z","kind":"{kind}","from":{{"owner":"alice-1f2e3d4c","held":true}},
                "to":{{"owner":"{to}","held":true}},"amount":1000.00,"job":{job},"transfer":null}}"#
            ))
        };
        let job = r#""f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#;
        let lines =
            [line("transfer", "a-company-with-a-long-name", job), line("grant", "b", "null")];
        let table = table(&lines).expect("a table");
        assert_fits(&table, "AT KIND AMOUNT FROM TO FOR");
        assert!(table.lines(None)[1].contains("  alice-1f2e3d4c (held)  "));
    }

    #[test]
    fn a_difference_is_told_to_the_digit() {
        let recount = Recount {
            owner: "acme".to_owned(),
            lines: 3,
            counted: Balance { available: Credits::from_micros(1_000_000), held: Credits::ZERO },
            shown: Balance { available: Credits::from_micros(999_999), held: Credits::ZERO },
        };
        assert!(!recount.is_consistent());
        assert!(recount.describe().contains("difference of -0.000001 available, 0.00 held"));
        let document = serde_json::to_string(&recount.document()).expect("a document");
        let expected = r#"{"ok":false,"owner":"acme","lines":3,"counted":{"available":1.00,"held":0.00},"shown":{"available":0.999999,"held":0.00},"difference":{"available":-0.000001,"held":0.00}}"#;
        assert_eq!(document, expected);
    }
}
